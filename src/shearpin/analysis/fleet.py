"""Many runs under many settings, in one process or several.

Contract: what comes out does not depend on how many processes there are. Runs are read in pieces,
so memory grows with the rows that are kept and not with the files. A run on which the most eager
settings are silent is not replayed under the others: all of them are silent on it.
"""

from __future__ import annotations

import gzip
import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import ClassVar, Final, NamedTuple, cast

from shearpin.analysis.labels import Label
from shearpin.analysis.quality import Judged, judge_run
from shearpin.core.detectors import Detector, Probe
from shearpin.core.seen import Seen
from shearpin.core.settings import Settings
from shearpin.errors import TraceError
from shearpin.findings import Finding
from shearpin.traces import read_runs

__all__ = ["Piece", "Results", "eager", "evaluate", "pieces", "speaking"]

_PIECE_BYTES: Final = 1_000_000


class Piece(NamedTuple):
    """Some whole lines of a trace file. `first` is the number of its first line."""

    name: str
    first: int
    lines: bytes
    source: str = ""


class Results(NamedTuple):
    """Rows of each settings, in order of the runs."""

    rows: tuple[list[Judged], ...]
    bad: int = 0


def pieces(paths: Iterable[str | Path], size: int = _PIECE_BYTES) -> Iterator[Piece]:
    """The lines of some trace files, in pieces of about `size` bytes (unpacked).

    Raises:
        TraceError: a file cannot be read.
    """
    for path in paths:
        try:
            with Path(path).open("rb") as opened:
                packed = opened.peek(2)[:2] == b"\x1f\x8b"
                stream = gzip.GzipFile(fileobj=opened) if packed else opened
                first, kept, held = 1, list[bytes](), 0
                for line in stream:
                    kept.append(line)
                    held += len(line)
                    if held >= size:
                        yield Piece(str(path), first, b"".join(kept))
                        first, kept, held = first + len(kept), [], 0
                if kept:
                    yield Piece(str(path), first, b"".join(kept))
        except (OSError, EOFError) as error:
            raise TraceError(f"{path}: cannot be read: {error}") from error


def evaluate(
    given: Iterable[Piece],
    settings: Sequence[Settings],
    labels: Mapping[str, Label],
    *,
    jobs: int = 1,
    ray: str | None = None,
    skip_bad: bool = False,
    advance: Callable[[int], None] | None = None,
) -> Results:
    """Every run under every settings.

    Args:
        given: what to read; see `pieces`.
        settings: to judge by. The rows come in the same order.
        labels: by run.
        jobs: processes; 1 works in this one.
        ray: address of a Ray cluster to work on instead; `local` starts one on this machine.
        skip_bad: leave lines out that cannot be read, and count them.
        advance: called with the number of runs that are done, for a progress bar.

    Raises:
        TraceError: a line cannot be read and `skip_bad` is false.
        ConfigError: Ray is not installed, or its cluster cannot be reached.
    """
    work = partial(_piece, settings=tuple(settings), labels=dict(labels), skip_bad=skip_bad)
    total: tuple[list[Judged], ...] = tuple([] for _ in settings)
    bad = 0
    if ray is not None:
        from shearpin.analysis.cluster import spread_over_ray

        done = spread_over_ray(work, given, ray)
    else:
        done = map(work, given) if jobs <= 1 else _spread(work, given, jobs)
    for rows, wrong in done:
        for kept, new in zip(total, rows, strict=True):
            kept.extend(new)
        bad += wrong
        if advance is not None and rows:
            advance(len(rows[0]))
    return Results(total, bad)


_Done = tuple[list[list[Judged]], int]


def _spread(work: Callable[[Piece], _Done], given: Iterable[Piece], jobs: int) -> Iterator[_Done]:
    """The results in order, with at most a few pieces a process in memory."""
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        waiting: list[Future[_Done]] = []
        for piece in given:
            waiting.append(pool.submit(work, piece))
            while len(waiting) > 3 * jobs:
                wait(waiting[:1], return_when=FIRST_COMPLETED)
                yield waiting.pop(0).result()
        for future in waiting:
            yield future.result()


def _piece(
    piece: Piece, *, settings: tuple[Settings, ...], labels: Mapping[str, Label], skip_bad: bool
) -> _Done:
    rows: list[list[Judged]] = [[] for _ in settings]
    errors: list[TraceError] = []
    lines = io.BytesIO(b"\n" * (piece.first - 1) + piece.lines)  # errors name the line in the file
    stream = cast("io.BufferedReader", io.BufferedReader(lines))
    overridden = any(judge.overrides for judge in settings)
    filter_ = eager(settings[0]) if len(settings) > 2 and not overridden else None
    for run in read_runs(stream, name=piece.name, on_bad=errors.append if skip_bad else None):
        label = labels.get(run.run)
        if filter_ is not None:
            row = judge_run(run, filter_, label)
            if row.nudge is None:
                for kept in rows:
                    kept.append(row)
                continue
        for kept, judge in zip(rows, settings, strict=True):
            kept.append(judge_run(run, judge, label))
    return rows, len(errors)


def eager(settings: Settings) -> Settings:
    """The same rules as impatient as they can be: where they are silent, every patience is."""
    return replace(settings, patience=0.0)


@dataclass(frozen=True)
class _Witnessed:
    """A rule that notes that it has spoken."""

    rule: Detector
    spoke: set[str]
    family: ClassVar[str]
    watches: ClassVar[tuple[type[Seen], ...]]

    def probe(self) -> Probe:
        return _Witness(self.rule.probe(), self.rule.family, self.spoke)


class _Witness:
    def __init__(self, probe: Probe, family: str, spoke: set[str]) -> None:
        self._probe, self._family, self._spoke = probe, family, spoke

    def observe(self, seen: Seen) -> Finding | None:
        finding = self._probe.observe(seen)
        if finding is not None and finding.level:
            self._spoke.add(self._family)
        return finding

    def forget(self, agent: str | None) -> None:
        self._probe.forget(agent)

    def dump(self) -> object:
        return self._probe.dump()

    def load(self, data: object) -> None:
        self._probe.load(data)


def speaking(
    given: Iterable[Piece],
    settings: Settings,
    *,
    skip_bad: bool = False,
    advance: Callable[[int], None] | None = None,
) -> frozenset[str]:
    """The families of rules that have anything to say on these runs, however impatient.

    Only these are worth tuning. Runs in this process.
    """
    spoke: set[str] = set()
    impatient = eager(settings)
    witnessed: list[Detector] = []
    for rule in impatient.rules:
        kind = type("_Of", (_Witnessed,), {"family": rule.family, "watches": rule.watches})
        witnessed.append(kind(rule, spoke))
    watched = replace(impatient, detectors=tuple(witnessed))
    evaluate(given, [watched], {}, skip_bad=skip_bad, advance=advance)
    return frozenset(spoke)

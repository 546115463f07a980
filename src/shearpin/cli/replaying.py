"""The work behind `shearpin replay`; imported only when the command runs."""

from __future__ import annotations

import gc
import io
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, cast

import click
import orjson

from shearpin.analysis import Replay, judge, kind_of_run, replay_run
from shearpin.core.settings import Settings
from shearpin.errors import ShearpinError, TraceError
from shearpin.report.replays import ReplayTotals
from shearpin.traces import TraceRun, read_runs

__all__ = ["Options", "run_replay"]

_OK, _FAILED, _BAD_INPUT = 0, 1, 2
_GARBAGE_THRESHOLD = 50_000


class Options(NamedTuple):
    """What was asked for on the command line."""

    files: tuple[str, ...]
    as_json: bool
    risk: bool
    summary: bool
    check: bool
    config: Path | None
    skip_bad: bool
    report: Path | None


def run_replay(options: Options) -> int:
    """Replays all files and returns the exit code."""
    totals = ReplayTotals()
    try:
        settings = _settings(options.config)
        with _fewer_collections(), _progress(options.files) as advance:
            for file in options.files:
                _replay_file(file, settings, options, totals, advance)
    except ShearpinError as error:
        click.echo(f"Error: {error}", err=True)
        return _BAD_INPUT
    if options.report is not None:
        from shearpin.report.html import render_replays

        try:
            options.report.write_text(render_replays(totals), encoding="utf-8")
        except OSError as error:
            click.echo(f"Error: {options.report} cannot be written: {error.strerror}", err=True)
            return _BAD_INPUT
    if options.summary:
        from rich.console import Console

        from shearpin.report.terminal import print_kinds

        print_kinds(totals, Console(stderr=options.as_json))
    elif not options.as_json:
        from shearpin.report.terminal import print_replays

        print_replays(totals)
    if totals.bad:
        click.echo(f"{totals.bad} bad line(s) skipped", err=True)
    if options.check:
        if not totals.passed + totals.failed:
            said = f"none of {totals.runs:,} runs carries `expect`, so --check has nothing to check"
            click.echo(f"Error: {said}", err=True)
            return _BAD_INPUT
        click.echo(f"{totals.passed} passed, {totals.failed} failed", err=True)
    return _FAILED if totals.failed else _OK


def _settings(config: Path | None) -> Settings:
    if config is None:
        return Settings()
    from shearpin.cli.reading import guard_of

    return guard_of(config).settings


def _replay_file(
    file: str,
    settings: Settings,
    options: Options,
    totals: ReplayTotals,
    advance: Callable[[int], None],
) -> None:
    def skip(error: TraceError) -> None:
        totals.bad += 1
        click.echo(f"Skipped: {error}", err=True)

    from shearpin.cli.reading import UnknownKeys

    with _opened(file) as (stream, name):
        unknown = UnknownKeys(name)
        out = sys.stdout.buffer if options.as_json else None
        position = 0
        for run in read_runs(stream, name=name, on_bad=skip if options.skip_bad else None):
            unknown.see(run)
            replay = replay_run(run, settings)
            failures = _judged(run, replay) if options.check else None
            kind = kind_of_run(run, replay) if replay.verdicts else None
            totals.add(replay.row(failures, None if kind is None else kind.name))
            totals.faults += len(replay.faults)
            if out is not None:
                data = replay.to_json()
                if options.risk:
                    data["risk"] = _risk(run)
                out.write(orjson.dumps(data, option=orjson.OPT_APPEND_NEWLINE))
            if stream.seekable():
                advance(stream.tell() - position)
                position = stream.tell()
        if out is not None:
            out.flush()
        unknown.say()


def _risk(run: TraceRun) -> dict[str, object]:
    """The highest loop probability of a run, and the step at which it was reached first."""
    from shearpin.analysis.risk import shipped_model

    scores = shipped_model().scores(run)
    peak = max(scores, default=0.0)
    return {"peak": round(peak, 3), "step": scores.index(peak) + 1 if scores else None}


def _judged(run: TraceRun, replay: Replay) -> list[str] | None:
    if run.expect is None:
        return None
    failures = judge(run.expect, replay)
    for failure in failures:
        click.echo(f"FAILED {run.run} ({run.origin}): {failure}", err=True)
    return failures


@contextmanager
def _fewer_collections() -> Generator[None]:
    """A replay makes many small objects and no cycles: frequent collections only cost time."""
    before = gc.get_threshold()
    gc.set_threshold(_GARBAGE_THRESHOLD)
    try:
        yield
    finally:
        gc.set_threshold(*before)


@contextmanager
def _opened(file: str) -> Generator[tuple[io.BufferedReader, str]]:
    if file == "-":
        stream: object = sys.stdin.buffer
        if not isinstance(stream, io.BufferedReader):
            stream = io.BufferedReader(cast("io.RawIOBase", stream))
        yield cast("io.BufferedReader", stream), "<stdin>"
        return
    with Path(file).open("rb") as opened:
        yield opened, file


@contextmanager
def _progress(files: tuple[str, ...]) -> Generator[Callable[[int], None]]:
    """A bar over the bytes read, on standard error, where that is a terminal."""
    if not sys.stderr.isatty() or "-" in files:
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import Progress

    total = sum(Path(file).stat().st_size for file in files)
    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("Replaying", total=total)
        yield lambda read: bar.advance(task, read)

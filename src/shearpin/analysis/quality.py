"""How good a guard is on recorded runs: false alarms, catches, delay, and what it saves.

A run is boiled down to a `Judged` row; a `Score` adds rows up. Definitions:

* *wrong* is any verdict on a run that succeeded and is not labelled as a loop;
* a labelled loop is *caught* by a verdict at or after its onset (a verdict before it is none);
* *precision* is over labelled runs: loops caught, among all labelled runs with a verdict;
* *saved* are the steps and tokens after a stop on runs that failed. The replay is open loop, so a
  nudge saves nothing here, though it may in life.

Tokens are the recorded ones; where a run holds none, every step is taken to send the whole history,
at four characters a token.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import PurePath
from typing import Final, NamedTuple

from shearpin.analysis.labels import Label
from shearpin.analysis.replay import replay_run
from shearpin.core.canonical import canonical_json
from shearpin.core.outcomes import result_text
from shearpin.core.settings import Settings
from shearpin.findings import Severity
from shearpin.traces.model import TraceRun, TraceStep

__all__ = ["Fired", "Judged", "Score", "judge_run", "judged", "score", "source_of"]

_CHARACTERS_PER_TOKEN: Final = 4


class Fired(NamedTuple):
    """A verdict of any guard, Shearpin or a baseline: at which step, how strong, for what."""

    step: int
    severity: Severity
    finding: str = ""


class Judged(NamedTuple):
    """One run and what a guard said about it.

    Attributes:
        source: where the run comes from; sources are held out together.
        label: what a person said of it; None where nobody looked.
        tokens: of the whole run; estimated where `estimated` says so.
        nudge, block, stop: first step of a verdict at least that strong.
        caught: first step of a verdict at or after the onset of a labelled loop.
        tokens_saved: after the stop.
        findings: families that spoke, each with its strongest word.
    """

    run: str
    source: str
    outcome: str
    label: Label | None
    steps: int
    tokens: int
    estimated: bool
    nudge: int | None
    block: int | None
    stop: int | None
    caught: int | None
    tokens_saved: int
    findings: tuple[tuple[str, Severity], ...]

    @property
    def good(self) -> bool:
        """It succeeded and is not known to loop: any verdict on it is wrong."""
        return self.outcome == "success" and not (self.label and self.label.loop)

    @property
    def steps_saved(self) -> int:
        """Steps after the stop."""
        return 0 if self.stop is None else self.steps - self.stop


def source_of(run: TraceRun) -> str:
    """The source a run names, else the first part of its id, else the file it was read from."""
    source = run.raw.get("source")
    if isinstance(source, str) and source:
        return source
    first, slash, _ = run.run.partition("/")
    return first if slash else PurePath(run.origin.rpartition(":")[0]).name.partition(".")[0]


def judge_run(run: TraceRun, settings: Settings, label: Label | None = None) -> Judged:
    """A run as Shearpin judges it under these settings."""
    replay = replay_run(run, settings)
    fired = [Fired(v.step, v.severity, v.finding or v.verdict) for v in replay.verdicts]
    return judged(run, fired, label)


def judged(run: TraceRun, fired: Sequence[Fired], label: Label | None = None) -> Judged:
    """A run as some guard judged it, whose verdicts are given in order of steps."""
    first: dict[Severity, int] = {}
    strongest: dict[str, Severity] = {}
    for step, severity, finding in fired:
        for level in (Severity.NUDGE, Severity.BLOCK, Severity.STOP):
            if severity >= level:
                first.setdefault(level, step)
        strongest[finding] = max(severity, strongest.get(finding, Severity.NONE))
    onset = label.onset_step or 1 if label is not None and label.loop else None
    caught = None
    if onset is not None:
        caught = next((one.step for one in fired if one.step >= onset), None)
    stop = first.get(Severity.STOP)
    tokens, estimated = _tokens(run.steps)
    return Judged(
        run.run, source_of(run), run.outcome, label, len(run.steps), sum(tokens), estimated,
        first.get(Severity.NUDGE), first.get(Severity.BLOCK), stop, caught,
        0 if stop is None else sum(tokens[stop:]), tuple(sorted(strongest.items())),
    )  # fmt: skip


def _tokens(steps: Sequence[TraceStep]) -> tuple[list[int], bool]:
    """Tokens of each step, and whether they are estimated."""
    if any(step.usage is not None for step in steps):
        used = [step.usage for step in steps]
        return [0 if use is None else use.input_tokens + use.output_tokens for use in used], False
    sizes = [
        len(step.text)
        + sum(
            len(call.args if isinstance(call.args, str) else canonical_json(call.args))
            + len(result_text(call.result))
            for call in step.calls
        )
        for step in steps
    ]
    return [total // _CHARACTERS_PER_TOKEN for total in accumulate(sizes)], True


@dataclass(slots=True)
class Score:
    """Sums over judged runs. Shares are None where there is nothing to take a share of."""

    runs: int = 0
    steps: int = 0
    good: int = 0
    good_nudged: int = 0
    good_blocked: int = 0
    good_stopped: int = 0
    failed: int = 0
    failed_nudged: int = 0
    failed_stopped: int = 0
    loops: int = 0
    caught: int = 0
    clean: int = 0
    clean_nudged: int = 0
    failed_steps: int = 0
    steps_saved: int = 0
    failed_tokens: int = 0
    tokens_saved: int = 0
    delays: list[int] = field(default_factory=list[int])

    def add(self, row: Judged) -> None:
        """Counts one run."""
        self.runs += 1
        self.steps += row.steps
        if row.good:
            self.good += 1
            self.good_nudged += row.nudge is not None
            self.good_blocked += row.block is not None
            self.good_stopped += row.stop is not None
        elif row.outcome == "fail":
            self.failed += 1
            self.failed_nudged += row.nudge is not None
            self.failed_stopped += row.stop is not None
            self.failed_steps += row.steps
            self.steps_saved += row.steps_saved
            self.failed_tokens += row.tokens
            self.tokens_saved += row.tokens_saved
        if row.label is None:
            return
        if not row.label.loop:
            self.clean += 1
            self.clean_nudged += row.nudge is not None
            return
        self.loops += 1
        if row.caught is not None:
            self.caught += 1
            self.delays.append(row.caught - (row.label.onset_step or 1))

    @property
    def wrong_nudges(self) -> float | None:
        """Share of good runs with any verdict."""
        return _share(self.good_nudged, self.good)

    @property
    def wrong_stops(self) -> float | None:
        """Share of good runs that were ended."""
        return _share(self.good_stopped, self.good)

    @property
    def recall(self) -> float | None:
        """Share of labelled loops that were caught."""
        return _share(self.caught, self.loops)

    @property
    def precision(self) -> float | None:
        """Share of loops among labelled runs with a verdict."""
        return _share(self.caught, self.caught + self.clean_nudged)

    @property
    def stopped(self) -> float | None:
        """Share of failed runs that were ended."""
        return _share(self.failed_stopped, self.failed)

    @property
    def saved_steps(self) -> float | None:
        """Share of the steps of failed runs that came after the stop."""
        return _share(self.steps_saved, self.failed_steps)

    @property
    def saved_tokens(self) -> float | None:
        """The same for tokens."""
        return _share(self.tokens_saved, self.failed_tokens)

    @property
    def median_delay(self) -> float | None:
        """Steps from the onset of a labelled loop to the first verdict, the middle value."""
        return statistics.median(self.delays) if self.delays else None

    @property
    def late_delay(self) -> int | None:
        """The same, the 90th percentile."""
        if not self.delays:
            return None
        return sorted(self.delays)[min(len(self.delays) - 1, int(0.9 * len(self.delays)))]

    def to_json(self) -> dict[str, object]:
        """Counts and shares as JSON-ready data."""
        counts: dict[str, object] = {
            name: getattr(self, name) for name in self.__slots__ if name != "delays"
        }
        for name in (
            "wrong_nudges", "wrong_stops", "recall", "precision", "stopped", "saved_steps",
            "saved_tokens", "median_delay", "late_delay",
        ):  # fmt: skip
            value: float | None = getattr(self, name)
            counts[name] = None if value is None else round(value, 4)
        return counts


def score(rows: Iterable[Judged]) -> Score:
    """The sums over some runs.

    Example:
        >>> score([]).recall is None
        True
    """
    total = Score()
    for row in rows:
        total.add(row)
    return total


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None

"""Does one running sum of evidence beat a threshold for each rule? Leave-one-source-out.

    python -m benchmarks.sequential CORPUS

Every rule is run as impatient as it can be, and whatever it says at a step is a sign. A sign's
weight is the logarithm of how much more often it comes in labelled loops (from the onset, ten steps
long) than in successful runs. The sum of weights decays from step to step and is never below zero;
a nudge is given once it passes a bound. Weights, decay and bound are fixed on all sources but one:
the bound is the lowest that nudges at most 0.6 % of their successful LLM runs. They are then
measured on the one left out, next to the guard's own rules.
"""

from __future__ import annotations

import math
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.measuring import save, table
from benchmarks.quality import group_of
from shearpin.analysis import replay
from shearpin.analysis.fleet import eager
from shearpin.analysis.labels import Label, read_labels
from shearpin.analysis.quality import Fired, Judged, judge_run, judged, score
from shearpin.core.seen import Seen
from shearpin.core.session import Session
from shearpin.core.settings import Settings
from shearpin.findings import Finding, Severity
from shearpin.traces import TraceRun, read_runs
from shearpin.verdicts import Verdict

DECAYS = (0.5, 0.7, 0.85, 0.95)
LOOP_STEPS = 10
TOLERATED = 0.006
WINDOW = 8


class Signs(NamedTuple):
    """A run with what the impatient rules said at each step."""

    run: TraceRun
    label: Label | None
    steps: Mapping[int, frozenset[str]]
    soft: frozenset[str]
    own: Judged


class Listening(Session):
    """A session that also writes down every finding, whatever the ladder makes of it."""

    heard: list[tuple[int, str, bool]]

    def _answer(self, finding: Finding, seen: Seen) -> Verdict:
        Listening.heard.append((self.step, finding.rule, finding.hard))
        return super()._answer(finding, seen)


def listen(run: TraceRun, settings: Settings, label: Label | None, own: Judged) -> Signs:
    Listening.heard = []
    original, replay.Session = replay.Session, Listening  # type: ignore[misc]
    try:
        replay.replay_run(run, settings)
    finally:
        replay.Session = original  # type: ignore[misc]
    steps: defaultdict[int, set[str]] = defaultdict(set)
    for step, rule, _ in Listening.heard:
        steps[step].add(rule)
    soft = frozenset(rule for _, rule, hard in Listening.heard if not hard)
    return Signs(run, label, {step: frozenset(found) for step, found in steps.items()}, soft, own)


def weights_of(runs: Sequence[Signs]) -> tuple[dict[str, float], float]:
    """Log-likelihood ratio of each sign, and that of a step without any."""
    loop: Counter[str] = Counter()
    calm: Counter[str] = Counter()
    loop_steps = calm_steps = 0
    for one in runs:
        if one.label is not None and one.label.loop:
            onset = one.label.onset_step or 1
            span = range(onset, min(len(one.run.steps), onset + LOOP_STEPS) + 1)
            loop_steps += len(span)
            for step in span:
                loop.update(one.steps.get(step, ()))
                loop["-"] += step not in one.steps
        elif one.own.good:
            calm_steps += len(one.run.steps)
            for found in one.steps.values():
                calm.update(found)
            calm["-"] += len(one.run.steps) - len(one.steps)

    def ratio(sign: str) -> float:
        return math.log(
            ((loop[sign] + 0.5) / (loop_steps + 1)) / ((calm[sign] + 0.5) / (calm_steps + 1))
        )

    return {sign: ratio(sign) for sign in {*loop, *calm} - {"-"}}, ratio("-")


def path(one: Signs, weights: Mapping[str, float], idle: float, decay: float) -> list[float]:
    total, sums = 0.0, []
    for step in range(1, len(one.run.steps) + 1):
        found = one.steps.get(step)
        gain = idle if found is None else max(weights.get(sign, 0.0) for sign in found)
        total = max(0.0, decay * total + gain)
        sums.append(total)
    return sums


def bound_of(runs: Sequence[Signs], paths: Sequence[list[float]]) -> float:
    peaks = sorted(
        (max(sums, default=0.0) for one, sums in zip(runs, paths, strict=True)
         if one.own.good and group_of(one.own.source) == "LLM agents"),
        reverse=True,
    )  # fmt: skip
    allowed = int(TOLERATED * len(peaks))
    return (peaks[allowed] if peaks else 0.0) + 1e-9


def nudged(one: Signs, sums: Sequence[float], bound: float) -> Judged:
    fired = [
        Fired(step, Severity.NUDGE, "sum") for step, total in enumerate(sums, 1) if total > bound
    ]
    return judged(one.run, fired, one.label)


def sequential(runs: Sequence[Signs]) -> list[Judged]:
    """Each source judged by what was fixed on the others."""
    rows: list[Judged] = []
    for source in sorted({one.own.source for one in runs}):
        train = [one for one in runs if one.own.source != source]
        test = [one for one in runs if one.own.source == source]
        weights, idle = weights_of(train)
        best: tuple[float, float, float] | None = None
        for decay in DECAYS:
            paths = [path(one, weights, idle, decay) for one in train]
            bound = bound_of(train, paths)
            made = score(nudged(o, sums, bound) for o, sums in zip(train, paths, strict=True))
            value = (made.recall or 0.0) + (made.precision or 0.0)
            if best is None or value > best[0]:
                best = (value, decay, bound)
        assert best is not None
        _, decay, bound = best
        rows += [nudged(one, path(one, weights, idle, decay), bound) for one in test]
    return rows


def together(runs: Sequence[Signs], different: int) -> list[Judged]:
    """The guard's own verdicts, and a nudge where several soft rules speak within a few steps."""
    rows: list[Judged] = []
    for one in runs:
        fired = [] if one.own.nudge is None else [Fired(one.own.nudge, Severity.NUDGE, "own")]
        for step in sorted(one.steps):
            near = {
                sign
                for other, found in one.steps.items()
                if step - WINDOW < other <= step
                for sign in found & one.soft
            }
            if len(near) >= different:
                fired.append(Fired(step, Severity.NUDGE, "together"))
        if one.own.caught is not None:
            fired.append(Fired(one.own.caught, Severity.NUDGE, "own"))
        rows.append(judged(one.run, sorted(fired), one.label))
    return rows


def line(name: str, rows: Iterable[Judged]) -> list[str]:
    kept = list(rows)
    llm = score(row for row in kept if group_of(row.source) == "LLM agents")
    code = score(row for row in kept if group_of(row.source) == "InterCode")
    every = score(kept)
    return [
        name,
        f"{llm.good_nudged}/{llm.good}",
        f"{code.good_nudged}/{code.good}",
        f"{every.caught}/{every.loops}",
        f"{every.clean_nudged}/{every.clean}",
        "-" if every.precision is None else f"{every.precision:.2f}",
        f"{every.median_delay:g}" if every.median_delay is not None else "-",
        f"{every.late_delay}",
        f"{code.failed_nudged}/{code.failed}",
    ]


def main() -> None:
    folder = Path(sys.argv[1])
    labels = read_labels([folder / "labels.jsonl"])
    settings = Settings()
    impatient = eager(settings)
    runs: list[Signs] = []
    for file in sorted(folder.glob("*.jsonl.gz")):
        for run in read_runs(file):
            label = labels.get(run.run)
            runs.append(listen(run, impatient, label, judge_run(run, settings, label)))
    lines = [
        line("a threshold for each rule (defaults)", (one.own for one in runs)),
        line("running sum, leave one source out", sequential(runs)),
        line("defaults, and two soft rules together", together(runs, 2)),
        line("defaults, and three soft rules together", together(runs, 3)),
    ]
    header = [
        "what nudges", "successful LLM runs", "successful InterCode runs", "loops caught",
        "no loops nudged", "precision", "delay", "p90", "failed InterCode runs",
    ]  # fmt: skip
    print(table(header, lines))
    weights, idle = weights_of(runs)
    ranked = sorted(weights.items(), key=lambda item: -item[1])
    print("\nweights on all sources:", {name: round(value, 1) for name, value in ranked}, idle)
    records: list[dict[str, object]] = [dict(zip(header, one, strict=True)) for one in lines]
    records.append({"weights": {name: round(value, 2) for name, value in ranked}})
    save("sequential", records)


if __name__ == "__main__":
    main()

"""Judges the verdicts on a behaviour case against what the case claims.

The claims, as the trace format defines them:

* `nudge_by: k` - after step k at the latest, a verdict at least as strong as a nudge has been
  given, whatever its family; `block_by` and `stop_by` likewise. A stronger verdict satisfies a
  weaker claim.
* `never` - severities that no verdict may reach. It is closed upwards: who may not block may not
  stop either.
* `quiet` - no verdict at all, at any step.
* `findings` - the reasons that are acceptable. They bind the *first* verdict that acts on the
  model: an early verdict for a wrong reason is a false alarm even where a right one follows, while
  later verdicts may name what the loop has turned into. Empty: any reason.

A case of which `findings` is not empty but no `*_by` is set merely tolerates a verdict; without one
it holds.
"""

from __future__ import annotations

from shearpin.analysis.replay import Replay, ReplayedVerdict
from shearpin.findings import Severity
from shearpin.traces.model import TraceExpect

__all__ = ["judge"]


def judge(expect: TraceExpect, replay: Replay) -> list[str]:
    """The claims that do not hold, one sentence each; empty where all hold.

    Example:
        >>> from shearpin.core.settings import Settings
        >>> from shearpin.analysis import replay_run
        >>> from shearpin.traces import parse_run
        >>> run = parse_run({"run": "r", "steps": [{"text": "hello"}]})
        >>> judge(TraceExpect(nudge_by=1), replay_run(run, Settings()))
        ['nudge by step 1 expected, but nothing was said']
    """
    failures: list[str] = []
    bounds = (
        (Severity.NUDGE, expect.nudge_by),
        (Severity.BLOCK, expect.block_by),
        (Severity.STOP, expect.stop_by),
    )
    for level, by in bounds:
        if by is not None:
            first = _first(replay, level)
            if first is None or first.step > by:
                failures.append(f"{level.label} by step {by} expected, but {_seen(replay, level)}")
    floor = Severity.NUDGE if expect.quiet else min(expect.never, default=None)
    if floor is not None:
        first = _first(replay, floor)
        if first is not None:
            allowed = "nothing" if floor is Severity.NUDGE else f"less than a {floor.label}"
            failures.append(f"{allowed} expected, but there was {_named(first)}")
    first = _first(replay, Severity.NUDGE)
    if expect.findings and first is not None and first.finding not in expect.findings:
        wanted = " or ".join(expect.findings)
        failures.append(f"a first verdict for {wanted} expected, but there was {_named(first)}")
    return failures


def _first(replay: Replay, level: Severity) -> ReplayedVerdict | None:
    return next((verdict for verdict in replay.verdicts if verdict.severity >= level), None)


def _seen(replay: Replay, level: Severity) -> str:
    """What happened instead of a verdict of this level in time."""
    first = _first(replay, level)
    if first is not None:
        return f"the first one came at step {first.step} ({first.finding})"
    if not replay.verdicts:
        return "nothing was said"
    strongest = max(replay.verdicts, key=lambda verdict: verdict.severity)
    return f"there was no more than {_named(strongest)}"


def _named(verdict: ReplayedVerdict) -> str:
    return f"a {verdict.severity.label} at step {verdict.step} for {verdict.finding}"

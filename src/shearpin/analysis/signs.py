"""What a recording shows around a verdict: the signs by which kinds of loops are told apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from shearpin.analysis.replay import Replay, ReplayedVerdict
from shearpin.core.outcomes import outcome_of, result_text
from shearpin.core.tools import command_word
from shearpin.report.taxonomy import Kind, Signs, kind_of
from shearpin.traces.model import TraceRun, TraceStep

__all__ = ["decisive", "kind_of_run", "signs_of"]

_BEFORE: Final = 8
"""Steps before a loop in which a summary may have caused it."""
_FAILING: Final = 6


def decisive(replay: Replay) -> ReplayedVerdict | None:
    """The first of the strongest verdicts."""
    strongest = max((verdict.severity for verdict in replay.verdicts), default=None)
    return next((one for one in replay.verdicts if one.severity == strongest), None)


def kind_of_run(run: TraceRun, replay: Replay) -> Kind | None:
    """The kind of loop that a replayed run holds; None where all was quiet."""
    verdict = decisive(replay)
    if verdict is None:
        return None
    return kind_of(verdict.rule, verdict.evidence, signs_of(run, verdict))


def signs_of(run: TraceRun, verdict: ReplayedVerdict) -> Signs:
    """What the steps of the loop, up to the verdict, show."""
    onset = verdict.evidence.get("onset_step")
    start = onset if isinstance(onset, int) and 1 <= onset <= verdict.step else verdict.step
    loop = run.steps[start - 1 : verdict.step]
    around = run.steps[max(0, start - 1 - _BEFORE) : verdict.step]
    tool = verdict.evidence.get("tool")
    asked = [call for step in reversed(loop) for call in step.calls if call.name == tool]
    names = {call.name for step in loop for call in step.calls}
    return Signs(
        command=command_word(asked[0].args) if asked else None,
        silent=not any(step.text.strip() for step in loop),
        one_tool=start <= 2 and len(names) == 1 and all(step.calls for step in loop),
        compacted=any(step.compacted for step in around),
        tools_failing=_failing(run.steps[: verdict.step]),
    )


def _failing(steps: Sequence[TraceStep]) -> int:
    """How many different tools failed in a row, up to the last step."""
    tools: set[str] = set()
    for step in reversed(steps[-_FAILING:]):
        for call in step.calls:
            outcome = outcome_of(result_text(call.result), call.status)
            if outcome not in ("error", "transient", "bad_args"):
                return len(tools)
            tools.add(call.name)
    return len(tools)

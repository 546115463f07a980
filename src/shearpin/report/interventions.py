"""What became of each intervention: read off the verdicts of a run and the way of its breaker.

Contract: an intervention has *helped* if new calls with new results followed within `WITHIN` rounds
(the breaker closed again on a pivot) before the same loop was spoken of again. Verdicts that were
not carried out (`observe`, `warn`) are no interventions: what follows them says how often loops
heal by themselves, and is marked so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, NamedTuple, TypeAlias

from shearpin.core.journal import TransitionRecord, VerdictRecord

__all__ = ["WITHIN", "After", "Intervention", "interventions_of"]

WITHIN: Final = 5
"""Rounds in which new calls with new results have to follow."""
After: TypeAlias = Literal["pivoted", "went_on", "stopped", "finished", "unknown"]


class Intervention(NamedTuple):
    """One nudge or block, and what came after it.

    Attributes:
        verdict: `nudge` or `block`.
        rule, cause, tool: what it was about; the cause also selects the wording.
        after: `pivoted` (it helped), `went_on` (the same loop was spoken of again), `stopped` (the
            run was ended next), `finished` (the run completed without either) or `unknown`.
        rounds: until then; None where nothing followed.
        acted: False where the mode kept it from being carried out.
    """

    step: int
    verdict: str
    rule: str | None
    cause: str | None
    tool: str | None
    agent: str
    after: After
    rounds: int | None
    acted: bool

    @property
    def helped(self) -> bool:
        """Whether new calls with new results followed soon."""
        return self.after == "pivoted"


def interventions_of(
    verdicts: Sequence[VerdictRecord], transitions: Sequence[TransitionRecord], outcome: str
) -> tuple[Intervention, ...]:
    """What became of each nudge and block of a run, in order.

    Args:
        verdicts, transitions: of the run, oldest first.
        outcome: how the run ended, `completed` among others.
    """
    pivots = [record.step for record in transitions if record.signal == "pivoted"]
    found: list[Intervention] = []
    for place, record in enumerate(verdicts):
        if record.severity not in ("nudge", "block"):
            continue
        after, step = _after(record, verdicts[place + 1 :], pivots, outcome)
        cause, tool = record.evidence.get("cause"), record.evidence.get("tool")
        found.append(
            Intervention(
                record.step,
                record.severity,
                record.rule,
                cause if isinstance(cause, str) else None,
                tool if isinstance(tool, str) else None,
                record.agent,
                after,
                None if step is None else step - record.step,
                record.acted,
            )
        )
    return tuple(found)


def _after(
    record: VerdictRecord, later: Sequence[VerdictRecord], pivots: Sequence[int], outcome: str
) -> tuple[After, int | None]:
    pivot = next((step for step in pivots if step > record.step), None)
    again = next((one for one in later if one.key == record.key or one.severity == "stop"), None)
    limit = min(record.step + WITHIN, record.step + WITHIN if again is None else again.step)
    if pivot is not None and pivot <= limit:
        return "pivoted", pivot
    if again is not None:
        return ("stopped" if again.severity == "stop" else "went_on"), again.step
    return ("finished" if outcome == "completed" else "unknown"), None

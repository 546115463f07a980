"""What became of each intervention: read off the verdicts of a run and the way of its breaker.

Contract: an intervention has *helped* if new calls with new results followed within `WITHIN` rounds
(the breaker closed again on a pivot) before the same loop was spoken of again. Verdicts that were
not carried out (`observe`, `warn`) are no interventions: what follows them says how often loops
heal by themselves, and is marked so.

What it cost is what the conversation used from the verdict until what followed it. Tokens are
counted; dollars are the run's price per token times these, for a run is not priced step by step.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Final, Literal, NamedTuple, TypeAlias

from shearpin.core.journal import TransitionRecord, VerdictRecord
from shearpin.events import RunOutcome

__all__ = ["WITHIN", "After", "Ending", "Intervention", "ReportOutcome", "interventions_of"]

WITHIN: Final = 5
"""Rounds in which new calls with new results have to follow."""
_KINDS: Final = ("nudge", "block", "rollback", "reroute")
_MICRO: Final = Decimal("0.000001")
After: TypeAlias = Literal["pivoted", "went_on", "stopped", "finished", "unknown"]

ReportOutcome: TypeAlias = RunOutcome | Literal["unknown"]
"""How a run ended, as far as a report can tell: `unknown` where no run is known."""


class Ending(NamedTuple):
    """How a run ended, as far as its interventions are concerned.

    Attributes:
        outcome: of the run.
        tokens: that the conversation had used by then.
        dollars_per_token: of the run, where its price is known.
    """

    outcome: ReportOutcome
    tokens: int = 0
    dollars_per_token: Decimal | None = None


class Intervention(NamedTuple):
    """One nudge, block, rollback or reroute, and what came after it.

    Attributes:
        verdict: `nudge`, `block`, `rollback` or `reroute`.
        rule, cause, tool: what it was about; the cause also selects the wording.
        after: `pivoted` (it helped), `went_on` (the same loop was spoken of again), `stopped` (the
            run was ended next), `finished` (the run completed without either) or `unknown`.
        rounds: until then; None where nothing followed.
        acted: False where the mode kept it from being carried out.
        model: of the agent, where it is known.
        template: which wording or way out was chosen, where there was a choice.
        tokens: used from the verdict until what followed it.
        usd: what these cost, where the run is priced.
        outcome: how the run ended.
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
    model: str | None = None
    template: str | None = None
    tokens: int = 0
    usd: Decimal | None = None
    outcome: ReportOutcome = "completed"

    @property
    def helped(self) -> bool:
        """Whether new calls with new results followed soon."""
        return self.after == "pivoted"

    @property
    def ended_well(self) -> bool:
        """Whether the run completed: it was neither stopped nor did it fail."""
        return self.outcome == "completed"

    def to_json(self) -> dict[str, object]:
        """JSON-ready data; dollars are a string, because they are exact."""
        out: dict[str, object] = self._asdict()
        out["usd"] = None if self.usd is None else str(self.usd)
        return out


def interventions_of(
    verdicts: Sequence[VerdictRecord], transitions: Sequence[TransitionRecord], ending: Ending
) -> tuple[Intervention, ...]:
    """What became of each nudge, block, rollback and reroute of a run, in order.

    Args:
        verdicts, transitions: of the run, oldest first.
        ending: how the run ended.
    """
    pivots = [record for record in transitions if record.signal == "pivoted"]
    found: list[Intervention] = []
    for place, record in enumerate(verdicts):
        if record.verdict not in _KINDS:
            continue
        after, then = _after(record, verdicts[place + 1 :], pivots, ending.outcome)
        tokens = max(0, (ending.tokens if then is None else then.tokens) - record.tokens)
        price = ending.dollars_per_token
        found.append(
            Intervention(
                record.step,
                record.verdict,
                record.rule,
                _word(record, "cause"),
                _word(record, "tool"),
                record.agent,
                after,
                None if then is None else then.step - record.step,
                record.acted,
                record.model or None,
                _word(record, "choice"),
                tokens,
                None if price is None else (price * tokens).quantize(_MICRO),
                ending.outcome,
            )
        )
    return tuple(found)


def _word(record: VerdictRecord, name: str) -> str | None:
    value = record.evidence.get(name)
    return value if isinstance(value, str) else None


def _after(
    record: VerdictRecord,
    later: Sequence[VerdictRecord],
    pivots: Sequence[TransitionRecord],
    outcome: str,
) -> tuple[After, VerdictRecord | TransitionRecord | None]:
    pivot = next((one for one in pivots if one.step > record.step), None)
    again = next((one for one in later if one.key == record.key or one.severity == "stop"), None)
    limit = min(record.step + WITHIN, record.step + WITHIN if again is None else again.step)
    if pivot is not None and pivot.step <= limit:
        return "pivoted", pivot
    if again is not None:
        return ("stopped" if again.severity == "stop" else "went_on"), again
    return ("finished" if outcome == "completed" else "unknown"), None

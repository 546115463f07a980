"""How weak findings combine: notes that justify nothing alone may justify a nudge together.

Contract: a rule that only takes notes (level NONE) has a weight below. The weights of an agent's
notes of the last `WINDOW` rounds are added up, each rule counted once and each group of rules by
its heaviest member: rules that look at the same thing are no two witnesses. At 1 or more the agent
is nudged. Notes never block and never stop; whoever wants that raises a rule's own ceiling.

*Source*: calibrated on recorded public runs (docs/decisions/0007): the notes of the default rules
reach 1 on none of 1,643 successful runs. A running sum of log-likelihood ratios over all findings
was tried in place of the rules' own thresholds, and did worse on sources held out.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from typing import Final

from shearpin.core.stored import row, sequence, text, whole
from shearpin.findings import Finding, Severity

__all__ = ["WEIGHTS", "WINDOW", "Notes", "total_weight"]

WINDOW: Final = 8
"""Rounds for which a note counts."""
WEIGHTS: Final[dict[str, tuple[str, float]]] = {
    # rule: (what it looks at, weight)
    "swelling": ("output", 0.5),
    "velocity": ("prompt", 0.4),
    "slow_leak": ("prompt", 0.0),  # more frequent on successes: it follows the length of a run
    "paging": ("reading", 0.4),
    "untested_edits": ("work", 0.0),  # likewise
    "same_input": ("input", 0.6),
    "no_progress": ("work", 0.6),
    "semantic_oscillation": ("words", 0.6),
    "loop_risk": ("all", 0.0),  # it is made of what the others see
}
_OTHER: Final = 0.4
"""Weight of a rule that is not in the table, such as one that a user brings along."""
_AGENTS: Final = 6


class Notes:
    """The weak findings of each agent's last rounds; bounded."""

    __slots__ = ("_agents",)

    def __init__(self) -> None:
        self._agents: OrderedDict[str, dict[str, int]] = OrderedDict()

    def add(self, finding: Finding, step: int) -> Finding | None:
        """Take a note; what it amounts to with the others, once that is enough for a nudge."""
        agent = finding.agent
        notes = self._agents.setdefault(agent, {})
        self._agents.move_to_end(agent)
        if len(self._agents) > _AGENTS:
            self._agents.popitem(last=False)
        notes[finding.rule] = step
        for rule in [rule for rule, since in notes.items() if since <= step - WINDOW]:
            del notes[rule]
        if total_weight(notes) < 1:
            return None
        rules = ", ".join(sorted(notes))
        return Finding(
            family=finding.family,
            rule="together",
            key=f"together:{agent}",
            level=Severity.NUDGE,
            count=len(notes),
            limit=2,
            onset_step=min(notes.values()),
            step=step,
            agent=agent,
            subject=finding.subject,
            cause=finding.cause,
            hard=False,
            evidence={"rules": rules},
        )

    def clear(self) -> None:
        """A new turn."""
        self._agents.clear()

    def dump(self) -> list[object]:
        """The state as JSON-ready data."""
        return [
            [agent, *([rule, step] for rule, step in notes.items())]
            for agent, notes in self._agents.items()
            if notes
        ]

    def load(self, data: object) -> None:
        """Restore what `dump` gave."""
        for item in sequence(data):
            agent, *notes = sequence(item)
            kept = self._agents.setdefault(text(agent), {})
            for note in notes:
                rule, step = row(note, 2)
                kept[text(rule)] = whole(step)


def total_weight(rules: Iterable[str]) -> float:
    """The weight of some rules together; of each group the heaviest counts.

    Example:
        >>> round(total_weight(["velocity", "slow_leak", "paging"]), 1)
        0.8
    """
    groups: dict[str, float] = {}
    for rule in rules:
        group, weight = WEIGHTS.get(rule, (rule, _OTHER))
        groups[group] = max(weight, groups.get(group, 0.0))
    return sum(groups.values())

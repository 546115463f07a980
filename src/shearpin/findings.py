"""Findings: what was concluded, with the evidence; never what to do about it."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum

__all__ = ["Evidence", "Finding", "Severity"]


class Severity(IntEnum):
    """How strong an answer is: what a finding justifies, and what a verdict amounts to."""

    NONE = 0
    NUDGE = 1
    BLOCK = 2
    STOP = 3

    @property
    def label(self) -> str:
        """The lower-case word used in reports and JSON."""
        return self.name.lower()


Evidence = dict[str, "str | int | float | bool | None"]
"""Named facts behind a finding: numbers, names, digests. Never prompt or result text."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One conclusion about a run.

    Attributes:
        family: the kind of loop, e.g. `repeat`; the stable word of reports and traces.
        rule: the rule that fired, usually equal to the family.
        key: identity of this very loop (a digest), so that it escalates instead of starting afresh.
        level: the strongest answer that the evidence justifies, already under the rule's ceiling.
        count: how often it was seen.
        limit: the threshold that was reached.
        onset_step: first step of the loop, 1-based.
        step: the step at which this was concluded.
        agent: whose loop it is.
        subject: the tool or node it is about, where there is one.
        cause: a word for the likely cause, which selects the advice.
        refuses: what to refuse at block level: call keys, or `tool:` and a name.
        hard: whether it is a repetition with an unchanged result (only these justify a block or
            stop).
        evidence: further numbers and names.
    """

    family: str
    rule: str
    key: str
    level: Severity
    count: int
    limit: int
    onset_step: int
    step: int
    agent: str = "main"
    subject: str | None = None
    cause: str | None = None
    hard: bool = True
    refuses: tuple[str, ...] = ()
    evidence: Evidence = field(default_factory=dict[str, "str | int | float | bool | None"])

    def summary(self) -> Evidence:
        """The evidence as one flat, JSON-ready mapping."""
        out: Evidence = {"count": self.count, "limit": self.limit, "onset_step": self.onset_step}
        if self.subject is not None:
            out["tool" if self.evidence.get("node") is None else "node"] = self.subject
        if self.cause is not None:
            out["cause"] = self.cause
        out.update(self.evidence)
        return out

"""What a budget decides, as verdicts with its own words, and what the mode leaves of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

from shearpin.adapters.places import Place
from shearpin.core.allowance import (
    block_words,
    broken_finding,
    broken_tool_words,
    broken_words,
    exhausted_finding,
    halt_words,
    landing_words,
    notice_finding,
    notice_words,
    unpriced_finding,
    unpriced_words,
)
from shearpin.core.books import Exhausted, Notice
from shearpin.findings import Finding, Severity
from shearpin.verdicts import Block, Halt, Nudge, Verdict

__all__ = ["Refused", "Rule", "Rulings"]

Rule = Callable[["Nudge | Block | Halt", Finding], Verdict]
"""Takes a verdict to the session, and says what the mode leaves of it."""


class Refused(NamedTuple):
    """A model call must not be made.

    Attributes:
        halt: with what the caller is ended.
        local: whether only the caller is ended, and the run goes on.
    """

    halt: Halt
    local: bool


class Rulings:
    """The verdicts of one budget. None, where the mode does not let it act.

    Args:
        rule: takes a verdict to the session.
        language: of the budget's own words.
        nested: whether it is the budget of a part of a larger run.
    """

    def __init__(self, rule: Rule, language: Literal["en", "zh"], nested: bool) -> None:
        self._rule = rule
        self._language: Literal["en", "zh"] = language
        self._nested = nested

    def refused(self, found: Exhausted, place: Place, step: int) -> Refused | None:
        """A model call for which there is no room."""
        local = found.crowded or self._local(place)
        level = Severity.BLOCK if local else Severity.STOP
        finding = exhausted_finding(found, level, step, place.agent)
        halt = Halt(found.reason, halt_words(found, self._language), finding)
        if not local:
            return self._end(halt, finding)
        block = Block(finding, halt.message)
        return Refused(halt, True) if self._rule(block, finding) is block else None

    def unpriced(self, model: str | None, place: Place, step: int) -> Refused | None:
        """No price, a dollar limit, and the policy refuses."""
        finding = unpriced_finding(model, step, place.agent)
        return self._end(Halt(finding.rule, unpriced_words(self._language), finding), finding)

    def broken(self, place: Place, step: int) -> Refused | None:
        """The call cannot be held, because the budget itself is at fault."""
        finding = broken_finding(step, place.agent)
        return self._end(Halt(finding.rule, broken_words(self._language), finding), finding)

    def broken_tool(self, place: Place, step: int) -> Block | None:
        """A tool call cannot be held, because the budget itself is at fault."""
        finding = broken_finding(step, place.agent)
        block = Block(finding, broken_tool_words(self._language))
        return block if self._rule(block, finding) is block else None

    def blocked(self, found: Exhausted, place: Place, step: int) -> Block | None:
        """A tool call for which there is no room."""
        finding = exhausted_finding(found, Severity.BLOCK, step, place.agent)
        block = Block(finding, block_words(found, self._language))
        return block if self._rule(block, finding) is block else None

    def stop_for(self, block: Block, place: Place) -> Refused:
        """A tool call that must not be made, where no answer can be given for it: the end."""
        name = block.finding.evidence.get("dimension")
        part = "per_tool" if str(name).startswith("tool:") else name
        reason = block.finding.rule if name is None else f"budget:{part}"
        halt = Halt(reason, block.message, block.finding)
        if not self._local(place):
            self._rule(halt, block.finding)
        return Refused(halt, self._local(place))

    def nudges(self, notices: Sequence[Notice], place: Place, step: int) -> list[Nudge]:
        """What notices amount to; only the strongest is said aloud."""
        said: list[Nudge] = []
        for notice in notices:
            finding = notice_finding(notice, step, place.agent)
            nudge = Nudge(finding, notice_words(notice, step, self._language))
            if self._rule(nudge, finding) is nudge:
                said.append(nudge)
        return said[-1:]

    def landing_note(self, found: Exhausted) -> str:
        """What the agent is told before the last answer that its budget allows."""
        return landing_words(found.dimension, found.limit, found.per, self._language)

    def _local(self, place: Place) -> bool:
        return place.agent != "main" or self._nested

    def _end(self, halt: Halt, finding: Finding) -> Refused | None:
        return Refused(halt, False) if self._rule(halt, finding) is halt else None

"""duplicate_in_message: one model response asks for the very same call several times."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from shearpin.core.checks import check_kinds
from shearpin.core.detectors.base import Probe
from shearpin.core.seen import Seen, StartSeen
from shearpin.findings import Finding, Severity

__all__ = ["Duplicates"]


@dataclass(frozen=True, slots=True)
class Duplicates:
    """Copies of a call inside one response: it runs once, each further copy is answered with a
    reference.

    Attributes:
        ceiling: `BLOCK` refuses the copies, `NUDGE` only tells the agent, `NONE` switches the rule
            off.

    *Source*: public reports of twelve copies of a test run in one message.

    Example:
        >>> Duplicates().ceiling.label
        'block'
    """

    family: ClassVar[str] = "duplicate_in_message"
    watches: ClassVar[tuple[type[Seen], ...]] = (StartSeen,)

    ceiling: Severity = Severity.BLOCK

    def __post_init__(self) -> None:
        check_kinds(self)

    def probe(self) -> Probe:
        return _DuplicateProbe(self)


class _DuplicateProbe:
    """Stateless: the observer knows which calls of the open round have begun."""

    def __init__(self, config: Duplicates) -> None:
        self._config = config

    def observe(self, seen: Seen) -> Finding | None:
        assert isinstance(seen, StartSeen)
        if seen.copies < 2:
            return None
        return Finding(
            family="duplicate_in_message",
            rule="duplicate_in_message",
            key=f"duplicate:{seen.call_key}",
            level=min(self._config.ceiling, Severity.BLOCK),
            count=seen.copies,
            limit=2,
            onset_step=seen.step,
            step=seen.step,
            agent=seen.agent,
            subject=seen.tool,
            cause="asked_twice",
            hard=False,
        )

    def forget(self, agent: str | None) -> None:
        return None

    def dump(self) -> object:
        return None

    def load(self, data: object) -> None:
        return None

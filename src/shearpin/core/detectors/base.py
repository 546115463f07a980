"""What a detector is: a frozen, documented config that makes a private, mutable probe."""

from __future__ import annotations

from typing import ClassVar, Protocol

from shearpin.core.seen import Seen
from shearpin.errors import ConfigError
from shearpin.findings import Finding, Severity

__all__ = ["Detector", "Probe", "check_ascending", "level_of"]


class Probe(Protocol):
    """The mutable twin of a config, one per session. Its work and its state are bounded."""

    def observe(self, seen: Seen) -> Finding | None:
        """Take in one observation; return what can be concluded from it, if anything."""
        ...

    def forget(self, agent: str | None) -> None:
        """Start afresh: for one agent (its history was compacted) or, with None, for a new turn."""
        ...

    def dump(self) -> object:
        """The state as JSON-ready data, without any text of the run."""
        ...

    def load(self, data: object) -> None:
        """Restore what `dump` gave."""
        ...


class Detector(Protocol):
    """A rule as an author configures it."""

    family: ClassVar[str]
    watches: ClassVar[tuple[type[Seen], ...]]

    def probe(self) -> Probe:
        """A fresh probe for one session."""
        ...


def check_ascending(rule: str, nudge: int, block: int | None, stop: int | None) -> None:
    """Raise `ConfigError` unless thresholds are at least 2 and do not fall."""
    last = 2
    for name, value in (("nudge", nudge), ("block", block), ("stop", stop)):
        if value is None:
            continue
        if type(value) is not int or value < last:
            raise ConfigError(
                f"{rule}.{name} must be a whole number of at least {last}, not {value!r}; "
                "thresholds count occurrences and rise from nudge to block to stop"
            )
        last = value


def level_of(
    count: int, nudge: int, block: int | None, stop: int | None, ceiling: Severity
) -> Severity:
    """The level that `count` occurrences justify.

    BLOCK is given one occurrence early, so that the occurrence with number `block` is the one
    refused.
    """
    if stop is not None and count >= stop:
        level = Severity.STOP
    elif block is not None and count >= block - 1:
        level = Severity.BLOCK if count >= nudge else Severity.NONE
    elif count >= nudge:
        level = Severity.NUDGE
    else:
        level = Severity.NONE
    return min(level, ceiling)

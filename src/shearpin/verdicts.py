"""Verdicts: what to do. Imperatives, each with the finding that justifies it.

The core gives verdicts, an adapter carries them out on its host. A verdict never says *how*.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from shearpin.findings import Finding, Severity

__all__ = [
    "PROCEED",
    "Block",
    "Halt",
    "Nudge",
    "Pause",
    "Proceed",
    "Reroute",
    "Retry",
    "Rollback",
    "Verdict",
    "WrapUp",
]


@dataclass(frozen=True, slots=True)
class Proceed:
    """Go on: nothing to do."""

    severity: ClassVar[Severity] = Severity.NONE


@dataclass(frozen=True, slots=True)
class Nudge:
    """Tell the agent, once, in the next request."""

    severity: ClassVar[Severity] = Severity.NUDGE
    finding: Finding
    message: str


@dataclass(frozen=True, slots=True)
class Block:
    """Do not run this call; answer it with `message`."""

    severity: ClassVar[Severity] = Severity.BLOCK
    finding: Finding
    message: str


@dataclass(frozen=True, slots=True)
class WrapUp:
    """One last model call without tools: answer with what you have."""

    severity: ClassVar[Severity] = Severity.STOP
    finding: Finding
    message: str


@dataclass(frozen=True, slots=True)
class Reroute:
    """Continue elsewhere: at another node, with another model, or without a tool."""

    severity: ClassVar[Severity] = Severity.BLOCK
    finding: Finding
    target: str

    @property
    def message(self) -> str:
        """What is written down of it."""
        return self.target


@dataclass(frozen=True, slots=True)
class Rollback:
    """Go back to the state before `to_step`, with a note of what was tried."""

    severity: ClassVar[Severity] = Severity.BLOCK
    finding: Finding
    to_step: int
    message: str


@dataclass(frozen=True, slots=True)
class Retry:
    """Do the failed thing again after `delay_seconds`."""

    severity: ClassVar[Severity] = Severity.NONE
    delay_seconds: float


@dataclass(frozen=True, slots=True)
class Pause:
    """Interrupt for a person; resumable."""

    severity: ClassVar[Severity] = Severity.STOP
    finding: Finding
    message: str


@dataclass(frozen=True, slots=True)
class Halt:
    """End the run the normal way, with `message` as its honest last word.

    `reason` is machine-readable: `loop:<family>` for a finding.
    """

    severity: ClassVar[Severity] = Severity.STOP
    reason: str
    message: str
    finding: Finding | None = None


Verdict: TypeAlias = Proceed | Nudge | Block | WrapUp | Reroute | Rollback | Retry | Pause | Halt

PROCEED = Proceed()

"""What a session writes down for reports and telemetry: verdicts, breaker transitions, faults.

Records hold names, numbers and digests. `VerdictRecord.message` is the guard's own wording and may
quote a shortened, masked argument or result; exporters drop it unless the user asked for it.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from shearpin.findings import Evidence

__all__ = ["FaultRecord", "NoteRecord", "Record", "TransitionRecord", "VerdictRecord"]


class VerdictRecord(NamedTuple):
    """A verdict other than Proceed, as it was given.

    `verdict` is what was decided (`nudge`, `block`, `halt` ...); `acted` is False where the mode
    kept it from being carried out (`observe`, `warn`) or the kill switch was thrown. `model` is the
    agent's latest, where it is known; `tokens` is what the session had used until then.
    """

    step: int
    at: float
    verdict: str
    severity: str
    finding: str | None
    rule: str | None
    key: str | None
    agent: str
    evidence: Evidence
    message: str
    acted: bool
    model: str = ""
    tokens: int = 0


class NoteRecord(NamedTuple):
    """A finding that justifies no verdict: worth a line in the report, once for each loop."""

    step: int
    at: float
    finding: str
    rule: str
    key: str
    agent: str
    evidence: Evidence


class TransitionRecord(NamedTuple):
    """The breaker changed its state; `tokens` is what the session had used until then."""

    step: int
    at: float
    source: str
    target: str
    signal: str
    tokens: int = 0


class FaultRecord(NamedTuple):
    """Something inside the guard failed and was contained; the run went on without it."""

    step: int
    at: float
    where: str
    error: str


Record: TypeAlias = VerdictRecord | NoteRecord | TransitionRecord | FaultRecord

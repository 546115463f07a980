"""The structured result of a tool call, whether it worked or not.

Contract: what the model reads (`text`) is short, says what can be done, and holds neither stack
traces nor secrets. The original exception stays in `error`, for artifacts and reports of this
process; it is not part of `to_json`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from shearpin.boundary.categories import ErrorCategory

__all__ = ["ToolResult"]


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What came of a tool call.

    Attributes:
        success: whether there is an output to work with; also true where it came from a fallback.
        category: of the failure; None where there was none.
        tool_name: of the tool that was called.
        output: what the tool, or its fallback, gave back; None where there is nothing.
        error_type: of the failure, as in `Classification`; None where there was none.
        error_detail: one short, masked line about it; None where there was none.
        retry_after_seconds: how long the other side asked to wait; None where it did not say.
        attempts: how often the tool was run; 0 where it was not.
        elapsed: seconds from the first attempt to the answer, waits included.
        degraded: where a substitute came from, e.g. `cached 40 s ago`; None for the real thing.
        outcome_unknown: whether the failed call may have taken effect all the same.
        error: the exception itself, for reports.
    """

    success: bool
    category: ErrorCategory | None
    tool_name: str
    output: object = None
    error_type: str | None = None
    error_detail: str | None = None
    retry_after_seconds: float | None = None
    attempts: int = 1
    elapsed: float = 0.0
    degraded: str | None = None
    outcome_unknown: bool = False
    error: BaseException | None = field(default=None, compare=False, repr=False)

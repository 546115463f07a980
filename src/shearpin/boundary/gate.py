"""Whether a tool counts as available, around each attempt at a call of it.

Contract: an attempt that was let in is always accounted for. Where the store fails, everything is
let in, and the fault is reported: availability saves time, and must not cost a call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from shearpin.boundary.calls import CallInfo
from shearpin.boundary.categories import Classification, ErrorCategory
from shearpin.boundary.settings import Availability
from shearpin.boundary.steps import Ask, Course
from shearpin.errors import StoreError

if TYPE_CHECKING:
    from shearpin.boundary.availability import Admitted
    from shearpin.boundary.runner import ToolCallRunner

__all__ = ["Gate"]


class UnavailableError(Exception):
    """The tool counts as down, and was not called."""


class Gate:
    """The gate before the attempts at one call; open where availability is not watched."""

    def __init__(
        self, runner: ToolCallRunner, call: CallInfo, settings: Availability | None
    ) -> None:
        self._runner = runner
        self._tool = call.tool
        self._breaker = (
            runner.breaker(f"tool:{call.tool}", settings)
            if settings is not None and runner.breaker is not None
            else None
        )
        self._admitted: Admitted | None = None

    def enter(self) -> Course[Classification | None]:
        """None where an attempt may be made; else why not."""
        breaker = self._breaker
        if breaker is None:
            return None
        from shearpin.boundary.availability import Refused

        try:
            found = yield Ask(breaker.admit, self._runner.store.blocking, undo=breaker.released)
        except StoreError as error:
            self._runner.fault("availability", error)
            return None
        if isinstance(found, Refused):
            if self._runner.tally is not None:
                self._runner.tally.refused("counts as down", tool=self._tool)
            return Classification(
                ErrorCategory.DEGRADABLE,
                "unavailable",
                found.retry_after,
                True,
                UnavailableError(f"{self._tool} counts as down"),
                "",
            )
        self._admitted = found
        return None

    def leave(self, failure: Classification | None) -> Course[None]:
        """The attempt was made. Only what may pass by itself speaks against the tool."""
        breaker, admitted, self._admitted = self._breaker, self._admitted, None
        if breaker is None or admitted is None:
            return
        down = failure is not None and (
            failure.category is ErrorCategory.RETRYABLE or failure.error_type == "unavailable"
        )
        tell = breaker.failed if down else breaker.succeeded
        try:
            yield Ask(lambda: tell(admitted), self._runner.store.blocking)
        except StoreError as error:
            self._runner.fault("availability", error)

    def leave_at_once(self) -> None:
        """The attempt came to nothing that speaks for or against the tool."""
        breaker, admitted, self._admitted = self._breaker, self._admitted, None
        if breaker is None or admitted is None:
            return
        try:
            breaker.released(admitted)
        except StoreError as error:
            self._runner.fault("availability", error)

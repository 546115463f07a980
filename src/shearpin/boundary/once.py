"""The record of a call's effect: asked before the tool is run, told afterwards.

Contract: the tool is run only with a record begun, or where the policy says that a failing store
shall not stand in the way. A record that was begun is always told how it ended. Control flow that
will carry the call out again (an interrupt) leaves no record; what was cut off leaves it unknown.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from shearpin.boundary.calls import CallInfo, Hooks, Recorded
from shearpin.boundary.categories import ErrorCategory
from shearpin.boundary.classification import classify
from shearpin.boundary.effects import (
    Beginning,
    Begun,
    EffectRecords,
    Finished,
    InFlight,
    TooMany,
    TooSoon,
    Unknown,
)
from shearpin.boundary.log import log_misconfigured
from shearpin.boundary.results import ToolResult
from shearpin.boundary.retrying import Attempt
from shearpin.boundary.steps import Ask, Course
from shearpin.errors import ConfigError, StoreError

if TYPE_CHECKING:
    from shearpin.boundary.runner import ToolCallRunner

__all__ = ["Once"]

_INTERRUPTS = ("GraphInterrupt", "NodeInterrupt")


class Once:
    """The record of one call's effect.

    Args:
        runner: of the call.
        records: where it is kept.
        how: it is recorded.
    """

    def __init__(self, runner: ToolCallRunner, records: EffectRecords, how: Recorded) -> None:
        self._runner = runner
        self._records = records
        self._how = how

    def begin(self, call: CallInfo, hooks: Hooks) -> Course[Begun | ToolResult | None]:
        """The record, begun; a result where the tool must not be run; None where it may be run
        without a record."""
        records, how, args = self._records, self._how, call.recorded_args

        def begin() -> Beginning:
            found = records.begin(how.thread, call.recorded_as, args, how.policy, call.call_id)
            if isinstance(found, Unknown) and call.repeatable:
                records.resolve(how.thread, call.recorded_as, args, how.policy, happened=False)
                found = records.begin(how.thread, call.recorded_as, args, how.policy, call.call_id)
            return found

        def undo(found: Beginning) -> None:
            if isinstance(found, Begun):
                self._end_at_once(found, True)

        try:
            found = cast("Beginning", (yield Ask(begin, records.blocking, undo)))
        except ConfigError as error:  # the key does not fit the arguments: no store would help
            self._runner.fault("effects.begin", error)
            return self._misconfigured(call, error)
        except Exception as error:  # a store that failed
            self._runner.fault("effects.begin", error)
            if how.policy.on_fault == "run":
                return None
            return self._refused(call, "store", ErrorCategory.RETRYABLE, error=error)
        if isinstance(found, Begun):
            return found
        return self._answer(call, hooks, found)

    def _misconfigured(self, call: CallInfo, error: ConfigError) -> ToolResult:
        message = classify(error).message
        log_misconfigured(call.tool, message)
        result = self._refused(call, "configuration", ErrorCategory.FATAL, error=error)
        return replace(result, error_detail=message)

    def end(
        self,
        begun: Begun | None,
        last: Attempt,
        result: ToolResult,
        hooks: Hooks,
        *,
        ambiguous: bool,
    ) -> Course[None]:
        """The attempts are over; another tool that has answered in its place has had the effect."""
        if begun is None:
            return
        records = self._records
        if last.failure is None or (result.degraded or "").startswith("tool:"):
            output = _packed(hooks, result.output, self._how.most_characters)
            ask = Ask(lambda: records.finish(begun, output), records.blocking)
        else:
            ask = Ask(lambda: records.fail(begun, not ambiguous), records.blocking)
        try:
            yield ask
        except StoreError as error:  # it stays in flight, and then unknown: no second effect
            self._runner.fault("effects.end", error)

    def abandon(self, begun: Begun | None, error: BaseException, *, run: bool) -> None:
        """The call was left by control flow. Told in this thread: nobody waits any more."""
        if begun is not None:
            again = any(base.__name__ in _INTERRUPTS for base in type(error).__mro__)
            self._end_at_once(begun, again or not run)

    def _end_at_once(self, begun: Begun, known_not_to_have_happened: bool) -> None:
        try:
            self._records.fail(begun, known_not_to_have_happened)
        except StoreError as error:
            self._runner.fault("effects.end", error)

    def _answer(
        self,
        call: CallInfo,
        hooks: Hooks,
        found: Finished | InFlight | Unknown | TooSoon | TooMany,
    ) -> ToolResult:
        if isinstance(found, Finished):
            return self._earlier(call, hooks, found)
        if isinstance(found, InFlight):
            return self._refused(call, "in_progress", ErrorCategory.RETRYABLE)
        if isinstance(found, Unknown):
            return self._refused(call, "outcome_unknown", ErrorCategory.DEGRADABLE, unknown=True)
        if isinstance(found, TooSoon):
            return self._refused(
                call, "too_soon", ErrorCategory.RETRYABLE, retry_after=found.wait_seconds
            )
        return self._refused(call, "too_many", ErrorCategory.DEGRADABLE)

    def _earlier(self, call: CallInfo, hooks: Hooks, found: Finished) -> ToolResult:
        """The first result. To the very same call it is the result, without a word about it."""
        output, exact = found.output, found.exact
        if exact:
            try:
                output = hooks.unpack(output)
            except (KeyError, TypeError, ValueError) as error:  # kept by another version, perhaps
                self._runner.fault("effects.output", error)
                output = json.dumps(output, ensure_ascii=False)
        told = found.duplicate or not exact
        if self._runner.tally is not None:
            self._runner.tally.refused("its effect has happened already", tool=call.tool)
        return ToolResult(
            True,
            None,
            call.tool,
            output,
            attempts=0,
            degraded="earlier" if told else None,
            age_seconds=max(0.0, self._runner.epoch() - found.at) if told else None,
        )

    def _refused(
        self,
        call: CallInfo,
        kind: str,
        category: ErrorCategory,
        *,
        retry_after: float | None = None,
        unknown: bool = False,
        error: BaseException | None = None,
    ) -> ToolResult:
        if self._runner.tally is not None:
            self._runner.tally.refused(kind.replace("_", " "), tool=call.tool)
        return ToolResult(
            False,
            category,
            call.tool,
            error_type=kind,
            retry_after_seconds=retry_after,
            attempts=0,
            outcome_unknown=unknown,
            error=error,
        )


def _packed(hooks: Hooks, output: object, most: int | None) -> object:
    try:
        packed = hooks.pack(output)
        fits = most is None or len(json.dumps(packed, ensure_ascii=False)) <= most
    except (TypeError, ValueError, RecursionError):
        fits, packed = False, None
    return packed if fits else _NotJson(output)


class _NotJson:
    """An output that has no form in JSON: the records keep a masked text of it."""

    def __init__(self, output: object) -> None:
        self._output = output

    def __str__(self) -> str:
        text = getattr(self._output, "content", None)  # of a message
        return text if isinstance(text, str) else str(self._output)

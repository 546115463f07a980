"""A tool call with everything that the boundary does for it, in threads and in event loops.

Contract: whatever an attempt raises becomes a `ToolResult`, but control flow (interrupts, commands,
cancellation) and what the host claims for itself, which leave as they are and at once, also out of
a wait. In this order: the record of the effect, availability, attempts, fallbacks. A tool whose
effect is recorded is run only by who began the record. What fails in the boundary's own store is
reported, and only where the policy says so does it keep a tool from being run.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from shearpin import clock
from shearpin.boundary.calls import CallInfo, Hooks, recorded
from shearpin.boundary.categories import Classification, ErrorCategory
from shearpin.boundary.effects import EffectRecords
from shearpin.boundary.fallbacks import Substitutes
from shearpin.boundary.gate import Gate
from shearpin.boundary.log import log_answered
from shearpin.boundary.once import Once
from shearpin.boundary.results import ToolResult
from shearpin.boundary.retrying import Attempt, Attempts, Loop, Uniform
from shearpin.boundary.settings import Availability, Retries, ToolPolicy
from shearpin.boundary.steps import Ask, Course, Perform, Wait, adrive, drive
from shearpin.core.secrets import without_values
from shearpin.core.tools import effect_of

if TYPE_CHECKING:
    from shearpin.boundary.availability import AvailabilityBreaker
    from shearpin.boundary.tally import RunErrors
    from shearpin.stores.base import Store

__all__ = ["ToolCallRunner"]


@dataclass(frozen=True)
class ToolCallRunner:
    """Runs tool calls. See the module's contract.

    Attributes:
        store: where effects, results to fall back on, and availability are kept.
        classify: what kind of failure an exception is.
        tally: told of everything; None where nobody counts.
        retries: for tools whose policy does not say.
        availability: for tools whose policy does not say. None: they never count as down.
        breaker: what is known of a tool's availability, by `tool:NAME`.
        now: monotonic seconds.
        epoch: seconds since 1970, for the age of what is kept.
        sleep: waits in this thread.
        asleep: waits in an event loop.
        uniform: the source of jitter.
        fault: told of failures of the boundary itself.
    """

    store: Store
    classify: Callable[[BaseException], Classification]
    tally: RunErrors | None = None
    retries: Retries = field(default_factory=Retries)
    availability: Availability | None = None
    breaker: Callable[[str, Availability], AvailabilityBreaker] | None = None
    now: clock.Clock = clock.monotonic
    epoch: clock.Clock = clock.epoch
    sleep: Callable[[float], object] = clock.sleep
    asleep: Callable[[float], Awaitable[object]] = clock.asleep
    uniform: Uniform = random.uniform
    fault: Callable[[str, BaseException], object] = lambda where, error: None

    def run(
        self,
        call: CallInfo,
        execute: Callable[[], object],
        policy: ToolPolicy,
        hooks: Hooks = Hooks(),  # noqa: B008 - immutable
    ) -> ToolResult:
        """Run a call.

        Args:
            call: what is called.
            execute: runs the tool once.
            policy: what is done about it.
            hooks: what the host adds.

        Raises:
            BaseException: control flow, and what the host claims; nothing else.
        """
        return drive(_Call(self, call, policy, hooks, False).course(execute), self.sleep)

    async def arun(
        self,
        call: CallInfo,
        execute: Callable[[], Awaitable[object]],
        policy: ToolPolicy,
        hooks: Hooks = Hooks(),  # noqa: B008 - immutable
    ) -> ToolResult:
        """`run`, for asynchronous tools; the event loop is never blocked."""
        course = _Call(self, call, policy, hooks, True).course(execute)
        return await adrive(course, self.asleep)


class _Call:
    """One call on its way."""

    def __init__(
        self, runner: ToolCallRunner, call: CallInfo, policy: ToolPolicy, hooks: Hooks, loop: bool
    ) -> None:
        self.runner = runner
        self.call = call
        self.policy = policy
        self.hooks = hooks
        self.attempts = Attempts(
            policy.retries or runner.retries,
            lambda: call.repeatable,
            runner.now,
            runner.uniform,
        )
        self.gate = Gate(runner, call, policy.availability or runner.availability)
        self.acts = policy.effect is not None or call.acts
        self.substitutes = Substitutes(runner, call, policy, hooks, in_loop=loop, acts=self.acts)

    # -- the course -----------------------------------------------------------------------------

    def course(self, execute: Callable[[], object]) -> Course[ToolResult]:
        """From the question whether it may run to its result."""
        result = yield from self._resulting(execute)
        log_answered(result)
        return result

    def _resulting(self, execute: Callable[[], object]) -> Course[ToolResult]:
        how = recorded(self.call, self.policy)
        if how is None:
            last = yield from self._attempted(execute)
            result = yield from self._concluded(last)
            if last.failure is None:
                yield from self.substitutes.keep(last.output)
            return result
        once = Once(self.runner, EffectRecords(self.runner.store, self.runner.epoch), how)
        begun = yield from once.begin(self.call, self.hooks)
        if isinstance(begun, ToolResult):
            return begun
        try:
            last = yield from self._attempted(execute)
            result = yield from self._concluded(last)
        except BaseException as error:
            once.abandon(begun, error, run=self.attempts.made > 0)
            raise
        ambiguous = self.attempts.ambiguous or self.substitutes.ambiguous
        yield from once.end(begun, last, result, self.hooks, ambiguous=ambiguous)
        return result

    def _concluded(self, last: Attempt) -> Course[ToolResult]:
        """The result of the last attempt, or of what may answer in its place."""
        result = self._result(last)
        if result.success or last.answered or not self._replaceable(result):
            return result
        return (yield from self.substitutes.find(result))

    def _attempted(self, execute: Callable[[], object]) -> Course[Attempt]:
        loop, made = Loop(self.attempts), Attempt()
        move = loop.next()
        while not isinstance(move, Attempt):
            if move is None:
                made = yield from self._attempt(execute)
                move = loop.next(made)
            elif (yield from self._admitted(move)):
                yield from self._wait(move)
                move = loop.next()
            else:
                return made
        return move

    def _attempt(self, execute: Callable[[], object]) -> Course[Attempt]:
        """One attempt, if the tool counts as available."""
        down = yield from self.gate.enter()
        if down is not None:
            self.attempts.made -= 1
            return Attempt(failure=down, final=True)
        try:
            output = yield Perform(execute)
        except Exception as error:
            failure = None if self.hooks.foreign(error) else self._failure(error)
            if failure is None:
                self.gate.leave_at_once()
                raise
            yield from self.gate.leave(failure)
            return Attempt(failure=failure, final=self.hooks.unrun(error))
        except BaseException:
            self.gate.leave_at_once()
            raise
        behind = self.hooks.handled(output)
        if behind is None or behind is False:
            yield from self.gate.leave(None)
            return Attempt(output)
        failure = self._behind(behind)
        yield from self.gate.leave(failure)
        return Attempt(output, failure, final=True, answered=True)

    def _failure(self, error: BaseException) -> Classification | None:
        """What an attempt has failed of; None where it is none of the boundary's business."""
        runner, hooks = self.runner, self.hooks
        if hooks.passes(error):
            return None
        failure = runner.classify(error)
        if failure.category is ErrorCategory.CONTROL:
            return None
        told = without_values(failure.message, self.call.args)
        if told != failure.message:
            failure = replace(failure, message=told)
        if hooks.unrun(error):
            failure = replace(failure, safe_to_retry=True)
        elif failure.safe_to_retry and hooks.composite():
            failure = replace(failure, safe_to_retry=False)
        self.attempts.ambiguous = self.attempts.ambiguous or not failure.safe_to_retry
        if runner.tally is not None:
            runner.tally.error(failure, tool=self.call.tool)
        return failure

    def _behind(self, behind: BaseException | ToolResult | bool) -> Classification | None:
        """What an answer that tells of an error has come from."""
        if not isinstance(behind, ToolResult):
            return self._failure(behind if isinstance(behind, BaseException) else _AnsweredError())
        self.attempts.ambiguous = self.attempts.ambiguous or behind.outcome_unknown
        return Classification(
            behind.category or ErrorCategory.DEGRADABLE,
            behind.error_type or "unknown",
            behind.retry_after_seconds,
            not behind.outcome_unknown,
            behind.error or _AnsweredError(),
            behind.error_detail or "",
        )

    def _wait(self, seconds: float) -> Course[None]:
        self.hooks.waiting(True)
        try:
            yield Wait(seconds)
        finally:
            self.hooks.waiting(False)

    def _admitted(self, wait: float) -> Course[bool]:
        """Whether budget and run have room for another attempt; takes it."""
        hooks, tally = self.hooks, self.runner.tally
        if tally is not None and not tally.may_retry():
            return False
        if not (yield Ask(lambda: hooks.admit(wait), hooks.blocking)):
            return False
        return tally is None or tally.retry(tool=self.call.tool, waited_seconds=wait)

    # -- results --------------------------------------------------------------------------------

    def _result(self, last: Attempt) -> ToolResult:
        attempts, failure = self.attempts, last.failure
        elapsed = max(0.0, self.runner.now() - attempts.started)
        if failure is None:
            return ToolResult(
                True, None, self.call.tool, last.output, attempts=attempts.made, elapsed=elapsed
            )
        return ToolResult(
            False,
            failure.category,
            self.call.tool,
            last.output,
            failure.error_type,
            failure.message or None,
            failure.retry_after,
            attempts.made,
            elapsed,
            outcome_unknown=self._unknown(failure),
            error=failure.root,
        )

    def _unknown(self, failure: Classification) -> bool:
        """Whether the call may have taken effect. An error of the tool's own says that it has not
        come far, unless the tool is known to change something."""
        if not self.attempts.ambiguous or self.call.repeatable:
            return False
        if self.acts:
            return True
        call = self.call
        return (
            failure.category is ErrorCategory.RETRYABLE
            and effect_of(call.tool, call.args, call.facts) != "read"
        )

    def _replaceable(self, failed: ToolResult) -> bool:
        """Whether something else may answer in the tool's place."""
        if failed.outcome_unknown and self.acts:
            return False  # first it has to be known what the tool itself has done
        return not (failed.error is not None and self.hooks.unrun(failed.error))


class _AnsweredError(Exception):
    """The tool, or its host, has answered with an error, and nobody has seen the exception."""

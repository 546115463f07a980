"""A tool call within an error boundary: run through its runner, and answered whatever happens.

Contract: a tool that raises is answered with a `ToolMessage` that says what can be done now.
Interrupts, cancellation and stops of the run leave untouched; a cancellation of our own, because a
call beside it has failed for good, is answered. Each attempt after the first holds a tool call in
the budget; one that was not made holds none. A fault of the boundary itself is reported, and leaves
the call as it would be without a boundary: it is never a reason to run a tool twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from shearpin.adapters.boundary.bounds import Bounds
from shearpin.adapters.boundary.siblings import batch_of
from shearpin.adapters.boundary.tooljob import Job
from shearpin.adapters.money.timing import atimed, timed
from shearpin.adapters.run import Run
from shearpin.boundary.calls import recorded
from shearpin.boundary.categories import ErrorCategory
from shearpin.boundary.results import ToolResult
from shearpin.boundary.runner import ToolCallRunner

if TYPE_CHECKING:
    from shearpin.adapters.toolcalls import Asked

__all__ = ["abounded", "bounded", "runner_of"]


def bounded(run: Run, bounds: Bounds, asked: Asked, execute: Callable[[], Any]) -> Any:
    """Run a tool call; what it is answered with.

    Raises:
        BaseException: control flow, a stop of the run; in a mode that does not act, anything.
    """
    begun = _begun(run, bounds, asked, loop=False)
    if begun is None:
        return timed(asked.spending, asked.request.name, execute)
    job, beside = begun
    if not job.acts:
        try:
            return timed(asked.spending, asked.request.name, execute)
        except Exception as error:
            _counted(run, job, error)
            raise
    try:
        kept_back = beside.join()
        if kept_back is not None:
            return job.answer(kept_back)
        attempt = partial(job.attempt, execute)
        return job.answer(beside.done(job.runner.run(job.info, attempt, job.policy, job.hooks)))
    except Exception as error:
        if not _is_fault(run, job, error):
            raise
        return _left(job, error) if job.begun else job.bare(execute)
    finally:
        _over(run, job, beside)


async def abounded(
    run: Run, bounds: Bounds, asked: Asked, execute: Callable[[], Awaitable[Any]]
) -> Any:
    """`bounded`, for asynchronous hosts."""
    begun = _begun(run, bounds, asked, loop=True)
    if begun is None:
        return await atimed(asked.spending, asked.request.name, execute)
    job, beside = begun
    if not job.acts:
        try:
            return await atimed(asked.spending, asked.request.name, execute)
        except Exception as error:
            _counted(run, job, error)
            raise
    try:
        kept_back = beside.join()
        if kept_back is not None:
            return job.answer(kept_back)
        attempt = partial(job.aattempt, execute)
        result = await job.runner.arun(job.info, attempt, job.policy, job.hooks)
        return job.answer(beside.done(result))
    except asyncio.CancelledError:
        if not beside.gave_up():
            raise
        return job.answer(beside.cut_off())
    except Exception as error:
        if not _is_fault(run, job, error):
            raise
        if job.begun:
            return _left(job, error)
        return await job.abare(execute)
    finally:
        _over(run, job, beside)


def _begun(run: Run, bounds: Bounds, asked: Asked, *, loop: bool) -> tuple[Job, _Beside] | None:
    """The call, ready to be run; None where it cannot be made ready."""
    try:
        job = Job(run, bounds, asked, runner_of(run, bounds), loop=loop)
        return job, _Beside(bounds, asked, job)
    except Exception as error:
        run.fault("boundary.tool", error)
        return None


def _counted(run: Run, job: Job, error: Exception) -> None:
    """A failure in a mode that does not act."""
    try:
        job.observed(error)
    except Exception as fault:
        run.fault("boundary.observed", fault)


def _over(run: Run, job: Job, beside: _Beside) -> None:
    """The call is over, however it ended."""
    try:
        beside.leave()
        job.room.settle(job.made)
    except Exception as error:
        run.fault("boundary.over", error)


def runner_of(run: Run, bounds: Bounds) -> ToolCallRunner:
    """What runs the tool calls of a run."""
    boundary = bounds.boundary
    return ToolCallRunner(
        bounds.store,
        bounds.classify,
        tally=bounds.tally,
        retries=boundary.retries,
        availability=boundary.availability,
        breaker=bounds.breaker,
        now=bounds.now,
        sleep=bounds.sleep,
        asleep=bounds.asleep,
        uniform=bounds.shared.uniform,
        fault=lambda where, error: run.fault(f"boundary.{where}", error),
    )


def _is_fault(run: Run, job: Job, error: Exception) -> bool:
    """Whether an error is one of the boundary itself; then it is reported."""
    if error is job.raised or job.passes(error):
        return False
    run.fault("boundary.tool", error)
    return True


def _left(job: Job, fault: Exception) -> Any:
    """What a call comes to whose boundary has failed after the tool was run, or might have been."""
    if job.given:
        return job.given[-1]
    if job.raised is not None and not isinstance(job.raised, GeneratorExit):
        raise job.raised
    return job.answer(
        ToolResult(
            False,
            ErrorCategory.RETRYABLE,
            job.asked.request.name,
            error_type="store",
            attempts=0,
            error=fault,
        )
    )


class _Beside:
    """A call among those that run side by side with it."""

    def __init__(self, bounds: Bounds, asked: Asked, job: Job) -> None:
        self._siblings = bounds.siblings if bounds.boundary.cancel_siblings else None
        self._batch = batch_of(asked.config.get("metadata"))
        self._call = asked.call
        self._tool = asked.request.name
        self._job = job

    def join(self) -> ToolResult | None:
        """None where the call may begin; else how it is answered."""
        if self._siblings is None:
            return None
        kept = recorded(self._job.info, self._job.policy) is not None
        failed = self._siblings.join(self._batch, self._call, kept=kept)
        return None if failed is None else self._given_up(0)

    def done(self, result: ToolResult) -> ToolResult:
        """The call has its result; where it has failed for good, the others are given up."""
        failed = not result.success and result.output is None  # and the host has no answer to it
        ends = self._job.bounds.boundary.gives_up_siblings(result.category, result.error_type)
        if failed and ends and self._siblings is not None:
            self._siblings.fail(self._batch, self._call, self._tool)
        return result

    def gave_up(self) -> bool:
        """Whether a cancellation is ours alone."""
        return self._siblings is not None and self._siblings.gave_up(self._call)

    def cut_off(self) -> ToolResult:
        """How a call is answered that was cancelled because another has failed."""
        return self._given_up(self._job.made)

    def leave(self) -> None:
        """The call is over."""
        if self._siblings is not None:
            self._siblings.leave(self._call)

    def _given_up(self, attempts: int) -> ToolResult:
        return ToolResult(
            False,
            ErrorCategory.DEGRADABLE,
            self._tool,
            error_type="given_up",
            attempts=attempts,
            outcome_unknown=attempts > 0 and not self._job.info.repeatable,
        )

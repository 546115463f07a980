"""What a tool call waits for, as values: one course of events, with a driver for each kind of host.

Contract: the course is a generator that yields a step and is sent what came of it; it does nothing
itself. `drive` carries steps out in this thread, `adrive` in an event loop, where it never blocks.
Whatever a step raises is thrown into the course, cancellation too, and what the course does not
catch leaves the driver as it is.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Generator
from contextvars import copy_context
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar, cast

__all__ = ["Ask", "CancelledWithinError", "Course", "Perform", "Step", "Wait", "adrive", "drive"]

T = TypeVar("T")


class CancelledWithinError(Exception):
    """A tool has let the cancellation of something that it waited for out: it has failed."""


@dataclass(frozen=True, slots=True)
class Perform:
    """Run something of the user's: the tool, or what takes its place.

    Attributes:
        act: what to call; in an event loop it may give back an awaitable.
        threaded: in an event loop, call it in a thread: it may block.
    """

    act: Callable[[], object]
    threaded: bool = False


@dataclass(frozen=True, slots=True)
class Ask:
    """Ask a store.

    Attributes:
        act: what to call.
        blocking: whether it has no place on an event loop.
        undo: told the answer where nobody is there any more to take it.
    """

    act: Callable[[], object]
    blocking: bool
    undo: Callable[[Any], object] | None = None


@dataclass(frozen=True, slots=True)
class Wait:
    """Wait before the next attempt.

    Attributes:
        seconds: how long.
    """

    seconds: float


Step: TypeAlias = Perform | Ask | Wait
Course: TypeAlias = Generator[Step, Any, T]


def drive(course: Course[T], sleep: Callable[[float], object]) -> T:
    """Carry a course out in this thread."""
    answer: object = None
    error: BaseException | None = None
    while True:
        try:
            step = course.send(answer) if error is None else course.throw(error)
        except StopIteration as end:
            return cast("T", end.value)
        answer, error = None, None
        try:
            answer = sleep(step.seconds) if isinstance(step, Wait) else _at_once(step.act())
        except BaseException as raised:
            error = raised


async def adrive(course: Course[T], asleep: Callable[[float], Awaitable[object]]) -> T:
    """Carry a course out in the running event loop."""
    answer: object = None
    error: BaseException | None = None
    while True:
        try:
            step = course.send(answer) if error is None else course.throw(error)
        except StopIteration as end:
            return cast("T", end.value)
        answer, error = None, None
        try:
            answer = await _carried_out(step, asleep)
        except BaseException as raised:
            error = raised


def _at_once(answer: object) -> object:
    """What was answered, if there is nothing to be awaited."""
    if inspect.iscoroutine(answer):
        answer.close()
        raise TypeError("it is asynchronous, and there is no event loop to await it in")
    return answer


async def _carried_out(step: Step, asleep: Callable[[float], Awaitable[object]]) -> object:
    if isinstance(step, Wait):
        return await asleep(step.seconds)
    if isinstance(step, Ask):
        return await _answered(step) if step.blocking else step.act()
    try:
        found = await asyncio.to_thread(step.act) if step.threaded else step.act()
        return await cast("Awaitable[object]", found) if inspect.isawaitable(found) else found
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        # Nobody has cancelled this task: it has waited for something that was.
        raise CancelledWithinError("something that it waited for was cancelled") from error


async def _answered(ask: Ask) -> object:
    """Ask in a thread. Where the asker is cancelled meanwhile, the answer is undone there."""
    loop = asyncio.get_running_loop()
    asked = loop.run_in_executor(None, copy_context().run, ask.act)
    try:
        return await asyncio.shield(asked)
    except asyncio.CancelledError:
        undo = ask.undo

        def unwanted(done: asyncio.Future[object]) -> None:
            if undo is not None and not done.cancelled() and done.exception() is None:
                loop.run_in_executor(None, undo, done.result())

        asked.add_done_callback(unwanted)
        raise

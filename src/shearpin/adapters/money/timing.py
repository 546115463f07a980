"""How long a tool call may take, and how many may run at the same time.

Contract: without a time limit and without `max_concurrency` a tool is simply called. With a time
limit an asynchronous tool is cancelled at the deadline; a synchronous one runs in a thread of its
own, because it cannot be: it is left behind and reported, and the run goes on. A call that waits
for its turn keeps its place; a call within another tool's call needs no turn of its own, so that
an agent in a tool cannot wait for itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from threading import Thread
from typing import Any

from shearpin.adapters.money.spending import Spending

__all__ = ["CutOff", "atimed", "timed"]

_IN_TURN: ContextVar[bool] = ContextVar("shearpin_turn", default=False)


class CutOff(Exception):  # noqa: N818
    """A tool call did not end in time; its words are the answer to the call."""


def timed(spending: Spending | None, tool: str, execute: Callable[[], Any]) -> Any:
    """Run a tool in its turn and within its time.

    Raises:
        CutOff: it did not end in time.
    """
    if spending is None:
        return execute()
    turns = None if _IN_TURN.get() else spending.turns
    if turns is None:
        return _in_time(spending, tool, execute)
    turns.take()
    try:
        with _in_turn():
            return _in_time(spending, tool, execute)
    finally:
        turns.back()


async def atimed(
    spending: Spending | None, tool: str, execute: Callable[[], Awaitable[Any]]
) -> Any:
    """`timed`, for asynchronous tools."""
    if spending is None:
        return await execute()
    turns = None if _IN_TURN.get() else spending.turns
    if turns is None:
        return await _ain_time(spending, tool, execute)
    await turns.atake()
    try:
        with _in_turn():
            return await _ain_time(spending, tool, execute)
    finally:
        turns.back()


@contextmanager
def _in_turn() -> Generator[None]:
    token = _IN_TURN.set(True)
    try:
        yield
    finally:
        _IN_TURN.reset(token)


def _in_time(spending: Spending, tool: str, execute: Callable[[], Any]) -> Any:
    seconds = spending.seconds_left()
    if seconds is None:
        return execute()
    found: list[Any] = []
    failed: list[BaseException] = []

    def work() -> None:
        try:
            found.append(execute())
        except BaseException as error:
            failed.append(error)

    context = copy_context()
    thread = Thread(target=context.run, args=(work,), name=f"shearpin-{tool}", daemon=True)
    thread.start()
    thread.join(seconds)
    if failed:
        raise failed[0]
    if found:
        return found[0]
    spending.till.note(
        f"the tool {tool!r} did not end in time; it cannot be cut off and was left running"
    )
    raise CutOff(_words(tool, seconds))


async def _ain_time(spending: Spending, tool: str, execute: Callable[[], Awaitable[Any]]) -> Any:
    seconds = spending.seconds_left()
    if seconds is None:
        return await execute()
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            return await execute()
    except TimeoutError:
        if not limit.expired():
            raise
        raise CutOff(_words(tool, seconds)) from None


def _words(tool: str, seconds: float) -> str:
    return (
        f"Not finished: `{tool}` was cut off after {seconds:.1f} seconds, all that was left. What "
        "it has done is not known."
    )

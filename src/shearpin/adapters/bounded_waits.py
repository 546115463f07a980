"""Work that may block, done aside, and waited for no longer than so many seconds.

Contract: neither a thread nor an event loop is held up for longer. What has not answered by then
goes on aside and answers nobody; it keeps no process alive.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from threading import Event, Thread
from typing import Generic, TypeVar

__all__ = ["aside", "awaited", "waited"]

T = TypeVar("T")


class _Outcome(Generic[T]):
    """What becomes of a piece of work."""

    def __init__(self, work: Callable[[], T], tell: Callable[[], None]) -> None:
        self.work, self.tell = work, tell
        self.value: T | None = None
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            self.value = self.work()
        except BaseException as error:
            self.error = error
        self.tell()

    def result(self) -> T:
        if self.error is not None:
            raise self.error
        return self.value  # pyright: ignore[reportReturnType]


def aside(work: Callable[[], object]) -> None:
    """Begin a piece of work that nobody waits for; what it raises is the work's own business."""
    Thread(target=work, name="shearpin-aside", daemon=True).start()


def waited(work: Callable[[], T], seconds: float) -> T:
    """The result of a piece of work, done in a thread of its own.

    Raises:
        TimeoutError: it takes longer.
    """
    done = Event()
    outcome = _Outcome(work, done.set)
    aside(outcome.run)
    if not done.wait(seconds):
        raise TimeoutError(f"no answer within {seconds:g} s")
    return outcome.result()


async def awaited(work: Callable[[], T], seconds: float) -> T:
    """`waited`, without blocking the event loop.

    Raises:
        TimeoutError: it takes longer.
    """
    loop, done = asyncio.get_running_loop(), asyncio.Event()

    def tell() -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(done.set)

    outcome = _Outcome(work, tell)
    aside(outcome.run)
    try:
        await asyncio.wait_for(done.wait(), seconds)
    except TimeoutError:
        raise TimeoutError(f"no answer within {seconds:g} s") from None
    return outcome.result()

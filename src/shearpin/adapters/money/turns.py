"""Turns of tool calls: so many at the same time, in the order in which they came."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from threading import Event, Lock

from shearpin.core.account import Account

__all__ = ["Turns", "turns_of"]


class Turns:
    """So many calls at a time, of threads and of tasks, in the order in which they came."""

    def __init__(self, most: int) -> None:
        self._free = most
        self._lock = Lock()
        self._waiting: deque[Callable[[], None]] = deque()

    def _wait(self, wake: Callable[[], None]) -> bool:
        with self._lock:
            if self._free:
                self._free -= 1
                return False
            self._waiting.append(wake)
            return True

    def take(self) -> None:
        """Wait for a turn."""
        mine = Event()
        if self._wait(mine.set):
            mine.wait()

    async def atake(self) -> None:
        """`take`, without blocking an event loop."""
        loop = asyncio.get_running_loop()
        mine: asyncio.Future[None] = loop.create_future()

        def give() -> None:
            if mine.cancelled():
                self.back()
            else:
                mine.set_result(None)

        def wake() -> None:
            loop.call_soon_threadsafe(give)

        if self._wait(wake):
            await mine

    def back(self) -> None:
        """Give a turn back, to who waits longest."""
        with self._lock:
            if not self._waiting:
                self._free += 1
                return
            wake = self._waiting.popleft()
        wake()


def turns_of(account: Account) -> Turns | None:
    """The turns of an account; None where any number of calls may run."""
    budgets = [*(book.budget for book in account.books), *account.per_call]
    most = [b.max_concurrency for b in budgets if b.max_concurrency is not None]
    return Turns(min(most)) if most else None

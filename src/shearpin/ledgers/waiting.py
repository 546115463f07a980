"""Calls that wait until others leave them room: threads block, tasks do not.

Contract: a call waits only while calls of others are under way, never for its own (such as a stream
that it has not read to the end), and it is woken when one of those is closed. Asking again and
being refused again wakes nobody but those who would then wait for nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Set as AbstractSet
from threading import Condition, get_ident
from typing import NamedTuple

__all__ = ["Waiting", "mine_in_task"]


class _Asleep(NamedTuple):
    """A task that waits, and the future that wakes it."""

    mine: AbstractSet[int]
    since: int
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[None]


class Waiting:
    """Which calls are under way, and who waits for one of them to be closed.

    Example:
        >>> waiting = Waiting()
        >>> waiting.begins("a", 1)
        >>> since = waiting.closed
        >>> waiting.wait(since, {1}, 60.0)      # only its own call is under way
        False
        >>> waiting.ends("a", closed=True)
        >>> waiting.wait(since, {2}, 60.0)
        True
    """

    def __init__(self) -> None:
        self._changed = Condition()
        self._underway: dict[str, int] = {}
        self._closed = 0
        self._asleep: dict[int, _Asleep] = {}

    @property
    def closed(self) -> int:
        """How many calls were closed so far: whether there may be room again."""
        return self._closed

    def begins(self, id: str, owner: int) -> None:
        """A call asks for room, and is under way if it gets it; `owner` is its thread or task."""
        with self._changed:
            self._underway[id] = owner

    def ends(self, id: str, *, closed: bool) -> None:
        """A call is `closed`, after the ledger was told, or was refused."""
        with self._changed:
            self._underway.pop(id, None)
            if closed:
                self._closed += 1
            self._changed.notify_all()
            for asleep in self._asleep.values():
                if self._over(asleep.since, asleep.mine) and not asleep.loop.is_closed():
                    asleep.loop.call_soon_threadsafe(_wake, asleep.future)

    def busy(self, mine: AbstractSet[int]) -> bool:
        """Whether calls of others are under way here; a ledger may hold for more than these."""
        with self._changed:
            return bool(set(self._underway.values()) - mine)

    def wait(self, since: int, mine: AbstractSet[int], seconds: float) -> bool:
        """Wait until a call of others is closed; False if none is under way, or in vain.

        Args:
            since: `closed` before the refusal.
            mine: the owners whose calls the caller must not wait for.
            seconds: to wait at most.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._over(since, mine), seconds)
            return self._closed != since

    async def wait_in_task(self, since: int, mine: AbstractSet[int], seconds: float) -> bool:
        """`wait`, without blocking the event loop; may be cancelled."""
        with self._changed:
            if self._over(since, mine):
                return self._closed != since
            loop = asyncio.get_running_loop()
            asleep = _Asleep(mine, since, loop, loop.create_future())
            self._asleep[id(asleep)] = asleep
        try:
            await asyncio.wait([asleep.future], timeout=seconds)
        finally:
            with self._changed:
                del self._asleep[id(asleep)]
        return self._closed != since

    def _over(self, since: int, mine: AbstractSet[int]) -> bool:
        return self._closed != since or not (set(self._underway.values()) - mine)


def mine_in_task() -> frozenset[int]:
    """The owners that stand for the task that is running: itself, and its thread."""
    return frozenset((id(asyncio.current_task()), get_ident()))


def _wake(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)

"""Model calls whose time is up while they are made.

Contract: an asynchronous call is cut by cancelling the task that makes it; the cancellation is
taken back, and is a refusal, where our own code sees it next. A cancellation that comes from
outside is never touched. A stream ends between two chunks. A synchronous call cannot be cut: the
report says by how much it was late.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import NamedTuple

from shearpin.verdicts import Halt

__all__ = ["Cut", "Deadlines"]


class Cut(NamedTuple):
    """A call that was cut, and has not ended yet.

    Attributes:
        task: that made it, and was cancelled.
        halt: with what its caller is ended.
        settle: takes the call as failed, unless LangChain has told of that already.
    """

    task: asyncio.Task[object]
    halt: Halt
    settle: Callable[[], None]


class Deadlines:
    """The calls of a run that were cut."""

    def __init__(self) -> None:
        self._cuts: list[Cut] = []

    def cut(self, cut: Cut) -> None:
        """Cancel the task that makes a call."""
        self._cuts.append(cut)
        cut.task.cancel()

    def ended(self, error: BaseException) -> Halt | None:
        """With what the caller ends where a cancellation is ours alone, which is taken back."""
        if not self._cuts or not isinstance(error, asyncio.CancelledError):
            return None
        current = asyncio.current_task()
        if current is None:
            return None
        mine = [cut for cut in self._cuts if cut.task is current]
        others = [cut for cut in self._cuts if cut.task is not current and cut.task.done()]
        for _ in mine:
            current.uncancel()
        # A task that is still to be cancelled was cancelled by somebody else, too.
        found = None if current.cancelling() else next(iter([*mine, *others]), None)
        ended = [*mine, *([found] if found is not None else [])]
        self._cuts = [cut for cut in self._cuts if cut not in ended]
        for cut in ended:
            cut.settle()
        return None if found is None else found.halt

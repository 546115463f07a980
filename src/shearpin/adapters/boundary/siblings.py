"""Tool calls that run side by side: where one fails for good, the others are given up.

Contract: a call that has not begun is not begun any more; one that waits in an event loop is
cancelled, unless its effect is recorded, for which nobody may be left in doubt. What has finished
keeps its result, and threads that run are left to finish: they cannot be cut off. A cancellation
from outside is never taken for ours, also where both come together.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

__all__ = ["Batch", "Siblings", "batch_of"]

Batch: TypeAlias = tuple[str, object, object]
"""Which calls run side by side: those of one node, in one superstep of one graph."""

_MOST_BATCHES = 64


def batch_of(metadata: Mapping[str, object] | None) -> Batch | None:
    """The batch that a call belongs to; None outside of a graph."""
    told = metadata or {}
    namespace, step = told.get("langgraph_checkpoint_ns"), told.get("langgraph_step")
    if not isinstance(namespace, str) or step is None:
        return None
    return namespace.rpartition("|")[0], step, told.get("langgraph_node")


@dataclass(slots=True, eq=False)
class _Call:
    batch: Batch
    loop: asyncio.AbstractEventLoop | None
    task: asyncio.Task[object] | None
    cancelled: bool = False


class Siblings:
    """The calls of a run that are under way. See the module's contract."""

    def __init__(self) -> None:
        self._calls: dict[str, _Call] = {}
        self._failed: dict[Batch, str] = {}
        self._lock = threading.Lock()

    def join(self, batch: Batch | None, call: str, *, kept: bool) -> str | None:
        """A call is about to begin; returns the tool whose failure keeps it from that, if any.

        Args:
            batch: what it belongs to; None: it has no siblings.
            call: its id, which `leave` is told again.
            kept: whether it is left alone once it has begun.
        """
        if batch is None:
            return None
        loop, task = (None, None) if kept else _here()
        with self._lock:
            if batch in self._failed:
                return self._failed[batch]
            self._calls[call] = _Call(batch, loop, task)
        return None

    def leave(self, call: str) -> None:
        """A call has ended, however it did."""
        with self._lock:
            found = self._calls.pop(call, None)
        if found is not None and found.cancelled and found.task is not None:
            found.task.uncancel()  # it has ended all the same, or `gave_up` was asked

    def fail(self, batch: Batch | None, call: str, tool: str) -> None:
        """A call has failed for good: its siblings are given up."""
        if batch is None:
            return
        with self._lock:
            if batch in self._failed:
                return
            if len(self._failed) >= _MOST_BATCHES:
                del self._failed[next(iter(self._failed))]
            self._failed[batch] = tool
            others = [
                (name, other)
                for name, other in self._calls.items()
                if other.batch == batch and name != call and other.loop is not None
            ]
        for name, other in others:
            if other.loop is not None and not other.loop.is_closed():
                other.loop.call_soon_threadsafe(self._cancel, name, other)

    def gave_up(self, call: str) -> bool:
        """Whether the cancellation that a call has just met is ours alone."""
        with self._lock:
            found = self._calls.get(call)
        task = None if found is None else found.task
        if found is None or task is None or not found.cancelled:
            return False
        return task.cancelling() <= 1

    def _cancel(self, name: str, call: _Call) -> None:
        """In the call's own loop, so that it cannot end meanwhile."""
        with self._lock:
            there = self._calls.get(name) is call and call.task is not None
            call.cancelled = there and not call.cancelled
        if call.cancelled and call.task is not None:
            call.task.cancel()


def _here() -> tuple[asyncio.AbstractEventLoop | None, asyncio.Task[object] | None]:
    try:
        return asyncio.get_running_loop(), asyncio.current_task()
    except RuntimeError:
        return None, None

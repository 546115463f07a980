"""Saving the session in mid-run: a process that is killed loses nothing that it has counted.

Contract: a snapshot is written after a node has run and before its own writes are, so that what the
checkpoint knows the session knows as well. It goes to the checkpoint that the step started from,
without reading anything, under a task id of our own; with `durability="exit"` nothing is written in
mid-run. A fault of the checkpointer is contained.
"""

from __future__ import annotations

from collections.abc import Mapping
from threading import Lock
from typing import Any, cast

from langchain_core.runnables import RunnableConfig

from shearpin.adapters.judge import ThreadState
from shearpin.adapters.langgraph.compat import ambient, started_from
from shearpin.adapters.langgraph.state import CHANNEL, AnySaver, payload

__all__ = ["Keeper"]


class Keeper:
    """Saves one run's session every so many nodes."""

    def __init__(self, saver: AnySaver, thread: str, state: ThreadState, every: int) -> None:
        self._saver = saver
        self._thread = thread
        self._state = state
        self._every = every
        self._left = 0
        self._lock = Lock()

    def save_now(self) -> None:
        """A call is about to be made; raises where that cannot be saved."""
        head = self._head(ambient() or {})
        if head is not None:
            writes, task = self._writes(head)
            self._saver.put_writes(head, writes, task)

    async def asave_now(self) -> None:
        """`save_now`, for asynchronous calls."""
        head = self._head(ambient() or {})
        if head is not None:
            writes, task = self._writes(head)
            await self._saver.aput_writes(head, writes, task)

    def save(self, config: Mapping[str, Any]) -> None:
        """A node has run."""
        try:
            head = self._due(config)
            if head is not None:
                writes, task = self._writes(head)
                self._saver.put_writes(head, writes, task)
        except Exception as error:
            self._state.judge.fault("keeping.save", error)

    async def asave(self, config: Mapping[str, Any]) -> None:
        """`save`, for asynchronous runs."""
        try:
            head = self._due(config)
            if head is not None:
                writes, task = self._writes(head)
                await self._saver.aput_writes(head, writes, task)
        except Exception as error:
            self._state.judge.fault("keeping.save", error)

    def _due(self, config: Mapping[str, Any]) -> RunnableConfig | None:
        with self._lock:
            self._left += 1
            if self._left % self._every:
                return None
        if not self._state.judge.ask(lambda session: session.active, False):
            return None
        return self._head(config)

    def _head(self, config: Mapping[str, Any]) -> RunnableConfig | None:
        head = started_from(config)
        if head is None:
            return None
        return cast(
            "RunnableConfig",
            {
                "configurable": {
                    "thread_id": self._thread,
                    "checkpoint_ns": "",
                    "checkpoint_id": head,
                }
            },
        )

    def _writes(self, head: RunnableConfig) -> tuple[list[tuple[str, Any]], str]:
        identity = str(cast("dict[str, Any]", head)["configurable"]["checkpoint_id"])
        with self._lock:
            text, task = payload(self._state, identity)
        self._state.unsaved = True  # what comes after this is known here only
        return [(CHANNEL, text)], task

"""Where sessions live between runs: in memory, or on the thread's newest checkpoint.

Contract: state travels with the thread without being seen. A snapshot is a pending write under a
task id of our own on the head checkpoint, made after the run, never in a user's task or channel; it
holds digests and counts, a sequence number, and no text. The newest number wins, so that spend does
not go back when the graph does. A fault of the checkpointer is logged and noted, never raised.
"""

from __future__ import annotations

import json
import logging
import threading
import uuid
from collections import OrderedDict
from collections.abc import Callable, Iterable
from contextlib import aclosing, closing
from typing import Any, NamedTuple, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple

from shearpin import clock
from shearpin.adapters.judge import Judge, ThreadState
from shearpin.adapters.run import Run
from shearpin.core.session import Session
from shearpin.core.settings import Settings

__all__ = [
    "CHANNEL",
    "AnySaver",
    "Note",
    "Runs",
    "Snapshot",
    "Threads",
    "aload",
    "asave",
    "head_of",
    "load",
    "payload",
    "read",
    "save",
]

logger = logging.getLogger("shearpin")

CHANNEL = "__shearpin__"
"""The name under which a snapshot is written; no graph has such a channel."""

_SPACE = uuid.UUID("b3a6f3d2-9a0c-5a63-8a2e-51d0c2a6f001")
_LOOK_BACK = 20
_MOST_THREADS = 1024
_MOST_RUNS = 256

AnySaver = BaseCheckpointSaver[Any]
Note = Callable[[str, BaseException], None]


class Threads:
    """Sessions by conversation, the least recently used forgotten first."""

    def __init__(self, most: int = _MOST_THREADS) -> None:
        self._most = most
        self._states: OrderedDict[str, ThreadState] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, thread: str) -> ThreadState | None:
        """The state of a thread, if it is known."""
        with self._lock:
            state = self._states.get(thread)
            if state is not None:
                self._states.move_to_end(thread)
            return state

    def put(self, thread: str, state: ThreadState) -> ThreadState:
        """Keep a thread's state; what another run has put there meanwhile wins."""
        with self._lock:
            kept = self._states.setdefault(thread, state)
            self._states.move_to_end(thread)
            while len(self._states) > self._most:
                self._states.popitem(last=False)
            return kept

    def drop(self, thread: str) -> None:
        """Forget a thread."""
        with self._lock:
            self._states.pop(thread, None)


class Runs:
    """The latest run of each thread, and of all."""

    def __init__(self) -> None:
        self._runs: OrderedDict[str | None, Run] = OrderedDict()
        self._latest: Run | None = None
        self._lock = threading.Lock()

    def put(self, run: Run) -> None:
        """A run begins."""
        with self._lock:
            self._latest = run
            self._runs[run.thread] = run
            self._runs.move_to_end(run.thread)
            while len(self._runs) > _MOST_RUNS:
                self._runs.popitem(last=False)

    def get(self, thread: str | None) -> Run | None:
        """The latest run of a thread; of all threads where none is given."""
        with self._lock:
            return self._latest if thread is None else self._runs.get(thread)


class Snapshot(NamedTuple):
    """A saved session as it was read back."""

    sequence: int
    turn: int
    session: dict[str, object]
    funds: dict[str, Any] | None = None
    people: list[Any] | None = None
    owed: list[Any] | None = None

    def restore(self, settings: Settings, now: clock.Clock) -> ThreadState:
        """The thread state that was saved; if it is unreadable, a fresh one that says so."""
        try:
            session = Session.load(settings, self.session)
        except Exception as error:
            logger.warning("shearpin: saved session state is unreadable: %r", error)
            state = ThreadState.fresh(settings, now)
            state.judge.fault("state.restore", error)
        else:
            state = ThreadState(Judge(session, now))
        state.turn, state.sequence = self.turn, self.sequence
        state.saved_funds = self.funds
        state.people.load(self.people)
        try:
            state.owed.load(self.owed)
        except (TypeError, ValueError) as error:
            state.judge.fault("state.restore", error)
        return state


def load(saver: AnySaver, thread: str, note: Note) -> Snapshot | None:
    """The newest snapshot of a thread; None where there is none, or where it cannot be read.

    `note` is told of a fault.
    """
    try:
        head = saver.get_tuple(head_of(thread))
        if head is None:
            return None
        found = _newest([head])
        if found is None and head.parent_config is not None:
            older = saver.list(head_of(thread), before=head.config, limit=_LOOK_BACK)
            with closing(cast("Any", older)):
                for item in older:
                    found = _newest([item])
                    if found is not None:
                        break
        return found
    except Exception as error:
        logger.warning("shearpin: session state cannot be read: %r", error)
        note("state.load", error)
        return None


async def aload(saver: AnySaver, thread: str, note: Note) -> Snapshot | None:
    """`load`, for asynchronous runs."""
    try:
        head = await saver.aget_tuple(head_of(thread))
        if head is None:
            return None
        found = _newest([head])
        if found is None and head.parent_config is not None:
            older = saver.alist(head_of(thread), before=head.config, limit=_LOOK_BACK)
            async with aclosing(cast("Any", older)):
                async for item in older:
                    found = _newest([item])
                    if found is not None:
                        break
        return found
    except Exception as error:
        logger.warning("shearpin: session state cannot be read: %r", error)
        note("state.load", error)
        return None


def save(saver: AnySaver, thread: str, state: ThreadState) -> None:
    """Write a thread's state to its head checkpoint, if there is anything that must survive."""
    if not state.judge.ask(lambda session: session.active, False):
        return
    state.unsaved = True
    try:
        head = saver.get_tuple(head_of(thread))
        if head is not None:
            text, task = payload(state, head.checkpoint["id"])
            saver.put_writes(head.config, [(CHANNEL, text)], task)
            state.unsaved = False
    except Exception as error:
        state.judge.fault("state.save", error)


async def asave(saver: AnySaver, thread: str, state: ThreadState) -> None:
    """`save`, for asynchronous runs."""
    if not state.judge.ask(lambda session: session.active, False):
        return
    state.unsaved = True
    try:
        head = await saver.aget_tuple(head_of(thread))
        if head is not None:
            text, task = payload(state, head.checkpoint["id"])
            await saver.aput_writes(head.config, [(CHANNEL, text)], task)
            state.unsaved = False
    except Exception as error:
        state.judge.fault("state.save", error)


def head_of(thread: str) -> RunnableConfig:
    """The newest checkpoint of a thread."""
    return {"configurable": {"thread_id": thread, "checkpoint_ns": ""}}


def payload(state: ThreadState, checkpoint: str) -> tuple[str, str]:
    """A new snapshot of a thread's state, and the task id to write it under."""
    state.sequence += 1
    data: dict[str, object] = {
        "v": 1,
        "sequence": state.sequence,
        "turn": state.turn,
        "session": state.judge.ask(lambda session: session.dump(), {}),
    }
    if state.funds is not None:
        data["funds"] = state.funds.dump()
    elif state.saved_funds is not None:  # no budget in this run, or it could not be read
        data["funds"] = state.saved_funds
    with state.judge.lock:
        people, owed = state.people.dump(), state.owed.dump()
    if people:
        data["people"] = people
    if owed:
        data["owed"] = owed
    task = uuid.uuid5(_SPACE, f"{checkpoint}:{state.sequence}")
    return json.dumps(data, separators=(",", ":"), ensure_ascii=False), str(task)


def _newest(tuples: Iterable[CheckpointTuple]) -> Snapshot | None:
    best: Snapshot | None = None
    for item in tuples:
        for _, channel, value in item.pending_writes or ():
            if channel == CHANNEL and isinstance(value, str):
                found = read(value)
                if found is not None and (best is None or found.sequence > best.sequence):
                    best = found
    return best


def read(text: str) -> Snapshot | None:
    """A snapshot from its text; None, and a warning, where it is damaged."""
    try:
        data = cast("dict[str, Any]", json.loads(text))
        if data.get("v") != 1:
            return None
        return Snapshot(
            int(data["sequence"]),
            int(data["turn"]),
            dict(data["session"]),
            data.get("funds"),
            data.get("people"),
            data.get("owed"),
        )
    except (ValueError, KeyError, TypeError) as error:
        logger.warning("shearpin: saved session state is damaged: %r", error)
        return None

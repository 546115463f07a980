"""Sessions in a store of their own: `Guard(state="sqlite:///sessions.db")`.

Contract: a conversation has one entry, its newest whole snapshot; an older one never takes the
place of a newer, so that spend does not go back when the graph does. No checkpointer is needed;
where there is one and the thread is gone from it, so is the entry. A store that may block is asked
aside, and no run waits for it longer than `PATIENCE_SECONDS`. A fault is logged and noted, never
raised.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from hashlib import sha256
from threading import Lock
from typing import Any, Final, TypeVar, cast

from shearpin.adapters.bounded_waits import aside, awaited, waited
from shearpin.adapters.judge import ThreadState
from shearpin.adapters.langgraph.state import AnySaver, Note, Snapshot, head_of, payload, read
from shearpin.errors import StoreError
from shearpin.stores.base import Entry, Store
from shearpin.stores.opening import open_store

__all__ = ["PATIENCE_SECONDS", "SessionKeeper", "Sessions", "sessions_of"]

logger = logging.getLogger("shearpin")
T = TypeVar("T")

PATIENCE_SECONDS = 10.0
"""How long a run waits for its store; longer than SQLite waits for others."""
KEEP_SECONDS: Final = 90 * 86_400.0
"""A conversation that rests for longer is forgotten."""
_LONGEST: Final = 128


class Sessions:
    """The sessions of one guard in a store.

    Args:
        store: where they are.
        name: of the guard, or the graph; it tells conversations of the same id apart.
        patience: how many seconds to wait for a store that may block; None: `PATIENCE_SECONDS`.
    """

    def __init__(self, store: Store, name: str, patience: float | None = None) -> None:
        self._store = store
        self._name = name
        self.patience = PATIENCE_SECONDS if patience is None else patience

    def load(self, thread: str, saver: AnySaver | None, note: Note) -> Snapshot | None:
        """What is known of a conversation; None where nothing is, or it cannot be read."""
        try:
            entry = self._waited(lambda: self._store.get(self._key(thread)))
            snapshot = None if entry is None else read(entry.value)
            if entry is None or saver is None or saver.get_tuple(head_of(thread)) is not None:
                return snapshot
            self._waited(lambda: self._forget(thread, entry))
        except Exception as error:
            logger.warning("shearpin: session state cannot be read: %r", error)
            note("state.load", error)
        return None

    async def aload(self, thread: str, saver: AnySaver | None, note: Note) -> Snapshot | None:
        """`load`, for asynchronous runs."""
        try:
            entry = await self._awaited(lambda: self._store.get(self._key(thread)))
            snapshot = None if entry is None else read(entry.value)
            if entry is None or saver is None:
                return snapshot
            if await saver.aget_tuple(head_of(thread)) is not None:
                return snapshot
            await self._awaited(lambda: self._forget(thread, entry))
        except Exception as error:
            logger.warning("shearpin: session state cannot be read: %r", error)
            note("state.load", error)
        return None

    def save(self, thread: str, state: ThreadState) -> None:
        """Put a conversation's state, if there is anything that must survive."""
        work = self._due(thread, state)
        if work is not None:
            try:
                self._waited(work)
            except Exception as error:
                state.judge.fault("state.save", error)

    async def asave(self, thread: str, state: ThreadState, *, cancelled: bool = False) -> None:
        """`save`, for asynchronous runs. While one is cancelled, nobody waits."""
        work = self._due(thread, state)
        if work is None:
            return
        try:
            if cancelled and self._store.blocking:
                aside(lambda: self._saved(work, state))
                return
            await self._awaited(work)
        except Exception as error:
            state.judge.fault("state.save", error)

    def put(self, thread: str, text: str) -> None:
        """Put a snapshot, unless there is one that is as new. Raises `StoreError`."""
        key, mine = self._key(thread), read(text)
        while mine is not None:
            found = self._store.get(key)
            held = None if found is None else read(found.value)
            if held is not None and held.sequence >= mine.sequence:
                return
            version = 0 if found is None else found.version
            if self._store.put(key, text, expect=version, ttl_seconds=KEEP_SECONDS) is not None:
                return

    def _due(self, thread: str, state: ThreadState) -> Callable[[], None] | None:
        """What has to be done to save a state now."""
        if not state.judge.ask(lambda session: session.active, False):
            return None
        state.unsaved = True
        text, _ = payload(state, thread)
        sequence = state.sequence

        def work() -> None:
            self.put(thread, text)
            if state.sequence == sequence:  # nothing newer is on its way
                state.unsaved = False

        return work

    def _saved(self, work: Callable[[], None], state: ThreadState) -> None:
        try:
            work()
        except Exception as error:
            state.judge.fault("state.save", error)

    def _forget(self, thread: str, entry: Entry) -> None:
        """The thread was deleted: its next turn is its first."""
        self._store.delete(self._key(thread), expect=entry.version)

    def _key(self, thread: str) -> str:
        name, thread = (
            part if len(part) <= _LONGEST and "\0" not in part else _digest(part)
            for part in (self._name, thread)
        )
        return f"session:{name}:{thread}"

    def _waited(self, work: Callable[[], T]) -> T:
        if not self._store.blocking:
            return work()
        try:
            return waited(work, self.patience)
        except TimeoutError as error:
            raise self._late(error) from None

    async def _awaited(self, work: Callable[[], T]) -> T:
        if not self._store.blocking:
            return work()
        try:
            return await awaited(work, self.patience)
        except TimeoutError as error:
            raise self._late(error) from None

    def _late(self, error: TimeoutError) -> StoreError:
        return StoreError(f"{self._store!r}: {error}; the run went on without it")

    # Saving in mid-run waits as saving at the end does, but says so where it cannot.
    wait_for = _waited
    await_for = _awaited


class SessionKeeper:
    """Saves one run's session every so many nodes, and before calls where that is asked for.

    Contract: after the store has been too slow once, it is left alone until the run ends.
    """

    def __init__(self, sessions: Sessions, thread: str, state: ThreadState, every: int) -> None:
        self._sessions = sessions
        self._thread = thread
        self._state = state
        self._every = every
        self._nodes = 0
        self._lock = Lock()
        self._gave_up = False

    def save(self, config: Mapping[str, Any]) -> None:
        """A node has run."""
        try:
            if self._due():
                self.save_now()
        except Exception as error:
            self._contain(error)

    async def asave(self, config: Mapping[str, Any]) -> None:
        """`save`, for asynchronous runs."""
        try:
            if self._due():
                await self.asave_now()
        except Exception as error:
            self._contain(error)

    def save_now(self) -> None:
        """A call is about to be made; raises where that cannot be saved."""
        text = self._text()
        self._sessions.wait_for(lambda: self._sessions.put(self._thread, text))

    async def asave_now(self) -> None:
        """`save_now`, for asynchronous calls."""
        text = self._text()
        await self._sessions.await_for(lambda: self._sessions.put(self._thread, text))

    def _due(self) -> bool:
        with self._lock:
            self._nodes += 1
            if self._nodes % self._every or self._gave_up:
                return False
        return self._state.judge.ask(lambda session: session.active, False)

    def _text(self) -> str:
        with self._lock:
            text, _ = payload(self._state, self._thread)
        self._state.unsaved = True  # what comes after this is known here only
        return text

    def _contain(self, error: Exception) -> None:
        self._gave_up = True
        self._state.judge.fault("keeping.save", error)


def sessions_of(place: object, name: str) -> Sessions | None:
    """The sessions of a guard whose `state` names a store; None where it does not.

    Raises:
        ConfigError: there is no such kind of store.
        StoreError: the store cannot be opened.
    """
    if place in ("auto", "memory", "checkpointer"):
        return None
    return Sessions(open_store(cast("Any", place)), name)


def _digest(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()

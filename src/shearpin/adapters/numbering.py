"""Ids of calls: the same in all layers, and the same again when a task is re-executed.

A call is known by its task and its number within it, not by the id that the model gave it: a node
that runs again after a pause or a failure asks its model again, and gets new ids for the same
calls.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import TypeVar
from zlib import crc32

__all__ = ["Numbers"]

K = TypeVar("K")
T = TypeVar("T")

_MOST = 1024


class _Task:
    """How the calls of one task are numbered."""

    __slots__ = ("aliases", "counts")

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.aliases: dict[str, str] = {}

    def next(self, key: str) -> int:
        count = self.counts.get(key, 0)
        _keep(self.counts, key, count + 1)
        return count


class Numbers:
    """Gives the calls of a run their ids, in bounded memory."""

    def __init__(self) -> None:
        self._tasks: dict[str, _Task] = {}
        self._answered: dict[tuple[str, int], None] = {}
        self._asked: dict[str, int] = {}
        self._unnamed: dict[str, None] = {}
        self._lock = threading.Lock()

    def model_call(self, scope: str) -> str:
        """The id of the next model call of a task."""
        with self._lock:
            return f"{scope}@{self._task(scope).next('@')}"

    def tool_call(self, scope: str, name: str, args: object, given: object) -> str:
        """The id of a tool call; the model's id of it tells calls of one execution apart."""
        code = crc32(str(args).encode("utf-8", "replace"))
        with self._lock:
            task = self._task(scope)
            named = given if isinstance(given, str) and given else None
            known = task.aliases.get(named) if named is not None else None
            if known is not None:
                return known
            found = f"{scope}:{name}:{code}#{task.next(f'{name}:{code}')}"
            if named is None:
                _keep(self._unnamed, name, None)
            else:
                _keep(task.aliases, named, found)
                _keep(self._answered, (named, self._asked.get(named, 0)), None)
            return found

    def asked(self, given: Iterable[str]) -> None:
        """A model has asked for calls under these ids, which it may have used before."""
        with self._lock:
            for name in given:
                count = self._asked.pop(name, 0)
                _keep(self._asked, name, count + 1)

    def times(self, given: str) -> int:
        """How often a model has asked for a call under this id."""
        return self._asked.get(given, 0)

    def knows(self, given: str, tool: str) -> bool:
        """Whether a call that a model asked for has been reported, or may have been."""
        return (given, self._asked.get(given, 0)) in self._answered or tool in self._unnamed

    def forget(self, scope: str) -> None:
        """A task starts (again) or is over: its calls are numbered from zero."""
        if scope in self._tasks:
            with self._lock:
                self._tasks.pop(scope, None)

    def _task(self, scope: str) -> _Task:
        task = self._tasks.get(scope)
        if task is None:
            task = _Task()
            _keep(self._tasks, scope, task)
        return task


def _keep(kept: dict[K, T], key: K, value: T) -> None:
    """Add to a mapping of bounded size; the oldest key goes first."""
    kept[key] = value
    if len(kept) > _MOST:
        del kept[next(iter(kept))]

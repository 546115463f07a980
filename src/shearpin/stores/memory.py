"""The store of one process: thread-safe, never waits, gone with the process."""

from __future__ import annotations

from heapq import heappop, heappush
from threading import Lock
from typing import NamedTuple

from shearpin import clock
from shearpin.errors import StoreError
from shearpin.stores.base import Entry, check_key, check_put
from shearpin.stores.forking import follow_forks

__all__ = ["MemoryStore"]


class _Kept(NamedTuple):
    entry: Entry
    until: float | None


class MemoryStore:
    """Records in this process, behind one lock; the contract is in `shearpin.stores.base`.

    A process that is forked off goes on with a copy of its own.

    Args:
        now: the clock, in seconds, by which entries expire.

    Attributes:
        blocking: False: no operation waits.

    Example:
        >>> store = MemoryStore()
        >>> first = store.put("greeting", '"hello"', expect=0)
        >>> store.put("greeting", '"again"', expect=0) is None
        True
        >>> store.put("greeting", '"hi"', expect=first.version).value
        '"hi"'
    """

    blocking: bool = False

    def __init__(self, now: clock.Clock = clock.monotonic) -> None:
        self._now = now
        self._lock = Lock()
        self._kept: dict[str, _Kept] = {}
        self._expiring: list[tuple[float, str, int]] = []
        self._version = 0
        self._closed = False
        follow_forks(self)

    def get(self, key: str) -> Entry | None:
        """See `Store.get`."""
        check_key(key)
        with self._lock:
            return self._live(key)

    def put(
        self,
        key: str,
        value: str,
        *,
        expect: int | None = None,
        ttl_seconds: float | None = None,
    ) -> Entry | None:
        """See `Store.put`."""
        check_put(key, value, expect, ttl_seconds)
        with self._lock:
            if not self._is(key, expect):
                return None
            self._version += 1
            entry = Entry(value, self._version)
            until = None if ttl_seconds is None else self._now() + ttl_seconds
            self._kept[key] = _Kept(entry, until)
            if until is not None:
                heappush(self._expiring, (until, key, entry.version))
            return entry

    def delete(self, key: str, *, expect: int | None = None) -> bool:
        """See `Store.delete`."""
        check_key(key)
        with self._lock:
            there = self._live(key) is not None and self._is(key, expect)
            if there:
                del self._kept[key]
            return there

    def keys(self, prefix: str = "", limit: int = 1000) -> list[str]:
        """See `Store.keys`."""
        with self._lock:
            self._sweep()
            return sorted(key for key in self._kept if key.startswith(prefix))[: max(limit, 0)]

    def close(self) -> None:
        """See `Store.close`."""
        with self._lock:
            self._closed = True
            self._kept.clear()
            self._expiring.clear()

    def after_fork(self) -> None:
        """A lock that another thread of the parent held is held by nobody here."""
        self._lock = Lock()

    def _is(self, key: str, expect: int | None) -> bool:
        found = self._live(key)
        return expect is None or expect == (0 if found is None else found.version)

    def _live(self, key: str) -> Entry | None:
        self._sweep()
        kept = self._kept.get(key)
        return None if kept is None else kept.entry

    def _sweep(self) -> None:
        """Forget what has expired; what was replaced meanwhile stays."""
        if self._closed:
            raise StoreError("memory store: is closed; open a new one")
        if not self._expiring:
            return
        now = self._now()
        while self._expiring and self._expiring[0][0] <= now:
            _, key, version = heappop(self._expiring)
            kept = self._kept.get(key)
            if kept is not None and kept.entry.version == version:
                del self._kept[key]

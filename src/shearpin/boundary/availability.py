"""Whether a tool or model counts as down, so that nobody waits for it.

Contract: all threads and processes that share the store see the same state. Closed: calls go ahead
and are counted. Open: they are refused, with the time to wait. Half open: of all that ask, one gets
the probe; its success closes, its failure opens anew; where its lease runs out without a word,
another gets it. The result of a call counts only in the state in which it was admitted. Work and
size do not grow with the number of calls.

    closed -- failure ratio reached --> open -- open_seconds --> half open
    half open -- probe succeeds --> closed
    half open -- probe fails --> open

*Source*: the pattern is Nygard, "Release It!", 2007; counting by ratio over a window is what
Resilience4j and Polly do.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from math import floor
from typing import Any, Final, Literal, NamedTuple, TypeAlias, TypeVar, cast

from shearpin import clock
from shearpin.boundary.settings import Availability
from shearpin.errors import StoreError
from shearpin.stores.base import Store

__all__ = ["Admission", "Admitted", "AvailabilityBreaker", "AvailabilityState", "Refused"]

T = TypeVar("T")

AvailabilityState: TypeAlias = Literal["closed", "open", "half_open"]

BUCKETS: Final = 10
"""The window slides by this part of its length."""
_ATTEMPTS: Final = 1000
_KEEP_SECONDS: Final = 3600.0


@dataclass(frozen=True, slots=True)
class Admitted:
    """The call may go ahead; say afterwards how it went.

    Attributes:
        period: number of the state in which it was admitted.
        probe: whether it is the one call that tries whether things are well again.
    """

    period: int
    probe: bool = False


@dataclass(frozen=True, slots=True)
class Refused:
    """It counts as down.

    Attributes:
        retry_after: seconds until it makes sense to ask again.
    """

    retry_after: float


Admission: TypeAlias = Admitted | Refused


class _Record(NamedTuple):
    """What is stored: counts by bucket where closed, the end of waiting where open."""

    period: int = 0
    open_until: float | None = None
    probe_until: float | None = None
    counts: tuple[tuple[int, int, int], ...] = ()


class AvailabilityBreaker:
    """Refuses calls to what keeps failing; the contract is the module's.

    Args:
        store: where its state is.
        key: what it is about, e.g. `tool:search` or `model:gpt-5`.
        settings: ratio, window and times.
        now: the clock, in seconds since 1970, which all processes have to agree in.

    Example:
        >>> from shearpin.stores import MemoryStore
        >>> breaker = AvailabilityBreaker(MemoryStore(), "tool:search", Availability(min_calls=2))
        >>> for _ in range(2):
        ...     breaker.failed(breaker.admit())
        >>> breaker.state()
        'open'
    """

    def __init__(
        self, store: Store, key: str, settings: Availability, now: clock.Clock = clock.epoch
    ) -> None:
        self._store = store
        self._settings = settings
        self._now = now
        short = len(key) <= 256 and "\0" not in key
        self._key = f"availability:{key if short else sha256(key.encode()).hexdigest()}"

    @property
    def blocking(self) -> bool:
        """Whether an operation may wait, and so has no place on an event loop."""
        return self._store.blocking

    def admit(self) -> Admission:
        """Whether a call may go ahead.

        Raises:
            StoreError: the store failed.
        """

        def ask(record: _Record, now: float) -> tuple[Admission, _Record]:
            if record.open_until is None:
                return Admitted(record.period), record
            waits = max(record.open_until, record.probe_until or 0.0) - now
            if waits > 0:
                return Refused(waits), record
            probing = record._replace(
                period=record.period + 1, probe_until=now + self._settings.probe_lease_seconds
            )
            return Admitted(probing.period, probe=True), probing

        return self._change(ask)

    def succeeded(self, admitted: Admission) -> None:
        """A call has worked. Raises `StoreError` where the store fails."""
        self._told(admitted, 0)

    def failed(self, admitted: Admission) -> None:
        """A call has failed in a way that speaks of the other side, not of the request.

        Raises:
            StoreError: the store failed.
        """
        self._told(admitted, 1)

    def released(self, admitted: Admission) -> None:
        """A call ended without saying anything about the other side, e.g. was cancelled: a probe
        is free for another. Raises `StoreError` where the store fails."""

        if isinstance(admitted, Refused) or not admitted.probe:
            return

        def free(record: _Record, now: float) -> tuple[None, _Record]:
            same = record.period == admitted.period
            return None, record._replace(probe_until=None) if same else record

        self._change(free)

    def state(self) -> AvailabilityState:
        """How things stand. Raises `StoreError` where the store fails."""
        record, _ = self._read()
        if record.open_until is None:
            return "closed"
        return "open" if self._now() < record.open_until else "half_open"

    def _told(self, admitted: Admission, failures: int) -> None:
        if isinstance(admitted, Refused):
            return

        def count(record: _Record, now: float) -> tuple[None, _Record]:
            if record.period != admitted.period:
                return None, record  # the state has changed meanwhile
            if admitted.probe:
                return None, self._opened(record, now) if failures else _closed(record)
            return None, self._counted(record, failures, now)

        self._change(count)

    def _counted(self, record: _Record, failures: int, now: float) -> _Record:
        at = floor(now * BUCKETS / self._settings.window_seconds)
        counts = {
            bucket: (calls, failed)
            for bucket, calls, failed in record.counts
            if at - BUCKETS < bucket <= at
        }
        calls, failed = counts.get(at, (0, 0))
        counts[at] = (calls + 1, failed + failures)
        total = sum(calls for calls, _ in counts.values())
        bad = sum(failed for _, failed in counts.values())
        if (
            failures
            and total >= self._settings.min_calls
            and bad >= self._settings.failure_ratio * total
        ):
            return self._opened(record, now)
        rows = tuple((bucket, *pair) for bucket, pair in sorted(counts.items()))
        return record._replace(counts=rows)

    def _opened(self, record: _Record, now: float) -> _Record:
        return _Record(record.period + 1, now + self._settings.open_seconds)

    def _change(self, change: Callable[[_Record, float], tuple[T, _Record]]) -> T:
        """Read, decide and write as one; again where another was faster."""
        for _ in range(_ATTEMPTS):
            record, version = self._read()
            answer, changed = change(record, self._now())
            if changed == record:
                return answer
            text = json.dumps([1, *changed], separators=(",", ":"))
            if self._store.put(self._key, text, expect=version, ttl_seconds=self._ttl()):
                return answer
        raise StoreError(f"{self._key}: too many others change this record")

    def _ttl(self) -> float:
        settings = self._settings
        longest = settings.open_seconds + settings.probe_lease_seconds
        return max(settings.window_seconds, longest) + _KEEP_SECONDS

    def _read(self) -> tuple[_Record, int]:
        entry = self._store.get(self._key)
        if entry is None:
            return _Record(), 0
        try:
            version, period, open_until, probe_until, counts = cast(
                "list[Any]", json.loads(entry.value)
            )
            if version != 1:
                raise ValueError(f"version {version!r}")
            rows = tuple((int(at), int(calls), int(failed)) for at, calls, failed in counts)
            return _Record(int(period), open_until, probe_until, rows), entry.version
        except (ValueError, TypeError) as error:
            raise StoreError(
                f"{self._key}: the record of availability cannot be read ({error!r}); delete the "
                "key to start afresh"
            ) from error


def _closed(record: _Record) -> _Record:
    return _Record(record.period + 1)

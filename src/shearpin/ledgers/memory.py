"""The ledger of one process: exact, thread-safe, gone with the process."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from math import inf
from threading import Lock
from types import MappingProxyType
from typing import Literal, TypeAlias

from shearpin import clock
from shearpin.core.holds import Amounts, Hold, Refusal, Scope, Tally
from shearpin.errors import ConfigError
from shearpin.ledgers.base import Ready

__all__ = ["Expiry", "MemoryLedger"]

Expiry: TypeAlias = Literal["charge", "release"]

_REMEMBERED = 1024
_NOTHING: Amounts = MappingProxyType({})


class _Page:
    """The sums of one scope, and how many holds are open in it."""

    __slots__ = ("held", "open", "presumed", "spent")

    def __init__(self) -> None:
        self.spent: dict[str, int] = {}
        self.held: dict[str, int] = {}
        self.presumed: dict[str, int] = {}
        self.open = 0

    def hold(self, parts: list[tuple[str, int]]) -> None:
        """One more hold; mostly it is the only one."""
        self.open += 1
        if self.open == 1:
            self.held = dict(parts)
        else:
            _add(self.held, parts)

    def free(self, parts: list[tuple[str, int]]) -> None:
        """A hold is over."""
        self.open -= 1
        if self.open:
            _take(self.held, parts)
        else:
            self.held = {}


class _Lease:
    """A hold under way, and when it runs out."""

    __slots__ = ("hold", "parts", "until")

    def __init__(self, hold: Hold, parts: list[tuple[str, int]]) -> None:
        self.hold = hold
        self.until = inf
        self.parts = parts  # the amounts that are not 0


class MemoryLedger(Ready):
    """Holds and spend in this process, behind one lock; the contract is in `shearpin.ledgers.base`.

    Args:
        lease_seconds: how long a hold lasts without being settled, above 0. Default an hour: longer
            than any call should take.
        on_expiry: what becomes of a hold that ran out. `charge` (default, fails closed): the money
            may have been spent, so it counts as spent until a late settlement says otherwise.
            `release`: it is free again.
        now: the clock, in seconds.

    Example:
        >>> from shearpin.core.holds import Scope
        >>> ledger = MemoryLedger()
        >>> scope = Scope("run:1", {"usd": 100})
        >>> hold = ledger.hold("call-1", [scope], {"usd": 80})
        >>> ledger.hold("call-2", [scope], {"usd": 40}).dimension
        'usd'
        >>> ledger.settle(hold, {"usd": 30})[0].spent
        {'usd': 30}
    """

    def __init__(
        self,
        lease_seconds: float = 3600.0,
        on_expiry: Expiry = "charge",
        now: clock.Clock = clock.monotonic,
    ) -> None:
        if not lease_seconds > 0:
            raise ConfigError(
                f"MemoryLedger.lease_seconds must be above 0 seconds, not {lease_seconds!r}"
            )
        if on_expiry not in ("charge", "release"):
            raise ConfigError(
                f"MemoryLedger.on_expiry must be 'charge' or 'release', not {on_expiry!r}"
            )
        self._lease_seconds = lease_seconds
        self._charges = on_expiry == "charge"
        self._now = now
        self._lock = Lock()
        self._due = inf  # no lease runs out before
        self._pages: dict[str, _Page] = {}
        self._leases: OrderedDict[str, _Lease] = OrderedDict()
        self._overdue: OrderedDict[str, _Lease] = OrderedDict()
        self._settled: OrderedDict[str, Hold] = OrderedDict()

    def hold(self, id: str, scopes: Sequence[Scope], amounts: Amounts) -> Hold | Refusal:
        """See `Ledger.hold`."""
        hold = Hold(id, tuple([scope.key for scope in scopes]), dict(amounts))
        lease = _Lease(hold, [part for part in amounts.items() if part[1]])
        with self._lock:  # as short as can be: others wait here
            now = self._now()
            if now >= self._due:
                self._expire(now)
            known = self._leases.get(id) or self._overdue.get(id)
            if known is not None:
                return known.hold
            if id in self._settled:
                return self._settled[id]
            pages = [self._pages.get(key) or self._page(key) for key in hold.keys]
            for scope, page in zip(reversed(scopes), reversed(pages), strict=True):
                spent, held = page.spent, page.held
                for name, limit in scope.limits.items():
                    wanted = amounts.get(name, 0)
                    if wanted > 0 and spent.get(name, 0) + held.get(name, 0) + wanted > limit:
                        used, waiting = spent.get(name, 0), held.get(name, 0)
                        return Refusal(scope.key, name, limit, used, waiting, wanted)
            for page in pages:
                page.hold(lease.parts)
            lease.until = now + self._lease_seconds
            if not self._leases:
                self._due = lease.until
            self._leases[id] = lease
            return hold

    def settle(self, hold: Hold, amounts: Amounts) -> tuple[Tally, ...]:
        """See `Ledger.settle`."""
        parts = [part for part in amounts.items() if part[1]]
        with self._lock:
            now = self._now()
            if now >= self._due:
                self._expire(now)
            if hold.id not in self._settled:
                self._settled[hold.id] = hold
                if len(self._settled) > _REMEMBERED:
                    self._settled.popitem(last=False)
                for key in self._finish(hold):
                    _add((self._pages.get(key) or self._page(key)).spent, parts)
            return tuple([self._tally(key) for key in hold.keys])

    def release(self, hold: Hold) -> None:
        """See `Ledger.release`."""
        with self._lock:
            self._expire(self._now())
            if hold.id not in self._settled:
                self._finish(hold)

    def charge(self, keys: Sequence[str], amounts: Amounts) -> tuple[Tally, ...]:
        """See `Ledger.charge`."""
        with self._lock:
            parts = [part for part in amounts.items() if part[1]]
            for key in keys:
                _add(self._page(key).spent, parts)
            return tuple([self._tally(key) for key in keys])

    def usage(self, key: str) -> Tally:
        """See `Ledger.usage`."""
        with self._lock:
            self._expire(self._now())
            return self._tally(key)

    def forget(self, key: str) -> None:
        """Drop a scope that will not be used again. What is under way in it is settled unseen."""
        with self._lock:
            self._pages.pop(key, None)
            for lease in self._leases.values():
                if key in lease.hold.keys:
                    lease.hold = lease.hold._replace(
                        keys=tuple(k for k in lease.hold.keys if k != key)
                    )

    # -- under the lock -----------------------------------------------------------------------

    def _page(self, key: str) -> _Page:
        page = self._pages.get(key)
        if page is None:
            page = self._pages[key] = _Page()
        return page

    def _tally(self, key: str) -> Tally:
        page = self._pages.get(key)
        if page is None:
            return Tally(key, _NOTHING, _NOTHING, _NOTHING)
        held = page.held.copy() if page.open else _NOTHING
        presumed = page.presumed.copy() if page.presumed else _NOTHING
        return Tally(key, page.spent.copy(), held, presumed)

    def _finish(self, hold: Hold) -> tuple[str, ...]:
        """Free what a hold still holds; the scopes that it is to be charged to."""
        lease = self._leases.pop(hold.id, None)
        if lease is not None:
            keys = lease.hold.keys
            for key in keys:
                page = self._pages.get(key)
                if page is not None:
                    page.free(lease.parts)
            return keys
        lease = self._overdue.pop(hold.id, None)
        if lease is None:
            return hold.keys
        if self._charges:
            for page in self._known(lease.hold):
                _take(page.spent, lease.parts)
                _take(page.presumed, lease.parts)
        return lease.hold.keys

    def _known(self, hold: Hold) -> list[_Page]:
        return [page for page in map(self._pages.get, hold.keys) if page is not None]

    def _expire(self, now: float) -> None:
        self._due = inf
        while self._leases:
            call, lease = next(iter(self._leases.items()))
            if lease.until > now:
                self._due = lease.until
                return
            del self._leases[call]
            for page in self._known(lease.hold):
                page.free(lease.parts)
                if self._charges:
                    _add(page.spent, lease.parts)
                    _add(page.presumed, lease.parts)
            self._overdue[call] = lease
            if len(self._overdue) > _REMEMBERED:
                self._overdue.popitem(last=False)


def _add(sums: dict[str, int], parts: Iterable[tuple[str, int]]) -> None:
    for name, amount in parts:
        sums[name] = sums[name] + amount if name in sums else amount


def _take(sums: dict[str, int], parts: Iterable[tuple[str, int]]) -> None:
    """Take amounts off; what comes to nothing is not kept."""
    for name, amount in parts:
        left = sums.get(name, 0) - amount
        if left:
            sums[name] = left
        else:
            del sums[name]

"""The ledger of one process: exact, thread-safe, gone with the process."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from threading import Lock
from types import MappingProxyType
from typing import Literal, TypeAlias

from shearpin import clock
from shearpin.core.holds import Amounts, Hold, Refusal, Scope, Tally, shortage
from shearpin.errors import ConfigError
from shearpin.ledgers.base import Ready

__all__ = ["Expiry", "MemoryLedger"]

Expiry: TypeAlias = Literal["charge", "release"]

_REMEMBERED = 1024
_NOTHING: Amounts = MappingProxyType({})


class _Page:
    """The sums of one scope."""

    __slots__ = ("held", "presumed", "spent")

    def __init__(self) -> None:
        self.spent: dict[str, int] = {}
        self.held: dict[str, int] = {}
        self.presumed: dict[str, int] = {}


class _Lease:
    """A hold under way: when it runs out, and whether it did."""

    __slots__ = ("expired", "hold", "until")

    def __init__(self, hold: Hold, until: float) -> None:
        self.hold = hold
        self.until = until
        self.expired = False


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
        self._pages: dict[str, _Page] = {}
        self._leases: OrderedDict[str, _Lease] = OrderedDict()
        self._overdue: OrderedDict[str, _Lease] = OrderedDict()
        self._settled: OrderedDict[str, Hold] = OrderedDict()

    def hold(self, id: str, scopes: Sequence[Scope], amounts: Amounts) -> Hold | Refusal:
        """See `Ledger.hold`."""
        with self._lock:
            now = self._now()
            self._expire(now)
            known = self._leases.get(id) or self._overdue.get(id)
            if known is not None:
                return known.hold
            if id in self._settled:
                return self._settled[id]
            pages = [self._page(scope.key) for scope in scopes]
            for scope, page in zip(reversed(scopes), reversed(pages), strict=True):
                refusal = shortage(scope, page.spent, page.held, amounts)
                if refusal is not None:
                    return refusal
            hold = Hold(id, tuple(scope.key for scope in scopes), dict(amounts))
            for page in pages:
                _add(page.held, amounts)
            self._leases[id] = _Lease(hold, now + self._lease_seconds)
            return hold

    def settle(self, hold: Hold, amounts: Amounts) -> tuple[Tally, ...]:
        """See `Ledger.settle`."""
        with self._lock:
            self._expire(self._now())
            if hold.id not in self._settled:
                self._settled[hold.id] = hold
                if len(self._settled) > _REMEMBERED:
                    self._settled.popitem(last=False)
                for key in self._finish(hold):
                    _add(self._page(key).spent, amounts)
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
            for key in keys:
                _add(self._page(key).spent, amounts)
            return tuple(self._tally(key) for key in keys)

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

    def _known(self, hold: Hold) -> list[_Page]:
        return [page for page in map(self._pages.get, hold.keys) if page is not None]

    def _free(self, hold: Hold) -> None:
        for page in self._known(hold):
            _take(page.held, hold.amounts)

    def _tally(self, key: str) -> Tally:
        page = self._pages.get(key)
        if page is None:
            return Tally(key, _NOTHING, _NOTHING, _NOTHING)
        presumed = _nonzero(page.presumed) if page.presumed else _NOTHING
        return Tally(key, page.spent.copy(), _nonzero(page.held), presumed)

    def _finish(self, hold: Hold) -> tuple[str, ...]:
        """Free what a hold still holds; the scopes that it is to be charged to."""
        lease = self._leases.pop(hold.id, None)
        if lease is not None:
            self._free(lease.hold)
            return lease.hold.keys
        lease = self._overdue.pop(hold.id, None)
        if lease is None:
            return hold.keys
        if self._charges:
            for page in self._known(lease.hold):
                _take(page.spent, lease.hold.amounts)
                _take(page.presumed, lease.hold.amounts)
        return lease.hold.keys

    def _expire(self, now: float) -> None:
        while self._leases:
            call, lease = next(iter(self._leases.items()))
            if lease.until > now:
                return
            del self._leases[call]
            self._free(lease.hold)
            if self._charges:
                for page in self._known(lease.hold):
                    _add(page.spent, lease.hold.amounts)
                    _add(page.presumed, lease.hold.amounts)
            self._overdue[call] = lease
            if len(self._overdue) > _REMEMBERED:
                self._overdue.popitem(last=False)


def _add(sums: dict[str, int], amounts: Amounts) -> None:
    for name, amount in amounts.items():
        if amount:
            sums[name] = sums[name] + amount if name in sums else amount


def _take(sums: dict[str, int], amounts: Amounts) -> None:
    for name, amount in amounts.items():
        if amount:
            sums[name] = sums[name] - amount if name in sums else -amount


def _nonzero(sums: dict[str, int]) -> dict[str, int]:
    if any(sums.values()):
        return {name: amount for name, amount in sums.items() if amount}
    return {}

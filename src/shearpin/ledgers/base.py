"""The seam to where holds and spend live.

Contract of every ledger: `hold` is atomic over all scopes of a call: either every scope has room
for spent + held + wanted and the amounts are held in each, or nothing changes. Holds are leases.
Holding twice under one id, settling twice and releasing twice change nothing the second time; what
was released may be held anew. `settle` always succeeds, also above what was held and after the
lease ran out: what was used was used. Nothing that was settled is ever given back.

The asynchronous methods do the same; a ledger that needs no I/O inherits them from `Ready`.
`shearpin.ledgers.conformance` holds the tests that every ledger has to pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from shearpin.core.holds import Amounts, Hold, Refusal, Scope, Tally

__all__ = ["Ledger", "Ready"]


@runtime_checkable
class Ledger(Protocol):
    """Keeps holds and spend. See the module's contract."""

    def hold(self, id: str, scopes: Sequence[Scope], amounts: Amounts) -> Hold | Refusal:
        """Set amounts aside in every scope, or say which outermost scope has no room.

        Args:
            id: of the call. An id that is held or settled already is not held again.
            scopes: innermost first, with the limits in force.
            amounts: at worst.
        """
        ...

    def settle(self, hold: Hold, amounts: Amounts) -> tuple[Tally, ...]:
        """Take the true amounts from a hold and free the rest; where its scopes stand then."""
        ...

    def release(self, hold: Hold) -> None:
        """Free a hold of which nothing was used."""
        ...

    def charge(self, keys: Sequence[str], amounts: Amounts) -> tuple[Tally, ...]:
        """Record what was used without a hold; where the scopes stand then."""
        ...

    def usage(self, key: str) -> Tally:
        """Where one scope stands; zeros where nothing is known of it."""
        ...

    async def ahold(self, id: str, scopes: Sequence[Scope], amounts: Amounts) -> Hold | Refusal:
        """`hold`, without blocking an event loop."""
        ...

    async def asettle(self, hold: Hold, amounts: Amounts) -> tuple[Tally, ...]:
        """`settle`, without blocking an event loop."""
        ...

    async def arelease(self, hold: Hold) -> None:
        """`release`, without blocking an event loop."""
        ...

    async def acharge(self, keys: Sequence[str], amounts: Amounts) -> tuple[Tally, ...]:
        """`charge`, without blocking an event loop."""
        ...

    async def ausage(self, key: str) -> Tally:
        """`usage`, without blocking an event loop."""
        ...


class Ready:
    """The asynchronous half of a ledger whose operations never wait."""

    def hold(self, id: str, scopes: Sequence[Scope], amounts: Amounts) -> Hold | Refusal:
        """See `Ledger.hold`."""
        raise AssertionError("a ledger defines hold")

    def settle(self, hold: Hold, amounts: Amounts) -> tuple[Tally, ...]:
        """See `Ledger.settle`."""
        raise AssertionError("a ledger defines settle")

    def release(self, hold: Hold) -> None:
        """See `Ledger.release`."""
        raise AssertionError("a ledger defines release")

    def charge(self, keys: Sequence[str], amounts: Amounts) -> tuple[Tally, ...]:
        """See `Ledger.charge`."""
        raise AssertionError("a ledger defines charge")

    def usage(self, key: str) -> Tally:
        """See `Ledger.usage`."""
        raise AssertionError("a ledger defines usage")

    async def ahold(self, id: str, scopes: Sequence[Scope], amounts: Amounts) -> Hold | Refusal:
        """See `Ledger.ahold`."""
        return self.hold(id, scopes, amounts)

    async def asettle(self, hold: Hold, amounts: Amounts) -> tuple[Tally, ...]:
        """See `Ledger.asettle`."""
        return self.settle(hold, amounts)

    async def arelease(self, hold: Hold) -> None:
        """See `Ledger.arelease`."""
        self.release(hold)

    async def acharge(self, keys: Sequence[str], amounts: Amounts) -> tuple[Tally, ...]:
        """See `Ledger.acharge`."""
        return self.charge(keys, amounts)

    async def ausage(self, key: str) -> Tally:
        """See `Ledger.ausage`."""
        return self.usage(key)

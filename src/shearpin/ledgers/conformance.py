"""The tests that every ledger has to pass, free of any test framework.

Each check takes a fresh `Bench` and raises `AssertionError` where the ledger breaks the contract in
`shearpin.ledgers.base`. `NaiveLedger` is the same contract written as simply as can be, to compare
long random histories with.

    @pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
    def test_my_ledger(check):
        check(Bench(MyLedger(...), advance=clock.advance))
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple, TypeAlias

from shearpin.core.holds import Amounts, Hold, Refusal, Scope, Tally
from shearpin.ledgers.base import Ledger

__all__ = ["CHECKS", "LEASE_SECONDS", "Bench", "Check", "NaiveLedger"]

LEASE_SECONDS = 60.0
"""The lease with which a ledger on the bench has to be made."""


class Bench(NamedTuple):
    """A fresh, empty ledger with leases of `LEASE_SECONDS`, and a way to let time pass.

    Attributes:
        ledger: to be tested.
        advance: lets so many seconds pass on the ledger's clock.
        charges: whether a hold that runs out counts as spent (the default of every ledger).
    """

    ledger: Ledger
    advance: Callable[[float], object]
    charges: bool = True


Check: TypeAlias = Callable[[Bench], None]


def _granted(found: Hold | Refusal) -> Hold:
    assert isinstance(found, Hold), found
    return found


def _refused(found: Hold | Refusal) -> Refusal:
    assert isinstance(found, Refusal), found
    return found


def a_limit_allows_n_and_refuses_one_more(bench: Bench) -> None:
    scope = Scope("run", {"model_calls": 3})
    for number in range(3):
        _granted(bench.ledger.hold(f"c{number}", [scope], {"model_calls": 1}))
    refusal = _refused(bench.ledger.hold("c3", [scope], {"model_calls": 1}))
    assert refusal == Refusal("run", "model_calls", 3, 0, 3, 1)


def nothing_is_allowed_by_zero_and_all_without_a_limit(bench: Bench) -> None:
    _refused(bench.ledger.hold("a", [Scope("run", {"usd": 0})], {"usd": 1}))
    _granted(bench.ledger.hold("b", [Scope("run", {"usd": 0})], {"usd": 0, "tokens": 9}))
    _granted(bench.ledger.hold("c", [Scope("run", {})], {"usd": 10**15}))


def what_was_settled_counts_exactly(bench: Bench) -> None:
    scope = Scope("run", {"usd": 100})
    hold = _granted(bench.ledger.hold("a", [scope], {"usd": 90}))
    (tally,) = bench.ledger.settle(hold, {"usd": 33})
    assert (tally.key, dict(tally.spent), dict(tally.held)) == ("run", {"usd": 33}, {})
    assert bench.ledger.usage("run") == tally
    _granted(bench.ledger.hold("b", [scope], {"usd": 67}))
    assert _refused(bench.ledger.hold("c", [scope], {"usd": 1})).held == 67


def what_was_used_beyond_the_hold_counts_too(bench: Bench) -> None:
    hold = _granted(bench.ledger.hold("a", [Scope("run", {"usd": 10})], {"usd": 10}))
    (tally,) = bench.ledger.settle(hold, {"usd": 25, "tokens": 7})
    assert dict(tally.spent) == {"usd": 25, "tokens": 7}
    assert _refused(bench.ledger.hold("b", [Scope("run", {"usd": 10})], {"usd": 1})).spent == 25


def a_released_hold_leaves_no_trace(bench: Bench) -> None:
    scope = Scope("run", {"usd": 10})
    hold = _granted(bench.ledger.hold("a", [scope], {"usd": 10}))
    bench.ledger.release(hold)
    bench.ledger.release(hold)
    assert bench.ledger.usage("run") == Tally("run", {}, {}, {})
    again = _granted(bench.ledger.hold("a", [scope], {"usd": 4}))
    assert dict(bench.ledger.settle(again, {"usd": 4})[0].spent) == {"usd": 4}


def once_is_enough(bench: Bench) -> None:
    scope = Scope("run", {"tool_calls": 2})
    first = _granted(bench.ledger.hold("a", [scope], {"tool_calls": 1}))
    assert bench.ledger.hold("a", [scope], {"tool_calls": 1}) == first
    bench.ledger.settle(first, {"tool_calls": 1})
    bench.ledger.settle(first, {"tool_calls": 1})
    bench.ledger.release(first)
    _granted(bench.ledger.hold("a", [scope], {"tool_calls": 1}))
    tally = bench.ledger.usage("run")
    assert (dict(tally.spent), dict(tally.held)) == ({"tool_calls": 1}, {})


def all_scopes_or_none(bench: Bench) -> None:
    inner, outer = Scope("child", {"usd": 50}), Scope("parent", {"usd": 30})
    refusal = _refused(bench.ledger.hold("a", [inner, outer], {"usd": 40}))
    assert refusal.key == "parent"
    assert dict(bench.ledger.usage("child").held) == {}
    hold = _granted(bench.ledger.hold("b", [inner, outer], {"usd": 30}))
    tallies = bench.ledger.settle(hold, {"usd": 20})
    assert [(t.key, dict(t.spent)) for t in tallies] == [
        ("child", {"usd": 20}),
        ("parent", {"usd": 20}),
    ]


def the_outermost_exhausted_scope_is_named(bench: Bench) -> None:
    scopes = [Scope("child", {"usd": 5}), Scope("run", {"usd": 5}), Scope("thread", {"usd": 9})]
    assert _refused(bench.ledger.hold("a", scopes, {"usd": 6})).key == "run"
    assert _refused(bench.ledger.hold("b", scopes, {"usd": 10})).key == "thread"


def charges_without_a_hold_count(bench: Bench) -> None:
    tallies = bench.ledger.charge(["run", "thread"], {"usd": 3})
    assert [dict(tally.spent) for tally in tallies] == [{"usd": 3}, {"usd": 3}]
    refusal = _refused(bench.ledger.hold("a", [Scope("thread", {"usd": 4})], {"usd": 2}))
    assert (refusal.spent, refusal.held) == (3, 0)


def an_unknown_scope_has_used_nothing(bench: Bench) -> None:
    assert bench.ledger.usage("never seen") == Tally("never seen", {}, {}, {})


def a_lease_that_ran_out_is_no_gift(bench: Bench) -> None:
    scope = Scope("run", {"usd": 10})
    hold = _granted(bench.ledger.hold("a", [scope], {"usd": 8}))
    bench.advance(LEASE_SECONDS - 1)
    assert dict(bench.ledger.usage("run").held) == {"usd": 8}
    bench.advance(2)
    tally = bench.ledger.usage("run")
    assert dict(tally.held) == {}
    assert dict(tally.spent) == dict(tally.presumed) == ({"usd": 8} if bench.charges else {})
    (late,) = bench.ledger.settle(hold, {"usd": 3})
    assert (dict(late.spent), dict(late.presumed)) == ({"usd": 3}, {})
    bench.ledger.settle(hold, {"usd": 3})
    assert dict(bench.ledger.usage("run").spent) == {"usd": 3}


def sixteen_threads_never_overspend(bench: Bench) -> None:
    scopes = [Scope("child", {"usd": 700}), Scope("run", {"usd": 500, "model_calls": 200})]

    def work(worker: int) -> int:
        spent = 0
        for number in range(40):
            found = bench.ledger.hold(f"{worker}-{number}", scopes, {"usd": 7, "model_calls": 1})
            if isinstance(found, Refusal):
                continue
            if number % 5 == 4:
                bench.ledger.release(found)
                continue
            used = 1 + (worker + number) % 7
            bench.ledger.settle(found, {"usd": used, "model_calls": 1})
            spent += used
        return spent

    with ThreadPoolExecutor(16) as pool:
        total = sum(pool.map(work, range(16)))
    tally = bench.ledger.usage("run")
    assert tally.spent["usd"] == total <= 500
    assert tally.spent["model_calls"] <= 200
    assert dict(tally.held) == {}
    assert total >= 494, "what still fits is not refused"


def a_batch_of_x_with_n_left_runs_n(bench: Bench) -> None:
    scope = Scope("run", {"tool_calls": 5})

    def hold(number: int) -> bool:
        return isinstance(bench.ledger.hold(f"t{number}", [scope], {"tool_calls": 1}), Hold)

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(hold, range(64))) == 5


def coroutines_see_the_same_ledger(bench: Bench) -> None:
    async def work() -> None:
        ledger = bench.ledger
        hold = _granted(await ledger.ahold("a", [Scope("run", {"usd": 9})], {"usd": 9}))
        assert dict((await ledger.asettle(hold, {"usd": 4}))[0].spent) == {"usd": 4}
        other = _granted(await ledger.ahold("b", [Scope("run", {"usd": 9})], {"usd": 5}))
        await ledger.arelease(other)
        await ledger.acharge(["run"], {"usd": 1})
        assert dict((await ledger.ausage("run")).spent) == {"usd": 5}

    asyncio.run(work())


CHECKS: tuple[Check, ...] = (
    a_limit_allows_n_and_refuses_one_more,
    nothing_is_allowed_by_zero_and_all_without_a_limit,
    what_was_settled_counts_exactly,
    what_was_used_beyond_the_hold_counts_too,
    a_released_hold_leaves_no_trace,
    once_is_enough,
    all_scopes_or_none,
    the_outermost_exhausted_scope_is_named,
    charges_without_a_hold_count,
    an_unknown_scope_has_used_nothing,
    a_lease_that_ran_out_is_no_gift,
    sixteen_threads_never_overspend,
    a_batch_of_x_with_n_left_runs_n,
    coroutines_see_the_same_ledger,
)
"""Every check, in the order in which a new ledger is best made to pass them."""


class NaiveLedger:
    """The contract, written as simply as can be: a list of entries that is added up each time."""

    def __init__(self, charges: bool = True) -> None:
        self.charges = charges
        self.holds: dict[str, tuple[tuple[str, ...], dict[str, int], float]] = {}
        self.settled: dict[str, tuple[tuple[str, ...], dict[str, int]]] = {}
        self.now = 0.0

    def total(self, key: str, name: str) -> tuple[int, int]:
        """Spent and held."""
        spent = sum(a.get(name, 0) for keys, a in self.settled.values() if key in keys)
        held = 0
        for keys, amounts, until in self.holds.values():
            if key in keys:
                if until > self.now:
                    held += amounts.get(name, 0)
                elif self.charges:
                    spent += amounts.get(name, 0)
        return spent, held

    def hold(self, id: str, scopes: Sequence[Scope], amounts: Amounts) -> bool:
        """Whether the amounts were set aside, or had been."""
        if id in self.holds or id in self.settled:
            return True
        for scope in scopes:
            for name, limit in scope.limits.items():
                wanted = amounts.get(name, 0)
                if wanted and sum(self.total(scope.key, name)) + wanted > limit:
                    return False
        keys = tuple(scope.key for scope in scopes)
        self.holds[id] = (keys, dict(amounts), self.now + LEASE_SECONDS)
        return True

    def settle(self, id: str, keys: tuple[str, ...], amounts: Amounts) -> None:
        """Replace a hold by what was used."""
        if id not in self.settled:
            known = self.holds.pop(id, None)
            self.settled[id] = (keys if known is None else known[0], dict(amounts))

    def release(self, id: str) -> None:
        """Drop a hold."""
        self.holds.pop(id, None)

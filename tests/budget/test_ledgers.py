"""Every ledger passes the one suite, and agrees with a naive one over long random histories."""

from __future__ import annotations

from typing import ClassVar

import hypothesis.strategies as st
import pytest
from hypothesis import settings
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule

from shearpin import ConfigError
from shearpin.core.holds import Hold, Scope, Tally
from shearpin.ledgers.base import Ledger, Ready
from shearpin.ledgers.conformance import CHECKS, LEASE_SECONDS, Bench, Check, NaiveLedger
from shearpin.ledgers.memory import Expiry, MemoryLedger
from shearpin.testing import ManualClock


@pytest.mark.parametrize("on_expiry", ["charge", "release"])
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_memory_ledger(check: Check, on_expiry: Expiry) -> None:
    clock = ManualClock()
    ledger = MemoryLedger(LEASE_SECONDS, on_expiry, now=clock)
    check(Bench(ledger, clock.advance, charges=on_expiry == "charge"))


NAMES = ("usd", "tokens", "tool:search")
KEYS = ("child", "run", "thread")
amounts = st.dictionaries(st.sampled_from(NAMES), st.integers(0, 40), max_size=3)


class LedgerMachine(RuleBasedStateMachine):
    """A ledger beside a naive one. Limits stay the same, so that the cap itself can be checked."""

    holds = Bundle("holds")
    limits: ClassVar = {
        "child": {"usd": 60, "tool:search": 50},
        "run": {"usd": 80},
        "thread": {"tokens": 90},
    }

    def __init__(self) -> None:
        super().__init__()
        self.clock = ManualClock()
        self.ledger = MemoryLedger(LEASE_SECONDS, now=self.clock)
        self.naive = NaiveLedger()
        self.counter = 0
        self.overrun: dict[tuple[str, str], int] = {}

    @rule(target=holds, wanted=amounts, depth=st.integers(1, 3), again=st.booleans())
    def hold(self, wanted: dict[str, int], depth: int, again: bool) -> Hold | None:
        if not again:
            self.counter += 1
        call = f"call-{self.counter}"
        scopes = [Scope(key, self.limits[key]) for key in KEYS[-depth:]]
        expected = self.naive.hold(call, scopes, wanted)
        found = self.ledger.hold(call, scopes, wanted)
        assert isinstance(found, Hold) == expected
        return found if isinstance(found, Hold) else None

    @rule(hold=holds, used=amounts)
    def settle(self, hold: Hold | None, used: dict[str, int]) -> None:
        if hold is None:
            return
        if hold.id not in self.naive.settled:
            # Only what was used beyond the hold may ever exceed a limit.
            keys, held, _ = self.naive.holds.get(hold.id, (hold.keys, {}, 0.0))
            for key in keys:
                for name, amount in used.items():
                    over = max(0, amount - held.get(name, 0))
                    self.overrun[key, name] = self.overrun.get((key, name), 0) + over
        self.naive.settle(hold.id, hold.keys, used)
        tallies = self.ledger.settle(hold, used)
        assert tuple(tally.key for tally in tallies) == hold.keys

    @rule(hold=holds)
    def release(self, hold: Hold | None) -> None:
        if hold is not None:
            self.naive.release(hold.id)
            self.ledger.release(hold)

    @rule(seconds=st.sampled_from([0.5, 10.0, 61.0]))
    def wait(self, seconds: float) -> None:
        self.naive.now = self.clock.advance(seconds)

    @invariant()
    def both_agree(self) -> None:
        for key in KEYS:
            tally = self.ledger.usage(key)
            for name in NAMES:
                found = tally.spent.get(name, 0), tally.held.get(name, 0)
                assert found == self.naive.total(key, name)

    @invariant()
    def a_cap_is_a_cap(self) -> None:
        for key, limits in self.limits.items():
            tally = self.ledger.usage(key)
            for name, limit in limits.items():
                used = tally.spent.get(name, 0) + tally.held.get(name, 0)
                assert used <= limit + self.overrun.get((key, name), 0)


LedgerMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
TestLedgerMachine = LedgerMachine.TestCase


def test_a_forgotten_scope_starts_at_nothing_and_late_settlements_go_elsewhere() -> None:
    ledger = MemoryLedger()
    scopes = [Scope("run:1", {}), Scope("thread:1", {})]
    hold = ledger.hold("a", scopes, {"usd": 5})
    assert isinstance(hold, Hold)
    ledger.forget("run:1")
    ledger.settle(hold, {"usd": 3})
    assert ledger.usage("run:1") == Tally("run:1", {}, {}, {})
    assert dict(ledger.usage("thread:1").spent) == {"usd": 3}


def test_the_memory_ledger_is_a_ledger_and_checks_its_settings() -> None:
    assert isinstance(MemoryLedger(), Ledger)
    with pytest.raises(ConfigError, match="lease_seconds must be above 0"):
        MemoryLedger(0)
    with pytest.raises(ConfigError, match="'charge' or 'release', not 'forgive'"):
        MemoryLedger(on_expiry="forgive")  # type: ignore[arg-type]


def test_memory_of_settled_calls_is_bounded() -> None:
    ledger = MemoryLedger()
    scope = Scope("run", {})
    for number in range(5000):
        hold = ledger.hold(str(number), [scope], {"usd": 1})
        assert isinstance(hold, Hold)
        ledger.settle(hold, {"usd": 1})
    assert len(ledger._settled) == 1024
    assert ledger.usage("run").spent["usd"] == 5000


@pytest.mark.parametrize("name", ["hold", "settle", "release", "charge", "usage"])
def test_a_backend_that_forgets_an_operation_is_told(name: str) -> None:
    arguments = {"hold": 3, "settle": 2, "release": 1, "charge": 2, "usage": 1}[name]
    with pytest.raises(AssertionError, match=f"a ledger defines {name}"):
        getattr(Ready(), name)(*[None] * arguments)

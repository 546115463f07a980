"""The availability breaker agrees with a naive one, and one probe is one probe."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, rule

from shearpin.boundary import Availability
from shearpin.boundary.availability import (
    BUCKETS,
    Admission,
    Admitted,
    AvailabilityBreaker,
    Refused,
)
from shearpin.errors import StoreError
from shearpin.stores import Entry, MemoryStore, SqliteStore
from shearpin.testing import ManualClock

START = 1_700_000_000.0
QUICK = Availability(
    failure_ratio=0.5, window_seconds=60, min_calls=4, open_seconds=30, probe_lease_seconds=10
)


def made(given: Availability = QUICK) -> tuple[AvailabilityBreaker, ManualClock]:
    clock = ManualClock(START)
    return AvailabilityBreaker(MemoryStore(clock), "tool:search", given, clock), clock


def tell(breaker: AvailabilityBreaker, *worked: bool) -> None:
    for good in worked:
        admitted = breaker.admit()
        assert isinstance(admitted, Admitted)
        (breaker.succeeded if good else breaker.failed)(admitted)


def test_it_opens_at_the_ratio_and_not_with_too_few_calls() -> None:
    breaker, clock = made()
    tell(breaker, False, False, False)
    assert breaker.state() == "closed"
    tell(breaker, True)
    assert breaker.state() == "closed"  # a success never opens
    tell(breaker, True, True, True)
    assert breaker.state() == "closed"
    tell(breaker, False)  # 4 of 8
    assert breaker.state() == "open"
    clock.advance(10)
    assert breaker.admit() == Refused(20.0)


def test_what_is_older_than_the_window_does_not_count() -> None:
    breaker, clock = made()
    tell(breaker, False, False, False)
    clock.advance(61)
    tell(breaker, False)
    assert breaker.state() == "closed"
    tell(breaker, False, False, False)
    assert breaker.state() == "open"


def test_a_probe_that_works_closes_and_one_that_fails_opens_anew() -> None:
    breaker, clock = made()
    tell(breaker, False, False, False, False)
    clock.advance(30)
    assert breaker.state() == "half_open"
    probe = breaker.admit()
    assert probe == Admitted(2, probe=True)
    assert breaker.admit() == Refused(10.0)
    breaker.failed(probe)
    assert breaker.admit() == Refused(30.0)
    clock.advance(30)
    breaker.succeeded(breaker.admit())
    assert breaker.state() == "closed"
    tell(breaker, False, False, False)  # counts begin anew
    assert breaker.state() == "closed"


def test_a_probe_without_a_word_is_given_to_another() -> None:
    breaker, clock = made()
    tell(breaker, False, False, False, False)
    clock.advance(30)
    lost = breaker.admit()
    clock.advance(10)
    second = breaker.admit()
    assert isinstance(second, Admitted)
    assert second.probe
    breaker.succeeded(lost)  # too late to count
    assert breaker.state() == "half_open"
    breaker.released(lost)
    assert isinstance(breaker.admit(), Refused)
    breaker.released(second)
    third = breaker.admit()
    breaker.succeeded(third)
    assert breaker.state() == "closed"


def test_what_was_admitted_before_it_opened_says_nothing_afterwards() -> None:
    breaker, clock = made()
    early = [breaker.admit() for _ in range(6)]
    for admitted in early[:4]:
        breaker.failed(admitted)
    breaker.failed(early[4])
    clock.advance(5)
    breaker.succeeded(early[5])
    assert breaker.admit() == Refused(25.0)
    breaker.succeeded(Refused(1.0))
    breaker.released(early[5])
    assert breaker.state() == "open"


def test_of_32_threads_one_gets_the_probe_and_no_count_is_lost() -> None:
    breaker, clock = made(Availability(failure_ratio=1.0, min_calls=200, open_seconds=30))
    with ThreadPoolExecutor(32) as pool:
        list(pool.map(lambda _: tell(breaker, False), range(199)))
    assert breaker.state() == "closed"
    tell(breaker, False)
    assert breaker.state() == "open"
    clock.advance(30)
    with ThreadPoolExecutor(32) as pool:
        found = list(pool.map(lambda _: breaker.admit(), range(32)))
    assert sum(isinstance(admission, Admitted) for admission in found) == 1


def test_two_processes_share_its_state_and_a_restart_keeps_it(tmp_path: Path) -> None:
    clock = ManualClock(START)
    here = SqliteStore(tmp_path / "a.db", now=clock)
    tell(AvailabilityBreaker(here, "model:m", QUICK, clock), False, False, False, False)
    here.close()
    there = SqliteStore(tmp_path / "a.db", now=clock)
    breaker = AvailabilityBreaker(there, "model:m", QUICK, clock)
    assert breaker.blocking
    assert breaker.admit() == Refused(30.0)
    other = AvailabilityBreaker(there, "model:" + "n" * 600, QUICK, clock)
    tell(other, False)
    assert sorted(key[:19] for key in there.keys("")) == sorted(
        ["availability:model:", f"availability:{other._key[13:19]}"]
    )
    there.close()


def test_the_record_does_not_grow() -> None:
    clock = ManualClock(START)
    store = MemoryStore(clock)
    breaker = AvailabilityBreaker(store, "tool:x", QUICK, clock)
    longest = 0
    for number in range(2000):
        tell(breaker, number % 4 > 0)
        clock.advance(1.7)
        entry = store.get("availability:tool:x")
        assert entry is not None
        longest = max(longest, len(entry.value))
    assert longest < 250


@pytest.mark.parametrize("text", ["", "[]", "[2,0,null,null,[]]", '[1,0,null,null,["x"]]', "7"])
def test_a_damaged_record_is_named(text: str) -> None:
    store = MemoryStore()
    store.put("availability:tool:x", text)
    with pytest.raises(StoreError, match="availability:tool:x: the record of availability cannot"):
        AvailabilityBreaker(store, "tool:x", QUICK).admit()


class Contended(MemoryStore):
    """Somebody else is always faster."""

    def put(self, key: str, value: str, **options: Any) -> Entry | None:
        return None


def test_a_record_that_never_stands_still_is_an_error() -> None:
    breaker = AvailabilityBreaker(Contended(), "tool:x", QUICK)
    with pytest.raises(StoreError, match="too many others"):
        breaker.failed(breaker.admit())


class Naive:
    """The same, with every call in a list."""

    def __init__(self) -> None:
        self.state = "closed"
        self.calls: list[tuple[float, bool]] = []
        self.until = 0.0
        self.probe: object = None
        self.probe_until = 0.0
        self.era = 0

    def admit(self, now: float, ticket: object) -> float:
        """Seconds to wait; 0 where it may go ahead."""
        if self.state == "closed":
            return 0.0
        if now < self.until:
            return self.until - now
        if self.probe is not None and now < self.probe_until:
            return self.probe_until - now
        self.probe, self.probe_until = ticket, now + QUICK.probe_lease_seconds
        return 0.0

    def ended(self, now: float, ticket: object, era: int, probe: bool, good: bool) -> None:
        if probe:
            if self.state == "open" and self.probe is ticket:
                if good:
                    self.state, self.calls, self.probe = "closed", [], None
                    self.era += 1
                else:
                    self.open(now)
        elif self.state == "closed" and era == self.era:
            self.calls.append((now, good))
            width = QUICK.window_seconds / BUCKETS
            recent = [g for at, g in self.calls if at // width > now // width - BUCKETS]
            bad = recent.count(False)
            if not good and len(recent) >= QUICK.min_calls and bad / len(recent) >= 0.5:
                self.open(now)

    def open(self, now: float) -> None:
        self.state, self.until, self.calls, self.probe = "open", now + QUICK.open_seconds, [], None
        self.era += 1


class AvailabilityMachine(RuleBasedStateMachine):
    """Two breakers on one store beside a naive one."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = ManualClock(START)
        store = MemoryStore(self.clock)
        self.pair = [AvailabilityBreaker(store, "k", QUICK, self.clock) for _ in range(2)]
        self.naive = Naive()
        self.open: list[tuple[Admission, object, int]] = []

    @rule(which=st.integers(0, 1))
    def admit(self, which: int) -> None:
        ticket = object()
        era = self.naive.era
        waits = self.naive.admit(self.clock(), ticket)
        found = self.pair[which].admit()
        if waits:
            assert found == Refused(pytest.approx(waits))
        else:
            assert isinstance(found, Admitted)
            assert found.probe == (self.naive.state == "open")
            self.open.append((found, ticket, era))

    @rule(number=st.integers(0, 5), which=st.integers(0, 1), good=st.booleans())
    def end(self, number: int, which: int, good: bool) -> None:
        if self.open:
            found, ticket, era = self.open.pop(number % len(self.open))
            assert isinstance(found, Admitted)
            self.naive.ended(self.clock(), ticket, era, found.probe, good)
            breaker = self.pair[which]
            (breaker.succeeded if good else breaker.failed)(found)

    @rule(calls=st.integers(1, 4), good=st.booleans())
    def several(self, calls: int, good: bool) -> None:
        for _ in range(calls):
            before = len(self.open)
            self.admit(0)
            if len(self.open) > before:
                self.end(before, 1, good)

    @rule(number=st.integers(0, 5))
    def give_up(self, number: int) -> None:
        if self.open:
            found, ticket, _ = self.open.pop(number % len(self.open))
            if self.naive.probe is ticket:
                self.naive.probe = None
            self.pair[0].released(found)

    @rule(seconds=st.sampled_from([1.0, 7.0, 12.0, 31.0, 70.0]))
    def wait(self, seconds: float) -> None:
        self.clock.advance(seconds)


AvailabilityMachine.TestCase.settings = settings(
    max_examples=150, stateful_step_count=40, deadline=None
)
TestAvailabilityMachine = AvailabilityMachine.TestCase

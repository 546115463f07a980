"""The tests that every store has to pass, free of any test framework.

Each check takes a fresh `Bench` and raises `AssertionError` where the store breaks the contract in
`shearpin.stores.base`. `NaiveStore` is the same contract written as simply as can be, to compare
long random histories with.

    @pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
    def test_my_store(check):
        check(Bench(MyStore(...), advance=clock.advance))

A store that processes share is named by `Bench.reopen` as well, for the checks that start some.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from typing import NamedTuple, TypeAlias

from shearpin.errors import StoreError
from shearpin.stores.base import MOST_KEY_CHARACTERS, MOST_VALUE_BYTES, Entry, Store

__all__ = ["CHECKS", "Bench", "Check", "NaiveStore"]


class Bench(NamedTuple):
    """A fresh, empty store, and a way to let time pass.

    Attributes:
        store: to be tested.
        advance: lets so many seconds pass on the store's clock.
        reopen: opens the same store in another process (it is pickled); None where the store lives
            in one process alone.
    """

    store: Store
    advance: Callable[[float], object]
    reopen: Callable[[], Store] | None = None


Check: TypeAlias = Callable[[Bench], None]


def _put(found: Entry | None) -> Entry:
    assert found is not None, "the entry was not put"
    return found


def what_was_put_is_there_until_it_is_deleted(bench: Bench) -> None:
    store = bench.store
    assert store.get("a") is None
    entry = _put(store.put("a", '{"n": "é\\u0000中"}'))
    assert store.get("a") == entry == Entry('{"n": "é\\u0000中"}', entry.version)
    assert entry.version > 0
    assert store.delete("a")
    assert store.get("a") is None
    assert not store.delete("a")


def only_the_expected_version_is_replaced(bench: Bench) -> None:
    store = bench.store
    first = _put(store.put("a", "1", expect=0))
    assert store.put("a", "2", expect=0) is None
    assert store.put("a", "2", expect=first.version + 1) is None
    assert store.get("a") == first
    second = _put(store.put("a", "2", expect=first.version))
    assert second.version > first.version
    assert store.put("a", "3", expect=first.version) is None
    third = _put(store.put("a", "3"))
    assert third.version > second.version
    assert store.put("b", "1", expect=third.version) is None
    assert store.get("b") is None


def only_the_expected_version_is_deleted(bench: Bench) -> None:
    store = bench.store
    first = _put(store.put("a", "1"))
    second = _put(store.put("a", "2"))
    assert not store.delete("a", expect=first.version)
    assert not store.delete("a", expect=0)
    assert store.get("a") == second
    assert store.delete("a", expect=second.version)


def a_version_is_never_used_twice(bench: Bench) -> None:
    store = bench.store
    old = _put(store.put("a", "1"))
    store.delete("a")
    new = _put(store.put("a", "1", expect=0))
    assert new.version > old.version
    assert store.put("a", "2", expect=old.version) is None
    short = _put(store.put("b", "1", ttl_seconds=5))
    bench.advance(6)
    again = _put(store.put("b", "1", expect=0))
    assert again.version > short.version
    assert not store.delete("b", expect=short.version)


def what_has_expired_does_not_exist(bench: Bench) -> None:
    store = bench.store
    entry = _put(store.put("a", "1", ttl_seconds=10))
    bench.advance(9.5)
    assert store.get("a") == entry
    bench.advance(0.5)
    assert store.get("a") is None
    assert store.keys() == []
    assert not store.delete("a")
    assert store.put("a", "2", expect=entry.version) is None
    _put(store.put("a", "2", expect=0))


def a_new_value_has_a_new_time_to_live(bench: Bench) -> None:
    store = bench.store
    store.put("a", "1", ttl_seconds=10)
    store.put("a", "2", ttl_seconds=30)
    store.put("b", "1", ttl_seconds=10)
    store.put("b", "2")
    bench.advance(20)
    assert _put(store.get("a")).value == "2"
    bench.advance(1e6)
    assert store.keys() == ["b"]


def keys_are_found_by_their_beginning_in_order(bench: Bench) -> None:
    store = bench.store
    names = ["run:1", "run:10", "run:2", "run;", "other", "run:é", "run:\U0010ffff", "RUN:1"]
    for name in names:
        store.put(name, "1")
    found = [name for name in names if name.startswith("run:")]
    assert store.keys("run:") == sorted(found)
    assert store.keys("run:", 2) == ["run:1", "run:10"]
    assert store.keys("run:", 0) == []
    assert store.keys("run:1") == ["run:1", "run:10"]
    assert store.keys() == sorted(names)
    assert store.keys("%") == store.keys("r_n") == []


def what_no_store_can_hold_is_refused(bench: Bench) -> None:
    store = bench.store
    longest = _put(store.put("k" * MOST_KEY_CHARACTERS, "v" * MOST_VALUE_BYTES))
    assert len(longest.value) == MOST_VALUE_BYTES
    refused: Sequence[Callable[[], object]] = (
        lambda: store.put("", "1"),
        lambda: store.put("k" * (MOST_KEY_CHARACTERS + 1), "1"),
        lambda: store.get(""),
        lambda: store.put("a\0b", "1"),
        lambda: store.put("a", "é" * MOST_VALUE_BYTES),
        lambda: store.put("a", "1", expect=-1),
        lambda: store.put("a", "1", ttl_seconds=0),
        lambda: store.put("a", "1", ttl_seconds=float("nan")),
    )
    for number, attempt in enumerate(refused):
        try:
            attempt()
        except ValueError:
            continue
        raise AssertionError(f"attempt {number} was not refused")
    assert store.get("a") is None


def of_sixteen_threads_one_wins(bench: Bench) -> None:
    def compete(number: int) -> bool:
        return bench.store.put("prize", str(number), expect=0) is not None

    with ThreadPoolExecutor(16) as pool:
        won = list(pool.map(compete, range(16)))
    assert won.count(True) == 1
    assert _put(bench.store.get("prize")).value == str(won.index(True))


def no_increment_of_eight_threads_is_lost(bench: Bench) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(_increment, [bench.store] * 8, [25] * 8))
    assert _put(bench.store.get("sum")).value == "200"


def no_increment_of_four_processes_is_lost(bench: Bench) -> None:
    """Started afresh, so that nothing is inherited."""
    if bench.reopen is None:
        return
    fresh = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(4, mp_context=fresh) as pool:
        wins = list(pool.map(_compete, [bench.reopen] * 4))
    assert _put(bench.store.get("sum")).value == "100"
    assert sorted(wins).count(True) == 1


def a_closed_store_says_so(bench: Bench) -> None:
    bench.store.close()
    bench.store.close()
    try:
        bench.store.get("a")
    except StoreError:
        return
    raise AssertionError("a closed store answered")


def _increment(store: Store, times: int) -> None:
    for _ in range(times):
        while True:
            found = store.get("sum")
            count, version = (0, 0) if found is None else (int(found.value), found.version)
            if store.put("sum", str(count + 1), expect=version) is not None:
                break


def _compete(reopen: Callable[[], Store]) -> bool:
    store = reopen()
    won = store.put("prize", "mine", expect=0) is not None
    _increment(store, 25)
    store.close()
    return won


CHECKS: Sequence[Check] = (
    what_was_put_is_there_until_it_is_deleted,
    only_the_expected_version_is_replaced,
    only_the_expected_version_is_deleted,
    a_version_is_never_used_twice,
    what_has_expired_does_not_exist,
    a_new_value_has_a_new_time_to_live,
    keys_are_found_by_their_beginning_in_order,
    what_no_store_can_hold_is_refused,
    of_sixteen_threads_one_wins,
    no_increment_of_eight_threads_is_lost,
    no_increment_of_four_processes_is_lost,
    a_closed_store_says_so,
)
"""Every check, in the order in which a new store is best made to pass them."""


class NaiveStore:
    """The contract, written as simply as can be: every put that ever was, in a list."""

    def __init__(self) -> None:
        self.now = 0.0
        self.puts: list[tuple[str, str | None, float | None]] = []

    def get(self, key: str) -> tuple[str, int] | None:
        """The value, and which put it came with."""
        for number in range(len(self.puts) - 1, -1, -1):
            name, value, until = self.puts[number]
            if name == key:
                gone = value is None or (until is not None and until <= self.now)
                return None if gone or value is None else (value, number)
        return None

    def put(self, key: str, value: str, ttl_seconds: float | None) -> int:
        """The number of this put."""
        self.puts.append((key, value, None if ttl_seconds is None else self.now + ttl_seconds))
        return len(self.puts) - 1

    def delete(self, key: str) -> None:
        """From now on there is nothing."""
        self.puts.append((key, None, None))

    def keys(self, prefix: str) -> list[str]:
        """Those of which there is something now."""
        names = {name for name, _, _ in self.puts if name.startswith(prefix)}
        return sorted(name for name in names if self.get(name) is not None)

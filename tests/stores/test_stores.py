"""Every store passes the one suite, and agrees with a naive one over long random histories."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import hypothesis.strategies as st
import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from shearpin import ConfigError
from shearpin.stores import MemoryStore, SqliteStore, Store, open_store
from shearpin.stores.conformance import CHECKS, Bench, Check, NaiveStore
from shearpin.testing import ManualClock

START = 1_700_000_000.0


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_memory_store(check: Check) -> None:
    clock = ManualClock()
    check(Bench(MemoryStore(clock), clock.advance))


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_sqlite_store(check: Check, tmp_path: Path) -> None:
    clock = ManualClock(START)
    path = tmp_path / "records.db"
    store = SqliteStore(path, now=clock, busy_seconds=60)
    check(Bench(store, clock.advance, partial(SqliteStore, path, busy_seconds=60)))
    store.close()


KEYS = ("a", "ab", "b", "b\U0010ffff")
keys = st.sampled_from(KEYS)


class StoreMachine(RuleBasedStateMachine):
    """A store beside a naive one: versions differ in number, but agree in which is which."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = ManualClock(START)
        self.naive = NaiveStore()
        self.naive.now = START
        self.versions: dict[int, int] = {}
        self.store = self.made()

    def made(self) -> Store:
        return MemoryStore(self.clock)

    @rule(
        key=keys,
        ttl=st.sampled_from([None, 1.0, 5.0]),
        expect=st.sampled_from(["anything", "nothing", "this", "an older one"]),
    )
    def put(self, key: str, ttl: float | None, expect: str) -> None:
        found = self.naive.get(key)
        current = 0 if found is None else self.versions[found[1]]
        older = min(self.versions.values(), default=10**9)
        version = {"anything": None, "nothing": 0, "this": current}.get(expect, older)
        value = f"{key}{len(self.naive.puts)}"
        entry = self.store.put(key, value, expect=version, ttl_seconds=ttl)
        assert (entry is not None) == (version in (None, current))
        if entry is not None:
            assert entry.version > max(self.versions.values(), default=0) or (
                entry.version not in self.versions.values()
            )
            self.versions[self.naive.put(key, value, ttl)] = entry.version

    @rule(key=keys, right=st.booleans())
    def delete(self, key: str, right: bool) -> None:
        found = self.naive.get(key)
        current = None if found is None else self.versions[found[1]]
        expect = current if right else 10**9
        assert self.store.delete(key, expect=expect) == (right and found is not None)
        if right and found is not None:
            self.naive.delete(key)

    @rule(seconds=st.sampled_from([0.5, 1.0, 4.5]))
    def wait(self, seconds: float) -> None:
        self.naive.now = self.clock.advance(seconds)

    @invariant()
    def both_agree(self) -> None:
        for key in KEYS:
            found, entry = self.naive.get(key), self.store.get(key)
            if found is None:
                assert entry is None
            else:
                assert entry == (found[0], self.versions[found[1]])
        for prefix in ("", "a", "b", "b\U0010ffff", "c"):
            assert self.store.keys(prefix) == self.naive.keys(prefix)


class SqliteMachine(StoreMachine):
    """The same in a file, closed and opened again in between."""

    def made(self) -> Store:
        self.folder = TemporaryDirectory()
        return self.opened()

    def opened(self) -> Store:
        return SqliteStore(Path(self.folder.name) / "s.db", now=self.clock, durable=False)

    @rule()
    def reopen(self) -> None:
        self.store.close()
        self.store = self.opened()

    def teardown(self) -> None:
        self.store.close()
        self.folder.cleanup()


StoreMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
TestStoreMachine = StoreMachine.TestCase
SqliteMachine.TestCase.settings = settings(max_examples=20, stateful_step_count=30, deadline=None)
TestSqliteMachine = SqliteMachine.TestCase


def test_stores_by_url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    memory = open_store("memory:")
    assert isinstance(memory, MemoryStore)
    assert open_store(memory) is memory
    here = open_store("sqlite:///a%20b.db")
    there = open_store(f"sqlite:///{tmp_path}/c.db")
    assert isinstance(here, SqliteStore)
    assert isinstance(there, SqliteStore)
    assert here.path == tmp_path / "a b.db"
    assert there.path == tmp_path / "c.db"
    for store in (memory, here, there):
        assert isinstance(store, Store)
        store.close()


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("redis://:secret@host/0", "'host/0': Redis and PostgreSQL come with the shared ledgers"),
        ("postgresql://u:secret@host/db", "until then use 'memory:'"),
        ("sqlite:///", "names no file; for one in memory use 'memory:'"),
        ("sqlite:///:memory:", "names no file"),
        ("sqlite://file.db", "three slashes"),
        ("sqlite:file.db", "three slashes"),
        ("sqlite:///file.db?timeout=3", r"options go into shearpin\.stores\.SqliteStore"),
        ("file.db", "it may be 'memory:', 'sqlite:///file-here.db'"),
        ("", "is not known"),
        (7, "must be a URL such as 'memory:'"),
    ],
)
def test_a_wrong_url_shows_a_right_one(url: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as raised:
        open_store(url)
    assert "secret" not in str(raised.value)


def test_memory_forgets_what_has_expired() -> None:
    clock = ManualClock()
    store = MemoryStore(clock)
    for number in range(1000):
        store.put(f"k{number}", "1", ttl_seconds=1)
        clock.advance(0.1)
    assert len(store._kept) <= 11
    assert len(store._expiring) <= 11

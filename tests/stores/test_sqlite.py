"""The store in a file: what it says when it cannot work, and what survives a kill and a fork."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import sqlite3
import stat
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from shearpin.errors import StoreError
from shearpin.stores import MemoryStore, SqliteStore, Store
from shearpin.stores.conformance import _compete

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing forks here")
needs_plain_user = pytest.mark.skipif(
    not hasattr(os, "getuid") or os.getuid() == 0, reason="nothing is forbidden to this user"
)


def test_the_file_is_for_its_owner_alone_and_the_log_too(tmp_path: Path) -> None:
    path = tmp_path / "records.db"
    before = os.umask(0o000)
    try:
        store = SqliteStore(path)
        store.put("a", "1")
    finally:
        os.umask(before)
    modes = {p.name: stat.S_IMODE(p.stat().st_mode) for p in tmp_path.iterdir()}
    assert modes == dict.fromkeys(["records.db", "records.db-wal", "records.db-shm"], 0o600)
    store.close()
    assert [p.name for p in tmp_path.iterdir()] == ["records.db"]


def test_a_store_stays_where_it_was_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    store = SqliteStore("records.db")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    store.after_fork()
    store.put("a", "1")
    assert not list((tmp_path / "elsewhere").iterdir())
    assert repr(store) == f"SqliteStore({str(tmp_path / 'records.db')!r})"
    store.close()


def test_a_pickled_store_is_the_same_file_opened_anew(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "records.db", busy_seconds=7, durable=False)
    store.put("a", "1")
    other = pickle.loads(pickle.dumps(store))
    assert other.get("a") == store.get("a")
    assert (other.path, other._busy_seconds, other._durable) == (store.path, 7, False)
    store.close()
    assert other.put("a", "2") is not None
    other.close()


def test_what_is_no_database_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("not a database, but somebody's notes\n" * 40)
    before = path.read_bytes()
    with pytest.raises(StoreError, match=r"notes\.txt: is not an SQLite database; name another"):
        SqliteStore(path)
    assert path.read_bytes() == before


def test_a_missing_folder_and_a_folder_in_place_of_the_file_are_named(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"no such folder; create .*missing$"):
        SqliteStore(tmp_path / "missing" / "records.db")
    (tmp_path / "folder.db").mkdir()
    with pytest.raises(StoreError, match=r"folder\.db: cannot be opened; check that it is a file"):
        SqliteStore(tmp_path / "folder.db")


def test_a_file_that_is_locked_by_others_is_named_with_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "records.db"
    store = SqliteStore(path, busy_seconds=0)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreError, match=r"records\.db: is locked by another process; .*busy_sec"):
        store.put("a", "1")
    assert store.get("a") is None  # who reads does not wait for who writes
    other.execute("ROLLBACK")
    assert store.put("a", "1") is not None
    other.close()
    store.close()


@needs_plain_user
def test_a_read_only_file_is_named_with_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "records.db"
    SqliteStore(path).close()
    path.chmod(0o400)
    with pytest.raises(StoreError, match=r"records\.db: cannot be .*; (make|check)"):
        SqliteStore(path).put("a", "1")
    folder = tmp_path / "closed"
    folder.mkdir(mode=0o500)
    with pytest.raises(StoreError, match=r"cannot be created .*; make .*closed writable"):
        SqliteStore(folder / "records.db")


def test_a_database_that_may_not_be_written_is_named_with_what_to_do(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "records.db")
    assert store._connection is not None
    store._connection.execute("PRAGMA query_only=1")  # what a read-only disk looks like to SQLite
    with pytest.raises(StoreError, match=r"records\.db: cannot be written; make the file and its"):
        store.put("a", "1")
    store._connection.execute("PRAGMA query_only=0")
    assert store.put("a", "1", expect=0) is not None
    store.close()


def test_a_damaged_file_is_named_and_a_full_one_too(tmp_path: Path) -> None:
    path = tmp_path / "records.db"
    store = SqliteStore(path)
    assert store._connection is not None
    store._connection.execute("PRAGMA max_page_count=10")
    with pytest.raises(StoreError, match=r"records\.db: cannot grow; the disk is full"):
        store.put("a", "x" * 200_000)
    assert store.put("a", "1") is not None  # what was begun was taken back
    store.close()
    with path.open("r+b") as file:
        file.seek(100)
        file.write(b"\xff" * 3000)
    with pytest.raises(StoreError, match=r"records\.db: is damaged; restore a copy"):
        SqliteStore(path)


def test_a_database_of_somebody_elses_is_shared_in_peace(tmp_path: Path) -> None:
    path = tmp_path / "app.db"
    app = sqlite3.connect(path)
    app.execute("CREATE TABLE mine (x)")
    app.execute("INSERT INTO mine VALUES (7)")
    app.commit()
    store = SqliteStore(path)
    store.put("a", "1")
    store.close()
    assert app.execute("SELECT x FROM mine").fetchall() == [(7,)]
    app.close()


CRASHING = """
import sys
from shearpin.stores import SqliteStore
store = SqliteStore(sys.argv[1])
print("ready", flush=True)
number = int(sys.argv[2])
while True:
    number += 1
    store.put("long", str(number) + "x" * 50_000)
    store.put("last", str(number))
"""


def test_a_kill_in_mid_write_keeps_the_database_sound(tmp_path: Path) -> None:
    path = tmp_path / "records.db"
    store = SqliteStore(path, busy_seconds=60)
    reached = 0
    for round_ in range(1, 5):
        child = subprocess.Popen(
            [sys.executable, "-c", CRASHING, str(path), str(reached)], stdout=subprocess.PIPE
        )
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        while (found := store.get("last")) is None or int(found.value) < reached + 5 * round_:
            assert child.poll() is None
        child.kill()
        child.wait()
        child.stdout.close()
        last, long = store.get("last"), store.get("long")
        assert last is not None
        assert long is not None
        reached = int(last.value)
        assert int(long.value.rstrip("x")) in (reached, reached + 1)
        assert len(long.value.lstrip("0123456789")) == 50_000
        check = sqlite3.connect(path)
        assert check.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        check.close()
        new = store.put("mine", "1")  # nobody holds a lock any more
        assert new is not None
        assert new.version > long.version
    store.close()


def add(store: Store, times: int) -> None:
    for _ in range(times):
        while True:
            found = store.get("sum")
            value, version = (0, 0) if found is None else (int(found.value), found.version)
            if store.put("sum", str(value + 1), expect=version) is not None:
                break


@needs_fork
def test_a_store_opened_before_a_fork_works_on_both_sides(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "records.db", busy_seconds=60)
    store.put("sum", "0")
    children = [os.fork() for _ in range(1)]
    if children[-1] == 0:  # pragma: no cover - another process
        code = 1
        try:
            add(store, 50)
            code = 0
        finally:
            os._exit(code)
    add(store, 50)
    for child in children:
        assert os.waitpid(child, 0)[1] == 0
    found = store.get("sum")
    assert found is not None
    assert found.value == "100"
    store.close()


@needs_fork
@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_a_lock_held_by_a_thread_at_the_fork_is_not_waited_for(kind: str, tmp_path: Path) -> None:
    store = MemoryStore() if kind == "memory" else SqliteStore(tmp_path / "records.db")
    store.put("a", "1")
    store._lock.acquire()
    child = os.fork()
    if child == 0:  # pragma: no cover - another process
        signal.alarm(20)
        found = store.get("a")
        os._exit(0 if found is not None and found.value == "1" else 1)
    store._lock.release()
    assert os.waitpid(child, 0)[1] == 0
    store.close()


def test_processes_may_make_the_file_at_once(tmp_path: Path) -> None:
    fresh = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(3, mp_context=fresh) as pool:
        for round_ in range(3):
            reopen = partial(SqliteStore, tmp_path / f"{round_}.db", busy_seconds=60)
            assert list(pool.map(_compete, [reopen] * 3)).count(True) == 1


def test_threads_share_one_connection(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "records.db", durable=False)
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda _: add(store, 10), range(16)))
    found = store.get("sum")
    assert found is not None
    assert found.value == "160"
    store.close()

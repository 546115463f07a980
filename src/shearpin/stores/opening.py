"""A store by its URL.

Contract: a URL that cannot work is a `ConfigError` when it is given, which shows a form that does.
"""

from __future__ import annotations

from urllib.parse import unquote

from shearpin.errors import ConfigError
from shearpin.stores.base import Store
from shearpin.stores.memory import MemoryStore
from shearpin.stores.sqlite import SqliteStore

__all__ = ["open_store"]

_FORMS = "'memory:', 'sqlite:///file-here.db' or 'sqlite:////folder/file.db'"
_LATER = ("redis:", "rediss:", "postgres:", "postgresql:")


def open_store(url: str | Store) -> Store:
    """A store by its URL.

    Args:
        url: `memory:` for one of this process alone; `sqlite:///name.db` for a file in the current
            folder, `sqlite:////folder/name.db` for one elsewhere; or a store, which is given back.

    Raises:
        ConfigError: there is no such kind of store.
        StoreError: the file cannot be opened; the message names it and the fix.

    Example:
        >>> open_store("memory:").put("a", "1").value
        '1'
    """
    if not isinstance(url, str):
        if not isinstance(url, Store):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigError(f"a store must be a URL such as {_FORMS}, or a Store, not {url!r}")
        return url
    if url == "memory:":
        return MemoryStore()
    scheme, found, place = url.partition("://")
    if url.startswith(_LATER):
        raise ConfigError(
            f"store {url.split('@')[-1]!r}: Redis and PostgreSQL come with the shared ledgers; "
            f"until then use {_FORMS}"
        )
    if scheme != "sqlite" or not found or not place.startswith("/"):
        hint = " (three slashes)" if scheme.startswith("sqlite") else ""
        raise ConfigError(f"store {url!r} is not known; it may be {_FORMS}{hint}")
    path = unquote(place[1:])
    if path in ("", ":memory:"):
        raise ConfigError(f"store {url!r} names no file; for one in memory use 'memory:'")
    if "?" in path:
        raise ConfigError(f"store {url!r}: options go into shearpin.stores.SqliteStore(path, ...)")
    return SqliteStore(path)

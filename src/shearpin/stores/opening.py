"""A store by its URL.

Contract: a URL that cannot work is a `ConfigError` when it is given, which shows a form that does.
"""

from __future__ import annotations

from difflib import get_close_matches
from urllib.parse import unquote

from shearpin.errors import ConfigError
from shearpin.stores.base import Store

__all__ = ["check_place", "open_store"]

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
        return _checked(url)
    path = _path_in(url)
    if path is None:
        from shearpin.stores.memory import MemoryStore

        return MemoryStore()
    from shearpin.stores.sqlite import SqliteStore

    return SqliteStore(path)


def check_place(field: str, value: object, names: tuple[str, ...]) -> None:
    """Raises `ConfigError` where a setting is none of these names, no URL and no store."""
    if not isinstance(value, str):
        if not isinstance(value, Store) or isinstance(value, type):
            raise ConfigError(
                f"{field} must be one of {', '.join(names)}, a URL such as "
                f"'sqlite:///sessions.db', or a Store, not {value!r}"
            )
    elif ":" in value:
        _path_in(value)
    elif value not in names:
        close = get_close_matches(value, names, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise ConfigError(
            f"{field} must be one of {', '.join(names)}, a URL such as 'sqlite:///sessions.db', "
            f"or a Store, not {value!r}{hint}"
        )


def _checked(given: object) -> Store:
    if not isinstance(given, Store) or isinstance(given, type):
        raise ConfigError(f"a store must be a URL such as {_FORMS}, or a Store, not {given!r}")
    return given


def _path_in(url: str) -> str | None:
    """The file that a URL names; None where it names memory."""
    if url == "memory:":
        return None
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
    return path

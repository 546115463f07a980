"""Where something learnt is kept: in memory, in a JSON file, or in a store that processes share.

Contract: `change` reads, updates and writes as one. In a store that holds among all processes that
use it; in a file among the threads of this process, and of two processes that write at once one
wins. Data is JSON: what `read` gives is what the last `change` returned.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeAlias, cast

from shearpin.errors import ConfigError, StoreError
from shearpin.stores import Store, open_store

__all__ = ["Kept", "Place"]

Place: TypeAlias = "str | Path | Store | None"
"""A JSON file, a store or its URL (`sqlite:///learnt.db`), or None for memory alone."""
_TRIES: Final = 20


class Kept:
    """One piece of JSON data. See the module's contract.

    Args:
        place: where it is kept.
        key: its name in a store.

    Raises:
        ConfigError: the URL of the store is none, or no file can be at the path.

    Example:
        >>> kept = Kept(None, "count")
        >>> kept.change(lambda before: (before or 0) + 1)
        1
        >>> kept.read()
        1
    """

    def __init__(self, place: Place, key: str) -> None:
        self._key = key
        self._lock = threading.Lock()
        self._path: Path | None = None
        self._store: Store | None = None
        self._text: str | None = None
        if isinstance(place, Path) or (isinstance(place, str) and not _is_url(place)):
            self._path = _file(Path(place))
        elif place is not None and not isinstance(place, (str, Store)):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigError(
                "the place where it is kept must be the path of a JSON file, the URL of a store, "
                f"a Store or None, not {place!r}"
            )
        elif place is not None:
            self._store = open_store(place)

    @property
    def blocking(self) -> bool:
        """Whether reading and writing may wait for a disk or a network."""
        return self._path is not None or (self._store is not None and self._store.blocking)

    def __getstate__(self) -> dict[str, object]:
        """All but the lock, so that a guard can be copied and sent to other processes."""
        return {name: value for name, value in self.__dict__.items() if name != "_lock"}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state, _lock=threading.Lock())

    def read(self) -> object:
        """What is kept; None where nothing is yet.

        Raises:
            ConfigError: it is damaged.
            StoreError: the store failed.
        """
        return self._parsed(self._now()[0])

    def change(self, update: Callable[[object], object]) -> object:
        """Replace what is kept by what `update` makes of it; returns that.

        Raises:
            ConfigError: what is kept is damaged.
            StoreError: the store failed, or others changed it all the time.
        """
        with self._lock:
            for _ in range(_TRIES):
                text, version = self._now()
                made = update(self._parsed(text))
                if self._put(json.dumps(made, ensure_ascii=False, indent=1), version):
                    return made
        raise StoreError(f"{self._key!r} was changed by others {_TRIES} times while it was updated")

    def _now(self) -> tuple[str | None, int]:
        if self._store is not None:
            entry = self._store.get(self._key)
            return (None, 0) if entry is None else (entry.value, entry.version)
        if self._path is not None:
            try:
                return self._path.read_text(encoding="utf-8"), 0
            except FileNotFoundError:
                return None, 0
            except (OSError, UnicodeDecodeError) as error:
                raise ConfigError(f"{self._path}: cannot be read: {error}") from error
        return self._text, 0

    def _put(self, text: str, version: int) -> bool:
        if self._store is not None:
            return self._store.put(self._key, text, expect=version) is not None
        if self._path is not None:
            draft = self._path.with_name(self._path.name + ".new")
            draft.write_text(text + "\n", encoding="utf-8")
            draft.replace(self._path)
        self._text = text
        return True

    def _parsed(self, text: str | None) -> object:
        if text is None:
            return None
        try:
            return cast("object", json.loads(text))
        except ValueError as error:
            where = self._path or f"the store's {self._key!r}"
            raise ConfigError(f"{where}: is not valid JSON: {error}") from error


def _file(path: Path) -> Path:
    """A path at which a file is or can be made."""
    if path.is_dir():
        raise ConfigError(f"{path}: is a folder; name a file in it, such as {path / 'kept.json'}")
    if not path.absolute().parent.is_dir():
        raise ConfigError(
            f"{path}: its folder does not exist; make it, or keep the file somewhere else"
        )
    return path


def _is_url(place: str) -> bool:
    return "://" in place or place == "memory:"

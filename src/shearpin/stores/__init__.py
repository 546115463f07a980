"""Where small records live: one protocol, one suite of tests for every backend.

* `base` - the `Store` protocol and its contract
* `memory` - in this process
* `sqlite` - in a file, for the processes of one machine
* `opening` - a store by its URL
* `conformance` - the tests that every store has to pass

Each name below loads on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shearpin.stores.base import Entry as Entry
    from shearpin.stores.base import Store as Store
    from shearpin.stores.memory import MemoryStore as MemoryStore
    from shearpin.stores.opening import open_store as open_store
    from shearpin.stores.sqlite import SqliteStore as SqliteStore

_HOME = {
    "Entry": "shearpin.stores.base",
    "MemoryStore": "shearpin.stores.memory",
    "SqliteStore": "shearpin.stores.sqlite",
    "Store": "shearpin.stores.base",
    "open_store": "shearpin.stores.opening",
}

__all__ = ["Entry", "MemoryStore", "SqliteStore", "Store", "open_store"]


def __getattr__(name: str) -> object:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'shearpin.stores' has no attribute {name!r}")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)

"""Where small records live: one protocol, one suite of tests for every backend.

* `base` - the `Store` protocol and its contract
* `memory` - in this process
* `sqlite` - in a file, for the processes of one machine
* `opening` - a store by its URL
* `conformance` - the tests that every store has to pass
"""

from __future__ import annotations

from shearpin.stores.base import Entry, Store
from shearpin.stores.memory import MemoryStore
from shearpin.stores.opening import open_store
from shearpin.stores.sqlite import SqliteStore

__all__ = ["Entry", "MemoryStore", "SqliteStore", "Store", "open_store"]

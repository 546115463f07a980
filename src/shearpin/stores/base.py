"""The seam to where records live: text under a key, with a version, for a time.

Contract of every store: each operation is atomic among all threads and processes that use it. `put`
is a compare-and-set: of any number of writers that expect the same version exactly one succeeds. A
version is never used twice for a key, also not after the entry was deleted or expired, so that
nobody takes a new entry for the one he knew. An entry expires by the store's own clock; from then
on it does not exist. A store that fails raises `StoreError`, which names the place and the fix; it
never answers as if nothing were there.

`shearpin.stores.conformance` holds the tests that every store has to pass.
"""

from __future__ import annotations

from math import isfinite
from typing import Final, NamedTuple, Protocol, runtime_checkable

__all__ = ["MOST_KEY_CHARACTERS", "MOST_VALUE_BYTES", "Entry", "Store", "check_key", "check_put"]

MOST_KEY_CHARACTERS: Final = 512
"""A longer key is refused."""
MOST_VALUE_BYTES: Final = 1_048_576
"""A longer value, in UTF-8, is refused."""


class Entry(NamedTuple):
    """What a store holds under a key.

    Attributes:
        value: the text that was put.
        version: above 0, and higher with each `put` under the key.
    """

    value: str
    version: int


@runtime_checkable
class Store(Protocol):
    """Keeps records. See the module's contract.

    Attributes:
        blocking: whether an operation may wait for a disk, a lock or a network, and so has no place
            on an event loop.
    """

    blocking: bool

    def get(self, key: str) -> Entry | None:
        """What is under a key; None where there is nothing, or it has expired."""
        ...

    def put(
        self,
        key: str,
        value: str,
        *,
        expect: int | None = None,
        ttl_seconds: float | None = None,
    ) -> Entry | None:
        """Put a value under a key, if what is there now is what the caller expects.

        Args:
            key: 1 to 512 characters.
            value: text, at most 1 MiB of UTF-8.
            expect: the version that has to be there; 0: there has to be nothing. None: whatever is
                there is replaced.
            ttl_seconds: how long the entry lives, above 0. None: until it is deleted.

        Returns:
            The new entry; None where something else was there, and nothing has changed.
        """
        ...

    def delete(self, key: str, *, expect: int | None = None) -> bool:
        """Remove what is under a key; whether there was something, of the expected version."""
        ...

    def keys(self, prefix: str = "", limit: int = 1000) -> list[str]:
        """The first `limit` keys that begin with a prefix, in order."""
        ...

    def close(self) -> None:
        """Let go of files and connections. A later operation raises `StoreError`."""
        ...


def check_key(key: str) -> None:
    """Raises `ValueError` where a key is none that every store can hold."""
    if not 0 < len(key) <= MOST_KEY_CHARACTERS:
        raise ValueError(f"a key has 1 to {MOST_KEY_CHARACTERS} characters, not {len(key)}")
    if "\0" in key:
        raise ValueError(f"a key has no zero characters: {key!r}")


def check_put(key: str, value: str, expect: int | None, ttl_seconds: float | None) -> None:
    """Raises `ValueError` where the arguments of a `put` are out of range."""
    check_key(key)
    if len(value) > MOST_VALUE_BYTES or len(value.encode()) > MOST_VALUE_BYTES:
        raise ValueError(f"the value of {key!r} has more than {MOST_VALUE_BYTES} bytes")
    if expect is not None and expect < 0:
        raise ValueError(f"expect must be a version, 0 or None, not {expect!r}")
    if ttl_seconds is not None and not (ttl_seconds > 0 and isfinite(ttl_seconds)):
        raise ValueError(f"ttl_seconds must be above 0 seconds or None, not {ttl_seconds!r}")

"""One page for each tool and thread: all its effects, so that one write settles what is asked.

Contract: count, interval and state are read and changed together. What has expired is not on a page
that was read. A page that cannot be read is an error: it may say that something has been done.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from difflib import get_close_matches
from hashlib import sha256
from typing import Any, Literal, NamedTuple, TypeAlias, cast

from shearpin.boundary.settings import Effects
from shearpin.core.canonical import canonical_json
from shearpin.errors import ConfigError, StoreError

__all__ = ["Page", "PageEntry", "State", "check_key", "effect_key", "page_key", "read_page"]

State: TypeAlias = Literal["in_flight", "done", "unknown"]


class PageEntry(NamedTuple):
    """What is known of one effect.

    Attributes:
        key: digest of what makes it this effect.
        state: as it was written; see `state_at`.
        since: when it began.
        at: when that state was reached.
        call: id of the call that began it.
        lease_until: from then on a call in flight counts as unknown.
        keep_seconds: how long it is remembered once its outcome is known, or can be no more.
    """

    key: str
    state: State
    since: float
    at: float
    call: str
    lease_until: float
    keep_seconds: float

    def state_at(self, now: float) -> State:
        """Its state, with a lease that is over taken into account."""
        over = self.state == "in_flight" and now >= self.lease_until
        return "unknown" if over else self.state

    def until(self) -> float:
        """When it is forgotten."""
        settled = self.lease_until if self.state == "in_flight" else self.at
        return settled + self.keep_seconds

    def is_same(self, other: PageEntry) -> bool:
        """Whether both tell of the same call."""
        return (self.key, self.since, self.call) == (other.key, other.since, other.call)

    def moved(self, state: str, at: float) -> PageEntry:
        """The same effect, in another state."""
        return self._replace(state=cast("State", state), at=at)


class Page:
    """The effects of one tool in one thread."""

    def __init__(self, entries: Mapping[str, PageEntry]) -> None:
        self._entries = dict(entries)

    def entry(self, key: str) -> PageEntry | None:
        """What is known of an effect."""
        return self._entries.get(key)

    def entries(self) -> Iterable[PageEntry]:
        """All that is known."""
        return self._entries.values()

    def put(self, entry: PageEntry) -> None:
        """Replace what is known of an effect."""
        self._entries[entry.key] = entry

    def remove(self, key: str) -> None:
        """Nothing is known of it any more."""
        self._entries.pop(key, None)

    def last_until(self, now: float) -> float:
        """Seconds until all is forgotten."""
        return max((entry.until() - now for entry in self.entries()), default=0.0)

    def text(self) -> str:
        """For the store."""
        rows = [list(entry) for entry in self.entries()]
        return json.dumps({"v": 1, "effects": rows}, separators=(",", ":"))


def read_page(name: str, text: str, now: float) -> Page:
    """A page as it was stored, without what has expired.

    Raises:
        StoreError: it cannot be read.
    """
    try:
        data = cast("dict[str, Any]", json.loads(text))
        if data["v"] != 1:
            raise ValueError(f"version {data['v']!r}")
        entries = [PageEntry(*row) for row in data["effects"]]
        return Page({entry.key: entry for entry in entries if entry.until() > now})
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise StoreError(
            f"{name}: the records of effects cannot be read ({error!r}); delete the key once it is "
            "clear what has been done"
        ) from error


def page_key(thread: str, tool: str) -> str:
    """The key of a page. Names of people may be in ids: they are not in the key."""
    return f"effects:{_digest([thread, tool])}"


def check_key(tool: str, policy: Effects | None, known: Collection[str]) -> None:
    """Check what makes two calls of a tool the same against the arguments that it takes.

    Raises:
        ConfigError: the key names an argument that the tool has not.
    """
    key = None if policy is None else policy.key
    if key is None or callable(key):
        return
    for name in key:
        if name not in known:
            close = get_close_matches(name, known, n=1)
            others = f"it takes {', '.join(sorted(known)) or 'no arguments'}"
            hint = f"did you mean {close[0]!r}?" if close else others
            raise ConfigError(
                f"Effects.key of {tool!r} names {name!r}, which is no argument of it; {hint}"
            )


def effect_key(tool: str, args: Mapping[str, object], policy: Effects) -> str:
    """What makes a call this effect.

    Raises:
        ConfigError: the policy's key names no argument, or its function fails.
    """
    key = policy.key
    if key is None:
        return _digest(args)
    if callable(key):
        try:
            return _digest(key(args))
        except Exception as error:
            raise ConfigError(f"Effects.key of {tool!r} failed: {error!r}") from error
    if not any(name in args for name in key):
        raise ConfigError(
            f"Effects.key of {tool!r} names {', '.join(key) or 'nothing'}, but the call has "
            f"{', '.join(sorted(args)) or 'no arguments'}"
        )
    return _digest({name: args.get(name) for name in key})


def _digest(value: object) -> str:
    return sha256(canonical_json(value).encode("utf-8", "surrogatepass")).hexdigest()

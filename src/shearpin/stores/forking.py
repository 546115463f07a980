"""What has to happen to an open store in a process that was forked off.

Contract: a lock that some thread held at the moment of the fork is not waited for in the child, and
a connection of the parent is neither used nor closed there.
"""

from __future__ import annotations

import os
from typing import Protocol
from weakref import WeakSet

__all__ = ["Forked", "follow_forks"]


class Forked(Protocol):
    """Something that has to know when it has become a copy of itself in another process."""

    def after_fork(self) -> None:
        """Called in the child, before anything else runs there."""
        ...


_followed: WeakSet[Forked] = WeakSet()


def follow_forks(item: Forked) -> None:
    """From now on the item is told of forks, for as long as it lives."""
    _followed.add(item)


def _tell() -> None:
    for item in list(_followed):
        item.after_fork()


if hasattr(os, "register_at_fork"):  # not on Windows, where nothing forks
    os.register_at_fork(after_in_child=_tell)

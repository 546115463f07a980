"""Two or more guards on live runs: each run gets its arm by a stable hash.

The same key always gets the same arm, in every process and on every machine, without anything being
stored; another experiment deals anew.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TypeVar

from shearpin.errors import ConfigError

__all__ = ["arm"]

T = TypeVar("T")


def arm(
    key: str, arms: Sequence[T], *, experiment: str = "", shares: Sequence[float] | None = None
) -> T:
    """The arm of a run.

    Args:
        key: what stays together: a thread id, a user id.
        arms: what to choose from, such as guards; give each a name, it is shown in reports.
        experiment: keys are dealt anew for each name.
        shares: how much goes to each arm; equal parts by default.

    Raises:
        ConfigError: there is no arm, or the shares do not fit.

    Example:
        >>> arm("thread-1", ["now", "tuned"]) == arm("thread-1", ["now", "tuned"])
        True
    """
    parts = [1.0] * len(arms) if shares is None else list(shares)
    if not arms or len(parts) != len(arms) or min(parts) < 0 or sum(parts) <= 0:
        raise ConfigError("arm() needs arms, and for each a share of 0 or more, not all of them 0")
    mark = hashlib.sha256(f"{experiment}\0{key}".encode()).digest()
    place = int.from_bytes(mark[:8], "big") / 2**64 * sum(parts)
    for choice, part in zip(arms, parts, strict=True):
        place -= part
        if place < 0:
            return choice
    return arms[-1]

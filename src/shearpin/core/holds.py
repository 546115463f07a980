"""What passes between an account and a ledger: amounts, scopes, holds, refusals, tallies.

Amounts are whole numbers by dimension: `usd` in millionths of a dollar, tokens, calls, steps, and
`tool:<name>`. A dimension that a scope does not limit is counted all the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

__all__ = ["Amounts", "Hold", "Refusal", "Scope", "Tally"]

Amounts: TypeAlias = Mapping[str, int]


class Scope(NamedTuple):
    """One account book that a call is charged to.

    Attributes:
        key: its name in the ledger, e.g. `run:4c1d...`.
        limits: what may be spent and held in it together, by dimension.
    """

    key: str
    limits: Amounts


class Hold(NamedTuple):
    """Amounts that are set aside for one call, in every scope that it is charged to.

    Attributes:
        id: of the call; holding twice under one id holds once.
        keys: of the scopes, innermost first.
        amounts: what was set aside.
    """

    id: str
    keys: tuple[str, ...]
    amounts: Amounts


class Refusal(NamedTuple):
    """Why nothing was set aside: the outermost scope without room, and its first such dimension.

    Attributes:
        key: of the scope.
        dimension: that has no room.
        limit: in force.
        spent: so far.
        held: by calls that are under way.
        wanted: by this call.
    """

    key: str
    dimension: str
    limit: int
    spent: int
    held: int
    wanted: int


class Tally(NamedTuple):
    """Where one scope stands.

    Attributes:
        key: of the scope.
        spent: settled amounts, and those of holds that ran out (see `presumed`).
        held: amounts of calls that are under way.
        presumed: the part of `spent` that was never settled: the caller died with the hold.
    """

    key: str
    spent: Amounts
    held: Amounts
    presumed: Amounts

"""How long an answer may become with what is left."""

from __future__ import annotations

from shearpin.core.account import Account
from shearpin.core.reserve import Cost

__all__ = ["output_room"]

_FAR = 10**9


def output_room(
    account: Account, into: int, cost: Cost | None, *, growth: int = 0, answer: int = 0
) -> int:
    """Output tokens for which there is room, by the last known tallies; below 0 if for none.

    Args:
        account: of the run.
        into: tokens of the prompt.
        cost: of tokens.
        growth: by which the prompt of a last answer will be longer.
        answer: tokens of a last answer that has to stay affordable; 0 for none.
    """
    later = into + growth if answer else 0
    money = cost(later, answer) if cost is not None and answer else 0
    room = _FAR
    for book in account.books:
        for name, limit in book.limits.items():
            left = limit - book.spent.get(name, 0) - book.held.get(name, 0)
            if name == "tokens":
                room = min(room, left - into - later - answer)
            elif name == "output_tokens":
                room = min(room, left - answer)
            elif name == "input_tokens" and into + later > left:
                room = -1
            elif name == "usd" and cost is not None:
                room = min(room, _affordable(cost, into, left - money))
    for budget in account.per_call:
        limits = budget.limits
        room = min(room, limits.get("output_tokens", _FAR), limits.get("tokens", _FAR) - into)
        if "usd" in limits and cost is not None:
            room = min(room, _affordable(cost, into, limits["usd"]))
    return room


def _affordable(cost: Cost, into: int, money: int) -> int:
    """The most output tokens that money buys on top of a prompt; below 0 if that is too long."""
    base = cost(into, 0)
    if base > money:
        return -1
    many = 1_000_000
    price = cost(into, many) - base
    found = min(_FAR, (money - base) * many // price) if price else _FAR
    while found > 0 and cost(into, found) > money:
        found -= 1
    return found

"""What a call can cost at most, and how the books of a run are reported."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Literal

from langchain_core.messages import BaseMessage

from shearpin.core.account import Account
from shearpin.pricing import ModelPrice
from shearpin.pricing.cost import worst_cases
from shearpin.report.budget import ScopeReport, in_units

__all__ = ["at_most", "scopes_of"]


def at_most(
    price: ModelPrice,
    params: Mapping[str, object],
    messages: Sequence[BaseMessage],
    provider: str | None,
    tier: str | None,
) -> Callable[[int, int], int]:
    """What tokens cost at most in this call, in millionths of a dollar."""
    writes = _cache_writes(params, messages, provider)
    cases = worst_cases(price, cache_writes=writes, service_tier=tier)

    def worst(input_tokens: int, output_tokens: int) -> int:
        return cases(input_tokens, output_tokens) or 0

    return worst


def _cache_writes(
    params: Mapping[str, object], messages: Sequence[BaseMessage], provider: str | None
) -> Literal["none", "5m", "1h"]:
    """How dearly the prompt may be written to the provider's cache: only where it is asked for."""
    if not (provider or "").startswith(("anthropic", "bedrock", "aws", "amazon")):
        return "none"
    marks = [params.get("cache_control"), params.get("system"), params.get("tools")]
    marks += [m.content for m in messages if isinstance(m.content, list)]  # pyright: ignore[reportUnknownMemberType]
    text = str([mark for mark in marks if mark])
    if "cache_control" not in text and not params.get("cache_control"):
        return "none"
    return "1h" if "'1h'" in text else "5m"


def scopes_of(account: Account, now: float, *, priced: bool) -> tuple[ScopeReport, ...]:
    """Where each scope of an account stands, innermost first; `priced` if all costs are known."""
    scopes: list[ScopeReport] = []
    for book in account.books:
        limits, spent = in_units(book.limits), in_units(dict(book.spent))
        for name, passed in (
            ("seconds", book.watch.wall(now)),
            ("working_seconds", book.watch.working(now)),
        ):
            limit = getattr(book.budget, name)
            if limit is not None:
                limits[name], spent[name] = limit + book.extra.get(name, 0), round(passed, 3)
        if priced and book.budget.dollars is not None:
            spent.setdefault("usd", Decimal(0))
        if book.budget.depth is not None:
            limits["depth"] = book.budget.depth + book.extra.get("depth", 0)
            spent["depth"] = account.levels.deepest
        ahead = [book.forecast(name, now) for name in book.limits]
        scopes.append(
            ScopeReport(
                book.budget.per,
                limits,
                spent,
                in_units(dict(book.held)),
                in_units(book.extra),
                tuple(forecast for forecast in ahead if forecast is not None),
            )
        )
    return tuple(scopes)

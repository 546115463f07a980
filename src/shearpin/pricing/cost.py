"""What a usage costs at a price: whole numbers inside, so the sum is always exact.

A rate in dollars per million tokens is a rate in micro-dollars per token, so a cost is a sum of
products of integers. Nothing is divided and nothing is rounded, until a hold is rounded up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from operator import mul
from typing import Literal, NamedTuple, cast

from shearpin.pricing.model import KINDS, ModelPrice
from shearpin.pricing.money import shifted
from shearpin.pricing.usage import TokenUsage

__all__ = ["Cost", "Line", "cost", "explain", "total", "worst_case", "worst_cases"]

_OUTPUT = KINDS.index("output")
_OUTPUT_KINDS = frozenset(KINDS[_OUTPUT:])
_INPUT_KINDS = {
    "none": frozenset({"input"}),
    "5m": frozenset({"input", "cache_write_5m"}),
    "1h": frozenset({"input", "cache_write_5m", "cache_write_1h"}),
}
_STANDARD_TIERS = {"standard", "default", "auto", "on_demand"}


@dataclass(frozen=True, slots=True)
class Cost:
    """What something costs.

    Attributes:
        usd: the exact amount that is known; None if nothing is. Unknown is never 0.
        micros: the same in whole micro-dollars, rounded up.
        complete: whether `usd` is all of it.
        marks: what was remarked on the way; see `shearpin.pricing.usage.MARKS`.
    """

    usd: Decimal | None
    micros: int | None
    complete: bool = True
    marks: tuple[str, ...] = ()


class Line(NamedTuple):
    """One line of an explained cost."""

    what: str
    quantity: int
    rate: Decimal | None
    usd: Decimal | None


def cost(usage: TokenUsage, price: ModelPrice | None) -> Cost:
    """What the usage costs.

    Returns:
        The exact cost. Without a price, or where tokens of a kind that has no rate were used, it is
        unknown or not complete, and says so.
    """
    marks = (*usage.marks, "estimated") if usage.estimated else usage.marks
    if price is None:
        return Cost(None, None, complete=False, marks=marks)
    price, marks = _variant(usage, price, marks)
    counts = usage.counts
    table = price.table(usage.prompt_tokens)
    complete = True
    if None in table:
        complete = not any(count for count, rate in zip(counts, table, strict=True) if rate is None)
        table = tuple(rate or 0 for rate in table)
    units = sum(map(mul, counts, cast("tuple[int, ...]", table)))
    if price.per_request:
        units += price.flat(price.per_request) * usage.requests
    for tool, uses in usage.tools.items():
        each = price.per_tool.get(tool)
        if each is not None:
            units += price.flat(each) * uses
        elif uses and not price.free:
            complete = False
            marks = (*marks, "tool_unpriced")
    if not (complete or units):
        return Cost(None, None, complete=False, marks=marks)
    return Cost(_usd(units, price), -(-units // price.scale), complete, marks)


def worst_case(
    price: ModelPrice | None,
    input_tokens: int,
    output_tokens: int,
    *,
    cache_writes: Literal["none", "5m", "1h"] = "1h",
    audio: bool = False,
    images: bool = False,
    tools: Mapping[str, int] | None = None,
    service_tier: str | None = None,
) -> int | None:
    """The most that a call can cost, in whole micro-dollars: what a hold has to set aside.

    Args:
        price: the price; None is unknown.
        input_tokens: the most the prompt can hold.
        output_tokens: the most the answer can hold, thinking included.
        cache_writes: the dearest way in which the prompt may be written to the cache, which can
            cost more than the prompt itself (at Anthropic 1.25 times for five minutes, twice for
            one hour). The default bounds every request; say less where the request is known.
        audio: whether the prompt may hold audio.
        images: whether the prompt may hold images that are billed apart.
        tools: the most uses of tools that the provider runs, by name.
        service_tier: the tier that the request asks for; one without a price of its own is taken
            at the standard price, as `cost` does.

    Returns:
        The bound; never falls when any count rises. None if the price is unknown, or does not say
        what the tokens cost.
    """
    if price is None:
        return None
    if service_tier is not None:
        price = price.variants.get(service_tier, price)
    inputs = _INPUT_KINDS[cache_writes]
    if audio:
        inputs |= {"audio_input"}
    if images:
        inputs |= {"image_input"}
    dearest_input = price.bound(input_tokens, inputs)
    dearest_output = price.bound(input_tokens, _OUTPUT_KINDS)
    if (input_tokens > 0 and dearest_input is None) or (
        output_tokens > 0 and dearest_output is None
    ):
        return None
    units = max(input_tokens, 0) * (dearest_input or 0) + max(output_tokens, 0) * (
        dearest_output or 0
    )
    units += price.flat(price.per_request)
    for tool, uses in (tools or {}).items():
        each = price.per_tool.get(tool)
        if each is None and uses and not price.free:
            return None
        units += price.flat(each or Decimal(0)) * uses
    return -(-units // price.scale)


def worst_cases(
    price: ModelPrice, *, cache_writes: Literal["none", "5m", "1h"], service_tier: str | None
) -> Callable[[int, int], int | None]:
    """`worst_case` of one price for any number of tokens: where there are no tiers, one sum."""
    if service_tier is not None:
        price = price.variants.get(service_tier, price)
    into, out = price.bound(1, _INPUT_KINDS[cache_writes]), price.bound(1, _OUTPUT_KINDS)
    if price.tiers or into is None or out is None:
        return lambda i, o: worst_case(price, i, o, cache_writes=cache_writes)
    flat, scale = price.flat(price.per_request), price.scale
    return lambda i, o: -(-(max(i, 0) * into + max(o, 0) * out + flat) // scale)


def explain(usage: TokenUsage, price: ModelPrice) -> tuple[Line, ...]:
    """The cost line by line; kinds of which nothing was used are left out."""
    price, _ = _variant(usage, price, ())
    table = price.table(usage.prompt_tokens)
    scale = Decimal(price.scale)
    lines = [
        Line(kind, count, None, None)
        if rate is None
        else Line(kind, count, Decimal(rate) / scale, _usd(count * rate, price))
        for kind, count, rate in zip(KINDS, usage.counts, table, strict=True)
        if count
    ]
    if price.per_request:
        units = price.flat(price.per_request) * usage.requests
        lines.append(Line("request", usage.requests, price.per_request, _usd(units, price)))
    for tool, uses in usage.tools.items():
        each = price.per_tool.get(tool, Decimal(0) if price.free else None)
        amount = None if each is None else each * uses
        lines.append(Line(tool, uses, each, amount))
    return tuple(lines)


def total(costs: Iterable[Cost]) -> Cost:
    """The sum. One unknown part makes it incomplete, and leaves what is known."""
    known: list[Decimal] = []
    complete = True
    marks: dict[str, None] = {}
    for each in costs:
        complete = complete and each.complete
        marks.update(dict.fromkeys(each.marks))
        if each.usd is not None:
            known.append(each.usd)
    if not known:
        none = Decimal(0) if complete else None
        return Cost(none, None if none is None else 0, complete, tuple(marks))
    deepest = min(int(amount.as_tuple().exponent) for amount in known)
    places = max(-deepest, 6)
    units = sum(shifted(amount, places) for amount in known)
    usd = Decimal(f"{units}E-{places}")
    return Cost(usd, -(-units // 10 ** (places - 6)), complete, tuple(marks))


def _variant(
    usage: TokenUsage, price: ModelPrice, marks: tuple[str, ...]
) -> tuple[ModelPrice, tuple[str, ...]]:
    tier = usage.service_tier
    if tier is None or tier in _STANDARD_TIERS:
        return price, marks
    variant = price.variants.get(tier)
    if variant is not None:
        return variant, marks
    return price, marks if price.free else (*marks, "service_tier_unpriced")


def _usd(units: int, price: ModelPrice) -> Decimal:
    # From text: exact whatever the precision of the caller's decimal context.
    return Decimal(f"{units}E-{price.places}")

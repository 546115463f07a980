"""Turns an entry of genai-prices into a `ModelPrice`: true thresholds, history and variants.

Only this module and `catalogue` know genai-prices. What a price cannot express in tokens, requests
or tool uses (hours of audio, pages) makes the model's price unknown, rather than too low.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import TYPE_CHECKING

from shearpin.pricing.model import ModelPrice, Rates, Tier

if TYPE_CHECKING:
    from genai_prices import types as genai

__all__ = ["converted"]

_RATES = {
    "input_mtok": "input",
    "cache_read_mtok": "cache_read",
    "cache_write_mtok": "cache_write_5m",
    "cache_write_5m_mtok": "cache_write_5m",
    "cache_write_1h_mtok": "cache_write_1h",
    "input_audio_mtok": "audio_input",
    "cache_audio_read_mtok": "audio_cache_read",
    "input_image_mtok": "image_input",
    "cache_image_read_mtok": "image_cache_read",
    "output_mtok": "output",
    "output_reasoning_mtok": "reasoning",
    "output_audio_mtok": "audio_output",
    "output_image_mtok": "image_output",
}
_TOOLS = {"web_searches_kcount": "web_search", "storage_searches_kcount": "file_search"}
_REQUESTS = "requests_kcount"
# No token count that a host reports says "video", and video is billed as ordinary input then.
_IGNORED = {"input_video_mtok", "output_video_mtok", "input_text_mtok", "output_text_mtok"}
_VARIANTS = {("service_tier", "flex"), ("service_tier", "priority"), ("processing", "batch")}
_THOUSAND = Decimal(1000)


def converted(
    model: genai.ModelInfo,
    name: str,
    at: date,
    *,
    source: str,
    as_of: date | None,
    notes: tuple[str, ...] = (),
    variants: bool = True,
) -> ModelPrice | None:
    """The price of a model on a day.

    Returns:
        The price; where it changes within the day, the dearest. None if the entry has no price that
        can be counted in tokens, requests or tool uses.
    """
    moments, changing = _moments(model, at)
    day = _dearest(model.get_prices(moment) for moment in moments)
    if day is None:
        return None
    if changing:
        notes = (*notes, "changes within the day; the dearest hour is taken")
    since = _since(model, at)
    if since is not None:
        notes = (*notes, f"in force since {since.isoformat()}")
    rates, tiers, per_request, per_tool = day
    others: dict[str, ModelPrice] = {}
    if variants:
        others = _variants(model, name, moments, source, as_of)
    return ModelPrice(
        name,
        rates,
        tiers,
        per_request,
        per_tool,
        source=source,
        date=as_of,
        notes=notes,
        variants=others,
        context_tokens=model.context_window,
    )


_Parts = tuple[Rates, tuple[Tier, ...], Decimal, dict[str, Decimal]]


def _moments(model: genai.ModelInfo, at: date) -> tuple[list[datetime], bool]:
    """The moments of the day at which the model's price may change."""
    moments = [datetime.combine(at, time(0, tzinfo=UTC))]
    if isinstance(model.prices, list):
        for entry in model.prices:
            for edge in ("start_time", "end_time"):
                moment = getattr(entry.constraint, edge, None)
                if isinstance(moment, time):
                    moments.append(datetime.combine(at, moment.replace(tzinfo=UTC)))
    return moments, len(moments) > 1


def _since(model: genai.ModelInfo, at: date) -> date | None:
    if not isinstance(model.prices, list):
        return None
    starts = [
        start
        for entry in model.prices
        if isinstance(start := getattr(entry.constraint, "start_date", None), date) and start <= at
    ]
    return max(starts, default=None)


def _dearest(prices: Iterable[genai.ModelPrice]) -> _Parts | None:
    parts = [found for price in prices if (found := _parts(price)) is not None]
    return max(parts, key=lambda each: (each[0].output or 0) + (each[0].input or 0), default=None)


def _parts(price: genai.ModelPrice) -> _Parts | None:
    """Rates, tiers, per request, per tool; None where a unit cannot be counted."""
    base: dict[str, Decimal] = {}
    tiers: dict[int, dict[str, Decimal]] = {}
    per_request = Decimal(0)
    per_tool: dict[str, Decimal] = {}
    for key, value in _entries(price):
        amount: object = getattr(value, "base", value)
        if not isinstance(amount, Decimal) or key in _IGNORED:
            continue
        if key in _TOOLS:
            per_tool[_TOOLS[key]] = amount / _THOUSAND
        elif key == _REQUESTS:
            per_request = amount / _THOUSAND
        elif key in _RATES:
            kind = _RATES[key]
            base[kind] = amount
            for tier in getattr(value, "tiers", ()):
                tiers.setdefault(tier.start, {})[kind] = tier.price
    if not base and not per_request:
        return None
    levels = tuple(Tier(above, Rates(**changed)) for above, changed in sorted(tiers.items()))
    return Rates(**base), levels, per_request, per_tool


def _entries(price: genai.ModelPrice) -> list[tuple[str, object]]:
    return [(key, value) for key, value in vars(price).items() if value is not None]


def _variants(
    model: genai.ModelInfo,
    name: str,
    moments: list[datetime],
    source: str,
    as_of: date | None,
) -> dict[str, ModelPrice]:
    found: dict[str, ModelPrice] = {}
    for variant in model.price_variants or ():
        when: Mapping[str, str] = variant.when
        if len(when) != 1 or (pair := next(iter(when.items()))) not in _VARIANTS:
            continue
        day = _dearest(model.get_prices(moment, dict(when)) for moment in moments)
        if day is not None:
            rates, tiers, per_request, per_tool = day
            found[pair[1]] = ModelPrice(
                f"{name} ({pair[1]})",
                rates,
                tiers,
                per_request,
                per_tool,
                source=source,
                date=as_of,
            )
    return found

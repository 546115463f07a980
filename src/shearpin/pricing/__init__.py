"""What a call costs: price books, usage in any provider's words, and exact sums.

    pricing = Pricing()                                     # list prices, offline
    price = pricing.find("gpt-4o", "openai", usd_capped=True).price
    cost(read_usage(message.usage_metadata), price).usd     # an exact Decimal; None is unknown

Nothing here imports genai-prices before the first lookup.
"""

from __future__ import annotations

from shearpin.pricing.catalogue import Catalogue
from shearpin.pricing.cost import Cost, cost, explain, total, worst_case
from shearpin.pricing.model import KINDS, ModelPrice, PriceBook, Rates, Tier
from shearpin.pricing.money import dollars, micros
from shearpin.pricing.overrides import Factor, Overrides
from shearpin.pricing.policy import Priced, Pricing, UnknownPrice
from shearpin.pricing.reading import read_usage
from shearpin.pricing.toml_file import load_prices
from shearpin.pricing.usage import MARKS, TokenUsage

__all__ = [
    "KINDS",
    "MARKS",
    "Catalogue",
    "Cost",
    "Factor",
    "ModelPrice",
    "Overrides",
    "PriceBook",
    "Priced",
    "Pricing",
    "Rates",
    "Tier",
    "TokenUsage",
    "UnknownPrice",
    "cost",
    "dollars",
    "explain",
    "load_prices",
    "micros",
    "read_usage",
    "total",
    "worst_case",
]

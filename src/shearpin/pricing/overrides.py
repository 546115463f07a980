"""Prices of the user's own: contracts, discounts, private models, and names for deployments.

They lie in front of another book and win. `shearpin.pricing.toml_file` reads them from a file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from fnmatch import fnmatchcase

from shearpin.pricing.model import ModelPrice, PriceBook
from shearpin.pricing.names import candidates, spellings

__all__ = ["Factor", "Overrides"]


@dataclass(frozen=True, slots=True)
class Factor:
    """A price as a multiple of the one behind it: a discount, or a gateway's surcharge.

    Attributes:
        times: what to multiply by; 0.80 is a discount of 20 %.
        source: where that comes from.
        date: the day on which it was right.
    """

    times: Decimal
    source: str
    date: date


@dataclass(frozen=True, slots=True)
class Overrides:
    """A price book in front of another one.

    A name is looked for with its provider, then without, then without a date or `-latest`; after
    that patterns are tried, the longest first. Upper and lower case are the same.

    Attributes:
        prices: by model name or pattern (`*`, `?`); `provider/model` counts for that provider only.
        behind: asked for everything else.
        aliases: what a deployment, an ARN or a gateway's name stands for, as `provider/model`.
        stale_after_days: age at which a price is called old; None leaves it to the caller.
    """

    prices: Mapping[str, ModelPrice | Factor]
    behind: PriceBook
    aliases: Mapping[str, str] = field(default_factory=dict[str, str])
    stale_after_days: int | None = None
    _exact: dict[str, ModelPrice | Factor] = field(init=False, repr=False, compare=False)
    _patterns: tuple[tuple[str, ModelPrice | Factor], ...] = field(
        init=False, repr=False, compare=False
    )
    _alias: dict[str, str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        lower = {name.strip().lower(): price for name, price in self.prices.items()}
        patterns = [(name, price) for name, price in lower.items() if _is_pattern(name)]
        patterns.sort(key=lambda entry: -len(entry[0].replace("*", "")))
        exact = {name: price for name, price in lower.items() if not _is_pattern(name)}
        object.__setattr__(self, "_exact", exact)
        object.__setattr__(self, "_patterns", tuple(patterns))
        alias = {name.strip().lower(): target for name, target in self.aliases.items()}
        object.__setattr__(self, "_alias", alias)

    def price(
        self, model: str, provider: str | None = None, at: date | None = None
    ) -> ModelPrice | None:
        """The user's own price of a model, or the one behind it."""
        for name in spellings(model, provider):
            target = self._alias.get(name)
            if target is not None:
                found = self._price(target, None, at)
                return None if found is None else _noted(found, f"{model!r} stands for {target!r}")
        return self._price(model, provider, at)

    def closest(self, model: str, provider: str | None = None) -> list[str]:
        """Names in the book behind that are spelt alike, for a message."""
        suggest = getattr(self.behind, "closest", None)
        return [] if suggest is None else list(suggest(model, provider))

    def _price(self, model: str, provider: str | None, at: date | None) -> ModelPrice | None:
        own = self._own(model, provider)
        if isinstance(own, ModelPrice):
            return own
        found = self.behind.price(model, provider, at)
        if own is None or found is None:
            return found
        return found.scaled(own.times, own.source, own.date)

    def _own(self, model: str, provider: str | None) -> ModelPrice | Factor | None:
        spelt = spellings(model, provider)
        for name in spelt:
            if name in self._exact:
                return self._exact[name]
        for candidate in candidates(model, provider):
            for name in (f"{candidate.provider}/{candidate.name}", candidate.name):
                if name in self._exact:
                    return self._exact[name]
        for pattern, price in self._patterns:
            if any(fnmatchcase(name, pattern) for name in spelt):
                return price
        return None


def _is_pattern(name: str) -> bool:
    return "*" in name or "?" in name


def _noted(price: ModelPrice, note: str) -> ModelPrice:
    from dataclasses import replace

    return replace(price, notes=(note, *price.notes))

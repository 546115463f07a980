"""What a model costs: exact rates per million tokens, with where they come from.

A price is a value. It does not look anything up, and it does not know what was used.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import date
from decimal import Decimal
from typing import Protocol

from shearpin.errors import ConfigError
from shearpin.pricing.money import MICROS_PER_DOLLAR, dollars, shifted
from shearpin.pricing.rates import KINDS, Amount, Rates, Tier

__all__ = ["KINDS", "ModelPrice", "PriceBook", "Rates", "Tier"]


@dataclass(frozen=True, slots=True)
class ModelPrice:
    """What one model costs, and how we know.

    Attributes:
        model: the name the price was found under.
        rates: dollars per million tokens.
        tiers: rates for long prompts.
        per_request: dollars for each request, on top of its tokens.
        per_tool: dollars for each use of a tool that the provider runs, such as `web_search`.
        free: known to cost nothing. A model without rates that is not free has no price at all.
        source: where the price comes from.
        date: the day on which the source was right; None if it does not say.
        notes: what was assumed on the way, in words.
        variants: prices of other service tiers, such as `flex` or `batch`, by their name.
        context_tokens: the longest prompt the model takes, where the source says so.
    """

    model: str
    rates: Rates = field(default_factory=Rates)
    tiers: tuple[Tier, ...] = ()
    per_request: Decimal = Decimal(0)
    per_tool: Mapping[str, Decimal] = field(default_factory=dict[str, Decimal])
    free: bool = False
    source: str = "given in code"
    date: date | None = None
    notes: tuple[str, ...] = ()
    variants: Mapping[str, ModelPrice] = field(default_factory=dict[str, "ModelPrice"])
    context_tokens: int | None = None
    _places: int = field(init=False, repr=False, compare=False)
    _tables: tuple[tuple[int, tuple[int | None, ...]], ...] = field(
        init=False, repr=False, compare=False
    )
    _bounds: dict[tuple[int, frozenset[str]], int | None] = field(
        init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "per_request", dollars(self.per_request, "per_request"))
        tools = {tool: dollars(each, f"per_tool.{tool}") for tool, each in self.per_tool.items()}
        object.__setattr__(self, "per_tool", tools)
        thresholds = [tier.above_input_tokens for tier in self.tiers]
        if len(set(thresholds)) != len(thresholds):
            raise ConfigError(f"price of {self.model!r}: two tiers have the same threshold")
        has_rates = any(getattr(self.rates, kind) is not None for kind in KINDS)
        if not (has_rates or self.free or self.per_request or self.per_tool):
            raise ConfigError(
                f"price of {self.model!r} has no rate; give input and output, or free=True"
            )
        self._compile()

    def _compile(self) -> None:
        """Whole numbers per token, so that a cost is a sum of products and always exact."""
        base = Rates(input=Decimal(0), output=Decimal(0)) if self.free else self.rates
        tiers = [] if self.free else sorted(self.tiers, key=lambda tier: -tier.above_input_tokens)
        tables = [(tier.above_input_tokens, tier.rates.over(base)) for tier in tiers]
        tables.append((-1, base))
        amounts = [r for _, rates in tables for k in KINDS if (r := rates.rate(k)) is not None]
        flat = [self.per_request, *self.per_tool.values()]
        places = max((-int(amount.as_tuple().exponent) for amount in (*amounts, *flat)), default=0)
        object.__setattr__(self, "_places", max(places, 0))
        compiled = tuple(
            (above, tuple(self._whole(rates.rate(kind)) for kind in KINDS))
            for above, rates in tables
        )
        object.__setattr__(self, "_tables", compiled)
        object.__setattr__(self, "_bounds", {})

    def _whole(self, rate: Decimal | None) -> int | None:
        if rate is None:
            return None
        return shifted(rate, self._places)

    @classmethod
    def of(
        cls,
        model: str,
        *,
        tiers: tuple[tuple[int, Mapping[str, Amount]], ...] = (),
        per_request: Amount = 0,
        per_tool: Mapping[str, Amount] | None = None,
        free: bool = False,
        source: str = "given in code",
        at: date | None = None,
        **rates: Amount | None,
    ) -> ModelPrice:
        """A price from strings or decimals.

        Args:
            model: the model's name.
            tiers: pairs of `above_input_tokens` and the rates that apply above it.
            per_request: dollars for each request.
            per_tool: dollars for each use of a provider's tool.
            free: the model costs nothing.
            source: where the price comes from.
            at: the day on which it was right.
            rates: dollars per million tokens, by kind; see `Rates`.

        Raises:
            ConfigError: a float, a negative amount, an unknown rate, or no rate at all.

        Example:
            >>> ModelPrice.of("house-model", input="3", output="15").rates.rate("cache_read")
            Decimal('3')
        """
        return cls(
            model,
            Rates.of(**rates),
            tuple(Tier(above, Rates.of(**changed)) for above, changed in tiers),
            dollars(per_request, "per_request"),
            {tool: dollars(each, f"per_tool.{tool}") for tool, each in (per_tool or {}).items()},
            free,
            source,
            at,
        )

    def table(self, prompt_tokens: int) -> tuple[int | None, ...]:
        """Rates in `KINDS` order for a prompt of this length, in micro-dollars over `scale`."""
        for above, rates in self._tables:
            if prompt_tokens > above:
                return rates
        return self._tables[-1][1]

    def bound(self, prompt_tokens: int, kinds: frozenset[str]) -> int | None:
        """The dearest rate of these kinds up to this prompt length; None if one has no rate."""
        for above, _ in self._tables:
            if prompt_tokens > above:
                key = (above, kinds)
                if key not in self._bounds:
                    self._bounds[key] = self._dearest(above, kinds)
                return self._bounds[key]
        return self.bound(0, kinds)

    def _dearest(self, level: int, kinds: frozenset[str]) -> int | None:
        """Over every tier up to `level`: a shorter prompt must not cost more than its bound."""
        wanted = [index for index, kind in enumerate(KINDS) if kind in kinds]
        met = [rates[index] for above, rates in self._tables if above <= level for index in wanted]
        known = [rate for rate in met if rate is not None]
        return None if len(known) < len(met) else max(known)

    @property
    def scale(self) -> int:
        """How many of `table`'s units make one micro-dollar: a power of ten."""
        return 10**self._places

    @property
    def places(self) -> int:
        """How many decimal places of a dollar the units of `table` have."""
        return self._places + 6

    def flat(self, amount: Decimal) -> int:
        """A dollar amount of this price in the units of `table`."""
        return (self._whole(amount) or 0) * MICROS_PER_DOLLAR if amount else 0

    def scaled(self, factor: Decimal, source: str, at: date | None) -> ModelPrice:
        """This price with every amount multiplied: a discount or a surcharge."""

        def times(rates: Rates) -> Rates:
            return Rates(
                **{
                    item.name: None
                    if (rate := getattr(rates, item.name)) is None
                    else rate * factor
                    for item in fields(Rates)
                }
            )

        return ModelPrice(
            self.model,
            times(self.rates),
            tuple(Tier(tier.above_input_tokens, times(tier.rates)) for tier in self.tiers),
            self.per_request * factor,
            {tool: each * factor for tool, each in self.per_tool.items()},
            self.free,
            source,
            at or self.date,
            (*self.notes, f"{factor} times the price of {self.source}"),
            {name: price.scaled(factor, source, at) for name, price in self.variants.items()},
            self.context_tokens,
        )


class PriceBook(Protocol):
    """Where prices come from."""

    def price(
        self, model: str, provider: str | None = None, at: date | None = None
    ) -> ModelPrice | None:
        """The price of a model.

        Args:
            model: the model's name as the host or the provider gives it.
            provider: who serves it, if known; None infers it from the name.
            at: the day of the call; None is today.

        Returns:
            The price, or None if it is unknown. Unknown is not free.
        """
        ...

"""What to do where a price is unknown or old: refuse, warn, or take a price that was given for it.

Unknown is never 0. With a dollar cap the default is to refuse, because a cap over an unknown price
is none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date
from decimal import Decimal
from typing import Literal, NamedTuple, TypeAlias

from shearpin.errors import ConfigError, PriceUnknownError
from shearpin.pricing.catalogue import Catalogue, today
from shearpin.pricing.model import ModelPrice, PriceBook, Rates

__all__ = ["STALE_AFTER_DAYS", "Priced", "Pricing", "UnknownPrice"]

STALE_AFTER_DAYS = 120
"""Age in days at which a price is called old. Providers change list prices about twice a year."""

UnknownPrice: TypeAlias = Literal["refuse", "warn"] | ModelPrice | Mapping[str, Decimal | str]

_WARNED = 1024


class Priced(NamedTuple):
    """An answer: the price, and what has to be said about it, once."""

    price: ModelPrice | None
    warnings: tuple[str, ...] = ()


class Pricing:
    """Finds the price of a call and decides where there is none.

    Safe to share between threads. Each warning is given once for a model or a source, for at most
    1,024 of them.

    Args:
        book: where prices come from; None is the catalogue of list prices.
        unknown_price: `refuse` raises where a dollar cap is set; `warn` goes on, and the cost is
            unknown; a price, or its rates as a mapping, stands in for every unknown one.
        stale_after_days: age in days at which a price is warned about, 1 or more; None takes the
            book's own, or 120. Providers change list prices about twice a year.
        day: returns today.

    Raises:
        ConfigError: an unknown policy, or a wrong rate.

    Example:
        >>> pricing = Pricing(unknown_price={"input": "3", "output": "15"})
        >>> pricing.find("our-own-model", usd_capped=True).price.rates.input
        Decimal('3')
    """

    def __init__(
        self,
        book: PriceBook | None = None,
        *,
        unknown_price: UnknownPrice = "refuse",
        stale_after_days: int | None = None,
        day: Callable[[], date] = today,
    ) -> None:
        self.book: PriceBook = Catalogue(day=day) if book is None else book
        self._policy, self._stand_in = _checked(unknown_price)
        own: object = getattr(self.book, "stale_after_days", None)
        days = stale_after_days or (own if isinstance(own, int) else STALE_AFTER_DAYS)
        if days < 1:
            raise ConfigError(f"stale_after_days must be 1 or more, not {days!r}")
        self._stale_after_days = days
        self._day = day
        self._warned: set[str] = set()

    def find(
        self,
        model: str | None,
        provider: str | None = None,
        *,
        usd_capped: bool,
        at: date | None = None,
    ) -> Priced:
        """The price of a call to a model.

        Args:
            model: its name; None where the host names none.
            provider: who serves it, if known.
            usd_capped: whether a dollar cap has to hold for the call.
            at: the day of the call; None is today.

        Raises:
            PriceUnknownError: the price is unknown, a dollar cap is set, and the policy refuses.
        """
        day = self._day()
        price = None if model is None else self.book.price(model, provider, at or day)
        if price is None:
            return self._unknown(model, provider, usd_capped)
        if price.date is None or (day - price.date).days <= self._stale_after_days:
            return Priced(price)
        return Priced(price, self._stale(price, price.date, day))

    def _unknown(self, model: str | None, provider: str | None, usd_capped: bool) -> Priced:
        key = f"unknown {model} {provider} {usd_capped}"
        if self._stand_in is not None:
            said = f"no price is known for {_named(model, provider)}; the given one stands in"
            return Priced(self._stand_in, self._once(key, said))
        if usd_capped and self._policy == "refuse":
            raise PriceUnknownError(self._refusal(model, provider))
        said = (
            f"no price is known for {_named(model, provider)}: its cost is left out, "
            "and totals are marked incomplete"
        )
        return Priced(None, self._once(key, said))

    def _refusal(self, model: str | None, provider: str | None) -> str:
        name = model or "MODEL"
        suggest = getattr(self.book, "closest", None)
        alike: list[str] = list(suggest(name, provider)) if model and suggest else []
        hint = f" Known names that are spelt alike: {', '.join(alike)}." if alike else ""
        return (
            f"no price is known for {_named(model, provider)}, and a dollar cap is set. "
            f'Give it one in a price file, [models."{name}"] with input, output and date, or, if '
            f"it is a deployment, an ARN or an alias, say there what it stands for: [aliases] "
            f'"{name}" = "provider/model"; and name the file: Guard(prices="prices.toml"). '
            'unknown_price={"input": "...", "output": "..."} stands in for every unknown price, '
            f'unknown_price="warn" goes on without counting it.{hint}'
        )

    def _stale(self, price: ModelPrice, right: date, day: date) -> tuple[str, ...]:
        said = (
            f"prices from {price.source} are {(day - right).days} days old ({right.isoformat()}), "
            f"more than {self._stale_after_days}; update the source, or confirm them with a new "
            "date"
        )
        return self._once(f"stale {price.source}", said)

    def _once(self, key: str, said: str) -> tuple[str, ...]:
        if key in self._warned or len(self._warned) >= _WARNED:
            return ()
        self._warned.add(key)
        return (said,)


def _checked(policy: UnknownPrice) -> tuple[str, ModelPrice | None]:
    if isinstance(policy, ModelPrice):
        return "price", policy
    if isinstance(policy, Mapping):
        price = ModelPrice("unknown models", Rates.of(**policy), source="unknown_price")
        if price.rates.input is None or price.rates.output is None:
            raise ConfigError("unknown_price needs both an input and an output rate")
        return "price", price
    if policy not in ("refuse", "warn"):
        raise ConfigError(
            f"unknown_price must be 'refuse', 'warn', a ModelPrice, or its rates such as "
            f'{{"input": "3", "output": "15"}}, not {policy!r}'
        )
    return policy, None


def _named(model: str | None, provider: str | None) -> str:
    if model is None:
        return "a model that the host does not name"
    return f"model {model!r} of {provider!r}" if provider else f"model {model!r}"

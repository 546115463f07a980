"""Rates per million tokens, by kind, and what a missing one falls back to.

A rate that is missing is not zero: it is the rate of the wider kind, and at last unknown.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TypeAlias

from shearpin.errors import ConfigError
from shearpin.pricing.money import dollars

__all__ = ["KINDS", "Amount", "Rates", "Tier"]

Amount: TypeAlias = Decimal | str | int

_FALLBACKS: dict[str, tuple[str, ...]] = {
    "input": (),
    "cache_read": ("input",),
    "cache_write_5m": ("input",),
    "cache_write_1h": ("cache_write_5m", "input"),
    "audio_input": ("input",),
    "audio_cache_read": ("audio_input", "cache_read", "input"),
    "image_input": ("input",),
    "image_cache_read": ("image_input", "cache_read", "input"),
    "output": (),
    "reasoning": ("output",),
    "audio_output": ("output",),
    "image_output": ("output",),
}

KINDS = tuple(_FALLBACKS)
"""The kinds of tokens that can have a rate of their own. No token is of two kinds."""


@dataclass(frozen=True, slots=True)
class Rates:
    """US dollars per million tokens of each kind; None takes the rate it falls back to.

    Attributes:
        input: prompt tokens that no other rate covers.
        cache_read: prompt tokens read from the provider's cache; falls back to `input`.
        cache_write_5m: prompt tokens written to the cache for five minutes, or for the provider's
            only duration; falls back to `input`.
        cache_write_1h: prompt tokens written for one hour; falls back to `cache_write_5m`.
        audio_input: audio in the prompt; falls back to `input`.
        audio_cache_read: audio read from the cache; falls back to `audio_input`, then `cache_read`.
        image_input: images in the prompt; falls back to `input`.
        image_cache_read: images read from the cache; as for audio.
        output: answer tokens that no other rate covers.
        reasoning: thinking tokens; falls back to `output`.
        audio_output: spoken answers; falls back to `output`.
        image_output: drawn answers; falls back to `output`.
    """

    input: Decimal | None = None
    cache_read: Decimal | None = None
    cache_write_5m: Decimal | None = None
    cache_write_1h: Decimal | None = None
    audio_input: Decimal | None = None
    audio_cache_read: Decimal | None = None
    image_input: Decimal | None = None
    image_cache_read: Decimal | None = None
    output: Decimal | None = None
    reasoning: Decimal | None = None
    audio_output: Decimal | None = None
    image_output: Decimal | None = None

    def __post_init__(self) -> None:
        for kind in KINDS:
            rate = getattr(self, kind)
            if rate is not None:
                object.__setattr__(self, kind, dollars(rate, f"rate {kind}"))

    @classmethod
    def of(cls, **rates: Amount | None) -> Rates:
        """Rates from strings or decimals. `cache_write` is another name of `cache_write_5m`."""
        given = dict(rates)
        if "cache_write" in given:
            generic = given.pop("cache_write")
            if given.get("cache_write_5m") is None:
                given["cache_write_5m"] = generic
        unknown = sorted(given.keys() - set(KINDS))
        if unknown:
            raise ConfigError(f"there is no rate {unknown[0]!r}; rates are: {', '.join(KINDS)}")
        return cls(**{k: dollars(v, f"rate {k}") for k, v in given.items() if v is not None})

    def over(self, base: Rates) -> Rates:
        """These rates, and those of `base` where these say nothing."""
        return Rates(
            **{
                kind: own if (own := getattr(self, kind)) is not None else getattr(base, kind)
                for kind in KINDS
            }
        )

    def rate(self, kind: str) -> Decimal | None:
        """The rate of a kind, or the one that it falls back to; None if there is none."""
        for name in (kind, *_FALLBACKS[kind]):
            found: Decimal | None = getattr(self, name)
            if found is not None:
                return found
        return None


@dataclass(frozen=True, slots=True)
class Tier:
    """Rates for long prompts: for the whole request, once the prompt is longer than a threshold.

    Attributes:
        above_input_tokens: the prompt, cached parts included, has to be *longer* than this.
        rates: what changes; kinds that are left out keep the base rate.
    """

    above_input_tokens: int
    rates: Rates

    def __post_init__(self) -> None:
        if type(self.above_input_tokens) is not int or self.above_input_tokens < 0:
            raise ConfigError(
                f"above_input_tokens must be a whole number, not {self.above_input_tokens!r}"
            )

"""What the model calls of a run cost, and what has to be said about that, once."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import NamedTuple

from shearpin.adapters.money.settling import Outcome, estimated
from shearpin.adapters.places import Place
from shearpin.core.books import Exhausted
from shearpin.core.budget import describe
from shearpin.core.estimate import Estimate
from shearpin.ledgers.requests import Bill
from shearpin.pricing import ModelPrice, Pricing, TokenUsage, cost

__all__ = ["PricedCall", "Till"]

logger = logging.getLogger("shearpin")

_MOST_NOTES = 50
_MOST_LOGGED = 1_000
_LOGGED: set[str] = set()


class PricedCall(NamedTuple):
    """A model call under way.

    Attributes:
        call: its identity when its task is re-executed.
        place: where it is made.
        provider: who serves it.
        price: None where it is not known.
        tier: the service tier that it asked for.
        until: when it has to end, and the limit that says so.
    """

    call: str
    place: Place
    provider: str | None
    price: ModelPrice | None
    tier: str | None
    until: tuple[float, Exhausted] | None = None


@dataclass(slots=True)
class Till:
    """Prices, bills and counts of one run.

    Attributes:
        pricing: of model calls.
        capped: whether a dollar limit has to hold.
        estimated, cached, unpriced, unbounded: model calls of each kind so far.
        notes: what had to be said, each thing once.
    """

    pricing: Pricing
    capped: bool
    estimated: int = 0
    cached: int = 0
    unpriced: int = 0
    unbounded: int = 0
    notes: dict[str, None] = field(default_factory=dict[str, None])

    def price(self, model: str | None, provider: str | None) -> ModelPrice | None:
        """The price of a model; None where it is unknown and that is allowed.

        Raises:
            PriceUnknownError: it is not.
        """
        priced = self.pricing.find(model, provider, usd_capped=self.capped)
        for warning in priced.warnings:
            if self.capped:
                self.note(warning)
            else:  # nobody has asked for dollars
                logger.debug("shearpin: %s", warning)
        return priced.price

    def guessed(self, outcome: Outcome, expected: Estimate | None, call: PricedCall) -> TokenUsage:
        """Usage that was not reported, from the texts; never above what the answer could have."""
        self.estimated += 1
        self.note(
            "no usage was reported for some model calls, so it was estimated from the texts; for "
            "streams, set stream_usage=True where the client has it"
        )
        usage = estimated(outcome, expected.input_tokens if expected else 0, call.provider)
        if expected is not None and expected.bounded:
            return usage._replace(output=min(usage.output, expected.output_tokens))
        return usage

    def bill(self, usage: TokenUsage, call: PricedCall, *, steps: int) -> Bill:
        """What a usage comes to; what has no price is counted as unpriced, never as free."""
        usd = 0
        if call.price is None:
            self.unpriced += 1
        else:
            if usage.service_tier is None and call.tier is not None:
                usage = usage._replace(service_tier=call.tier)
            found = cost(usage, call.price)
            usd = found.micros or 0
            if not found.complete:
                self.unpriced += 1
        return Bill(usage.prompt_tokens, usage.answer_tokens, usd, usage.estimated, steps)

    def note_late(self, call: PricedCall, now: float) -> None:
        """Tell of a call that went on after its time was up: it could not be cut off."""
        if call.until is not None and now > call.until[0]:
            limit = describe(call.until[1].dimension, call.until[1].limit)
            self.note(
                f"a model call of {call.place.node or call.place.agent!r} went on after its time "
                f"({limit}) was up; only asynchronous calls and streams can be cut off"
            )

    def note(self, text: str) -> None:
        """Something that has to be said once: in the report of each run, and in the log."""
        if text not in self.notes and len(self.notes) < _MOST_NOTES:
            self.notes[text] = None
            if text not in _LOGGED and len(_LOGGED) < _MOST_LOGGED:
                _LOGGED.add(text)
                logger.warning("shearpin: %s", text)

"""How long an answer may become with what is left, decided before the call is made.

Contract: a limit is only ever lowered, and only where what is left makes that necessary. Where not
even a short answer fits, nothing is changed: the call layer refuses the call.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from langchain_core.messages import BaseMessage

from shearpin.adapters.money.costs import at_most
from shearpin.adapters.money.prompts import output_bound
from shearpin.adapters.money.spending import Spending
from shearpin.adapters.money.starting import speaker_of
from shearpin.adapters.places import Place
from shearpin.core.account import Account
from shearpin.core.books import Exhausted
from shearpin.core.reserve import LANDING_OUTPUT, RESERVED
from shearpin.core.room import output_room
from shearpin.errors import PriceUnknownError

__all__ = ["Clamp", "clamp_for", "name_of_limit"]

_LEAST_ANSWER = 16
_NAMES = {"google": "max_output_tokens", "ollama": "num_predict"}


class Clamp(NamedTuple):
    """What a call has to be told.

    Attributes:
        tokens: the new limit of its answer; None where it keeps its own.
        landing: the limit that makes this the last answer, if it is.
    """

    tokens: int | None = None
    landing: Exhausted | None = None


def name_of_limit(provider: str | None) -> str:
    """The argument in which a provider's client takes the limit of an answer."""
    for known, name in _NAMES.items():
        if (provider or "").startswith(known):
            return name
    return "max_tokens"


def clamp_for(
    spending: Spending,
    messages: Sequence[BaseMessage],
    params: Mapping[str, object],
    metadata: Mapping[str, object],
    place: Place,
) -> Clamp:
    """How a model call has to be limited so that it fits into what is left.

    Args:
        spending: the budget.
        messages: the prompt.
        params: how the model would be invoked: its limit, the tools it is offered.
        metadata: LangChain's names of model and provider.
        place: where the call is made.
    """
    purse, account = spending.purse, spending.purse.account
    purse.fits = True
    model, provider = metadata.get("ls_model_name"), metadata.get("ls_provider")
    name = model if isinstance(model, str) else None
    vendor = provider if isinstance(provider, str) else None
    try:
        price = spending.till.price(name, vendor)
    except PriceUnknownError:
        return Clamp()
    cost = None if price is None else at_most(price, params, messages, vendor, None)
    speaker = speaker_of(place, name)
    guess = spending.prompts.measure(speaker, messages, params.get("tools"), vendor, name)
    into = int(purse.learner.prompt(speaker, guess) * 1.02) + 16
    bound = output_bound(params, metadata, name)
    usual = purse.learner.answer(speaker, bound.tokens)
    likely = usual if purse.learner.knows(speaker) else min(bound.tokens, LANDING_OUTPUT)
    purse.refresh()
    last = _last_call(account)
    growth = purse.learner.growth(speaker)
    answer = max(likely, LANDING_OUTPUT)
    room = output_room(account, into, cost, growth=growth, answer=answer)
    if room >= likely and last is None:
        return Clamp(room if room < bound.tokens else None)
    room = output_room(account, into, cost)
    if room < _LEAST_ANSWER:
        return Clamp()
    tokens = room if room < bound.tokens else None
    return Clamp(tokens, last or _scarcest(account) if place.agent == "main" else None)


def _last_call(account: Account) -> Exhausted | None:
    """The limit in calls or steps that allows one more."""
    for book in reversed(account.books):
        for name in ("model_calls", "steps"):
            limit = book.limits.get(name)
            spent, held = book.spent.get(name, 0), book.held.get(name, 0)
            if limit is not None and limit > 1 and spent + held == limit - 1:
                return Exhausted(name, book.budget.per, limit, spent, held, key=book.key)
    return None


def _scarcest(account: Account) -> Exhausted | None:
    """The limit of which the largest part is used."""
    found = [
        (book.spent.get(name, 0) / limit, book, name, limit)
        for book in account.books
        for name, limit in book.limits.items()
        if name in RESERVED and limit
    ]
    if not found:
        return None
    _, book, name, limit = max(found, key=lambda each: each[0])
    return Exhausted(name, book.budget.per, limit, book.spent.get(name, 0), key=book.key)

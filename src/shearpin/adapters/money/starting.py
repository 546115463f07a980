"""A model call that is about to be made, and what is asked of a budget for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from langchain_core.messages import BaseMessage, HumanMessage

from shearpin.adapters.money.costs import at_most
from shearpin.adapters.money.prompts import output_bound
from shearpin.adapters.money.rulings import Refused
from shearpin.adapters.money.till import PricedCall
from shearpin.adapters.places import Place
from shearpin.errors import PriceUnknownError
from shearpin.ledgers.requests import ModelRequest

if TYPE_CHECKING:
    from shearpin.adapters.money.spending import Spending

__all__ = ["ModelStart", "request_for", "speaker_of"]


class ModelStart(NamedTuple):
    """A model call that is about to be made.

    Attributes:
        id: LangChain's, of this very provider call.
        prompt: messages, or a text for a completion model.
        params: how the model is invoked: its limit, the tools it is offered.
        metadata: LangChain's names of model and provider, and LangGraph's of the place.
        place: where it is made.
        call: its identity when its task is re-executed.
        step: the session's.
        spending: the budget that it is asked of.
    """

    id: UUID
    prompt: Sequence[BaseMessage] | str
    params: Mapping[str, object] | None
    metadata: Mapping[str, object]
    place: Place
    call: str
    step: int
    spending: Spending


def request_for(start: ModelStart, calls: dict[str, PricedCall]) -> ModelRequest | Refused | None:
    """What is asked of the budget; what is needed to settle the call goes into `calls`.

    `Refused` where there is no price for it, None where it is let pass and not counted.
    """
    spending, place = start.spending, start.place
    params = start.params or {}
    model, provider = _text(start.metadata, "ls_model_name"), _text(start.metadata, "ls_provider")
    prompt = start.prompt
    messages = [HumanMessage(prompt)] if isinstance(prompt, str) else prompt
    tier = _text(params, "service_tier")
    try:
        price = spending.till.price(model, provider)
    except PriceUnknownError as error:
        spending.till.note(str(error))
        return spending.rulings.unpriced(model, place, start.step)
    calls[str(start.id)] = PricedCall(start.call, place, provider, price, tier)
    speaker = speaker_of(place, model)
    bound = output_bound(params, start.metadata, model)
    guess = spending.prompts.measure(speaker, messages, params.get("tools"), provider, model)
    trouble = spending.compactions.look(place.agent, speaker, guess)
    if trouble is not None:
        spending.till.note(trouble)
    return ModelRequest(
        str(start.id),
        speaker,
        guess,
        bound.tokens,
        bounded=bound.certain,
        cost=None if price is None else at_most(price, params, messages, provider, tier),
        agent=place.agent,
        last=place.agent == "main" and not spending.nested,
        steps=int(spending.funds.first_time(start.call)),
    )


def speaker_of(place: Place, model: str | None) -> str:
    """Whose prompts resemble each other: a model in one place of the tree."""
    return f"{place.agent}|{place.node}|{model}"


def _text(values: Mapping[str, object], name: str) -> str | None:
    value = values.get(name)
    return value if isinstance(value, str) and value else None

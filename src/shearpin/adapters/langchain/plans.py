"""What a resilient model knows: its boundary, its fallbacks, and the run that a call is part of.

Contract: within a guarded run with an error boundary a call is counted there; within another run,
in a tally of that run; outside of any, in one of its own. Nothing here is shared between calls but
the tallies of runs, of which the latest are kept.
"""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, TypeVar

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, convert_to_messages
from langchain_core.runnables import Runnable

from shearpin.adapters.boundary.answers import as_answer, fault_words, is_usable, lost_answer, noted
from shearpin.adapters.boundary.attempts import ATTEMPT, listened_to
from shearpin.adapters.boundary.bounds import Bounds, shared_of
from shearpin.adapters.boundary.modelcalls import Exchange, Outcome, opened
from shearpin.adapters.calls import current_run
from shearpin.adapters.langchain.attempted import Shortening
from shearpin.adapters.langchain.tenancy import ambient_config
from shearpin.adapters.places import place_of
from shearpin.adapters.run import Run
from shearpin.boundary.boundary import Boundary
from shearpin.boundary.endings import FAMILY
from shearpin.boundary.modelcalls import Fault, UselessAnswer, type_of
from shearpin.boundary.tally import RunErrors
from shearpin.switch import SWITCH

__all__ = ["AnyRunnable", "Plan", "Prompt", "generic", "messages_of", "prompt_of"]

T = TypeVar("T")
logger = logging.getLogger("shearpin")
AnyRunnable = Runnable[Any, Any]

_MOST_RUNS = 256
_GENERIC: Final = ("max_tokens", "temperature", "top_p")
"""Arguments of a call that other providers' clients understand as well."""


@dataclass(frozen=True, eq=False)
class Plan:
    """What is done about failures of one model.

    Attributes:
        boundary: the recipe; None: that of the run, or the defaults.
        language: of what models and users read, outside of a run with a boundary.
        raises: whether an error is raised where there is no usable answer.
        others: the fallbacks, bound as the model is.
        own: arguments that binding has put into the model's calls, for this model only.
        joins: whether it does anything only as a part of a run with a boundary.
    """

    boundary: Boundary | None
    language: Literal["en", "zh"]
    raises: bool
    others: tuple[AnyRunnable, ...] = ()
    own: frozenset[str] = frozenset()
    joins: bool = False

    def bounds(self) -> tuple[Run | None, Bounds]:
        """The run that this code belongs to, and the boundary of its calls."""
        run = current_run()
        if run is not None and run.boundary is not None:
            bounds = run.boundary
            if self.boundary is not None:
                bounds = replace(bounds, boundary=self.boundary)
        else:
            bounds = _kept(run, self)
        if ATTEMPT.get() is not None:  # somebody else tries again; here are only other models
            recipe = bounds.boundary
            once = replace(
                recipe,
                retries=replace(recipe.retries, attempts=1),
                answers=replace(recipe.answers, again=0),
            )
            bounds = replace(bounds, boundary=once)
        return run, bounds

    def opens(self) -> bool:
        """Whether there is anything to be done about a failure in this place."""
        if ATTEMPT.get() is not None and (self.joins or not self.others):
            return False
        run = current_run()
        if SWITCH.is_off():
            return False
        if run is None or run.boundary is None:
            return not self.joins
        place = place_of(ambient_config().get("metadata"))
        return run.boundary.acts(node=place.node)


class _Kept:
    """The boundaries of the latest runs that have none of their own."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.bounds: OrderedDict[tuple[str, int], Bounds] = OrderedDict()


_KEPT: Final = _Kept()
_DEFAULTS: Final = Boundary()


def _kept(run: Run | None, plan: Plan) -> Bounds:
    boundary = plan.boundary or _DEFAULTS
    if run is None:
        return _fresh(boundary, plan.language, "")
    key = (run.id, id(boundary))
    with _KEPT.lock:
        found = _KEPT.bounds.get(key)
        if found is None:
            found = _KEPT.bounds[key] = _fresh(boundary, plan.language, run.id)
            found.now = run.now
            if len(_KEPT.bounds) > _MOST_RUNS:
                _KEPT.bounds.popitem(last=False)
        return found


def _fresh(boundary: Boundary, language: Literal["en", "zh"], thread: str) -> Bounds:
    tally = RunErrors(boundary.error_budget, boundary.retries.per_run)
    return Bounds(boundary, shared_of(boundary), tally, thread, language=language)


class Prompt:
    """One call of a resilient model.

    Args:
        plan: of the model.
        model: the model itself, as it would be called without us.
        messages: what it is asked.
        callbacks: of the call.
    """

    def __init__(
        self,
        plan: Plan,
        model: AnyRunnable,
        messages: Sequence[BaseMessage],
        callbacks: object,
        read: Any,
    ) -> None:
        run, bounds = plan.bounds()
        models = [model, *plan.others]
        ambient = ambient_config().get("callbacks")
        self.plan = plan
        self.bounds = bounds
        self.exchange: Exchange[Any] = Exchange(
            opened(bounds, models),
            bounds,
            run,
            models,
            read,
            listened_to(callbacks) or listened_to(ambient),
        )
        self.shortening = Shortening(messages, bounds, lambda: self.exchange.said)

    def lost(self, outcome: Outcome[Any]) -> AIMessage:
        """What is answered where no model has; raises the model's own error where that is asked."""
        failure = outcome.failure
        assert failure is not None
        if self.plan.raises:
            raise outcome.error or UselessAnswer(failure.message, failure.error_type)
        message = lost_answer(failure, self.bounds.language, outcome.text)
        reason = f"{FAMILY}:{failure.error_type}"
        return noted(message, {"reason": reason, **(outcome.record or {})})

    def taken(self, message: BaseMessage, outcome: Outcome[Any]) -> BaseMessage:
        """An answer, with what happened on the way; raises where it is of no use at all."""
        fault: Fault | None = outcome.fault
        told = dict(outcome.record or {})
        if fault is not None and self.bounds.boundary.answers.again:
            if not is_usable(message, fault):
                if self.plan.raises:
                    raise UselessAnswer(fault_words(fault), type_of(fault))
                if isinstance(message, AIMessage):
                    message = as_answer(message, fault, self.bounds.language)
            told["fault"] = fault
        if not told or not isinstance(message, AIMessage):
            return message
        return noted(message, told)


def prompt_of(
    plan: Plan,
    model: AnyRunnable,
    messages: Callable[[], Sequence[BaseMessage]],
    callbacks: object,
    read: Any,
) -> Prompt | None:
    """A call under a plan; None where nothing is to be done about its failures, or we have failed:
    then it is made as it is."""
    try:
        return Prompt(plan, model, messages(), callbacks, read) if plan.opens() else None
    except Exception as error:
        run = current_run()
        if run is not None:
            run.fault("boundary.model", error)
        else:
            logger.warning("shearpin: a model is asked without its boundary: %r", error)
        return None


def generic(kwargs: Mapping[str, Any], own: Iterable[str]) -> dict[str, Any]:
    """The arguments of a call that go to another model as well."""
    own = frozenset(own)
    return {name: kwargs[name] for name in _GENERIC if name in kwargs and name not in own}


def messages_of(input: object) -> list[BaseMessage]:
    """A model's input as messages."""
    if isinstance(input, str):
        return [HumanMessage(input)]
    inner: Any = input
    if hasattr(inner, "to_messages"):
        return list(inner.to_messages())
    return convert_to_messages(inner)

"""A middleware's model calls under an error boundary: each is one exchange, with all its attempts.

Contract: a call in which nothing fails is made as it came, and its answer is passed on as it is.
Where there is no usable answer, one message ends the agent, or the model's own error is raised. A
fault of ours makes the call as it is.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage

from shearpin.adapters.boundary.answers import as_answer, lost_answer, noted
from shearpin.adapters.boundary.attempts import ATTEMPT, listened_to
from shearpin.adapters.boundary.bounds import Bounds
from shearpin.adapters.boundary.exhaustion import too_much_failed, wrap_up_note
from shearpin.adapters.boundary.modelcalls import (
    Exchange,
    Outcome,
    adrive,
    drive,
    finished,
    opened,
    read_message,
)
from shearpin.adapters.langchain.attempted import Shortening, request_for_fallback
from shearpin.adapters.langchain.tenancy import ambient_config
from shearpin.adapters.messages import unanswered
from shearpin.adapters.places import place_of
from shearpin.adapters.run import Run
from shearpin.boundary.endings import FAMILY
from shearpin.boundary.modelcalls import Ask, UselessAnswer
from shearpin.recipe import Guard

__all__ = ["acalled", "aenduring", "called", "enduring"]

if TYPE_CHECKING:
    from shearpin.adapters.langchain.requests import AnyRequest, AnyResponse

    Handler = Callable[[AnyRequest], AnyResponse]
    AsyncHandler = Callable[[AnyRequest], Awaitable[AnyResponse]]

H = TypeVar("H", bound=Callable[..., Any])
logger = logging.getLogger("shearpin")


class _Call(NamedTuple):
    """A model call under the boundary of a run.

    Attributes:
        alone: whether no guard ends the run where too much has failed.
        raises: whether the model's own error is raised where there is no usable answer.
    """

    bounds: Bounds
    request: AnyRequest
    exchange: Exchange[AnyResponse]
    shortening: Shortening
    alone: bool
    raises: bool

    def asked(self, step: Ask, messages: Sequence[BaseMessage]) -> AnyRequest:
        """The request of an attempt."""
        request = self.request
        if step.target > 0:
            model = cast("BaseChatModel", self.exchange.models[step.target])
            request = request_for_fallback(request, model)
        if step.target == 0 and messages is self.shortening.whole:
            return request
        return request.override(messages=cast("Any", list(messages)))


def called(
    run: Run, request: AnyRequest, handler: Handler, *, alone: bool, raises: bool = False
) -> AnyResponse:
    """Make a model call under the boundary of a run.

    Args:
        run: that has one.
        request: as it came.
        handler: makes a call.
        alone: whether no guard ends the run where too much has failed, so that this has to.
        raises: whether the model's own error is raised where there is no usable answer.
    """
    call = _begun(run, request, alone, raises)
    if call is None:
        return handler(request)

    def prepare(step: Ask) -> Callable[[], AnyResponse]:
        asked = call.asked(step, call.shortening.messages(step))
        return lambda: handler(asked)

    outcome = drive(call.exchange, prepare, lambda: handler(request))
    return finished(call.bounds, outcome, lambda: _answer(call, outcome))


async def acalled(
    run: Run, request: AnyRequest, handler: AsyncHandler, *, alone: bool, raises: bool = False
) -> AnyResponse:
    """`called`, for asynchronous agents."""
    call = _begun(run, request, alone, raises)
    if call is None:
        return await handler(request)

    async def prepare(step: Ask) -> Callable[[], Awaitable[AnyResponse]]:
        asked = call.asked(step, await call.shortening.amessages(step))
        return lambda: handler(asked)

    outcome = await adrive(call.exchange, prepare, lambda: handler(request))
    return finished(call.bounds, outcome, lambda: _answer(call, outcome))


def enduring(guard: Guard, run: Run, handler: H) -> H:
    """A guard's handler whose calls endure failures, where the guard has a boundary."""
    if guard.boundary is None:
        return handler
    return cast("H", lambda request: called(run, request, handler, alone=False))  # pyright: ignore[reportUnknownLambdaType,reportUnknownArgumentType]


def aenduring(guard: Guard, run: Run, handler: H) -> H:
    """`enduring`, for asynchronous agents."""
    if guard.boundary is None:
        return handler
    return cast("H", lambda request: acalled(run, request, handler, alone=False))  # pyright: ignore[reportUnknownLambdaType,reportUnknownArgumentType]


def _begun(run: Run, request: AnyRequest, alone: bool, raises: bool) -> _Call | None:
    """The call under the boundary; None where that is not to act, or somebody else tries again."""
    bounds = run.boundary
    if bounds is None or ATTEMPT.get() is not None:
        return None
    try:
        config = ambient_config()
        if not bounds.acts(node=place_of(config.get("metadata")).node):
            return None
        models = [request.model, *bounds.boundary.models]
        exchange: Exchange[AnyResponse] = Exchange(
            opened(bounds, models),
            bounds,
            None if alone else run,
            models,
            lambda answer: read_message(message_in(answer)),
            listened_to(config.get("callbacks")),
        )
        exchange.parses = request.response_format is not None
        ends = alone and bounds.tally.exhausted
        if ends:
            request = _last_request(request, bounds)
        messages = cast("list[BaseMessage]", request.messages)
        shortening = Shortening(messages, bounds, lambda: exchange.said)
        return _Call(bounds, request, exchange, shortening, alone, raises)
    except Exception as error:
        run.fault("boundary.model", error)
        return None


def _answer(call: _Call, outcome: Outcome[AnyResponse]) -> AnyResponse:
    bounds, language = call.bounds, call.bounds.language
    ends = call.alone and bounds.tally.exhausted
    answer = outcome.answer
    if answer is None:
        failure = outcome.failure
        assert failure is not None
        if call.raises:
            raise outcome.error or UselessAnswer(failure.message, failure.error_type)
        logger.warning("shearpin: no model has answered: %s", failure.message)
        bounds.tally.degraded("answered in its place", model=call.exchange.call.names[0])
        last = lost_answer(failure, language, outcome.text)
        reason = f"{FAMILY}:{failure.error_type}"
        if ends:
            halt = too_much_failed(bounds)
            last, reason = AIMessage(halt.message), halt.reason
        return noted(last, {"reason": reason, **(outcome.record or {})})
    message, told = message_in(answer), dict(outcome.record or {})
    useless = outcome.fault is not None and bounds.boundary.answers.again > 0
    if message is None or not (told or useless or ends):
        return answer
    if useless:
        message = as_answer(message, outcome.fault, language)
        told["fault"] = outcome.fault
    if ends:
        message, told["reason"] = (
            as_answer(message, None, language),
            too_much_failed(bounds).reason,
        )
    return _with_message(answer, noted(message, told))


def message_in(answer: AnyResponse) -> AIMessage | None:
    """The model's message in what a handler gave back."""
    if isinstance(answer, AIMessage):
        return answer
    inner: Any = getattr(answer, "model_response", answer)
    for message in cast("Sequence[object]", inner.result):
        if isinstance(message, AIMessage):
            return message
    return None


def _with_message(answer: AnyResponse, message: AIMessage) -> AnyResponse:
    if isinstance(answer, AIMessage):
        return message
    inner: Any = getattr(answer, "model_response", answer)
    result = [message if isinstance(one, AIMessage) else one for one in inner.result]
    changed = replace(inner, result=result)
    return changed if inner is answer else replace(cast("Any", answer), model_response=changed)


def _last_request(request: AnyRequest, bounds: Bounds) -> AnyRequest:
    """The request for the last answer of a run in which too much has failed: without tools."""
    messages = cast("list[BaseMessage]", request.messages)
    if unanswered(messages):
        return request.override(tools=[], tool_choice=None)
    note = wrap_up_note(bounds)
    told = cast("Any", [*messages, note])
    return request.override(messages=told, tools=[], tool_choice=None)

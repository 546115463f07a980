"""`ResilienceMiddleware`: the error boundary on `wrap_model_call` and `wrap_tool_call`.

Contract: it adds no step, and an agent in which nothing fails behaves as without it. A failed tool
call is answered; a failed model call is made again, elsewhere or shorter, and where nothing helps
the agent ends with a short, honest answer. Within a guarded run it works for that run: one tally,
one report, one budget that every attempt is held against. Control flow is never touched.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, cast

from langchain.agents.middleware.types import AgentMiddleware
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.tools import BaseTool
from langgraph.types import Command

from shearpin.adapters import toolcalls
from shearpin.adapters.answers import as_answer, lost_answer, noted
from shearpin.adapters.attempts import listened_to
from shearpin.adapters.bounds import Bounds, open_bounds
from shearpin.adapters.calls import current_run
from shearpin.adapters.exhaustion import too_much_failed, wrap_up_note
from shearpin.adapters.langchain.attempted import Shortening, request_for_fallback
from shearpin.adapters.langchain.tenancy import Tenancy, ambient_config
from shearpin.adapters.langgraph.wiring import annotated
from shearpin.adapters.messages import unanswered
from shearpin.adapters.modelcalls import Exchange, Outcome, adrive, drive, opened, read_message
from shearpin.adapters.reports import report_of
from shearpin.adapters.run import Run
from shearpin.boundary.boundary import Boundary
from shearpin.boundary.endings import FAMILY
from shearpin.boundary.modelcalls import Ask, UselessAnswer
from shearpin.core.tools import ToolFacts
from shearpin.errors import ConfigError
from shearpin.recipe import Guard
from shearpin.report.model import Report
from shearpin.switch import SWITCH

__all__ = ["ResilienceMiddleware"]

if TYPE_CHECKING:  # older versions of LangChain have fewer type parameters, or none
    from langchain.agents.middleware.types import ModelRequest, ModelResponse
    from langchain.tools.tool_node import ToolCallRequest

    AnyRequest = ModelRequest[Any]
    AnyResponse = ModelResponse[Any] | AIMessage
    _Middleware = AgentMiddleware[Any, Any, Any]
else:
    _Middleware = AgentMiddleware

logger = logging.getLogger("shearpin")

_NO_NODE: Final = ("\0",)
"""Matches no node: what a middleware does is about calls, not about nodes."""


class _Call(NamedTuple):
    """A model call under the boundary of a run."""

    run: Run
    bounds: Bounds
    request: AnyRequest
    exchange: Exchange[AnyResponse]
    shortening: Shortening

    def asked(self, step: Ask, messages: Sequence[BaseMessage]) -> AnyRequest:
        """The request of an attempt."""
        request = self.request
        if step.target > 0:
            model = cast("BaseChatModel", self.exchange.models[step.target])
            request = request_for_fallback(request, model)
        if step.target == 0 and messages is self.shortening.whole:
            return request
        return request.override(messages=cast("Any", list(messages)))


class ResilienceMiddleware(_Middleware):
    """An error boundary for an agent made by `create_agent`.

    Args:
        boundary: the recipe. None: one made of the options.
        on_failure: what follows where no model gives a usable answer: `answer` (default) ends the
            agent with a short, honest message, `raise` raises the model's own error.
        language: of what models and users read, `en` or `zh`.
        facts: what is known of tools, by name: only those that are declared read-only or idempotent
            are run again after a failure in which they may have acted. What tools say of themselves
            (MCP annotations) is known without that.
        options: the fields of `Boundary`, e.g. `models=[fallback]`.

    Put it after `GuardMiddleware`, and before LangChain's middleware that retries or falls back by
    itself, if there is any: what those give up on is handled here.

    Raises:
        ConfigError: an option is unknown or wrong.

    Example:
        >>> ResilienceMiddleware(error_budget=10).boundary.error_budget
        10
    """

    def __init__(
        self,
        boundary: Boundary | None = None,
        *,
        on_failure: Literal["answer", "raise"] = "answer",
        language: Literal["en", "zh"] = "en",
        facts: Mapping[str, ToolFacts] | None = None,
        **options: object,
    ) -> None:
        super().__init__()
        if on_failure not in ("answer", "raise"):
            raise ConfigError(f"on_failure must be 'answer' or 'raise', not {on_failure!r}")
        if boundary is not None and options:
            names = ", ".join(sorted(options))
            raise ConfigError(f"give a boundary or options, not both; put into it: {names}")
        self.boundary = boundary if boundary is not None else boundary_with(options)
        self._raises = on_failure == "raise"
        calls = replace(self.boundary, nodes=_NO_NODE, alternative={}, substitute={})
        self._guard = Guard(
            detectors=(), repair="off", language=language, boundary=calls, tools=dict(facts or {})
        )
        self._tenancy = Tenancy(self._guard)
        self._asked: set[str] = set()

    def report(self, thread: str | None = None) -> Report:
        """The report of the latest turn of a thread, or of all.

        Within a guarded run that run's report has it all, under `boundary`; this one is empty then.
        """
        return report_of(self._tenancy.latest(thread), self._guard.settings)

    # -- models -----------------------------------------------------------------------------------

    def wrap_model_call(
        self, request: AnyRequest, handler: Callable[[AnyRequest], ModelResponse[Any]]
    ) -> AnyResponse:
        """Call the model, again or another one where that helps, or answer in its place."""
        call = self._call_of(request)
        if call is None:
            return handler(request)
        shortening = call.shortening
        outcome = drive(
            call.exchange, lambda step: handler(call.asked(step, shortening.messages(step)))
        )
        return self._answer(call, outcome)

    async def awrap_model_call(
        self, request: AnyRequest, handler: Callable[[AnyRequest], Awaitable[ModelResponse[Any]]]
    ) -> AnyResponse:
        """`wrap_model_call`, for asynchronous agents."""
        call = self._call_of(request)
        if call is None:
            return await handler(request)
        shortening = call.shortening

        async def make(step: Ask) -> AnyResponse:
            return await handler(call.asked(step, await shortening.amessages(step)))

        return self._answer(call, await adrive(call.exchange, make))

    # -- tools ------------------------------------------------------------------------------------

    def wrap_tool_call(
        self,
        request: ToolCallRequest,
        handler: Callable[[ToolCallRequest], ToolMessage | Command[Any]],
    ) -> ToolMessage | Command[Any]:
        """Run a tool call; a failure becomes its answer."""
        found = self._run_of_tool(request)
        if found is None:
            return handler(request)
        run, config = found
        call, known = cast("Mapping[str, Any]", request.tool_call), request.tool is not None
        return toolcalls.around(run, lambda: handler(request), call, config, known)

    async def awrap_tool_call(
        self,
        request: ToolCallRequest,
        handler: Callable[[ToolCallRequest], Awaitable[ToolMessage | Command[Any]]],
    ) -> ToolMessage | Command[Any]:
        """`wrap_tool_call`, for asynchronous agents."""
        found = self._run_of_tool(request)
        if found is None:
            return await handler(request)
        run, config = found
        call, known = cast("Mapping[str, Any]", request.tool_call), request.tool is not None
        return await toolcalls.aaround(run, lambda: handler(request), call, config, known)

    # -- shared -----------------------------------------------------------------------------------

    def _call_of(self, request: AnyRequest) -> _Call | None:
        """The call under the boundary; None where it cannot be, and is then made as it is."""
        if SWITCH.is_off():
            return None
        try:
            run = current_run()
            guarded = run is not None
            if run is None:
                held = cast("Mapping[str, Any]", request.state).get("messages")
                run = self._tenancy.of_model_call(held or request.messages, ambient_config())
            bounds = self._bounds_of(run)
            if bounds is None or not bounds.acts():
                return None
            models = [request.model, *bounds.boundary.models]
            exchange: Exchange[AnyResponse] = Exchange(
                opened(bounds, models),
                bounds,
                run if guarded else None,
                models,
                lambda answer: read_message(message_in(answer)),
                listened_to(ambient_config().get("callbacks")),
            )
            exchange.parses = request.response_format is not None
            if not guarded and bounds.tally.exhausted:
                request = _last_request(request, bounds)
            messages = cast("list[BaseMessage]", request.messages)
            shortening = Shortening(messages, bounds, lambda: exchange.said)
            return _Call(run, bounds, request, exchange, shortening)
        except Exception as error:
            logger.warning("shearpin: the middleware could not find its run: %r", error)
            return None

    def _bounds_of(self, run: Run) -> Bounds | None:
        if run.boundary is None:
            open_bounds(run, self._guard)
        return run.boundary

    def _run_of_tool(self, request: ToolCallRequest) -> tuple[Run, Mapping[str, Any]] | None:
        if SWITCH.is_off():
            return None
        try:
            config = cast(
                "Mapping[str, Any]",
                getattr(cast("Any", request).runtime, "config", None) or ambient_config(),
            )
            self._learn(request.tool)
            run = current_run() or self._tenancy.of_tool_call(request.state, config)
            if run is None or self._bounds_of(run) is None:
                return None
            return run, config
        except Exception as error:
            logger.warning("shearpin: the middleware could not find its run: %r", error)
            return None

    def _learn(self, tool: BaseTool | None) -> None:
        """Take in what a tool says of itself."""
        known = self._guard.settings.tools
        if tool is None or tool.name in known or tool.name in self._asked:
            return
        self._asked.add(tool.name)
        facts = annotated(tool)
        if facts is not None:
            cast("dict[str, ToolFacts]", known)[tool.name] = facts

    def _answer(self, call: _Call, outcome: Outcome[AnyResponse]) -> AnyResponse:
        bounds, language = call.bounds, call.bounds.language
        ends = current_run() is None and bounds.tally.exhausted
        answer = outcome.answer
        if answer is None:
            failure = outcome.failure
            assert failure is not None
            if self._raises:
                raise outcome.error or UselessAnswer(failure.message)
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


def boundary_with(options: Mapping[str, object]) -> Boundary:
    """A boundary made of its fields, with a helpful error for a misspelt one."""
    known = [spec.name for spec in fields(Boundary)]
    for name in options:
        if name not in known:
            raise ConfigError(
                f"Boundary has no field {name!r}; it may be one of {', '.join(known)}"
            )
    return Boundary(**cast("dict[str, Any]", dict(options)))


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

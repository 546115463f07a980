"""`GuardMiddleware`: the guard on `wrap_model_call` and `wrap_tool_call`; it adds no step.

Contract: within a guarded graph it joins that graph's run, so that both together are one guard.
Alone it opens a run of its own per user turn. A stop is the model's last answer, without tool
calls, so the agent ends by its own rules and its after-hooks run; a blocked call is answered and
not run.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, cast

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langgraph.types import Command

from shearpin.adapters import toolcalls
from shearpin.adapters.boundary.bounds import boundary_of
from shearpin.adapters.calls import HANDLER, current_run
from shearpin.adapters.langchain.alone import Alone, check_alone, hear_answer
from shearpin.adapters.langchain.boundedmodels import aenduring, enduring
from shearpin.adapters.langchain.clamping import affordable
from shearpin.adapters.langchain.landing import (
    final_answer,
    final_request,
    with_other_model,
    without_tools,
)
from shearpin.adapters.langchain.requests import Middleware, config_of
from shearpin.adapters.langchain.tenancy import Tenancy, ambient_config
from shearpin.adapters.langgraph.subagents import SubAgents
from shearpin.adapters.langgraph.wiring import Children
from shearpin.adapters.mending import mend
from shearpin.adapters.messages import last_word, nudge_message, unanswered
from shearpin.adapters.models import models_of
from shearpin.adapters.money.metering import cut_in
from shearpin.adapters.money.paying import call_layer
from shearpin.adapters.places import place_of
from shearpin.adapters.reports import report_of, tripped
from shearpin.adapters.run import Run
from shearpin.adapters.signals import HardStop, stop_in
from shearpin.core.checks import instance
from shearpin.recipe import Guard, recipe_of
from shearpin.report.model import Report
from shearpin.switch import SWITCH
from shearpin.verdicts import Halt

__all__ = ["GuardMiddleware"]

if TYPE_CHECKING:
    from langchain.agents.middleware.types import ModelResponse
    from langchain.tools.tool_node import ToolCallRequest

    from shearpin.adapters.langchain.requests import AnyRequest, AnyResponse


class GuardMiddleware(Middleware):
    """A guard for an agent made by `create_agent`.

    Args:
        guard: the recipe. None: one made of the options.
        options: the fields of `Guard`, e.g. `mode="warn"`.

    Put it first, so that it is outermost: then a call that a retry or fallback middleware repeats
    counts once, and what they swallow does not hide a stop.

    Raises:
        ConfigError: an option is unknown or wrong.

    Example:
        >>> middleware = GuardMiddleware(mode="observe")
        >>> middleware.guard.mode
        'observe'
    """

    def __init__(self, guard: Guard | None = None, **options: object) -> None:
        super().__init__()
        if guard is not None:
            instance("guard", guard, Guard, "Guard(...) or None")
        self.guard = guard if guard is not None and not options else recipe_of(options)
        models_of(self.guard)
        check_alone(self.guard)
        self._tenancy = Tenancy(self.guard)
        boundary = boundary_of(self.guard)
        self._agents = SubAgents(Children.wanted, lambda it: Children(boundary).of(it))

    def report(self, thread: str | None = None) -> Report:
        """The report of the latest turn of a thread, or of all; empty in a guarded graph."""
        return report_of(self._tenancy.latest(thread), self.guard.settings)

    # -- models -----------------------------------------------------------------------------------

    def wrap_model_call(
        self, request: AnyRequest, handler: Callable[[AnyRequest], ModelResponse[Any]]
    ) -> AnyResponse:
        """Call the model under guard, or answer in its place if the run was stopped."""
        run = self._run_of(request)
        if run is None:
            return handler(request)
        handler = enduring(self.guard, run, handler)
        alone = Alone(run, request) if current_run() is None else None
        halt = run.stopped
        if halt is not None and alone is not None:
            halt = alone.paused(halt)
        if halt is None:
            with _within(run):
                try:
                    if alone is None:
                        return handler(affordable(run, _told(run, request)))
                    alone.begin()
                    while True:
                        answered = handler(affordable(run, _told(run, alone.request)))
                        taken = alone.takes(answered)
                        if taken is not None:
                            return taken
                except BaseException as error:
                    halt = stop_in(error)
                    if halt is None:
                        raise
            halt = halt if alone is None else alone.paused(halt) or halt
        final, answer = final_request(run, request, halt), None
        if final is not None:
            with _within(run):
                try:
                    answer = final_answer(run, handler(affordable(run, final)), halt)
                except (Exception, HardStop) as error:
                    if stop_in(error) is None:
                        run.fault("landing", error)
        return self._last_answer(run, halt) if answer is None else answer

    async def awrap_model_call(
        self, request: AnyRequest, handler: Callable[[AnyRequest], Awaitable[ModelResponse[Any]]]
    ) -> AnyResponse:
        """`wrap_model_call`, for asynchronous agents."""
        run = self._run_of(request)
        if run is None:
            return await handler(request)
        handler = aenduring(self.guard, run, handler)
        alone = Alone(run, request) if current_run() is None else None
        halt = run.stopped
        if halt is not None and alone is not None:
            halt = alone.paused(halt)
        if halt is None:
            with _within(run):
                try:
                    if alone is None:
                        return await handler(affordable(run, _told(run, request)))
                    await alone.abegin()
                    while True:
                        answered = await handler(affordable(run, _told(run, alone.request)))
                        taken = alone.takes(answered)
                        if taken is not None:
                            return taken
                except BaseException as error:
                    halt = stop_in(error) or cut_in(run, error)
                    if halt is None:
                        raise
            halt = halt if alone is None else alone.paused(halt) or halt
        final, answer = final_request(run, request, halt), None
        if final is not None:
            with _within(run):
                try:
                    answer = final_answer(run, await handler(affordable(run, final)), halt)
                except (Exception, HardStop) as error:
                    if stop_in(error) is None:
                        run.fault("landing", error)
        return self._last_answer(run, halt) if answer is None else answer

    # -- tools ------------------------------------------------------------------------------------

    def wrap_tool_call(
        self,
        request: ToolCallRequest,
        handler: Callable[[ToolCallRequest], ToolMessage | Command[Any]],
    ) -> ToolMessage | Command[Any]:
        """Run a tool call under guard, or answer it if it must not run."""
        found = self._call_of(request)
        if found is None:
            return handler(request)
        run, config = found
        alone = current_run() is None
        with _within(run):
            call = cast("Mapping[str, Any]", request.tool_call)
            known = request.tool is not None
            asked = self._with_agents(request) if alone else request
            result = toolcalls.around(
                run, lambda: handler(asked), call, config, known, request.tool
            )
            if alone:
                hear_answer(run, call, config)
            return result

    async def awrap_tool_call(
        self,
        request: ToolCallRequest,
        handler: Callable[[ToolCallRequest], Awaitable[ToolMessage | Command[Any]]],
    ) -> ToolMessage | Command[Any]:
        """`wrap_tool_call`, for asynchronous agents."""
        found = self._call_of(request)
        if found is None:
            return await handler(request)
        run, config = found
        alone = current_run() is None
        with _within(run):
            call = cast("Mapping[str, Any]", request.tool_call)
            known = request.tool is not None
            asked = self._with_agents(request) if alone else request
            result = await toolcalls.aaround(
                run, lambda: handler(asked), call, config, known, request.tool
            )
            if alone:
                hear_answer(run, call, config)
            return result

    # -- shared -----------------------------------------------------------------------------------

    def _run_of(self, request: AnyRequest) -> Run | None:
        if SWITCH.is_off():
            return None
        run = current_run()
        if run is not None:
            return run
        try:
            held = cast("Mapping[str, Any]", request.state).get("messages") or request.messages
            return self._tenancy.of_model_call(held, ambient_config())
        except Exception as error:
            _unguarded(error)
            return None

    def _call_of(self, request: ToolCallRequest) -> tuple[Run, Mapping[str, Any]] | None:
        if SWITCH.is_off():
            return None
        try:
            config = config_of(request)
            run = current_run() or self._tenancy.of_tool_call(request.state, config)
            return None if run is None else (run, config)
        except Exception as error:
            _unguarded(error)
            return None

    def _with_agents(self, request: ToolCallRequest) -> ToolCallRequest:
        """The request with guarded copies of the agents that its tool calls, if it calls any."""
        tool: object = request.tool
        other = self._agents.instead(tool)
        return request if other is tool else request.override(tool=other)

    def _last_answer(self, run: Run, halt: Halt) -> AIMessage:
        if run.closed or (current_run() is None and self.guard.on_stop == "raise"):
            raise tripped(halt)
        return last_word(run.id, halt)


def _told(run: Run, request: AnyRequest) -> AnyRequest:
    """The request with its history mended and the nudges that wait for this agent in it.

    The state is left alone.
    """
    try:
        config = ambient_config()
        place = place_of(config.get("metadata"))
        agent = place.agent + run.branches.of(place.task)
        given = cast("list[BaseMessage]", request.messages)
        fixed = mend(run, f"request:{agent}", given, agent=agent, asks=True)
        messages = given if fixed is None else fixed.messages
        if run.has_nudges and not unanswered(messages):
            news = [nudge_message(run.id, nudge) for nudge in run.take_nudges(agent, messages)]
            messages = [*messages, *news] if news else messages
        request = with_other_model(run, agent, without_tools(run, agent, request))
        if messages is given:
            return request
        return request.override(messages=cast("Any", messages))
    except Exception as error:
        run.fault("middleware.told", error)
        return request


@contextmanager
def _within(run: Run) -> Generator[None]:
    """Carry a run's call layer in the context, unless it is there already."""
    handler = HANDLER.get()
    if handler is not None and handler.run is run:
        yield
        return
    token = HANDLER.set(call_layer(run))
    try:
        yield
    finally:
        # An asynchronous agent may be closed from another context than the one that ran it.
        with suppress(ValueError):
            HANDLER.reset(token)


def _unguarded(error: Exception) -> None:
    from shearpin.adapters.run import logger

    logger.warning("shearpin: the middleware could not find its run, going on without: %r", error)

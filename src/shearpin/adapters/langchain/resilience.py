"""`ResilienceMiddleware`: the error boundary on `wrap_model_call` and `wrap_tool_call`.

Contract: it adds no step, and an agent in which nothing fails behaves as without it. A failed tool
call is answered; a failed model call is made again, elsewhere or shorter, and where nothing helps
the agent ends with a short, honest answer. Within a guarded run it works for that run: one tally,
one report, one budget that every attempt is held against. Control flow is never touched.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, Final, Literal, cast

from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool
from langgraph.types import Command

from shearpin.adapters import toolcalls
from shearpin.adapters.boundary.bounds import Bounds, open_bounds
from shearpin.adapters.calls import current_run
from shearpin.adapters.langchain.boundedmodels import acalled, called
from shearpin.adapters.langchain.requests import Middleware, config_of
from shearpin.adapters.langchain.tenancy import Tenancy, ambient_config
from shearpin.adapters.langgraph.wiring import annotated
from shearpin.adapters.reports import report_of
from shearpin.adapters.run import Run
from shearpin.boundary.boundary import Boundary
from shearpin.core.checks import instance, known_options
from shearpin.core.tools import ToolFacts
from shearpin.errors import ConfigError
from shearpin.recipe import Guard
from shearpin.report.model import Report
from shearpin.switch import SWITCH

__all__ = ["ResilienceMiddleware"]

if TYPE_CHECKING:
    from langchain.agents.middleware.types import ModelResponse
    from langchain.tools.tool_node import ToolCallRequest

    from shearpin.adapters.langchain.requests import AnyRequest, AnyResponse

logger = logging.getLogger("shearpin")

_NO_NODE: Final = ("\0",)
"""Matches no node: what a middleware does is about calls, not about nodes."""


class ResilienceMiddleware(Middleware):
    """An error boundary for an agent made by `create_agent`.

    Args:
        boundary: the recipe. None: one made of the options; True: one with its defaults.
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
        boundary: Boundary | Literal[True] | None = None,
        *,
        on_failure: Literal["answer", "raise"] = "answer",
        language: Literal["en", "zh"] = "en",
        facts: Mapping[str, ToolFacts] | None = None,
        **options: object,
    ) -> None:
        super().__init__()
        if on_failure not in ("answer", "raise"):
            raise ConfigError(f"on_failure must be 'answer' or 'raise', not {on_failure!r}")
        if boundary is True:
            boundary = None
        if boundary is not None:
            instance("boundary", boundary, Boundary, "Boundary(...), True or None")
        if boundary is not None and options:
            names = ", ".join(sorted(options))
            raise ConfigError(f"give a boundary or options, not both; put into it: {names}")
        self.boundary = boundary if boundary is not None else boundary_with(options)
        self._raises = on_failure == "raise"
        calls = replace(self.boundary, nodes=_NO_NODE, alternative={}, substitute={})
        self._guard = Guard(
            detectors=(), repair="off", language=language, boundary=calls, tools=facts or {}
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
        found = self._run_of_model(request)
        if found is None:
            return handler(request)
        run, alone = found
        return called(run, request, handler, alone=alone, raises=self._raises)

    async def awrap_model_call(
        self, request: AnyRequest, handler: Callable[[AnyRequest], Awaitable[ModelResponse[Any]]]
    ) -> AnyResponse:
        """`wrap_model_call`, for asynchronous agents."""
        found = self._run_of_model(request)
        if found is None:
            return await handler(request)
        run, alone = found
        return await acalled(run, request, handler, alone=alone, raises=self._raises)

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
        return toolcalls.around(run, lambda: handler(request), call, config, known, request.tool)

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
        return await toolcalls.aaround(
            run, lambda: handler(request), call, config, known, request.tool
        )

    # -- shared -----------------------------------------------------------------------------------

    def _run_of_model(self, request: AnyRequest) -> tuple[Run, bool] | None:
        """The run that a call belongs to, and whether it is our own."""
        if SWITCH.is_off():
            return None
        try:
            run = current_run()
            if run is not None:
                return (run, False) if self._bounds_of(run) is not None else None
            held = cast("Mapping[str, Any]", request.state).get("messages")
            run = self._tenancy.of_model_call(held or request.messages, ambient_config())
            return run, True
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
            config = config_of(request)
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


def boundary_with(options: Mapping[str, object]) -> Boundary:
    """A boundary made of its fields, with a helpful error for a misspelt one."""
    known_options("Boundary has no field", options, [spec.name for spec in fields(Boundary)])
    return Boundary(**cast("dict[str, Any]", dict(options)))

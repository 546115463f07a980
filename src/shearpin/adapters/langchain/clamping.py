"""Limits on answers where LangChain lets them be set: in a request, or around a model."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage, HumanMessage, convert_to_messages
from langchain_core.utils.function_calling import convert_to_openai_tool

from shearpin.adapters.calls import current_run
from shearpin.adapters.langchain.tenancy import ambient_config
from shearpin.adapters.messages import nudge_message
from shearpin.adapters.money.clamping import Clamp, clamp_for, name_of_limit
from shearpin.adapters.money.metering import spending_of
from shearpin.adapters.places import place_of
from shearpin.adapters.run import Run
from shearpin.core.allowance import exhausted_finding
from shearpin.errors import ConfigError
from shearpin.findings import Severity
from shearpin.verdicts import Nudge

if TYPE_CHECKING:
    from shearpin.adapters.langchain.requests import AnyRequest

__all__ = ["affordable", "clamped"]

M = TypeVar("M", bound=BaseChatModel)
_MARK = "__shearpin_clamped__"


# -- middleware -----------------------------------------------------------------------------------


def affordable(run: Run, request: AnyRequest) -> AnyRequest:
    """A request that fits into what the run has left; the last one goes without tools."""
    spending = spending_of(run)
    if spending is None or not spending.acts:
        return request
    try:
        return _affordable(run, request)
    except Exception as error:
        run.fault("middleware.clamp", error)
        return request


def _affordable(run: Run, request: AnyRequest) -> AnyRequest:
    spending = spending_of(run)
    assert spending is not None
    settings = request.model_settings or {}
    metadata = _metadata(request.model, settings)
    system = getattr(request, "system_message", None)
    messages = [*([system] if system is not None else []), *request.messages]
    tools = [convert_to_openai_tool(tool) for tool in request.tools]
    params = {**settings, **({"tools": tools} if tools else {})}
    place = place_of(ambient_config().get("metadata"))
    clamp = clamp_for(spending, messages, params, metadata, place)
    changes: dict[str, Any] = {}
    if clamp.tokens is not None:
        name = name_of_limit(cast("str | None", metadata.get("ls_provider")))
        changes["model_settings"] = {**settings, name: clamp.tokens}
    if clamp.landing is not None and request.tools:
        finding = exhausted_finding(clamp.landing, Severity.NUDGE, run.step, place.agent)
        note = nudge_message(run.id, Nudge(finding, spending.rulings.landing_note(clamp.landing)))
        changes |= {"tools": [], "tool_choice": None, "messages": [*request.messages, note]}
    return request.override(**changes) if changes else request


# -- models ---------------------------------------------------------------------------------------


def clamped(model: M) -> M:
    """A copy of a chat model whose answers are limited to what the run's budget has left.

    It is of the same type and behaves the same outside of a guarded run, or where there is room.

    Args:
        model: any LangChain chat model.

    Raises:
        ConfigError: it is not a chat model.

    Example:
        >>> from langchain_openai import ChatOpenAI
        >>> model = clamped(ChatOpenAI(model="gpt-4o", api_key="..."))
        >>> isinstance(model, ChatOpenAI)
        True
    """
    if not isinstance(model, BaseChatModel):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ConfigError(f"clamped() takes a chat model, not a {type(model).__name__}")
    if getattr(type(model), _MARK, False):
        return model
    twin = model.model_copy()
    object.__setattr__(twin, "__class__", _clamped_class(type(model)))
    return twin


def _clamped_class(base: type[Any]) -> type[Any]:
    """A subclass that limits each call where it enters."""

    def generate(self: Any, messages: list[list[BaseMessage]], *args: Any, **kwargs: Any) -> Any:
        limited = _limited(self, messages[0] if messages else [], kwargs)
        return base.generate(self, messages, *args, **limited)

    async def agenerate(
        self: Any, messages: list[list[BaseMessage]], *args: Any, **kwargs: Any
    ) -> Any:
        limited = _limited(self, messages[0] if messages else [], kwargs)
        return await base.agenerate(self, messages, *args, **limited)

    def stream(self: Any, input: Any, config: Any = None, **kwargs: Any) -> Iterator[Any]:
        yield from base.stream(self, input, config, **_limited(self, input, kwargs))

    async def astream(
        self: Any, input: Any, config: Any = None, **kwargs: Any
    ) -> AsyncIterator[Any]:
        async for chunk in base.astream(self, input, config, **_limited(self, input, kwargs)):
            yield chunk

    body: dict[str, Any] = {
        _MARK: True,
        "generate": generate,
        "agenerate": agenerate,
        "stream": stream,
        "astream": astream,
        "__module__": base.__module__,
        "__qualname__": base.__qualname__,
        "__doc__": base.__doc__,
    }
    return cast("Any", type)(base.__name__, (base,), body)


def _limited(model: BaseChatModel, input: object, kwargs: dict[str, Any]) -> dict[str, Any]:
    run = current_run()
    spending = None if run is None else spending_of(run)
    if run is None or spending is None or not spending.acts:
        return kwargs
    try:
        metadata = _metadata(model, kwargs)
        place = place_of(ambient_config().get("metadata"))
        clamp: Clamp = clamp_for(spending, _messages(input), kwargs, metadata, place)
        if clamp.tokens is None:
            return kwargs
        return {
            **kwargs,
            name_of_limit(cast("str | None", metadata.get("ls_provider"))): clamp.tokens,
        }
    except Exception as error:
        run.fault("model.clamp", error)
        return kwargs


def _metadata(model: BaseChatModel, kwargs: Mapping[str, Any]) -> dict[str, object]:
    """What LangChain will say of the call: the names of model and provider, and its limit."""
    told = model._get_ls_params(**kwargs)  # pyright: ignore[reportPrivateUsage]
    return dict(told)


def _messages(input: object) -> Sequence[BaseMessage]:
    if isinstance(input, str):
        return [HumanMessage(input)]
    inner = input.to_messages() if hasattr(input, "to_messages") else input  # type: ignore[union-attr]
    return convert_to_messages(cast("Any", inner))

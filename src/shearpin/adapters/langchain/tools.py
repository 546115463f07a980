"""Tools of LangChain that answer with a result instead of raising.

Contract: what comes out is a copy of the tool, of a subclass of its class: name, description,
schema, injected arguments, artifacts and what it holds stay as they are. Where it works it gives
what it gave before. Where it fails for good, its answer is a `ToolMessage` with the status `error`,
and the result in its artifact. What the tool itself makes an answer of (`handle_tool_error`), and
arguments that do not fit its schema, stay its own and its host's.
"""

from __future__ import annotations

import copy
import functools
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import replace
from functools import partial
from typing import Any, cast
from weakref import WeakKeyDictionary

from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool, ToolException
from pydantic import PrivateAttr

from shearpin.adapters.boundary.packing import pack, unpack
from shearpin.adapters.boundary.spelling import as_read
from shearpin.adapters.langchain.fallback_tools import called_instead
from shearpin.adapters.outcomes import is_about_arguments, message_in
from shearpin.boundary.calls import Hooks
from shearpin.boundary.effect_pages import check_key
from shearpin.boundary.inner import OWN, Inner
from shearpin.boundary.making import Making, Resilience
from shearpin.boundary.results import ResultArtifact, ToolResult
from shearpin.boundary.steps import Perform

__all__ = ["is_tool", "resilient_tool"]

_CALL: ContextVar[str] = ContextVar("shearpin_tool_call", default="")
"""The id that the model gave the call that is being carried out."""

_BARE: ContextVar[object] = ContextVar("shearpin_bare_tool", default=None)
"""The tool whose own code is about to run within an attempt."""


class _FailedError(Exception):
    """The tool has failed for good. Raised to be told to callbacks, and turned into an answer."""

    def __init__(self, result: ToolResult, text: str) -> None:
        super().__init__(text)
        self.result = result


def is_tool(target: object) -> bool:
    """Whether something is a tool of LangChain."""
    return isinstance(target, BaseTool)


def resilient_tool(tool: BaseTool, how: Resilience) -> BaseTool:
    """A copy of a tool that answers with a result instead of raising."""
    if how.facts is None:
        from shearpin.adapters.langgraph.wiring import annotated

        how = replace(how, facts=annotated(tool))
    if tool.args:
        check_key(tool.name, how.policy.effect, set(tool.args))
    twin = copy.copy(tool)
    private = cast("dict[str, Any]", getattr(tool, "__pydantic_private__", None) or {})
    object.__setattr__(twin, "__class__", _resilient_class(type(tool)))
    object.__setattr__(twin, "__pydantic_private__", {**private, "_how": how})
    return twin


_CLASSES: WeakKeyDictionary[type[BaseTool], type[BaseTool]] = WeakKeyDictionary()
_LOCK = threading.Lock()


def _resilient_class(kind: type[BaseTool]) -> type[BaseTool]:
    with _LOCK:
        found = _CLASSES.get(kind)
        if found is None:
            found = _CLASSES[kind] = _made_class(kind)
        return found


def _how(tool: BaseTool) -> Resilience:
    return cast("Resilience", cast("Any", tool)._how)


def _made_class(kind: type[BaseTool]) -> type[BaseTool]:
    """A subclass of a class of tools, whose runs are carried out by the boundary."""
    run, arun = kind._run, kind._arun  # pyright: ignore[reportPrivateUsage]
    told = run if arun is BaseTool._arun else arun  # pyright: ignore[reportPrivateUsage]

    @functools.wraps(run)
    def _run(self: BaseTool, *args: Any, **kwargs: Any) -> Any:
        if _BARE.get() is self:
            token = _BARE.set(None)  # what the tool calls in turn is resilient again
            try:
                return run(self, *args, **kwargs)
            finally:
                _BARE.reset(token)
        made = _making(self, args, kwargs)

        def execute() -> object:
            with made.attempt():
                return run(self, *args, **kwargs)

        return _given(self, made.run(execute), made)

    @functools.wraps(told)
    async def _arun(self: BaseTool, *args: Any, **kwargs: Any) -> Any:
        made = _making(self, args, kwargs, loop=True)

        async def execute() -> object:
            token = _BARE.set(self)
            try:
                with made.attempt():
                    return await arun(self, *args, **kwargs)
            finally:
                with suppress(ValueError):  # it may be closed from another context
                    _BARE.reset(token)

        return _given(self, await made.arun(execute), made)

    namespace = {
        "__module__": kind.__module__,
        "__qualname__": kind.__qualname__,
        "__doc__": kind.__doc__,
        "__annotations__": {"_how": object},
        "_how": PrivateAttr(default=None),
        "_run": _run,
        "_arun": _arun,
        "run": _answering(kind),
        "arun": _aanswering(kind),
        "ainvoke": _ainvoke,
        "__reduce__": _reduced,
    }
    make = cast("Callable[..., type[BaseTool]]", type(kind))
    return make(kind.__name__, (kind,), namespace)


async def _ainvoke(self: BaseTool, input: Any, config: Any = None, **kwargs: Any) -> Any:
    """In the event loop, also where the tool has only a synchronous function: that alone runs in a
    thread, while attempts and waits can be cancelled."""
    return await BaseTool.ainvoke(self, input, config, **kwargs)


def _answering(kind: type[BaseTool]) -> Any:
    @functools.wraps(kind.run)
    def run(self: BaseTool, *args: Any, **kwargs: Any) -> Any:
        token, own = _CALL.set(str(kwargs.get("tool_call_id") or "")), OWN.set(_own(self))
        try:
            return kind.run(self, *args, **kwargs)
        except _FailedError as failed:
            return _answer(self, failed)
        finally:
            _CALL.reset(token)
            OWN.reset(own)

    return run


def _aanswering(kind: type[BaseTool]) -> Any:
    @functools.wraps(kind.arun)
    async def arun(self: BaseTool, *args: Any, **kwargs: Any) -> Any:
        token, own = _CALL.set(str(kwargs.get("tool_call_id") or "")), OWN.set(_own(self))
        try:
            return await kind.arun(self, *args, **kwargs)
        except _FailedError as failed:
            return _answer(self, failed)
        finally:
            with suppress(ValueError):  # it may be closed from another context
                _CALL.reset(token)
                OWN.reset(own)

    return arun


def _own(tool: BaseTool) -> str:
    """The tool's name, where it records its effect itself."""
    return tool.name if _how(tool).policy.effect is not None else ""


def _reduced(self: BaseTool, *_: object) -> tuple[Any, tuple[BaseTool, Resilience]]:
    plain = copy.copy(self)
    private = dict(cast("dict[str, Any]", cast("Any", plain).__pydantic_private__))
    how = private.pop("_how")
    object.__setattr__(plain, "__class__", type(self).__mro__[1])
    object.__setattr__(plain, "__pydantic_private__", private or None)
    return resilient_tool, (plain, how)


def _making(
    tool: BaseTool, args: tuple[Any, ...], kwargs: Mapping[str, Any], *, loop: bool = False
) -> Making:
    """The call, as the model sees it: without what the host injects."""
    shown = _shown(tool)
    named = {name: value for name, value in kwargs.items() if name in shown}
    if args:
        named.update(zip(shown, args, strict=False))
    call = _CALL.get()

    def passes(error: BaseException) -> bool:
        return isinstance(error, ToolException) and bool(tool.handle_tool_error)

    def perform(fallback: object) -> Perform | None:
        return called_instead(fallback, named, call, loop=loop)

    def changed(hooks: Hooks, inner: Inner) -> Hooks:
        return replace(
            hooks,
            passes=passes,
            unrun=is_about_arguments,
            handled=partial(_told, call=call),
            perform=perform,
            pack=pack,
            unpack=partial(_unpacked, tool, call=call),
        )

    how = _how(tool)
    read = None if how.policy.effect is None else as_read(tool, named)
    return Making(how, tool.name, named, call, changed=changed, read=read)


def _shown(tool: BaseTool) -> list[str]:
    """Names of the arguments that a model gives; older hosts' `args` has the injected ones too."""
    fields: object = getattr(tool.tool_call_schema, "model_fields", None)
    return [*cast("Mapping[str, object]", fields)] if isinstance(fields, Mapping) else [*tool.args]


def _told(output: object, call: str) -> bool | ToolResult | None:
    message = message_in(output, call)
    if message is None or message.status != "error":
        return None
    artifact = cast("object", message.artifact)
    return artifact.result if isinstance(artifact, ResultArtifact) else True


def _unpacked(tool: BaseTool, value: object, call: str) -> object:
    found = unpack(value, call)
    if tool.response_format == "content_and_artifact" and isinstance(found, list):
        return tuple(cast("list[object]", found))
    return found


def _given(tool: BaseTool, result: ToolResult, made: Making) -> Any:
    """What the tool gives back to its class, which makes a message of it where one is wanted.

    Raises:
        _FailedError: there is nothing to give.
    """
    output = result.output
    if not result.success and output is None:
        raise _FailedError(result, result.text(made.language))
    if result.degraded is None:
        return output
    artifact: object = ResultArtifact(result)
    if isinstance(output, ToolMessage):
        output = cast("object", output.content)  # pyright: ignore[reportUnknownMemberType]
    elif tool.response_format == "content_and_artifact" and isinstance(output, tuple):
        output, artifact = cast("tuple[object, object]", output)
    text = replace(result, output=output).text(made.language)
    if tool.response_format == "content_and_artifact":
        return text, artifact
    call = _CALL.get()
    if not call:
        return text
    return ToolMessage(text, name=tool.name, tool_call_id=call, artifact=artifact)


def _answer(tool: BaseTool, failed: _FailedError) -> ToolMessage:
    return ToolMessage(
        str(failed),
        name=tool.name,
        tool_call_id=_CALL.get(),
        status="error",
        artifact=ResultArtifact(failed.result),
    )

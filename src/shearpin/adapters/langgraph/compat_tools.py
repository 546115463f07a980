# pyright: reportMissingTypeStubs=false
"""Every touch of a tool node's private parts: `_run_one`, `_execute_tool_sync` and their twins.

Contract: what some version of LangGraph lacks is left alone: without `_run_one` the calls of a node
are guarded by callbacks only, without `_execute_tool_sync` the tools are as they are.
Verified on LangGraph 1.0.10 to 1.2.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Awaitable, Callable, Mapping
from types import MethodType
from typing import Any, Protocol, cast

from langchain_core.runnables import RunnableConfig
from langgraph.prebuilt import ToolNode

__all__ = ["with_calls", "with_tools"]

_CONFIGURABLE = "configurable"


class _RunOne(Protocol):
    def __call__(self, call: Any, *rest: Any) -> Any: ...


def with_calls(
    node: ToolNode,
    around: Callable[[Callable[[], Any], Mapping[str, Any], RunnableConfig], Any],
    aaround: Callable[
        [Callable[[], Awaitable[Any]], Mapping[str, Any], RunnableConfig], Awaitable[Any]
    ],
) -> ToolNode | None:
    """A copy of a ToolNode whose calls go through `around`; None if that cannot be done."""
    one = getattr(node, "_run_one", None)
    aone = getattr(node, "_arun_one", None)
    if not callable(one) or not callable(aone):
        return None
    twin = copy.copy(node)
    for name in ("func", "afunc"):
        method = getattr(node, name, None)
        if isinstance(method, MethodType) and method.__self__ is node:
            setattr(twin, name, MethodType(method.__func__, twin))
    run_one = cast("_RunOne", MethodType(cast("MethodType", one).__func__, twin))
    arun_one = cast("_RunOne", MethodType(cast("MethodType", aone).__func__, twin))

    def guarded(call: Any, *rest: Any) -> Any:
        return around(functools.partial(run_one, call, *rest), call, _config_in(rest))

    async def aguarded(call: Any, *rest: Any) -> Any:
        return await aaround(functools.partial(arun_one, call, *rest), call, _config_in(rest))

    vars(twin).update(_run_one=guarded, _arun_one=aguarded)
    return twin


def with_tools(twin: ToolNode, instead: Callable[[Any], Any]) -> None:
    """Let a copy of a ToolNode execute other tools than those it shows; `instead` gives them."""
    for name in ("_execute_tool_sync", "_execute_tool_async"):
        method = getattr(twin, name, None)
        if isinstance(method, MethodType):
            vars(twin)[name] = _executing(method, instead)


def _executing(execute: MethodType, instead: Callable[[Any], Any]) -> Callable[..., Any]:
    def executing(request: Any, *rest: Any) -> Any:
        tool = request.tool
        other = instead(tool)
        return execute(request if other is tool else request.override(tool=other), *rest)

    return executing


def _config_in(arguments: tuple[Any, ...]) -> RunnableConfig:
    for argument in reversed(arguments):
        if isinstance(argument, dict):
            config = cast("dict[str, Any]", argument)
        else:
            config = cast("dict[str, Any]", getattr(argument, "config", None) or {})
        if _CONFIGURABLE in config:
            return cast("RunnableConfig", config)
    return {}

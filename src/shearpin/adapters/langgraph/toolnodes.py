"""Around each call of a ToolNode, which can be answered without being run."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from langchain_core.runnables import RunnableConfig

from shearpin.adapters import toolcalls
from shearpin.adapters.calls import current_run
from shearpin.adapters.langgraph.compat import AnyNode, ToolNode
from shearpin.adapters.langgraph.compat_tools import with_calls, with_tools
from shearpin.adapters.langgraph.subagents import SubAgents

__all__ = ["guarded_tool_node", "patches_calls"]


def guarded_tool_node(node: ToolNode, agents: SubAgents) -> ToolNode | None:
    """A copy of a ToolNode that asks before each call; None if it cannot be copied so.

    `agents` are those that its tools call.
    """
    tools = node.tools_by_name

    def around(execute: Callable[[], Any], call: Mapping[str, Any], config: RunnableConfig) -> Any:
        run = current_run()
        if run is None:
            return execute()
        tool = tools.get(call.get("name", ""))
        return toolcalls.around(run, execute, call, config, tool is not None, tool)

    async def aaround(
        execute: Callable[[], Awaitable[Any]], call: Mapping[str, Any], config: RunnableConfig
    ) -> Any:
        run = current_run()
        if run is None:
            return await execute()
        tool = tools.get(call.get("name", ""))
        return await toolcalls.aaround(run, execute, call, config, tool is not None, tool)

    twin = with_calls(node, around, aaround)
    if twin is not None:
        with_tools(twin, agents.instead)
    return twin


def patches_calls(node: AnyNode) -> bool:
    """Whether a node is a model node of `create_agent` that answers unreadable calls itself."""
    home = sys.modules.get(str(getattr(getattr(node.bound, "func", None), "__module__", "")))
    return hasattr(home, "_patch_invalid_tool_calls")

"""What LangChain's hooks hand to a middleware and get from it: its types, and where it comes from.

Contract: older versions of LangChain have fewer type parameters, or none, so that these are types
for readers and checkers only.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import AIMessage

from shearpin.adapters.langchain.tenancy import ambient_config

if TYPE_CHECKING:
    from langchain.agents.middleware.types import ModelRequest, ModelResponse
    from langchain.tools.tool_node import ToolCallRequest

    AnyRequest = ModelRequest[Any]
    AnyResponse = ModelResponse[Any] | AIMessage
    Middleware = AgentMiddleware[Any, Any, Any]
else:
    AnyRequest = AnyResponse = Any
    Middleware = AgentMiddleware

__all__ = ["AnyRequest", "AnyResponse", "Middleware", "config_of"]


def config_of(request: ToolCallRequest) -> Mapping[str, Any]:
    """The configuration that a tool call is made with."""
    runtime: object = cast("Any", request).runtime
    return cast("Mapping[str, Any]", getattr(runtime, "config", None) or ambient_config())

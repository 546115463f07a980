"""LangChain, LangGraph, pydantic, MCP, tenacity, and this package's own.

Contract: LangChain's tree of model errors is the common tongue of its integrations; a provider's
code beneath it still comes first, because it calls a used-up quota a rate limit.

*Source*: langchain_core.exceptions, langgraph.errors, the JSON-RPC and MCP specifications.
"""

from __future__ import annotations

from shearpin.boundary.known.kinds import Family, Kind, Weight, degradable, fatal, retryable

__all__ = ["CONTROL", "FAMILIES", "MCP_CODES", "STOPS"]

CONTROL: tuple[tuple[str, str], ...] = (
    ("langgraph", "GraphBubbleUp"),
    ("shearpin", "TrippedError"),
)
"""Classes by which hosts and guards steer; with what derives from them. The first: interrupts,
commands to a parent, draining, and this package's stops. The second is raised where the author of a
guard asked for it."""

STOPS = frozenset({"Stop", "HardStop", "PausingStop"})
"""This package's own stops, which count wherever in a chain they are."""

_LANGCHAIN: dict[str, Kind] = {
    "ModelAuthenticationError": fatal("authentication", weight=Weight.BROAD),
    "ModelPermissionDeniedError": fatal("permission", weight=Weight.BROAD),
    "ModelNotFoundError": fatal("not_found", weight=Weight.BROAD),
    "ModelInvalidRequestError": fatal("invalid_request", weight=Weight.BROAD),
    "ModelRateLimitError": retryable("rate_limit", safe=True, weight=Weight.BROAD),
    "ModelAPIError": retryable("server_error", weight=Weight.BROAD),
    "ModelConnectionError": retryable("network", weight=Weight.BROAD),
    "ModelTimeoutError": retryable("timeout", weight=Weight.BROAD),
    "ContextOverflowError": degradable("context_length"),
    "ModelRefusalError": degradable("content_filter"),
    "OutputParserException": degradable("bad_output"),
    "StructuredOutputError": degradable("bad_output"),
    "ToolInvocationError": degradable("invalid_arguments"),
    "ToolException": degradable("tool_error", weight=Weight.SPOKEN),
    "ModelCallLimitExceededError": degradable("limit"),
    "ToolCallLimitExceededError": degradable("limit"),
    "PIIDetectionError": degradable("content_filter"),
    "SSRFBlockedError": degradable("permission"),
    "OpenAIModerationError": degradable("content_filter"),
}

# A graph's own recursion limit is raised outside of its nodes: what comes up in a node or a tool is
# that of a graph which it called.
_LANGGRAPH: dict[str, Kind] = {
    "NodeTimeoutError": retryable("timeout"),
    "NodeCancelledError": degradable("cancelled"),
    "GraphRecursionError": degradable("recursion_limit"),
    "InvalidUpdateError": fatal("programming"),
    "EmptyInputError": fatal("programming"),
    "UnknownInterruptError": fatal("programming"),
    "TaskNotFound": fatal("programming"),
    "EmptyChannelError": fatal("programming"),
    "RemoteException": retryable("server_error", weight=Weight.BROAD),
    "ToolInvocationError": degradable("invalid_arguments"),
}

_PYDANTIC: dict[str, Kind] = {
    "ValidationError": degradable("validation"),
    "PydanticUserError": fatal("programming"),
    "SchemaError": fatal("programming"),
}

MCP_CODES: dict[int, Kind] = {
    -32700: degradable("bad_output"),
    -32600: fatal("invalid_request"),
    -32601: degradable("unavailable"),
    -32602: degradable("invalid_arguments"),
    -32603: retryable("server_error"),
    -32000: retryable("network"),
    -32001: retryable("timeout"),
    -32002: degradable("not_found"),
    -32042: degradable("permission"),
    408: retryable("timeout"),
}
"""Codes of JSON-RPC and MCP; 408 and -32001 are a request that was sent and got no answer."""

_SHEARPIN: dict[str, Kind] = {
    "ConfigError": fatal("configuration"),
    "PriceUnknownError": fatal("configuration"),
    "LedgerError": fatal("ledger"),
    "TraceError": degradable("bad_output"),
    "EffectRefusedError": degradable("refused"),
    "CancelledWithinError": degradable("cancelled"),
}

FAMILIES = (
    Family(("langchain_core", "langchain", "langchain_openai"), _LANGCHAIN),
    Family(("langgraph",), _LANGGRAPH),
    Family(("pydantic", "pydantic_core", "pydantic_settings"), _PYDANTIC),
    Family(("mcp",), {"MCPError": degradable("tool_error"), "McpError": degradable("tool_error")}),
    Family(("tenacity",), {"RetryError": degradable("unknown", weight=Weight.NOTHING)}),
    Family(("shearpin",), _SHEARPIN),
)

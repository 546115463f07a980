"""Which nodes ask a model about the conversation, before any has been seen to ask.

Contract: decided once, when the graph is guarded, from what the node is made of; nothing is run. A
node of which this is not certain is none: it may carry out the calls that stand open before it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from types import CodeType, FunctionType
from typing import Any, Final, Literal, cast

from langchain_core.messages import ToolMessage

from shearpin.adapters.langgraph.closures import held_by
from shearpin.adapters.langgraph.compat import AnyNode, Pregel, ToolNode
from shearpin.adapters.models import is_model

__all__ = ["Asks", "asks_model", "is_asked"]

Asks = Literal["agent", "function"]
"""What a node is that asks a model: an agent's model node, or a function that holds a model."""

logger = logging.getLogger("shearpin")

_AGENTS: Final = {
    "langchain.agents.factory": "model_node",
    "langgraph.prebuilt.chat_agent_executor": "call_model",
}
_CALLS: Final = "tool_calls"


def asks_model(node: AnyNode) -> Asks | None:
    """How a node asks a model; None where it may be one that does not, or one that does more."""
    function: Any = getattr(node.bound, "func", None)
    home = str(getattr(function, "__module__", ""))
    if home in _AGENTS and getattr(function, "__name__", "") == _AGENTS[home]:
        return "agent"
    if isinstance(node.bound, (Pregel, ToolNode)):
        return None
    try:
        return "function" if _holds_model_only(node.bound) else None
    except Exception as error:  # whatever a function may hold: it is taken for any other node
        logger.warning("shearpin: cannot look into a node's function: %r", error)
        return None


def is_asked(asks: Asks | None, messages: list[Any]) -> bool:
    """Whether a model is about to be asked with this history, as far as the node's kind tells.

    A function may be a judge of the calls that stand open before it, so it is only sure to want
    the rest of the answers where there are some already.
    """
    if asks is None or not messages:
        return False
    return asks == "agent" or isinstance(messages[-1], ToolMessage)


def _holds_model_only(bound: object) -> bool:
    """Whether a function holds a model and nothing that may carry out tool calls."""
    others: list[object] = []

    def wanted(value: object) -> bool:
        if is_model(value):
            return True
        if isinstance(value, (FunctionType, ToolNode)):
            others.append(value)
        return False

    if not held_by(bound, wanted):
        return False
    return not any(isinstance(it, ToolNode) or _reads_calls(it) for it in others)


def _reads_calls(value: object) -> bool:
    """Whether the code of a function mentions tool calls: it may be about to carry them out."""
    if not isinstance(value, FunctionType):
        return False
    return any(_CALLS in (*code.co_names, *code.co_consts) for code in _codes(value.__code__))


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for part in cast("tuple[object, ...]", code.co_consts):
        if isinstance(part, CodeType):
            yield from _codes(part)

# pyright: reportMissingTypeStubs=false
"""A message for whoever reads a stream in mode `messages`, from a node that was not executed.

Contract: written by LangGraph's public `push_message`, into the stream alone: no channel is
written. Verified on LangGraph 1.0.10 to 1.2.
"""

from __future__ import annotations

from importlib import import_module
from typing import Final

from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableConfig
from langgraph.graph.message import push_message

from shearpin.adapters.langgraph.compat import within
from shearpin.adapters.places import namespace_of

__all__ = ["stream_message"]

_HIDDEN: Final = "langsmith:hidden"


def stream_message(config: RunnableConfig, message: BaseMessage) -> None:
    """Write a message into the `messages` stream as the node of this configuration would.

    Where nobody reads one, nothing is done.
    """
    if config.get("callbacks") is None or _HIDDEN in (config.get("tags") or ()):
        return
    if "|" in namespace_of(config.get("metadata") or {}) and not _knows_subgraphs():
        return  # it would come to those, too, who did not ask for what graphs within say
    within(config, lambda: push_message(message, state_key=None))


def _knows_subgraphs() -> bool:
    """Whether `push_message` asks who reads the streams of graphs within; it did not before 1.2."""
    return hasattr(import_module("langgraph.pregel._messages"), "graph_namespace")

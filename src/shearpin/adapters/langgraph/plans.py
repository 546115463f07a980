"""What is known of a node when it is guarded, and of one execution of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from langchain_core.runnables import RunnableConfig

from shearpin.adapters.langgraph.asking import Asks
from shearpin.adapters.langgraph.compat import AnyGraph, AnyNode, AnyRunnable
from shearpin.adapters.langgraph.stopping import AFTER_HOOK, Endings
from shearpin.verdicts import Halt

__all__ = ["NodePlan", "Visit"]


@dataclass(frozen=True, slots=True)
class NodePlan:
    """What is known of a node when it is guarded.

    Attributes:
        graph: the graph it belongs to.
        name: the node's name.
        node: the node as it was.
        bound: the node's main part, guarded where it is a subgraph or a tool node.
        inner: what LangGraph would execute: `bound` and the writers.
        endings: how its graph is ended.
        merged: channels of its graph that merge updates.
        answers: whether it answers tool calls itself, also those of a stopped run.
        contains: whether it is a graph, whose nodes report for themselves.
        cached: whether its writes may be kept for other runs.
        patches: whether it answers calls with unreadable arguments itself.
        asks: how it asks a model, where that is known before it is seen to.
        behind_tool: whether its graph is an agent that a tool calls.
    """

    graph: AnyGraph
    name: str
    node: AnyNode
    bound: AnyRunnable
    inner: AnyRunnable
    endings: Endings
    merged: frozenset[str]
    answers: bool
    contains: bool
    cached: bool
    patches: bool
    asks: Asks | None
    behind_tool: bool = False

    @property
    def quiet(self) -> bool:
        """Nobody reads a conversation here that could be lent anything."""
        return self.answers or self.contains or self.endings.channel is None

    @property
    def runs_when_stopped(self) -> bool:
        """After-hooks run in a stopped run, and tool nodes answer what was asked for."""
        return self.answers or self.name.endswith(AFTER_HOOK)


class Visit(NamedTuple):
    """One execution of a node."""

    task: str
    agent: str
    input: Any
    inner: AnyRunnable
    halt: Halt | None = None
    models: int = 0
    config: RunnableConfig | None = None

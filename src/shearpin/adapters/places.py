"""Where in the tree of graphs something happens."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from shearpin.core.normal import short_name

__all__ = ["Place", "namespace_of", "path_of", "place_of"]


class Place(NamedTuple):
    """Where in the tree something happens.

    Attributes:
        task: the host's id of the node execution, empty outside a graph.
        agent: the path of graphs without task ids, `main` for the root.
        node: the node's name.
    """

    task: str
    agent: str
    node: str


def namespace_of(metadata: Mapping[str, object]) -> str:
    """The path of tasks that leads to the one that metadata belongs to; empty outside a graph.

    A graph that is called in a task, but with a thread of its own, has a path that begins afresh;
    the path of that task is still to be found beside it.
    """
    namespace = metadata.get("langgraph_checkpoint_ns")
    if not isinstance(namespace, str):
        return ""
    outer = metadata.get("checkpoint_ns")
    if not isinstance(outer, str) or not outer or namespace.startswith(outer):
        return namespace
    return f"{outer}|{namespace}"


def place_of(metadata: Mapping[str, object] | None) -> Place:
    """The place that callback or node metadata names."""
    if not metadata:
        return Place("", "main", "")
    namespace = namespace_of(metadata)
    node = metadata.get("langgraph_node")
    if not namespace or not isinstance(node, str):
        return Place("", "main", "")
    task = namespace.rpartition(":")[2]
    if "|" not in namespace:
        return Place(task, "main", node)
    parts = [part.partition(":")[0] for part in namespace.split("|")[:-1]]
    agent = "/".join(part for part in parts if not part.isdigit())
    name = metadata.get("lc_agent_name")
    speaker = f"{agent}:{name}" if isinstance(name, str) else agent
    return Place(task, short_name(speaker), node)  # as the core names it in its findings


def path_of(metadata: Mapping[str, object]) -> list[str]:
    """The nodes in which the graphs around a call run, outermost first."""
    namespace = namespace_of(metadata)
    parts = [part.partition(":")[0] for part in namespace.split("|")[:-1]]
    return [short_name(part) for part in parts if not part.isdigit()]

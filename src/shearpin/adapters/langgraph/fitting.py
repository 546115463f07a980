"""Whether a boundary fits a graph: the nodes that it names are there.

Contract: what is certainly wrong is refused when the graph is guarded. A node that is not found may
be one of an agent behind a tool, so a name is refused only where it looks misspelt.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from typing import cast

from langchain_core.tools import BaseTool

from shearpin.adapters.langgraph.compat import AnyGraph, Pregel, ToolNode
from shearpin.boundary.boundary import Boundary
from shearpin.boundary.effect_pages import check_key
from shearpin.errors import ConfigError

__all__ = ["check_ways", "graphs_in", "tools_in"]


def graphs_in(graph: AnyGraph) -> Iterator[AnyGraph]:
    """A graph and its declared subgraphs."""
    waiting, seen = [graph], list[AnyGraph]()
    while waiting:
        current = waiting.pop()
        if any(current is known for known in seen):
            continue
        seen.append(current)
        yield current
        bounds: list[object] = [node.bound for node in current.nodes.values()]
        waiting += [cast("AnyGraph", bound) for bound in bounds if isinstance(bound, Pregel)]


def tools_in(graphs: Iterable[AnyGraph]) -> Iterator[BaseTool]:
    """The tools of the tool nodes of graphs."""
    for graph in graphs:
        for node in graph.nodes.values():
            if isinstance(node.bound, ToolNode):
                yield from node.bound.tools_by_name.values()


def check_ways(graph: AnyGraph, boundary: Boundary) -> None:
    """The nodes that a boundary leads from and to.

    Raises:
        ConfigError: an alternative is not in the graph of its node, a name looks misspelt, or
            the key of an effect names no argument of its tool.
    """
    graphs = list(graphs_in(graph))
    for tool in tools_in(graphs):
        if tool.args:
            check_key(tool.name, boundary.policy(tool.name).effect, set(tool.args))
    names = sorted({name for each in graphs for name in each.nodes if name != "__start__"})
    ways = (("alternative", list(boundary.alternative)), ("substitute", list(boundary.substitute)))
    for option, nodes in ways:
        for node in nodes:
            close = [] if node in names else get_close_matches(node, names, n=1)
            if close:
                raise ConfigError(
                    f"Boundary.{option} names the node {node!r}, which the graph has not; "
                    f"did you mean {close[0]!r}?"
                )
    for node, target in boundary.alternative.items():
        homes = [each for each in graphs if node in each.nodes]
        if homes and not any(target in each.nodes for each in homes):
            there = sorted({name for each in homes for name in each.nodes} - {"__start__", node})
            close = get_close_matches(target, there, n=1)
            others = f"there are {', '.join(there)}" if there else "there is no other"
            hint = f"did you mean {close[0]!r}?" if close else others
            raise ConfigError(
                f"Boundary.alternative leads from {node!r} to {target!r}, which is no node of the "
                f"same graph; {hint}"
            )

"""What a guarded graph is made of: guarded nodes, guarded subgraphs, and the recipe they follow."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast

from langchain_core.tools import BaseTool

from shearpin import clock
from shearpin.adapters.boundary.bounds import boundary_of
from shearpin.adapters.langgraph.asking import asks_model
from shearpin.adapters.langgraph.closures import bound_with, variables_of
from shearpin.adapters.langgraph.compat import (
    AnyGraph,
    AnyNode,
    AnyRunnable,
    Pregel,
    ToolNode,
    executable_with,
    install,
    is_idle,
    reducers,
    self_test,
    with_nodes,
)
from shearpin.adapters.langgraph.nodes import GuardedNode, NodePlan
from shearpin.adapters.langgraph.sessions import Sessions, sessions_of
from shearpin.adapters.langgraph.state import Runs, Threads
from shearpin.adapters.langgraph.stopping import endings_of
from shearpin.adapters.langgraph.subagents import SubAgents
from shearpin.adapters.langgraph.toolnodes import guarded_tool_node, patches_calls
from shearpin.core.settings import Settings
from shearpin.core.tools import ToolFacts
from shearpin.recipe import Guard

if TYPE_CHECKING:
    from shearpin.boundary.boundary import Boundary

__all__ = ["WIRING", "Wiring", "is_guarded", "tool_facts", "wiring_of"]

logger = logging.getLogger("shearpin")

_said: set[str] = set()

WIRING = "__shearpin__"
"""Name of the class attribute by which a guarded graph is known."""

_MOST_FAULTS = 16
_FUNCTIONS = ("func", "afunc")


@dataclass(slots=True)
class Wiring:
    """What a guarded graph and all its copies share.

    Attributes:
        recipe: the guard.
        settings: the core's part of the recipe, with what the graph's tools say of themselves.
        original: the graph as it was.
        redirects: whether its nodes are guarded; if not, a refusal pauses the run.
        sessions: those that live in a store of their own; None where they do not.
        threads: sessions that live in memory.
        runs: the latest runs, for reports.
        faults: what failed outside any run; the next run that begins takes them over.
    """

    recipe: Guard
    settings: Settings
    original: AnyGraph
    redirects: bool = True
    now: clock.Clock = clock.monotonic
    sessions: Sessions | None = None
    threads: Threads = field(default_factory=Threads)
    runs: Runs = field(default_factory=Runs)
    faults: list[tuple[str, BaseException]] = field(default_factory=list[tuple[str, BaseException]])

    def note(self, where: str, error: BaseException) -> None:
        """Keep a fault that no run is there to take, for the next report."""
        if len(self.faults) < _MOST_FAULTS:
            self.faults.append((where, error))

    def nodes(self, graph: AnyGraph) -> dict[str, AnyNode]:
        """The guarded nodes of a graph."""
        return guarded_nodes(graph, Children(boundary_of(self.recipe)))

    def noted(self) -> list[tuple[str, BaseException]]:
        """Take over what was noted."""
        noted, self.faults = self.faults, []
        return noted


def wiring_of(graph: object) -> Wiring | None:
    """The wiring of a guarded graph; None for any other object."""
    found = getattr(type(graph), WIRING, None)
    return found if isinstance(found, Wiring) else None


def is_guarded(graph: object) -> bool:
    """Whether a graph was guarded already."""
    return wiring_of(graph) is not None


def wire(graph: AnyGraph, recipe: Guard) -> Wiring:
    """Check that a graph can be guarded fully, and say so once if it cannot."""
    trouble = self_test(graph)
    if trouble is not None:
        _say_once(
            f"shearpin guards {graph.get_name()!r} by LangGraph's public interface alone, because "
            f"{trouble}; a refused call will pause the run instead of ending it"
        )
    settings = recipe.settings
    noted = tool_facts(graph)
    if noted:
        settings = replace(settings, tools={**noted, **settings.tools})
    sessions = sessions_of(recipe.state, recipe.name or graph.get_name())
    return Wiring(recipe, settings, graph, redirects=trouble is None, sessions=sessions)


def _say_once(message: str) -> None:
    if message not in _said:
        _said.add(message)
        warnings.warn(message, RuntimeWarning, stacklevel=6)
        logger.warning(message)


class Children:
    """Guarded copies of the graphs within a graph: one of each, also where it contains itself.

    Args:
        boundary: whose models in nodes endure failures; None where there is no boundary.
        behind_tool: whether a tool calls these graphs.
    """

    def __init__(self, boundary: Boundary | None = None, *, behind_tool: bool = False) -> None:
        self.boundary = boundary
        self.behind_tool = behind_tool
        self._known: dict[int, tuple[AnyGraph, AnyGraph]] = {}

    @staticmethod
    def wanted(value: object) -> bool:
        """Whether an object is a graph that is not guarded by itself."""
        return isinstance(value, Pregel) and not is_guarded(cast("object", value))

    def of(self, child: AnyGraph) -> AnyGraph:
        """A copy of a graph with guarded nodes."""
        known = self._known.get(id(child))
        if known is None:
            twin = with_nodes(child, type(child), {})
            self._known[id(child)] = known = child, twin
            twin.nodes = guarded_nodes(child, self)
        return known[1]


def guarded_nodes(graph: AnyGraph, children: Children) -> dict[str, AnyNode]:
    """The nodes of a graph, each with its guarded executable; nodes that are guarded stay."""
    endings, merged = endings_of(graph), reducers(graph)
    nodes: dict[str, AnyNode] = {}
    for name, node in graph.nodes.items():
        executable = executable_with(node, None)
        if is_idle(node) or executable is None or isinstance(executable, GuardedNode):
            nodes[name] = node
            continue
        bound = _guarded_bound(node.bound, children)
        if children.boundary is not None and children.boundary.covers(name):
            bound = _enduring(bound or node.bound, children.boundary) or bound
        inner = executable_with(node, bound) if bound is not None else executable
        plan = NodePlan(
            graph=graph,
            name=name,
            node=node,
            bound=bound if bound is not None else node.bound,
            inner=cast("AnyRunnable", inner),
            endings=endings,
            merged=merged,
            answers=isinstance(bound, ToolNode),
            contains=isinstance(node.bound, Pregel) or _calls_graphs(node.bound),
            cached=(node.cache_policy or graph.cache_policy) is not None,
            patches=patches_calls(node),
            asks=asks_model(node),
            behind_tool=children.behind_tool,
        )
        nodes[name] = install(node, GuardedNode(plan))
    return nodes


def _guarded_bound(bound: AnyRunnable, children: Children) -> AnyRunnable | None:
    """What takes the place of a node's main part: a guarded subgraph or tool node, else None."""
    boundary = children.boundary
    if isinstance(bound, ToolNode):
        return guarded_tool_node(
            bound,
            SubAgents(Children.wanted, lambda it: Children(boundary, behind_tool=True).of(it)),
        )
    if isinstance(bound, Pregel):
        child = cast("AnyGraph", cast("object", bound))
        return cast("AnyRunnable", children.of(child)) if Children.wanted(child) else None
    return _calling_guarded_graphs(bound, children)


def _calling_guarded_graphs(bound: AnyRunnable, children: Children) -> AnyRunnable | None:
    """A copy of a function node that calls guarded graphs; None where it calls none."""
    try:
        return bound_with(bound, Children.wanted, children.of)
    except Exception as error:  # whatever a function may hold: it is left as it is
        logger.warning("shearpin: cannot look into a node's function: %r", error)
        return None


def _enduring(bound: AnyRunnable, boundary: Boundary) -> AnyRunnable | None:
    """A node's main part with models that endure failures; loaded where there is a boundary."""
    from shearpin.adapters.langgraph.enduring import enduring

    return enduring(bound, boundary)


def _calls_graphs(bound: AnyRunnable) -> bool:
    """Whether a node is a function around a graph of its own, as supervisors have them."""
    held = [it for name in _FUNCTIONS for it in variables_of(getattr(bound, name, None))]
    return any(Children.wanted(it) for it in held)


def tool_facts(graph: AnyGraph) -> dict[str, ToolFacts]:
    """What the tools of a graph say of themselves (MCP annotations in a tool's metadata)."""
    found: dict[str, ToolFacts] = {}
    for node in graph.nodes.values():
        if isinstance(node.bound, ToolNode):
            for tool in node.bound.tools_by_name.values():
                facts = annotated(tool)
                if facts is not None:
                    found[tool.name] = facts
    return found


def annotated(tool: BaseTool) -> ToolFacts | None:
    """The facts in a tool's MCP annotations; None where it has none."""
    metadata = cast("Mapping[str, Any]", tool.metadata or {})
    notes = metadata.get("annotations", metadata)
    if not isinstance(notes, Mapping):
        return None
    hints = cast("Mapping[str, object]", notes)
    if not any(key in hints for key in ("readOnlyHint", "idempotentHint", "destructiveHint")):
        return None
    return ToolFacts.from_annotations(hints)

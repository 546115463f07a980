"""Another model in place of a node's own, for some rounds: one way out of a loop.

Contract: it takes a node whose function (or chain) holds exactly one chat model, as the model node
of an agent does. What is executed is a copy that holds the other model; the node, its function and
its model stay as they are. Where a loop's node holds none, or several, the report says that the way
was not taken, and the loop ends the run if it goes on.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from langchain_core.tools import BaseTool

from shearpin.adapters.langgraph.closures import bound_with, held_by
from shearpin.adapters.langgraph.compat import AnyGraph, Pregel, ToolNode, executable_with
from shearpin.adapters.models import Model, in_place_of, innermost, is_model
from shearpin.adapters.places import Place
from shearpin.adapters.run import Run

if TYPE_CHECKING:
    from shearpin.adapters.langgraph.nodes import NodePlan

__all__ = ["can_exchange", "exchanged"]

_MOST_GRAPHS = 64


def exchanged(run: Run, plan: NodePlan, place: Place) -> NodePlan:
    """The plan of a node, with another model in it where one is due to its agent."""
    if plan.answers or plan.contains or (place.agent, plan.name) not in run.speakers:
        return plan
    agent = place.agent + run.branches.of(place.task)
    name = run.state.judge.ask(lambda session: session.model_for(agent), None)
    other = run.ways.models.get(name) if name is not None else None
    if name is None or other is None:
        return plan
    known = run.ways.plans.get((id(plan), name))
    if known is None:
        known = run.ways.plans[id(plan), name] = plan, _with_model(plan, other)
    if known[1] is not plan:
        run.ways.exchanged(agent)
    return cast("NodePlan", known[1])


def _with_model(plan: NodePlan, other: Model) -> NodePlan:
    """A node's plan with another model; the plan itself where it has none, or several."""
    if _models_in(plan.bound) != 1:
        return plan
    made: dict[int, Model] = {}

    def instead(own: object) -> Model:
        if id(own) not in made:
            made[id(own)] = in_place_of(own, other)
        return made[id(own)]

    bound = bound_with(plan.bound, is_model, instead)
    inner = executable_with(plan.node, bound) if bound is not None else None
    return plan if bound is None or inner is None else replace(plan, bound=bound, inner=inner)


def can_exchange(graph: AnyGraph) -> bool:
    """Whether any node of a graph, or of a graph that it calls, holds exactly one model."""
    return any(_models_in(node.bound) == 1 for it in _graphs(graph) for node in it.nodes.values())


def _models_in(bound: object) -> int:
    """How many models a node holds, however often and with whatever bound to them."""
    if isinstance(bound, (Pregel, ToolNode)):
        return 0
    return len({id(innermost(model)) for model in held_by(bound, is_model)})


def _graphs(graph: AnyGraph) -> Iterator[AnyGraph]:
    waiting: list[object] = [graph]
    seen: set[int] = set()
    while waiting and len(seen) < _MOST_GRAPHS:
        current = waiting.pop(0)
        if id(current) in seen:
            continue
        seen.add(id(current))
        yield cast("AnyGraph", current)
        for node in cast("AnyGraph", current).nodes.values():
            waiting += _called_by(node.bound)


def _called_by(bound: object) -> list[object]:
    if isinstance(bound, Pregel):
        return [cast("object", bound)]
    tools = list(bound.tools_by_name.values()) if isinstance(bound, ToolNode) else []
    held: list[object] = [*tools] if tools else [bound]
    return [graph for it in held for graph in held_by(it, _is_graph)]


def _is_graph(value: object) -> bool:
    return isinstance(value, Pregel) and not isinstance(value, BaseTool)

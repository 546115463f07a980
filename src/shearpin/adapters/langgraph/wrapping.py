"""What `Guard.wrap` does with each kind of thing it is given."""

from __future__ import annotations

import functools
from difflib import get_close_matches
from typing import Any, TypeVar, cast

from shearpin.adapters.boundary.bounds import boundary_of, shared_of
from shearpin.adapters.langgraph.compat import (
    AnyGraph,
    Pregel,
    StateGraph,
    saver_of,
)
from shearpin.adapters.langgraph.exchanging import can_exchange
from shearpin.adapters.langgraph.fitting import check_ways, graphs_in, tools_in
from shearpin.adapters.langgraph.naming import check_names
from shearpin.adapters.langgraph.supervisor import guarded_graph
from shearpin.adapters.models import models_of
from shearpin.errors import ConfigError
from shearpin.recipe import Guard

__all__ = ["wrap"]

G = TypeVar("G")
_RECIPE = "__shearpin_recipe__"


def wrap(graph: G, recipe: Guard) -> G:
    """A guarded copy of a compiled graph, or of a builder whose compiled graph will be guarded.

    Raises:
        ConfigError: it is neither, or has no checkpointer where the recipe asks for one.
    """
    if isinstance(graph, Pregel):
        compiled = cast("AnyGraph", cast("object", graph))
        if recipe.state == "checkpointer" and saver_of(compiled, {}) is None:
            raise ConfigError(
                "state='checkpointer' needs a graph that is compiled with a checkpointer; "
                "compile it with one, or use state='auto'"
            )
        if recipe.on_stop == "pause" and saver_of(compiled, {}) is None:
            raise ConfigError(
                "on_stop='pause' needs a graph that is compiled with a checkpointer, or there is "
                "nothing to resume from; compile it with one, or use on_stop='end'"
            )
        _check_target(compiled, recipe)
        tools = {tool.name for tool in tools_in(graphs_in(compiled))}
        check_names(recipe, _node_names(compiled), tools)
        boundary = boundary_of(recipe)
        if boundary is not None:
            check_ways(compiled, boundary)
            shared_of(boundary)  # a store that cannot be opened is told of here, not in a run
        return cast("G", guarded_graph(compiled, recipe))
    if isinstance(graph, StateGraph):
        return cast("G", _guarded_builder(graph, recipe))
    raise ConfigError(_advice(graph))


def _check_target(graph: AnyGraph, recipe: Guard) -> None:
    """The node or model with which a loop is to go on is there, in the graph or one within it."""
    way = recipe.on_loop or ""
    models_of(recipe)
    if way.startswith("model:") and not can_exchange(graph):
        raise ConfigError(
            f"on_loop={way!r} needs a node whose function holds exactly one chat model, as the "
            "model node of create_agent does; no node of this graph is one: keep the model in one "
            "variable of the function that asks it, or use another way out, such as 'rollback'"
        )
    if not way.startswith("node:"):
        return
    target, names = way.removeprefix("node:"), _node_names(graph)
    if target not in names:
        close = get_close_matches(target, names, n=1)
        hint = f"did you mean 'node:{close[0]}'?" if close else f"there are {', '.join(names)}"
        raise ConfigError(f"on_loop names the node {target!r}, which the graph has not; {hint}")


def _node_names(graph: AnyGraph) -> list[str]:
    """The names of a graph's nodes and of those in its subgraphs."""
    names = {name for each in graphs_in(graph) for name in each.nodes}
    return sorted(names - {"__start__"})


def _guarded_builder(builder: Any, recipe: Guard) -> Any:
    """A builder of the same type that compiles guarded graphs; it shares nodes and edges."""
    kind = cast("Any", type(builder))
    base: Any = kind.__mro__[1] if hasattr(kind, _RECIPE) else kind

    def compiled(self: Any, *args: Any, **kwargs: Any) -> Any:
        return recipe.wrap(base.compile(self, *args, **kwargs))

    body: dict[str, Any] = {
        _RECIPE: recipe,
        "compile": functools.update_wrapper(compiled, base.compile),
        "__module__": base.__module__,
        "__qualname__": base.__qualname__,
        "__doc__": base.__doc__,
    }
    cls: Any = cast("Any", type)(base.__name__, (base,), body)
    twin = cls.__new__(cls)
    cast("dict[str, Any]", vars(twin)).update(vars(cast("object", builder)))
    return twin


def _advice(thing: object) -> str:
    kind = type(thing).__name__
    if callable(getattr(thing, "invoke", None)):
        return (
            f"guard() takes a LangGraph graph or agent, not a {kind}; for a plain chain or chat "
            "model use `with Guard().run() as run:` around the call"
        )
    return f"guard() takes a LangGraph graph, agent or StateGraph, not {kind}: {thing!r}"[:300]

"""Nodes that are functions and call a graph of their own, as supervisors call their workers.

Contract: the function stays the same code with the same defaults and free variables; only a free
variable that holds a graph holds a guarded copy of it instead, in a copy of the function. Graphs
that a function finds elsewhere (module variables, attributes) are guarded by the call layer alone.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from types import CellType, FunctionType
from typing import Any, cast

from shearpin.adapters.langgraph.compat import AnyGraph, AnyRunnable, Pregel

__all__ = ["with_guarded_graphs"]


def with_guarded_graphs(
    bound: AnyRunnable, guarded: Callable[[AnyGraph], AnyGraph | None]
) -> AnyRunnable | None:
    """A copy of a function node that calls guarded graphs; None where it calls none."""
    known: dict[int, Any] = {}
    changed: dict[str, FunctionType] = {}
    for name in ("func", "afunc"):
        function: object = getattr(bound, name, None)
        if isinstance(function, FunctionType) and function.__closure__:
            found = _copied(function, guarded, known)
            if found is not None:
                changed[name] = found
    if not changed:
        return None
    twin = copy.copy(bound)
    for name, function in changed.items():
        setattr(twin, name, function)
    return twin


def _copied(
    function: FunctionType, guarded: Callable[[AnyGraph], AnyGraph | None], known: dict[int, Any]
) -> FunctionType | None:
    cells = list(function.__closure__ or ())
    replaced = False
    for place, cell in enumerate(cells):
        held = _content(cell)
        if not isinstance(held, Pregel):
            continue
        graph = cast("AnyGraph", cast("object", held))
        if id(graph) not in known:
            known[id(graph)] = guarded(graph)
        twin = known[id(graph)]
        if twin is not None:
            cells[place] = CellType(twin)
            replaced = True
    if not replaced:
        return None
    twin = FunctionType(
        function.__code__,
        function.__globals__,
        function.__name__,
        function.__defaults__,
        tuple(cells),
    )
    twin.__kwdefaults__ = function.__kwdefaults__
    twin.__annotations__ = function.__annotations__
    twin.__doc__, twin.__qualname__ = function.__doc__, function.__qualname__
    twin.__module__ = function.__module__
    twin.__dict__.update(function.__dict__)
    return twin


def _content(cell: CellType) -> object:
    try:
        return cell.cell_contents
    except ValueError:  # not assigned yet
        return None

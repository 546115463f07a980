"""Models within nodes that endure failures, where a guarded graph has an error boundary.

Contract: what is executed is a copy of a node's function (or chain) that asks a resilient copy of
each chat model it holds; the node, its function and its models stay as they are. Outside of a run
with a boundary, and in places where that does not act, the copy behaves as the model itself. What
cannot be looked into is left as it is: its failures are the node's.
"""

from __future__ import annotations

import logging
from typing import Any, cast

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables.base import RunnableBindingBase

from shearpin.adapters.langchain.resilient import is_resilient, joining
from shearpin.adapters.langgraph.closures import bound_with
from shearpin.adapters.langgraph.compat import AnyRunnable, Pregel, ToolNode
from shearpin.adapters.models import Model, in_place_of, innermost, is_model
from shearpin.boundary.boundary import Boundary

__all__ = ["enduring"]

logger = logging.getLogger("shearpin")


def enduring(bound: AnyRunnable, boundary: Boundary) -> AnyRunnable | None:
    """A node's main part with resilient models; None where it holds none that are to be made so."""
    if isinstance(bound, (Pregel, ToolNode)):
        return None
    made: dict[int, object] = {}

    def instead(own: object) -> object:
        if id(own) not in made:
            made[id(own)] = _resilient(own, boundary)
        return made[id(own)]

    try:
        return bound_with(bound, _is_wanted, instead)
    except Exception as error:  # whatever a function may hold: it is left as it is
        logger.warning("shearpin: cannot look into a node's function: %r", error)
        return None


def _is_wanted(value: object) -> bool:
    return is_model(value) and not is_resilient(innermost(value))


def _resilient(own: object, boundary: Boundary) -> object:
    """A model, or one with something bound to it, that endures failures."""
    others = [in_place_of(own, cast("Model", other)) for other in boundary.models]
    arguments: set[str] = set()
    bindings: list[RunnableBindingBase[Any, Any]] = []
    inner = own
    while isinstance(inner, RunnableBindingBase):
        binding = cast("RunnableBindingBase[Any, Any]", inner)
        arguments |= set(binding.kwargs)
        bindings.append(binding)
        inner = binding.bound
    twin: object = joining(cast("BaseChatModel", inner), others, frozenset(arguments))
    for binding in reversed(bindings):
        twin = binding.model_copy(update={"bound": twin})
    return twin

"""Names in a guard that fit nothing in its graph, by which protection would be off in silence.

Contract: what a boundary names and the graph has under a similar name is refused. All else is told
of once, in the log: a guard may be shared by several graphs, and an agent behind a tool may have
what the graph itself has not. Names with wildcards are never looked at.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable
from difflib import get_close_matches

from shearpin.errors import ConfigError
from shearpin.recipe import Guard

__all__ = ["check_names"]

logger = logging.getLogger("shearpin")

_said: set[str] = set()
_SIMILAR = 0.75


def check_names(recipe: Guard, nodes: Collection[str], tools: Collection[str]) -> None:
    """Look for names that fit nothing.

    Args:
        recipe: the guard.
        nodes: names of the graph's nodes, those of its subgraphs included.
        tools: names of its tools; where none are known, tools are not looked at.

    Raises:
        ConfigError: the boundary names something that looks misspelt.
    """
    boundary = recipe.boundary
    if boundary is not None and not isinstance(boundary, bool):
        _check("Boundary.nodes", boundary.nodes, nodes, "node", strict=True)
        _check("Boundary.tools", boundary.tools, tools, "tool", strict=True)
    _check("tools", recipe.tools, tools, "tool")
    _check("exclude", recipe.exclude, nodes, "node")
    for kind, known in (("node", nodes), ("tool", tools)):
        named = [it.removeprefix(f"{kind}:") for it in recipe.modes if it.startswith(f"{kind}:")]
        _check("modes", named, known, kind)


def _check(
    option: str, named: Iterable[str], known: Collection[str], kind: str, *, strict: bool = False
) -> None:
    names = list(named)
    for name in names if known else ():
        if name in known or any(sign in name for sign in "*?["):
            continue
        others = [it for it in known if it not in names]  # what is named too is not meant here
        close = get_close_matches(name, others, n=1, cutoff=_SIMILAR)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        said = f"{option} names the {kind} {name!r}, which the graph has not{hint}"
        if close and strict:
            raise ConfigError(said)
        if said not in _said:
            _said.add(said)
            logger.warning("shearpin: %s", said)

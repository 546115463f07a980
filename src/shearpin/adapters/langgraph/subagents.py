"""Agents that tools call: within a run a tool calls guarded copies of them.

Contract: the tool stays the object that the host, its middleware and its user know. Only what is
executed of it, in a run, is a copy, whose function calls guarded copies of the agents that it holds
(`closures` says where they are found). What the function holds is looked at again at each call. A
tool that holds no agent is executed as it is, and so is any where a fault had to be contained.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple, cast

from langchain_core.tools import BaseTool

from shearpin.adapters.calls import current_run
from shearpin.adapters.langgraph.closures import Twin, twin_of
from shearpin.adapters.langgraph.compat import AnyGraph

__all__ = ["SubAgents"]

_MOST: Final = 256
_FUNCTIONS: Final = ("func", "coroutine")


class _Known(NamedTuple):
    """A tool, the copy that is executed in its place, and the functions in that."""

    tool: object
    other: object
    twins: tuple[Twin, ...]

    def holds_for(self, tool: object) -> bool:
        return self.tool is tool and all(twin.is_current() for twin in self.twins)


class SubAgents:
    """The tools of one tool node, as they are executed in a run.

    Args:
        wanted: whether an object is a graph that is to be guarded.
        guarded: makes a guarded copy of it.
    """

    def __init__(
        self, wanted: Callable[[object], bool], guarded: Callable[[AnyGraph], AnyGraph]
    ) -> None:
        self._wanted = wanted
        self._guarded = guarded
        self._known: dict[int, _Known] = {}

    def instead(self, tool: Any) -> Any:
        """What is to be executed in place of a tool; outside of a run the tool itself."""
        run = current_run()
        if run is None or tool is None:
            return tool
        try:
            known = self._known.get(id(tool))
            if known is None or not known.holds_for(tool):
                known = self._look(tool)
            return known.other
        except Exception as error:
            run.fault("subagents.instead", error)
            return tool

    def _look(self, tool: object) -> _Known:
        other: object = tool
        changed: dict[str, Twin] = {}
        if isinstance(tool, BaseTool):
            for name in _FUNCTIONS:
                twin = twin_of(getattr(tool, name, None), self._wanted, self._guarded)
                if twin is not None:
                    changed[name] = twin
            if changed:
                functions = {name: twin.function for name, twin in changed.items()}
                other = tool.model_copy(update=cast("dict[str, Any]", functions))
        known = _Known(tool, other, tuple(changed.values()))
        if len(self._known) >= _MOST:
            self._known.clear()
        self._known[id(tool)] = known
        return known

"""Tool calls of a run that may or may not have taken effect, by where they were made.

Contract: a node runs again as a whole, with every call in it. So before that is done, what is
noted here is asked. Only calls that are not declared read-only or idempotent are noted, and only
where no clear answer came back. Bounded: the oldest notes go first.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple, cast
from uuid import UUID

from shearpin.adapters.places import namespace_of

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig

    from shearpin.adapters.langgraph.plans import NodePlan

__all__ = ["Doubts"]

_MOST: Final = 1024
_PULL: Final = "__pregel_pull"


class _Origin(NamedTuple):
    """Where a call was made.

    Attributes:
        namespace: the path of tasks to it; empty where nobody knows.
        caller: the node that has called the `@task` in which it was made; empty where none has.
    """

    namespace: str
    caller: str


class Doubts:
    """The calls of one run whose outcome is unknown."""

    def __init__(self) -> None:
        self._open: dict[UUID, _Origin] = {}
        self._noted: dict[_Origin, bool] = {}
        self._lock = threading.Lock()

    def opened(self, id: UUID, metadata: Mapping[str, object] | None) -> None:
        """A call begins; `metadata` says where."""
        found = metadata or {}
        with self._lock:
            if len(self._open) >= _MOST:
                del self._open[next(iter(self._open))]
            self._open[id] = _Origin(namespace_of(found), _caller(found))

    def closed(self, id: UUID) -> None:
        """A call has a clear outcome."""
        with self._lock:
            self._open.pop(id, None)

    def failed(self, id: UUID, *, acts: bool) -> None:
        """A call ended without a clear answer; `acts` where it is known to change something."""
        with self._lock:
            origin = self._open.pop(id, _Origin("", ""))
            acts = self._noted.pop(origin, False) or acts
            if len(self._noted) >= _MOST:
                del self._noted[next(iter(self._noted))]
            self._noted[origin] = acts

    def within(self, plan: NodePlan, config: RunnableConfig) -> bool | None:
        """Whether such a call was made in a node execution: True where one is known to change
        something, False where one may, None where there was none."""
        if not self._noted:
            return None
        own = namespace_of(config.get("metadata") or {})
        graph = own.rpartition("|")[0]
        with self._lock:
            found = [
                acts
                for origin, acts in self._noted.items()
                if _made_in(origin, own, graph, plan.name, alone=plan.endings.entrypoint)
            ]
        return any(found) if found else None


def _made_in(origin: _Origin, own: str, graph: str, name: str, *, alone: bool) -> bool:
    namespace = origin.namespace
    if not namespace or namespace == own or namespace.startswith(f"{own}|"):
        return True
    # A `@task` stands beside the node that has called it; beside an entrypoint nothing else does.
    if alone:
        return not graph or namespace.startswith(f"{graph}|")
    return origin.caller == name and namespace.rpartition("|")[0] == graph


def _caller(metadata: Mapping[str, object]) -> str:
    """The node that has called the `@task` that metadata belongs to."""
    path, nested = metadata.get("langgraph_path"), False
    while isinstance(path, (tuple, list)):
        steps = cast("tuple[object, ...]", path)
        if len(steps) < 2:
            return ""
        if not isinstance(steps[1], (tuple, list)):
            return str(steps[1]) if nested and steps[0] == _PULL else ""
        path, nested = cast("object", steps[1]), True
    return ""

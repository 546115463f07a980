"""How deep agents call agents in a run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

__all__ = ["Levels"]

_MOST = 64
_BETWEEN = "/"


class Levels:
    """Where in the tree agents have asked a model; those are what a level counts.

    The agent that a run begins with is on level 1, an agent that it calls on level 2. What lies
    between two agents, such as a graph that asks no model itself, is no level.

    Example:
        >>> levels = Levels()
        >>> levels.add([])
        >>> levels.of(["tools"])
        2
        >>> levels.add(["tools"])
        >>> levels.of(["tools", "wrapper", "tools"]), levels.deepest
        (3, 2)
    """

    __slots__ = ("_agents",)

    def __init__(self) -> None:
        self._agents: set[str] = set()

    def add(self, path: Sequence[str]) -> None:
        """An agent asks a model; `path` names the graphs around it, outermost first."""
        if len(self._agents) < _MOST:
            self._agents.add(_BETWEEN.join(path))

    def of(self, path: Sequence[str]) -> int:
        """The level of an agent, 1-based."""
        return 1 + sum(_BETWEEN.join(path[:end]) in self._agents for end in range(len(path)))

    @property
    def deepest(self) -> int:
        """How many levels there were."""
        paths = [each.split(_BETWEEN) if each else [] for each in self._agents]
        return max((self.of(path) for path in paths), default=0)

    def clear(self) -> None:
        """A new run begins."""
        self._agents.clear()

    def dump(self) -> list[str]:
        """The state as JSON-ready data."""
        return sorted(self._agents)

    def load(self, data: Iterable[str]) -> None:
        """Restore what `dump` gave."""
        self._agents = set(data)

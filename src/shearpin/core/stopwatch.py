"""How long a run has taken, and how much of that it only waited; told the time, never asking for
it."""

from __future__ import annotations

__all__ = ["Stopwatch"]


class Stopwatch:
    """Wall time and working time of one scope.

    Working time leaves out waiting for people (between an interrupt and its resume) and for rate
    limits (between a 429 and the next attempt), as long as no other call is under way.

    Example:
        >>> watch = Stopwatch()
        >>> watch.start(0.0)
        >>> watch.wait(10.0)
        >>> watch.work(70.0)
        >>> watch.wall(75.0), watch.working(75.0)
        (75.0, 15.0)
    """

    __slots__ = ("_since", "_waited", "_waiting")

    def __init__(self) -> None:
        self._since: float | None = None
        self._waited = 0.0
        self._waiting: float | None = None

    def start(self, at: float) -> None:
        """The scope begins, unless it has begun already."""
        if self._since is None:
            self._since = at

    def wait(self, at: float) -> None:
        """From now on nothing is done but waiting."""
        if self._waiting is None:
            self._waiting = at

    def work(self, at: float) -> None:
        """Work goes on."""
        if self._waiting is not None:
            self._waited += max(0.0, at - self._waiting)
            self._waiting = None

    def wall(self, at: float) -> float:
        """Seconds since the start."""
        return 0.0 if self._since is None else max(0.0, at - self._since)

    def working(self, at: float) -> float:
        """Seconds since the start that were not spent waiting."""
        waiting = 0.0 if self._waiting is None else max(0.0, at - self._waiting)
        return max(0.0, self.wall(at) - self._waited - waiting)

    def dump(self, at: float) -> list[float]:
        """Wall and waiting time so far. The time until `load` in another process is not known."""
        return [round(self.wall(at), 3), round(self.wall(at) - self.working(at), 3)]

    def load(self, data: list[float], at: float) -> None:
        """Go on from what `dump` gave."""
        wall, self._waited = data
        self._since = at - wall
        self._waiting = None

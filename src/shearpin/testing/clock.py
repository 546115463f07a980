"""A clock for tests: it stands still until it is advanced."""

from __future__ import annotations

from threading import Lock

__all__ = ["ManualClock"]


class ManualClock:
    """Seconds that pass only when a test says so. Call it to read it; safe to share among threads.

    Args:
        start: the first reading, in seconds, 0 or more.

    Raises:
        ValueError: `start` or an advance is negative: a monotonic clock does not go back.

    Example:
        >>> clock = ManualClock()
        >>> clock.advance(1.5)
        1.5
        >>> clock()
        1.5
    """

    def __init__(self, start: float = 0.0) -> None:
        if start < 0:
            raise ValueError(f"start must be 0 seconds or more, not {start!r}")
        self._now = float(start)
        self._lock = Lock()

    def __call__(self) -> float:
        """The current reading, in seconds."""
        return self._now

    def advance(self, seconds: float) -> float:
        """Lets `seconds` (0 or more) pass; returns the new reading."""
        if seconds < 0:
            raise ValueError(f"a clock cannot go back by {-seconds!r} seconds; advance it by more")
        with self._lock:
            self._now += seconds
            return self._now

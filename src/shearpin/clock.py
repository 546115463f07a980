"""The only module that imports `time`.

Everything else is told the time: facts carry `at`, in monotonic seconds, and wall time appears in
reports only. Tests replace `monotonic` here, or hand a clock to whatever takes one.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TypeAlias

__all__ = ["Clock", "asleep", "epoch", "monotonic", "sleep", "wall_time"]

Clock: TypeAlias = Callable[[], float]
"""Seconds that never go back; where zero lies is of no matter."""


def monotonic() -> float:
    """Seconds on the machine's monotonic clock."""
    return time.monotonic()


def epoch() -> float:
    """Seconds since 1970: only for what has to be understood by other processes, after a restart
    too. It may be set back by whoever runs the machine."""
    return time.time()


def wall_time() -> str:
    """The current time for a report: ISO 8601 with zone, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def sleep(seconds: float) -> None:
    """Wait in this thread for so many seconds, 0 or more."""
    time.sleep(seconds)


async def asleep(seconds: float) -> None:
    """Let other tasks of the event loop run for so many seconds, 0 or more."""
    import asyncio

    await asyncio.sleep(seconds)

"""The only module that imports `time`.

Everything else is told the time: facts carry `at`, in monotonic seconds, and wall time appears in
reports only. Tests replace `monotonic` here, or hand a clock to whatever takes one.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TypeAlias

__all__ = ["Clock", "monotonic", "wall_time"]

Clock: TypeAlias = Callable[[], float]
"""Seconds that never go back; where zero lies is of no matter."""


def monotonic() -> float:
    """Seconds on the machine's monotonic clock."""
    return time.monotonic()


def wall_time() -> str:
    """The current time for a report: ISO 8601 with zone, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")

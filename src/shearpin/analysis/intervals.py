"""Confidence intervals for shares and for differences between two guards on the same runs.

Differences are paired: both guards saw the same runs, so what counts is on how many they differ.
Everything is closed form: no resampling, no chance.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

__all__ = ["Interval", "paired_ratio", "paired_share", "wilson"]

_Z: Final = 1.959963984540054
"""Of the standard normal distribution, for 95 %."""


class Interval(NamedTuple):
    """A value with the bounds between which it lies with 95 % confidence."""

    value: float
    low: float
    high: float

    @property
    def certain(self) -> bool:
        """Whether zero lies outside."""
        return self.low > 0 or self.high < 0


def wilson(part: int, whole: int) -> Interval:
    """A share with its score interval, which also holds for few runs and for shares of zero.

    *Source*: Wilson (1927), Probable inference, the law of succession, and statistical inference.

    Example:
        >>> round(wilson(0, 298).high, 4)
        0.0127
    """
    if whole <= 0:
        return Interval(0.0, 0.0, 1.0)
    share = part / whole
    spread = _Z**2 / whole
    middle = (share + spread / 2) / (1 + spread)
    half = _Z * math.sqrt(share * (1 - share) / whole + spread / (4 * whole)) / (1 + spread)
    low = 0.0 if part == 0 else max(0.0, middle - half)
    return Interval(share, low, 1.0 if part == whole else min(1.0, middle + half))


def paired_share(pairs: Sequence[tuple[bool, bool]]) -> Interval:
    """How much larger the share of the second is than that of the first, on the same runs.

    *Source*: Agresti and Min (2005), Simple improved confidence intervals for comparing matched
    proportions: half a run is added to each of the four kinds of pairs.

    Example:
        >>> paired_share([(False, False)] * 98 + [(True, False)] * 2).value
        -0.02
    """
    runs = len(pairs)
    if not runs:
        return Interval(0.0, -1.0, 1.0)
    gained = sum(second and not first for first, second in pairs)
    lost = sum(first and not second for first, second in pairs)
    b, c, n = gained + 0.5, lost + 0.5, runs + 2
    shift = (b - c) / n
    half = _Z * math.sqrt(max(0.0, b + c - (b - c) ** 2 / n)) / n
    value = (gained - lost) / runs
    return Interval(value, min(value, shift - half), max(value, shift + half))


def paired_ratio(rows: Sequence[tuple[float, float, float]]) -> Interval:
    """How much larger sum(second) / sum(base) is than sum(first) / sum(base).

    Args:
        rows: first, second and base of each run, e.g. steps saved by either guard, and all steps.

    *Source*: the usual linearised variance of a ratio estimator.

    Example:
        >>> paired_ratio([(1, 2, 10), (1, 2, 10)]).value
        0.1
    """
    base = sum(row[2] for row in rows)
    if not rows or base <= 0:
        return Interval(0.0, -1.0, 1.0)
    value = sum(second - first for first, second, _ in rows) / base
    count = len(rows)
    squares = sum((second - first - value * size) ** 2 for first, second, size in rows)
    half = _Z * math.sqrt(squares * count / max(1, count - 1)) / base
    return Interval(value, value - half, value + half)

"""When a budget will be used up, from the run's own trend, in constant memory and constant work.

What each step uses is fitted by a straight line over the step's number, older steps counting less
and less, because prompts grow and agents change their ways. The line is followed until the limit;
the spread around it gives the interval.

*Source*: exponentially discounted least squares; the interval adds the spread of a sum of
independent steps and the doubt about the line itself, at 80 %.
"""

from __future__ import annotations

from math import ceil, inf, sqrt
from typing import NamedTuple, cast

__all__ = ["Forecast", "Trend"]

_DISCOUNT = 0.94
_LEAST = 3
_Z = 1.28
_DOUBT = 2.0
_FAR = 100_000


class Forecast(NamedTuple):
    """When one limit will be reached if the run goes on as it did.

    Attributes:
        dimension: that runs out.
        step: the step in which it does, 1-based, with `step_low` and `step_high` around it at 80 %.
        at: the time, on the clock of the facts, with `at_low` and `at_high`.

    `step_high` and `at_high` are None where the run may well go on for ever.
    """

    dimension: str
    step: int
    step_low: int
    step_high: int | None
    at: float
    at_low: float
    at_high: float | None


class Trend:
    """What each step used, discounted. One per limited dimension.

    Example:
        >>> trend = Trend()
        >>> for step in range(1, 6):
        ...     trend.add(10.0, at=float(step))
        >>> found = trend.forecast("tokens", left=30.0, at=5.0)
        >>> (found.step, found.at)
        (8, 8.0)
    """

    __slots__ = ("_last", "_sums", "_time", "steps")

    def __init__(self) -> None:
        self.steps = 0
        self._sums = [0.0] * 6  # weights, x, y, xx, xy, yy; the latest x is 0
        self._time = 0.0  # usual seconds per step
        self._last: float | None = None

    def add(self, used: float, at: float) -> None:
        """One more step has used so much by this time."""
        w, x, y, xx, xy, yy = (value * _DISCOUNT for value in self._sums)
        # The origin moves on by one step: every earlier x becomes x - 1.
        self._sums = [w + 1, x - w, y + used, xx - 2 * x + w, xy - y, yy + used * used]
        if self._last is not None:
            took = max(0.0, at - self._last)
            self._time = took if self.steps < 2 else self._time + (took - self._time) * 0.2
        self._last = at
        self.steps += 1

    def forecast(self, dimension: str, left: float, at: float) -> Forecast | None:
        """When `left` more will be used; None before three steps, or if nothing is used."""
        if self.steps < _LEAST:
            return None
        line = self._line()
        middle = _steps(line, 0.0, left)
        if middle == inf:
            return None
        early, late = _steps(line, _Z, left), _steps(line, -_Z, left)
        steps, time = self.steps, self._time
        return Forecast(
            dimension,
            step=steps + ceil(middle),
            step_low=steps + ceil(early),
            step_high=None if late == inf else steps + ceil(late),
            at=at + middle * time,
            at_low=at + early * time,
            at_high=None if late == inf else at + late * time,
        )

    def _line(self) -> _Line:
        w, x, y, xx, xy, yy = self._sums
        below = max(w * xx - x * x, 1e-9)
        slope = (w * xy - x * y) / below
        level = (y - slope * x) / w
        rest = max(0.0, yy - level * y - slope * xy) / max(w - 2, 0.5)
        if rest <= 1e-9 * max(1.0, yy / w):
            return _Line(level, slope, 0.0, 0.0, 0.0, 0.0)
        sure = slope * slope * below / (rest * w)  # how far the growth is above its own error
        slope *= sure / (sure + _DOUBT)
        return _Line(
            (y - slope * x) / w, slope, rest, rest * xx / below, rest * w / below, -rest * x / below
        )

    def dump(self) -> list[object]:
        """The state as JSON-ready data."""
        return [self.steps, [round(value, 3) for value in self._sums], round(self._time, 3)]

    def load(self, data: object) -> None:
        """Restore what `dump` gave; time goes on from the next step."""
        steps, sums, time = cast("tuple[int, list[float], float]", data)
        self.steps, self._sums, self._time = steps, [float(value) for value in sums], time
        self._last = None


class _Line(NamedTuple):
    """What a step uses, `level` now and `slope` more each step, and how unsure all that is."""

    level: float
    slope: float
    noise: float
    level_error: float
    slope_error: float
    both_error: float

    def used(self, steps: float, deviations: float) -> float:
        """What so many steps will use, so many standard deviations above the middle."""
        ramp = steps * (steps + 1) / 2
        middle = self.level * steps + self.slope * ramp
        if not deviations:
            return middle
        error = self.noise * steps + self.level_error * steps * steps
        error += self.slope_error * ramp * ramp + 2 * self.both_error * steps * ramp
        return middle + deviations * sqrt(max(0.0, error))


def _steps(line: _Line, deviations: float, left: float) -> float:
    """Steps until the line, so many deviations above the middle, has used what is left."""
    if left <= 0:
        return 0.0
    high = 1.0
    while line.used(high, deviations) < left:
        high *= 2
        if high > _FAR:
            return inf
    low = high / 2 if high > 1 else 0.0
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (middle, high) if line.used(middle, deviations) < left else (low, middle)
    return round(high, 6)

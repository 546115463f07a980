"""When a limit will be reached, from the run's own trend."""

from __future__ import annotations

import json
import random

import pytest

from shearpin.core.forecast import Forecast, Trend


def trend_of(values: list[float], seconds: float = 2.0) -> Trend:
    trend = Trend()
    for step, value in enumerate(values, 1):
        trend.add(value, at=step * seconds)
    return trend


def test_an_even_run_is_certain() -> None:
    found = trend_of([10.0] * 6).forecast("tokens", left=40.0, at=12.0)
    assert found == Forecast("tokens", 10, 10, 10, 20.0, 20.0, 20.0)


def test_growing_prompts_are_followed() -> None:
    # 10, 20, 30, 40, 50 so far; 60 + 70 + 80 = 210 is used up in three more steps.
    found = trend_of([10.0, 20.0, 30.0, 40.0, 50.0]).forecast("usd", left=210.0, at=10.0)
    assert found is not None
    assert (found.step, found.step_low, found.step_high) == (8, 8, 8)


def test_nothing_is_said_too_early_or_of_what_is_not_used() -> None:
    assert trend_of([5.0, 5.0]).forecast("usd", 10.0, 4.0) is None
    assert trend_of([0.0] * 9).forecast("usd", 10.0, 18.0) is None


def test_a_run_that_fades_out_may_last_for_ever() -> None:
    assert trend_of([64.0, 32.0, 16.0, 8.0, 4.0]).forecast("usd", 1000.0, 10.0) is None


def test_what_is_used_up_is_used_up_now() -> None:
    found = trend_of([5.0] * 4).forecast("usd", 0.0, 8.0)
    assert found is not None
    assert (found.step, found.at) == (4, 8.0)


def test_the_interval_holds_for_about_four_of_five_noisy_runs() -> None:
    dice = random.Random(11)
    inside = 0
    runs = 400
    for _ in range(runs):
        costs = [max(0.0, dice.gauss(100, 30)) for _ in range(100)]
        left = 3000.0 - sum(costs[:12])
        found = trend_of(costs[:12]).forecast("usd", left, 24.0)
        if found is None:  # "may last for ever" is a miss here
            continue
        total, step = sum(costs[:12]), 12
        while total < 3000:
            total += costs[step]
            step += 1
        inside += found.step_low <= step <= (found.step_high or 10**9)
    assert 0.75 < inside / runs < 0.98


def test_a_change_of_ways_is_noticed() -> None:
    trend = trend_of([100.0] * 30 + [10.0] * 30)
    found = trend.forecast("usd", 100.0, 120.0)
    assert found is None or found.step - 60 > 5


@pytest.mark.parametrize("steps", [5, 5000])
def test_state_is_of_constant_size_and_survives(steps: int) -> None:
    trend = trend_of([7.0 + step % 3 for step in range(steps)])
    data = json.loads(json.dumps(trend.dump()))
    assert len(json.dumps(data)) < 160
    again = Trend()
    again.load(data)
    assert again.dump() == trend.dump()
    first, second = trend.forecast("usd", 500.0, 0.0), again.forecast("usd", 500.0, 0.0)
    assert first is not None
    assert second is not None
    assert abs(first.step - second.step) <= 1

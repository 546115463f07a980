"""When a failed attempt is made again, and after which wait."""

from __future__ import annotations

import random

import hypothesis.strategies as st
import pytest
from hypothesis import given

from shearpin.boundary import Classification, ErrorCategory, Retries
from shearpin.boundary.retrying import Attempt, Attempts, Loop, backoff
from shearpin.testing import ManualClock

seconds = st.floats(0, 1e6, allow_nan=False)


def failure(
    category: ErrorCategory = ErrorCategory.RETRYABLE,
    *,
    safe: bool = True,
    asked: float | None = None,
) -> Attempt:
    return Attempt(failure=Classification(category, "x", asked, safe, ValueError(), ""))


def walked(retries: Retries, *outcomes: Attempt, repeatable: bool = False, takes: float = 0.0):
    """The waits and the number of attempts until the end."""
    clock = ManualClock()
    attempts = Attempts(retries, lambda: repeatable, clock, lambda low, high: high)
    loop = Loop(attempts)
    waits: list[float] = []
    move = loop.next()
    while not isinstance(move, Attempt):
        if move is None:
            clock.advance(takes)
            move = loop.next(outcomes[min(attempts.made, len(outcomes)) - 1])
        else:
            waits.append(move)
            clock.advance(move)
            move = loop.next()
    return waits, attempts.made, move


@given(st.integers(1, 200), seconds, seconds, st.one_of(st.none(), seconds), st.integers(0, 2**32))
def test_a_wait_is_between_what_was_asked_and_the_cap(
    attempt: int, base: float, cap: float, asked: float | None, seed: int
) -> None:
    retries = Retries(base_seconds=base, cap_seconds=cap)
    wait = backoff(retries, attempt, asked, random.Random(seed).uniform)
    assert wait >= (asked or 0.0)
    assert wait <= max(cap, asked or 0.0)
    if asked is None:
        assert wait <= base * 2.0 ** (attempt - 1)


def test_the_same_seed_gives_the_same_waits() -> None:
    def waits(seed: int) -> list[float]:
        uniform = random.Random(seed).uniform
        return [backoff(Retries(), attempt, None, uniform) for attempt in range(1, 6)]

    assert waits(7) == waits(7) != waits(8)


def test_bounds_double_up_to_the_cap() -> None:
    retries = Retries(attempts=6, base_seconds=1.0, cap_seconds=5.0)
    waits, made, _ = walked(retries, failure())
    assert waits == [1.0, 2.0, 4.0, 5.0, 5.0]
    assert made == 6


def test_what_the_other_side_asks_for_is_waited_or_ends_the_attempts() -> None:
    retries = Retries(attempts=3, base_seconds=1.0, cap_seconds=10.0)
    waits, made, _ = walked(retries, failure(asked=7.0))
    assert waits == [8.0, 9.0]
    waits, made, last = walked(retries, failure(asked=11.0))
    assert (waits, made) == ([], 1)
    assert last.failure is not None


def test_no_attempt_begins_after_the_deadline() -> None:
    retries = Retries(attempts=99, base_seconds=4.0, cap_seconds=4.0, deadline_seconds=20.0)
    waits, made, _ = walked(retries, failure(), takes=3.0)
    assert made == 3  # at 0, 7 and 14; the next would begin at 21
    assert waits == [4.0, 4.0]


@pytest.mark.parametrize(
    ("attempt", "repeatable", "made"),
    [
        (failure(), False, 3),
        (failure(safe=False), False, 1),
        (failure(safe=False), True, 3),
        (failure(ErrorCategory.DEGRADABLE), True, 1),
        (failure(ErrorCategory.FATAL), True, 1),
        (Attempt(output="x"), True, 1),
        (Attempt(failure=failure().failure, final=True), True, 1),
    ],
)
def test_what_is_made_again(attempt: Attempt, repeatable: bool, made: int) -> None:
    assert walked(Retries(), attempt, repeatable=repeatable)[1] == made


def test_one_attempt_means_one() -> None:
    assert walked(Retries(attempts=1), failure(), repeatable=True)[1] == 1


def test_success_ends_the_loop() -> None:
    waits, made, last = walked(Retries(attempts=9), failure(), failure(), Attempt(output="x"))
    assert (len(waits), made, last.output) == (2, 3, "x")

"""Attempts at one call: whether there is another, and after which wait. Tenacity does the loop.

Contract: a failed attempt is repeated only where it may pass by itself, and either the other side
certainly did not act on it, or the call may be made twice. Waits are drawn from 0 to a bound that
doubles each time (full jitter); a wait that the other side asks for is kept, and one that is longer
than the cap ends the attempts. Nothing is waited or called in here.

*Source*: full jitter, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

from tenacity import RetryCallState, Retrying, retry_if_result

from shearpin.boundary.categories import Classification, ErrorCategory
from shearpin.boundary.settings import Retries

__all__ = ["Attempt", "Attempts", "Loop", "backoff"]

_MOST_DOUBLINGS: Final = 60

Uniform: TypeAlias = Callable[[float, float], float]
"""Draws a number between two others, as `random.uniform` does."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """What came of one attempt.

    Attributes:
        output: what was given back; None where it failed.
        failure: what is known of the failure; None where it worked.
        final: whether no other attempt may follow, whatever the failure is.
        answered: whether the host has made an answer of the failure by itself: `output`.
    """

    output: object = None
    failure: Classification | None = None
    final: bool = False
    answered: bool = False


def backoff(retries: Retries, attempt: int, asked: float | None, uniform: Uniform) -> float:
    """Seconds to wait after an attempt; 1 is the first.

    What the other side asked for is waited at least, with the jitter on top as far as the cap
    allows, so that not everybody comes back at the same moment.
    """
    bound = retries.base_seconds * 2.0 ** min(attempt - 1, _MOST_DOUBLINGS)
    jitter = uniform(0.0, min(bound, retries.cap_seconds))
    if asked is None or not asked > 0:  # also a number that is none, from a rule of the user's
        return jitter
    return max(asked, min(asked + jitter, retries.cap_seconds))


class Attempts:
    """The attempts at one call, as they are made.

    Args:
        retries: how many, and how far apart.
        repeatable: whether the call may be made again although it may have taken effect.
        now: monotonic seconds.
        uniform: the source of jitter.

    Attributes:
        made: how many there were.
        ambiguous: whether one of them may have taken effect although it failed.
        started: when the first began.
    """

    def __init__(
        self,
        retries: Retries,
        repeatable: Callable[[], bool],
        now: Callable[[], float],
        uniform: Uniform,
    ) -> None:
        self.retries = retries
        self.made = 0
        self.ambiguous = False
        self.started = now()
        self._repeatable = repeatable
        self._now = now
        self._uniform = uniform

    def again(self, attempt: Attempt) -> bool:
        """Whether a failed attempt is one that may be repeated."""
        failure = attempt.failure
        if failure is None or attempt.final or failure.category is not ErrorCategory.RETRYABLE:
            return False
        return failure.safe_to_retry or self._repeatable()

    def wait(self, state: RetryCallState) -> float:
        """Seconds until the next attempt."""
        outcome = state.outcome
        failure = None if outcome is None else outcome.result().failure
        asked = None if failure is None else failure.retry_after
        return backoff(self.retries, self.made, asked, self._uniform)

    def over(self, state: RetryCallState) -> bool:
        """Whether there is no other attempt, for their number or for time."""
        wait, retries = state.upcoming_sleep, self.retries
        if self.made >= retries.attempts or wait > retries.cap_seconds:
            return True
        deadline = retries.deadline_seconds
        return deadline is not None and self._now() - self.started + wait > deadline


class Loop:
    """Tenacity's loop, one move at a time, so that the caller does the waiting and the calling.

    Args:
        attempts: decides.

    Example:
        >>> attempts = Attempts(Retries(), bool, float, lambda low, high: high)
        >>> loop = Loop(attempts)
        >>> loop.next(), loop.next(Attempt(output="done"))
        (None, Attempt(output='done', failure=None, final=False, answered=False))
    """

    def __init__(self, attempts: Attempts) -> None:
        self._attempts = attempts
        self._retrying = Retrying(
            retry=retry_if_result(attempts.again),
            wait=attempts.wait,
            stop=attempts.over,
            retry_error_callback=_last,
        )
        self._state = RetryCallState(self._retrying, None, (), {})
        self._retrying.begin()

    def next(self, made: Attempt | None = None) -> float | Attempt | None:
        """The next move, told of the attempt that was just made.

        Returns:
            None: make an attempt. A number: wait so many seconds, then ask again. An attempt: that
            was the last one.
        """
        if made is not None:
            self._state.set_result(made)
        move = self._retrying.iter(self._state)
        if isinstance(move, Attempt):
            return move
        if isinstance(move, float):  # `DoSleep`
            self._state.prepare_for_next_attempt()
            return float(move)
        self._attempts.made += 1
        return None


def _last(state: RetryCallState) -> Attempt:
    outcome = state.outcome
    assert outcome is not None
    return outcome.result()

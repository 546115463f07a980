"""What is to be done next about one model call: decided here, carried out elsewhere.

Contract: no I/O and no waiting: told of a failure or an answer, it says whether to ask again (whom,
after which wait, with what changed), to take the answer, or to give up. Attempts are bounded by the
settings, for the call and for the run. Every failed attempt is told to the run's tally.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple, Protocol, TypeAlias

from shearpin.boundary.categories import Classification, ErrorCategory
from shearpin.boundary.retrying import Uniform, backoff
from shearpin.boundary.settings import Answers, Retries
from shearpin.boundary.tally import RunErrors
from shearpin.boundary.useless import UselessAnswer

__all__ = [
    "AlwaysUp",
    "Ask",
    "Availabilities",
    "Fault",
    "Lost",
    "ModelCall",
    "Step",
    "Take",
    "UselessAnswer",
    "type_of",
]

Fault: TypeAlias = Literal["cut_off", "filtered", "refused", "empty", "unreadable", "invalid"]
"""What is wrong with an answer: it ran into its length limit, was withheld by a filter, is the
model's refusal, holds nothing, asks for tools in a way that cannot be read, or is not of the form
that was asked for."""

_TYPES: Final[dict[Fault, str]] = {
    "cut_off": "cut_off",
    "filtered": "content_filter",
    "refused": "refusal",
    "empty": "empty_answer",
    "unreadable": "bad_output",
    "invalid": "bad_output",
}
_FAULTS: Final[dict[str, Fault]] = {"bad_output": "invalid", "content_filter": "filtered"}
_ONCE: Final = frozenset({"cut_off", "filtered"})
_MODEL_ERRORS: Final = frozenset(
    {"authentication", "permission", "not_found", "invalid_request", "configuration", "limit"}
)
"""Fatal for one model, while another one may still answer."""

_MOST_RECORDS = 8
_LONGEST = 200


def type_of(fault: Fault) -> str:
    """The type of failure that an answer with this fault is."""
    return _TYPES[fault]


class Ask(NamedTuple):
    """Make an attempt.

    Attributes:
        target: whom to ask: 0 is the model itself, then the fallbacks in order.
        wait_seconds: before that.
        shorten: whether the request has to become shorter first.
        fault: of the last answer, for the model to be told; None where there is nothing to tell.
    """

    target: int
    wait_seconds: float = 0.0
    shorten: bool = False
    fault: Fault | None = None


class Take(NamedTuple):
    """The latest answer is the answer, for better or worse.

    Attributes:
        fault: what is wrong with it; None where it is as it should be.
    """

    fault: Fault | None = None


class Lost(NamedTuple):
    """There is no answer.

    Attributes:
        failure: why: the first failure of the model itself.
    """

    failure: Classification


Step: TypeAlias = Ask | Take | Lost


class Availabilities(Protocol):
    """What is known of whether models are up; a model without settings always is."""

    def refused(self, target: int) -> float | None:
        """Seconds for which the model is not to be asked; None where it may be asked now."""
        ...

    def told(self, target: int, *, up: bool) -> None:
        """What came of asking."""
        ...


class AlwaysUp:
    """No model ever counts as down."""

    def refused(self, target: int) -> float | None:
        """Nobody is refused."""
        return None

    def told(self, target: int, *, up: bool) -> None:
        """Nothing is remembered."""


@dataclass(slots=True)
class ModelCall:
    """One call of a model with fallbacks. See the module's contract.

    Attributes:
        names: of the model and its fallbacks, for reports.
        retries: how failed attempts are made again.
        answers: what is done about answers of no use.
        tally: of the run.
        now: monotonic seconds.
        uniform: the source of jitter.
        up: which models count as down.
        failures: what has failed so far: names and classifications.
        target: who is asked at the moment.
        attempts: made so far, by all models.
    """

    names: Sequence[str]
    retries: Retries
    answers: Answers
    tally: RunErrors
    now: Callable[[], float]
    uniform: Uniform
    up: Availabilities = field(default_factory=AlwaysUp)
    failures: list[tuple[str, Classification]] = field(
        default_factory=list["tuple[str, Classification]"]
    )
    target: int = -1
    attempts: int = 0
    shortened: bool = False
    _tried: int = 0
    _backoffs: int = 0
    _again: dict[Fault, int] = field(default_factory=dict[Fault, int])
    _started: float | None = None

    def first(self) -> Ask | Lost:
        """How the call begins."""
        self._started = self.now()
        return self._next()

    def failed(
        self, failure: Classification, *, tries: int = 1, longest: float | None = None
    ) -> Step:
        """An attempt has raised an error, which is no control flow.

        Args:
            failure: what it was.
            tries: how often the client itself has tried before it gave up.
            longest: seconds that there is time to wait for, at most.
        """
        name = self.names[self.target]
        self.tally.error(failure, model=name)
        self.failures.append((name, failure))
        down = failure.category is ErrorCategory.RETRYABLE or failure.error_type == "quota"
        self.up.told(self.target, up=not down)
        self._tried += tries
        if failure.error_type == "context_length":
            if self.answers.too_long is None or self.shortened or not self._retry(0.0):
                return self._next()
            self.shortened = True
            return self._ask(shorten=True)
        fault = _FAULTS.get(failure.error_type)
        if fault is not None:
            return self._once_more(fault) or self._next()
        if failure.category is ErrorCategory.RETRYABLE and self._tried < self.retries.attempts:
            wait = self._wait(failure.retry_after, longest)
            if wait is not None and self._retry(wait):
                return self._ask(wait_seconds=wait)
        if failure.category is ErrorCategory.FATAL and failure.error_type not in _MODEL_ERRORS:
            return Lost(self.failure)
        return self._next()

    def answered(self, fault: Fault | None, message: str = "", *, usable: bool = False) -> Step:
        """An attempt has brought an answer.

        Args:
            fault: what is wrong with it.
            message: that in words, for reports.
            usable: whether it can be taken all the same, where nothing better comes.
        """
        name = self.names[self.target]
        self.up.told(self.target, up=True)
        if fault is None or self.answers.again == 0:
            if self.target > 0:
                self.tally.degraded(f"{name} has answered in its place", model=self.names[0])
            return Take(fault)
        self._useless(fault, message)
        again = self._once_more(fault)
        if again is not None:
            return again
        if usable:
            return Take(fault)
        step = self._next()
        return Take(fault) if isinstance(step, Lost) else step

    def broke_off(self, failure: Classification) -> Lost:
        """An attempt has failed that cannot be made again, because somebody has read its answer."""
        name = self.names[self.target]
        self.tally.error(failure, model=name)
        self.failures.append((name, failure))
        self.up.told(self.target, up=failure.category is not ErrorCategory.RETRYABLE)
        return Lost(failure)

    def was_read(self, fault: Fault, message: str = "") -> Take:
        """An answer of no use that somebody has read already: it stays."""
        self._useless(fault, message)
        self.up.told(self.target, up=True)
        return Take(fault)

    @property
    def failure(self) -> Classification:
        """The first failure, which is the model's own unless that was not asked at all."""
        return self.failures[0][1]

    def record(self) -> dict[str, object] | None:
        """What happened on the way, for programs; None where the first attempt was the answer."""
        if not self.failures and self.attempts == 1:
            return None
        return {
            "model": self.names[self.target] if self.target < len(self.names) else None,
            "attempts": self.attempts,
            "fallback": 0 < self.target < len(self.names),
            "shortened": self.shortened,
            "failures": [
                {
                    "model": name,
                    "category": one.category.value,
                    "error_type": one.error_type,
                    "message": one.message[:_LONGEST],
                }
                for name, one in self.failures[:_MOST_RECORDS]
            ],
        }

    # -- decisions ------------------------------------------------------------------------------

    def _next(self) -> Ask | Lost:
        """The next model that is not known to be down."""
        self.shortened, self._tried, self._backoffs = False, 0, 0
        self._again.clear()
        while self.target + 1 < len(self.names):
            self.target += 1
            seconds = self.up.refused(self.target)
            if seconds is None:
                return self._ask()
            name = self.names[self.target]
            self.tally.refused(f"counts as down for {seconds:.0f} s more", model=name)
            down = f"{name} counts as down; it is tried again in {seconds:.0f} s"
            self.failures.append(
                (
                    name,
                    Classification(
                        ErrorCategory.DEGRADABLE,
                        "unavailable",
                        seconds,
                        True,
                        UselessAnswer(down, "unavailable"),
                        down,
                    ),
                )
            )
        return Lost(self.failure)

    def _useless(self, fault: Fault, message: str) -> None:
        name = self.names[self.target]
        kind = _TYPES[fault]
        failure = Classification(
            ErrorCategory.DEGRADABLE, kind, None, True, UselessAnswer(message, kind), message
        )
        self.tally.error(failure, model=name)
        self.failures.append((name, failure))

    def _ask(
        self, wait_seconds: float = 0.0, *, shorten: bool = False, fault: Fault | None = None
    ) -> Ask:
        self.attempts += 1
        return Ask(self.target, wait_seconds, shorten, fault)

    def _once_more(self, fault: Fault) -> Ask | None:
        """The same model, told what was wrong; None where that was tried often enough."""
        most = min(1, self.answers.again) if fault in _ONCE else self.answers.again
        asked = self._again.get(fault, 0)
        if fault == "refused" or asked >= most or not self._retry(0.0):
            return None
        self._again[fault] = asked + 1
        return self._ask(fault=fault)

    def _retry(self, wait: float) -> bool:
        """Take one of the run's retries."""
        if self.tally.exhausted:
            return False
        return self.tally.retry(model=self.names[self.target], waited_seconds=wait)

    def _wait(self, asked: float | None, longest: float | None) -> float | None:
        """Seconds to wait before the next attempt; None where that would be too long."""
        retries = self.retries
        self._backoffs += 1
        wait = backoff(retries, self._backoffs, asked, self.uniform)
        if wait > retries.cap_seconds or (longest is not None and wait > longest):
            return None
        if retries.deadline_seconds is not None and self._started is not None:
            passed = self.now() - self._started
            if passed + wait > retries.deadline_seconds:
                return None
        return wait

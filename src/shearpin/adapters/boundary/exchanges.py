"""One model call on its way: what attempts have brought, and what is made of that.

Contract: errors that attempts have raised are known from errors of ours, so that only the former
leave. Control flow (stops, interrupts, cancellation) passes through untouched, at once. What was
streamed to somebody already is not made again unless the settings say so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Generic, TypeVar

from langchain_core.messages import BaseMessage

from shearpin.adapters.boundary.answers import fault_of, fault_words, is_usable
from shearpin.adapters.boundary.attempts import Attempt
from shearpin.adapters.boundary.bounds import Bounds
from shearpin.adapters.money.metering import spending_of
from shearpin.adapters.run import Run
from shearpin.adapters.signals import stop_in
from shearpin.boundary.categories import Classification, ErrorCategory
from shearpin.boundary.classification import is_control
from shearpin.boundary.modelcalls import Fault, Lost, ModelCall, Step, Take, UselessAnswer

__all__ = ["TRIED", "Exchange", "Outcome", "mark_tried", "read_message", "tries_of", "was_tried"]

T = TypeVar("T")

TRIED: Final = "__shearpin_tried__"
"""Marks an error of a model whose retries are used up, so that nobody begins anew with them."""

_CLIENTS: Final = ("openai", "anthropic", "mistralai", "groq", "cohere", "together")
_CLIENT_RETRIES: Final = 2
_REPEATED: Final = frozenset(
    {"rate_limit", "overloaded", "server_error", "timeout", "network", "conflict"}
)
_UNPARSED: Final = frozenset({"invalid_arguments", "validation", "bad_output"})


@dataclass(slots=True)
class Outcome(Generic[T]):
    """What came of a model call.

    Attributes:
        answer: the answer; None where there is none.
        fault: what is wrong with it; None where it is as it should be.
        failure: why there is no answer.
        error: the model's own error that goes with it, for whoever wants it raised.
        text: what was streamed of an answer that broke off.
        record: what happened on the way, for programs.
    """

    answer: T | None = None
    fault: Fault | None = None
    failure: Classification | None = None
    error: Exception | None = None
    text: str = ""
    record: dict[str, object] | None = None


@dataclass(slots=True)
class Exchange(Generic[T]):
    """One call on its way.

    Attributes:
        call: decides.
        bounds: of the run.
        run: for whose budget waits count as waiting; None outside of a guarded run.
        models: whom it is made of, for what their clients do by themselves.
        read: what is wrong with an answer, and whether it is usable all the same.
        listened: whether somebody sees the answer while it is made.
        emitted: whether something was given out to somebody; None where only callbacks can tell.
        parses: whether answers are parsed on the way, so that what is invalid are they.
        heard: what attempts have raised; any other error is ours.
    """

    call: ModelCall
    bounds: Bounds
    run: Run | None
    models: Sequence[object]
    read: Callable[[T], tuple[Fault | None, bool]]
    listened: bool = False
    emitted: bool | None = None
    parses: bool = False
    heard: list[Exception] = field(default_factory=list[Exception])
    _error: Exception | None = None
    _broken: str = ""
    _latest: T | None = None

    @property
    def said(self) -> str:
        """What the latest failure was, in words."""
        return self.call.failures[-1][1].message if self.call.failures else ""

    def attempt(self) -> Attempt:
        """The next attempt, as its callbacks will see it."""
        return Attempt(fault_of if self.bounds.boundary.answers.again else None)

    def failed(self, error: Exception, attempt: Attempt) -> Step:
        """What to do about an error; raises it where it is none."""
        if stop_in(error) is not None or is_control(error):
            raise error
        failure = self.bounds.classify(error)
        if failure.category is ErrorCategory.CONTROL:
            raise error
        self._error = self._error or error
        try:
            return self._decided(error, failure, attempt)
        except Exception as fault:  # ours: the call fails as it would have failed without us
            self.bounds.tally.fault("models.failed", fault)
            return Lost(failure)

    def _decided(self, error: Exception, failure: Classification, attempt: Attempt) -> Step:
        call = self.call
        if self.parses and failure.error_type in _UNPARSED:
            failure = replace(failure, category=ErrorCategory.DEGRADABLE, error_type="bad_output")
        spending = spending_of(self.run) if self.run is not None else None
        longest = spending.seconds_left() if spending is not None else None
        tries = 1 if attempt.streamed else tries_of(self.models[call.target], error, failure)
        if self._was_seen(attempt):
            self._broken = attempt.text
            return call.broke_off(failure)
        return call.failed(failure, tries=tries, longest=longest)

    def answered(self, answer: T, attempt: Attempt) -> Step:
        """What to do about an answer."""
        self._latest = answer
        try:
            return self._judged(answer, attempt)
        except Exception as fault:  # ours: the answer is taken as it is
            self.bounds.tally.fault("models.answered", fault)
            return Take()

    def _judged(self, answer: T, attempt: Attempt) -> Step:
        fault, usable = self.read(answer)
        if fault is not None and self._was_seen(attempt):
            return self.call.was_read(fault, fault_words(fault))
        said = "" if fault is None else fault_words(fault)
        return self.call.answered(fault, said, usable=usable)

    def _was_seen(self, attempt: Attempt) -> bool:
        """Whether somebody has read the attempt, so that another one would begin before them."""
        if self.bounds.boundary.answers.restart_streams:
            return False
        if self.emitted is not None:
            return self.emitted
        return self.listened and bool(attempt.text.strip())

    def rescued(self, error: Exception) -> Outcome[T] | None:
        """What there is where we have failed ourselves; None where nobody was asked so far.

        Raises what attempts have raised, stops among them.
        """
        if isinstance(error, UselessAnswer) or any(error is one for one in self.heard):
            raise error
        self.bounds.tally.fault("models", error)
        if self._latest is not None:
            return Outcome(self._latest)
        if not self.heard:
            return None
        return Outcome(failure=self.bounds.classify(self.heard[0]), error=self.heard[0])

    def waits(self) -> None:
        """The time until the next call is spent waiting, not working."""
        spending = spending_of(self.run) if self.run is not None else None
        if spending is not None:
            for book in spending.purse.account.own:
                book.watch.wait(self.bounds.now())

    def outcome(self, step: Step) -> Outcome[T]:
        """What came of it all."""
        record = self.call.record()
        if isinstance(step, Take):
            return Outcome(self._latest, step.fault, record=record)
        assert isinstance(step, Lost)
        error = self._error
        if error is not None:
            mark_tried(error)
        return Outcome(failure=step.failure, error=error, text=self._broken, record=record)


def was_tried(*errors: BaseException | None) -> bool:
    """Whether one of the errors is of something, e.g. a model, whose retries are used up."""
    return any(getattr(error, TRIED, False) for error in errors)


def mark_tried(error: BaseException) -> None:
    """Let it be known that an error was tried again as often as it may be."""
    try:
        setattr(error, TRIED, True)
    except AttributeError:
        error.add_note("tried again as often as the boundary allows")


def read_message(message: BaseMessage | None) -> tuple[Fault | None, bool]:
    """What is wrong with a message, and whether it is usable all the same."""
    if message is None:
        return None, True
    fault = fault_of(message)
    return fault, fault is None or is_usable(message, fault)


def tries_of(model: object, error: BaseException, failure: Classification) -> int:
    """How often a client has tried by itself before it raised an error.

    Clients try again as well, three times in all by default. Those count, so that three attempts
    of ours do not become nine.
    """
    if failure.error_type not in _REPEATED:
        return 1
    inner: Any = getattr(model, "bound", model)
    if not hasattr(inner, "max_retries"):
        return 1
    spoken = {kind.__module__.partition(".")[0] for kind in type(failure.root).__mro__}
    spoken |= {kind.__module__.partition(".")[0] for kind in type(error).__mro__}
    retries: object = inner.max_retries
    if retries is None:
        retries = _CLIENT_RETRIES if spoken.intersection(_CLIENTS) else 0
    elif type(inner).__module__.partition(".")[0].removeprefix("langchain_") in _CLIENTS:
        retries = retries if spoken.intersection(_CLIENTS) else 0  # it broke in mid-stream
    return 1 + retries if isinstance(retries, int) and retries > 0 else 1

"""A model call carried out as `boundary.modelcalls` decides: attempts, waits, fallbacks.

Contract: where there is no usable answer, the outcome says why, with the model's own first error.
What attempts raise as control flow leaves at once; a fault of ours never does: the call is made as
it is, or its answer is taken as it is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from shearpin.adapters.boundary.attempts import attempting
from shearpin.adapters.boundary.bounds import Bounds
from shearpin.adapters.boundary.exchanges import TRIED, Exchange, Outcome, read_message
from shearpin.boundary.modelcalls import (
    AlwaysUp,
    Ask,
    Availabilities,
    ModelCall,
    Step,
    UselessAnswer,
)
from shearpin.boundary.settings import Availability

__all__ = [
    "TRIED",
    "Exchange",
    "Outcome",
    "adrive",
    "decider",
    "drive",
    "finished",
    "name_of",
    "opened",
    "read_message",
]

T = TypeVar("T")


def drive(
    exchange: Exchange[T], prepare: Callable[[Ask], Callable[[], T]], plain: Callable[[], T]
) -> Outcome[T]:
    """Make attempts until there is an answer, or none to be had.

    Args:
        exchange: the call.
        prepare: gets an attempt ready; calling what it gives back makes it.
        plain: makes the call as it is; asked where we fail before there was an attempt.
    """
    try:
        return _driven(exchange, prepare)
    except Exception as error:
        rescued = exchange.rescued(error)
    return Outcome(plain()) if rescued is None else rescued


async def adrive(
    exchange: Exchange[T],
    prepare: Callable[[Ask], Awaitable[Callable[[], Awaitable[T]]]],
    plain: Callable[[], Awaitable[T]],
) -> Outcome[T]:
    """`drive`, for asynchronous code."""
    try:
        return await _adriven(exchange, prepare)
    except Exception as error:
        rescued = exchange.rescued(error)
    return Outcome(await plain()) if rescued is None else rescued


def _driven(exchange: Exchange[T], prepare: Callable[[Ask], Callable[[], T]]) -> Outcome[T]:
    step: Step = exchange.call.first()
    while isinstance(step, Ask):
        if step.wait_seconds:
            exchange.waits()
            exchange.bounds.sleep(step.wait_seconds)
        attempt, call = exchange.attempt(), prepare(step)
        answer: Any = None
        error: Exception | None = None
        with attempting(attempt):
            try:
                answer = call()
            except Exception as raised:
                exchange.heard.append(error := raised)
        if error is not None:
            step = exchange.failed(error, attempt)
        else:
            step = exchange.answered(answer, attempt)
    return exchange.outcome(step)


async def _adriven(
    exchange: Exchange[T], prepare: Callable[[Ask], Awaitable[Callable[[], Awaitable[T]]]]
) -> Outcome[T]:
    decide = decider(exchange)
    step = await decide(exchange.call.first)
    while isinstance(step, Ask):
        if step.wait_seconds:
            exchange.waits()
            await exchange.bounds.asleep(step.wait_seconds)
        attempt, call = exchange.attempt(), await prepare(step)
        answer: Any = None
        error: Exception | None = None
        with attempting(attempt):
            try:
                answer = await call()
            except Exception as raised:
                exchange.heard.append(error := raised)
        if error is not None:
            step = await decide(exchange.failed, error, attempt)
        else:
            step = await decide(exchange.answered, answer, attempt)
    return exchange.outcome(step)


def decider(exchange: Exchange[Any]) -> Callable[..., Awaitable[Step]]:
    """How decisions are asked for in an event loop: in a thread, where a store that blocks has to
    say which models are up."""
    blocking = exchange.bounds.boundary.availability is not None and exchange.bounds.store.blocking

    async def decided(decide: Callable[..., Step], *args: object) -> Step:
        return await asyncio.to_thread(decide, *args) if blocking else decide(*args)

    return decided


def finished(bounds: Bounds, outcome: Outcome[T], finish: Callable[[], T]) -> T:
    """What is made of an outcome; where we fail at that, the bare answer or the model's error."""
    try:
        return finish()
    except Exception as fault:
        if fault is outcome.error or isinstance(fault, UselessAnswer):
            raise
        bounds.tally.fault("models.finished", fault)
        if outcome.answer is None:
            raise (outcome.error or fault) from None
        return outcome.answer


def opened(bounds: Bounds, models: Sequence[object]) -> ModelCall:
    """A call of a model with its fallbacks, by a run's boundary."""
    boundary, names = bounds.boundary, [name_of(model) for model in models]
    up: Availabilities = AlwaysUp()
    if boundary.availability is not None:
        up = _Breakers(bounds, names, boundary.availability)
    return ModelCall(
        names,
        boundary.retries,
        boundary.answers,
        bounds.tally,
        bounds.now,
        bounds.shared.uniform,
        up,
    )


@dataclass(slots=True)
class _Breakers:
    """Whether models are up, by their breakers. Where the store fails, they are."""

    bounds: Bounds
    names: Sequence[str]
    settings: Availability
    _admitted: dict[int, Any] = field(default_factory=dict[int, Any])

    def refused(self, target: int) -> float | None:
        from shearpin.boundary.availability import Refused

        try:
            breaker = self.bounds.breaker(f"model:{self.names[target]}", self.settings)
            found = breaker.admit()
        except Exception as error:
            self.bounds.tally.fault("availability.admit", error)
            return None
        if isinstance(found, Refused):
            return found.retry_after
        self._admitted[target] = found
        return None

    def told(self, target: int, *, up: bool) -> None:
        admitted = self._admitted.get(target)
        if admitted is None:
            return
        try:
            breaker = self.bounds.breaker(f"model:{self.names[target]}", self.settings)
            (breaker.succeeded if up else breaker.failed)(admitted)
        except Exception as error:
            self.bounds.tally.fault("availability.told", error)


def name_of(model: object) -> str:
    """A model's name, with its provider where that is known."""
    inner: Any = getattr(model, "bound", model)
    told: dict[str, object] = {}
    params = getattr(inner, "_get_ls_params", None)
    if callable(params):
        told = dict(cast("Any", params)())
    named = told.get("ls_model_name") or getattr(inner, "model_name", None)
    named = named or getattr(inner, "model", None) or getattr(inner, "name", None)
    provider = told.get("ls_provider")
    name = named if isinstance(named, str) else type(inner).__name__
    return f"{provider}/{name}" if isinstance(provider, str) and provider else name

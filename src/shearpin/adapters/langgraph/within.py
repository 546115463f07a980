"""A guarded graph within another run: its own budget is nested in the run's."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextvars import Token
from typing import Any, cast

from shearpin.adapters.calls import HANDLER, CallLayer
from shearpin.adapters.money.metering import NESTED, nested_spending
from shearpin.adapters.money.paying import PayingCallLayer
from shearpin.adapters.money.spending import Spending
from shearpin.adapters.run import Run
from shearpin.recipe import Guard

__all__ = ["awithin", "within"]


def within(run: Run, recipe: Guard, chunks: Iterator[Any]) -> Iterator[Any]:
    """A stream of a graph that spends from its own budget and from the run's."""
    spending = nested_spending(recipe, run)
    if spending is None:
        yield from chunks
        return
    handler = PayingCallLayer(run)
    try:
        while True:
            tokens = NESTED.set((run, spending)), HANDLER.set(handler)
            try:
                chunk = next(chunks)
            finally:
                _back(*tokens)
            yield chunk
    except StopIteration:
        return
    finally:
        cast("Any", chunks).close()
        spending.finish(interrupted=False)


async def awithin(run: Run, recipe: Guard, chunks: AsyncIterator[Any]) -> AsyncIterator[Any]:
    """`within`, for asynchronous streams."""
    spending = nested_spending(recipe, run)
    if spending is None:
        async for chunk in chunks:
            yield chunk
        return
    handler = PayingCallLayer(run)
    try:
        while True:
            tokens = NESTED.set((run, spending)), HANDLER.set(handler)
            try:
                chunk = await anext(chunks)
            finally:
                _back(*tokens)
            yield chunk
    except StopAsyncIteration:
        return
    finally:
        await cast("Any", chunks).aclose()
        spending.finish(interrupted=False)


def _back(nested: Token[tuple[Run, Spending] | None], handler: Token[CallLayer | None]) -> None:
    try:
        NESTED.reset(nested)
        HANDLER.reset(handler)
    except ValueError:  # closed from another context than the one that was reading
        NESTED.set(None)

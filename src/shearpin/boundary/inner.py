"""What goes on within a tool call: the calls that it makes in turn, and what it has raised.

Contract: travels with the context of the call, into threads and tasks that it starts. A tool call
that no boundary runs has none of this.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shearpin.boundary.results import ToolResult

__all__ = ["OWN", "WITHIN", "Inner", "attempt_within", "calls_within", "raised_within"]


class Inner:
    """What went on within one attempt at a tool call.

    Attributes:
        started: whether the tool was reached: its host may answer a call by itself.
        calls: model and tool calls that were made.
        raised: what the tool has raised, also where the host has made an answer of it.
        given: what a resilient function within it has come to last, which may be its output.
        recorded: name of the tool, where its effect is recorded; nobody within it records it again.
    """

    __slots__ = ("calls", "given", "raised", "recorded", "started")

    def __init__(self, recorded: str = "") -> None:
        self.recorded = recorded
        self.started = False
        self.calls = 0
        self.raised: BaseException | None = None
        self.given: ToolResult | None = None


WITHIN: ContextVar[Inner | None] = ContextVar("shearpin_within", default=None)
"""The attempt that this code belongs to."""

OWN: ContextVar[str] = ContextVar("shearpin_own", default="")
"""Name of the tool that is being called and records its effect itself; nobody around it does."""


def calls_within() -> None:
    """A call is made; if that is within a tool call, the tool does more than one thing."""
    inner = WITHIN.get()
    if inner is not None:
        inner.calls += 1


def raised_within(error: BaseException) -> None:
    """The tool itself has raised."""
    inner = WITHIN.get()
    if inner is not None:
        inner.raised = error


@contextmanager
def attempt_within(inner: Inner) -> Generator[None]:
    """One attempt, of which `inner` tells afterwards what went on."""
    inner.calls, inner.raised, inner.started, inner.given = 0, None, False, None
    token = WITHIN.set(inner)
    try:
        yield
    finally:
        # What is given up in an event loop may be closed from another context.
        with suppress(ValueError):
            WITHIN.reset(token)

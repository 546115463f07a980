"""The exceptions that carry a stop through code that is not ours.

Contract: a stop is raised by a refused call and turned into a normal end by the nearest place that
can end something: a guarded node, a guarded tool call, or the `with` block of a run. It never
reaches the caller of a guarded graph. The first refusal in a task bubbles through LangGraph's retry
policies, error handlers and tool nodes like an interrupt; user code and retry layers that catch
`Exception` may swallow it, so that further refusals in the same task are no `Exception` at all.
"""

from __future__ import annotations

from langgraph.errors import GraphBubbleUp, GraphInterrupt

from shearpin.verdicts import Halt

__all__ = ["HardStop", "PausingStop", "Stop", "stop_in"]

_DEEPEST = 16


class Stop(GraphBubbleUp):
    """A call was refused because the run has been stopped."""

    def __init__(self, halt: Halt) -> None:
        super().__init__(halt.message)
        self.halt = halt


class PausingStop(GraphInterrupt):
    """A call was refused where no node of ours can end the run: LangGraph pauses it instead."""

    def __init__(self, halt: Halt) -> None:
        super().__init__(())
        self.halt = halt


class HardStop(BaseException):
    """A call was refused again after the first refusal had been swallowed."""

    def __init__(self, halt: Halt) -> None:
        super().__init__(halt.message)
        self.halt = halt


def stop_in(error: BaseException) -> Halt | None:
    """The stop that an exception is, wraps, was raised from, or holds in a group; None if none."""
    if not isinstance(error, (Exception, HardStop, BaseExceptionGroup)):
        return None  # cancellation and the like are never ours to swallow
    waiting: list[BaseException] = [error]
    for _ in range(_DEEPEST):
        if not waiting:
            return None
        current = waiting.pop(0)
        if isinstance(current, (Stop, HardStop, PausingStop)):
            return current.halt
        if isinstance(current, BaseExceptionGroup):
            waiting.extend(current.exceptions)  # pyright: ignore[reportUnknownMemberType,reportUnknownArgumentType]
        links = (current.__cause__, current.__context__)
        waiting.extend(link for link in links if link is not None)
    return None

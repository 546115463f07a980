"""What a verdict is given on."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Occasion"]


class Occasion(NamedTuple):
    """What a verdict is given on.

    Attributes:
        run: id of the run.
        thread: id of the conversation, where there is one.
        graph: name of what is guarded.
        step: model answers so far in this conversation.
    """

    run: str
    thread: str | None
    graph: str
    step: int

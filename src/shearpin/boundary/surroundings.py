"""Where a call is made: what a run, a conversation and a host know of it.

Contract: `surroundings` asks the adapters only where a host is loaded already; outside of any host
there is nothing to know, and nothing is imported for it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from shearpin.boundary.tally import RunErrors
    from shearpin.stores.base import Store

__all__ = ["NOWHERE", "Surroundings", "surroundings"]


def _admit(tool: str, wait: float) -> bool:
    return True


def _waiting(begins: bool) -> None:
    return None


def _settle(attempts: int) -> None:
    return None


def _fault(where: str, error: BaseException) -> None:
    return None


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What is known of where a call is made. By default: nothing.

    Attributes:
        thread: id of the conversation, or of the run where there is none; empty outside of both.
        task: the host's id of the node execution, which stays the same when it is carried out
            again; empty outside of a graph.
        tally: of the guarded run; None outside of one with an error boundary.
        store: of its boundary.
        language: of its words.
        admit: whether its budget has room for one more call of a tool, after so many seconds.
        waiting: told that a wait begins (True) or ends.
        settle: told, when the call is over, how many attempts were made.
        fault: told of failures of the boundary itself.
    """

    thread: str = ""
    task: str = ""
    tally: RunErrors | None = None
    store: Store | None = None
    language: Literal["en", "zh"] | None = None
    admit: Callable[[str, float], bool] = _admit
    waiting: Callable[[bool], None] = _waiting
    settle: Callable[[int], None] = _settle
    fault: Callable[[str, BaseException], None] = _fault


NOWHERE = Surroundings()
"""Outside of any host."""


def surroundings() -> Surroundings:
    """Where this code runs."""
    if "langgraph" not in sys.modules:
        return NOWHERE
    found: Surroundings = import_module("shearpin.adapters.boundary.surroundings").surroundings()
    return found

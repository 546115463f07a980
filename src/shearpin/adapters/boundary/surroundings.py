"""Where a resilient tool or function is called: its run, its conversation, its task.

Contract: outside of a guarded run with an error boundary only conversation and task are known, and
outside of a graph nothing. What is asked of the budget is charged to the run as a tool call.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from functools import partial
from typing import Any, cast

from langchain_core.runnables.config import var_child_runnable_config

from shearpin.adapters.boundary.toolroom import ToolRoom
from shearpin.adapters.calls import current_run
from shearpin.adapters.money.metering import spending_of
from shearpin.adapters.places import Place, place_of
from shearpin.adapters.run import Run
from shearpin.boundary.surroundings import NOWHERE, Surroundings

__all__ = ["surroundings"]

_NUMBERS = itertools.count(1)


def surroundings() -> Surroundings:
    """Where this code runs."""
    config = cast("Mapping[str, Any]", var_child_runnable_config.get() or {})
    place = place_of(config.get("metadata"))
    run = current_run()
    if run is not None:
        return _in_run(run, place)
    values = cast("Mapping[str, Any]", config.get("configurable") or {})
    thread = values.get("thread_id")
    if thread is None and not place.task:
        return NOWHERE
    return Surroundings("" if thread is None else str(thread), place.task)


def _in_run(run: Run, place: Place) -> Surroundings:
    bounds = run.boundary
    room = ToolRoom(run, spending_of(run), f"resilient:{next(_NUMBERS)}", place)
    return Surroundings(
        run.thread or run.id,
        place.task,
        None if bounds is None else bounds.tally,
        None if bounds is None else bounds.store,
        None if bounds is None else bounds.language,
        room.admit,
        room.waiting,
        room.settle,
        partial(_fault, run),
    )


def _fault(run: Run, where: str, error: BaseException) -> None:
    run.fault(f"resilient.{where}", error)

"""A run around plain chains and chat models: the call layer alone, in a `with` block.

Contract: every model and tool call in the block is seen, in whichever chain, thread pool or task it
is made. A refused call leaves the block; the block then ends normally, or raises where the guard
says so. A graph guarded by itself joins the run.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager, suppress

from shearpin import clock
from shearpin.adapters.boundary.bounds import open_bounds
from shearpin.adapters.calls import HANDLER, current_run
from shearpin.adapters.judge import ThreadState
from shearpin.adapters.money.metering import Orders, cut_in, open_spending
from shearpin.adapters.money.paying import call_layer
from shearpin.adapters.reports import report_of, tripped
from shearpin.adapters.run import Run
from shearpin.adapters.signals import stop_in
from shearpin.adapters.ways import Ways
from shearpin.events import RunOutcome
from shearpin.recipe import Guard
from shearpin.report.model import Report
from shearpin.verdicts import Halt

__all__ = ["GuardRun", "guarded_scope"]


class GuardRun:
    """The run of a `with guard.run()` block."""

    def __init__(self, run: Run, guard: Guard) -> None:
        self._run = run
        self._guard = guard

    @property
    def stopped(self) -> Halt | None:
        """Why the run was stopped; None if it was not."""
        return self._run.halted or self._run.stopped

    def report(self) -> Report:
        """The report of this run."""
        return report_of(self._run, self._guard.settings)


@contextmanager
def guarded_scope(guard: Guard, name: str, thread: str | None) -> Generator[GuardRun]:
    """Open a run, unless this code belongs to one already: then that one goes on."""
    outer = current_run()
    if outer is not None:
        yield GuardRun(outer, guard)
        return
    run = Run(name, thread, ThreadState.fresh(guard.fitted(guard.settings), clock.monotonic))
    run.repair, run.ways = guard.repair, Ways(guard)
    run.begin(new_turn=True)
    open_spending(run, guard, Orders(), new_turn=True, passing=True)
    open_bounds(run, guard)
    token = HANDLER.set(call_layer(run))
    outcome: RunOutcome = "failed"
    try:
        yield GuardRun(run, guard)
        outcome = "completed"
    except BaseException as error:
        halt = stop_in(error) or cut_in(run, error)
        if halt is None:
            raise
        outcome = "completed"
    finally:
        # A generator may be closed from another context than the one that opened the block.
        with suppress(ValueError):
            HANDLER.reset(token)
        run.end(outcome)
    if run.halted is not None and guard.on_stop == "raise":
        bounds = run.boundary
        raise tripped(run.halted, None if bounds is None else bounds.cause)

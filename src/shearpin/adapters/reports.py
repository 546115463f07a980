"""From a run to its report, and to the error that a caller may ask for."""

from __future__ import annotations

from collections.abc import Sequence

from shearpin.adapters.boundary.bounds import Bounds
from shearpin.adapters.judge import ThreadState
from shearpin.adapters.run import Run
from shearpin.core.settings import Settings
from shearpin.errors import BudgetExceededError, LoopDetectedError, TrippedError
from shearpin.report.boundary import BoundaryReport, FailureReport, PlaceReport
from shearpin.report.model import Report, RunInfo, build_report
from shearpin.verdicts import Halt

__all__ = ["boundary_report", "report_of", "tripped"]

_FAILURES = "failures"  # as in `boundary.endings`, which is not loaded without a boundary


def report_of(
    run: Run | None, settings: Settings, noted: Sequence[tuple[str, BaseException]] = ()
) -> Report:
    """The report of a run, also of one still going on; an empty one where there was none.

    `noted` are faults that kept a run from beginning.
    """
    faults = tuple(f"{where}: {type(error).__name__}: {error}"[:300] for where, error in noted)
    if run is None:
        nothing = ThreadState.fresh(settings, lambda: 0.0).judge.session
        return build_report(nothing, (), run=RunInfo(outcome="unknown", faults=faults))
    run.collect()
    halt = run.halted or run.stopped
    ended = run.ended if run.ended is not None else run.now()
    info = RunInfo(
        run=run.id,
        thread=run.thread,
        graph=run.graph,
        started_at=run.started_at,
        outcome=run.outcome if run.closed or halt is None else "stopped",
        reason=halt.reason if halt is not None else None,
        duration_seconds=ended - run.started,
        faults=(*run.state.judge.faults, *faults),
    )
    budget = run.spending.report() if run.spending is not None else None
    failures = boundary_report(run.boundary) if run.boundary is not None else None
    return build_report(
        run.state.judge.session, run.records, run=info, budget=budget, boundary=failures
    )


def boundary_report(bounds: Bounds) -> BoundaryReport:
    """What a run's error boundary has seen and done so far, and how the guard's runs have ended."""
    told = bounds.tally.snapshot()
    runs, abnormal_runs = bounds.shared.ends.counts()
    places = told.places
    return BoundaryReport(
        errors=sum(place.errors for place in places),
        retries=sum(place.retries for place in places),
        degraded=sum(place.degraded for place in places),
        refused=sum(place.refused for place in places),
        waited_seconds=told.waited_seconds,
        categories=told.categories,
        actions=told.actions,
        places=tuple(
            PlaceReport(
                place.kind,
                place.name,
                place.steps,
                place.errors,
                place.retries,
                place.degraded,
                place.refused,
                dict(place.types),
            )
            for place in places
        ),
        failures=tuple(FailureReport(*failure) for failure in told.failures),
        degradations=told.degradations,
        faults=told.faults,
        error_budget=told.error_budget,
        exhausted=told.exhausted,
        abnormal=told.abnormal,
        runs=runs,
        abnormal_runs=abnormal_runs,
    )


def tripped(halt: Halt, cause: BaseException | None = None) -> TrippedError:
    """The error for `on_stop="raise"`; `cause` is the failure over which the run was ended."""
    evidence = dict(halt.finding.summary()) if halt.finding is not None else {}
    family = halt.reason.partition(":")[0]
    kind = {"loop": LoopDetectedError, "budget": BudgetExceededError}.get(family, TrippedError)
    error = kind(halt.message, halt.reason, evidence)
    if cause is not None and family == _FAILURES:
        error.__cause__ = cause
    return error

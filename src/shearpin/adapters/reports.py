"""From a run to its report, and to the error that a caller may ask for."""

from __future__ import annotations

from shearpin.adapters.run import Run, ThreadState
from shearpin.core.settings import Settings
from shearpin.errors import LoopDetectedError, TrippedError
from shearpin.report.model import Report, RunInfo, build_report
from shearpin.verdicts import Halt

__all__ = ["report_of", "tripped"]


def report_of(run: Run | None, settings: Settings) -> Report:
    """The report of a run, also of one still going on; an empty one where there was none."""
    if run is None:
        nothing = ThreadState.fresh(settings, lambda: 0.0).judge.session
        return build_report(nothing, (), run=RunInfo())
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
        faults=tuple(run.state.judge.faults),
    )
    return build_report(run.state.judge.session, run.records, run=info)


def tripped(halt: Halt) -> TrippedError:
    """The error for `on_stop="raise"`."""
    evidence = dict(halt.finding.summary()) if halt.finding is not None else {}
    kind = LoopDetectedError if halt.reason.startswith("loop:") else TrippedError
    return kind(halt.message, halt.reason, evidence)

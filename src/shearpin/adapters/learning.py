"""What a guard learns from a run that is over.

Contract: whoever is to learn is given the report once, at the end of the run; on an event loop in a
thread, where that may wait for a file. A fault is contained: the run is not hurt by it.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from shearpin.adapters.reports import report_of
from shearpin.core.journal import VerdictRecord

if TYPE_CHECKING:
    from shearpin.adapters.run import Run
    from shearpin.report.model import Report

__all__ = ["learn_from"]


def learn_from(run: Run) -> None:
    """Give the report of a run to those who learn from it."""
    blocking = any(learner.blocking for learner in run.ways.learners)
    if not blocking and not any(isinstance(one, VerdictRecord) for one in run.records):
        return  # nothing to learn, and nobody else to learn from
    try:
        report = report_of(run, run.state.judge.session.settings)
    except Exception as error:
        run.fault("learning", error)
        return
    try:
        loop = asyncio.get_running_loop() if blocking else None
    except RuntimeError:
        loop = None
    if loop is None:
        _teach(run, report)
    else:
        loop.run_in_executor(None, _teach, run, report)


def _teach(run: Run, report: Report) -> None:
    for learner in run.ways.learners:
        try:
            learner.learn(report)
        except Exception as error:
            run.fault("learning", error)

"""What a guard learns from a run that is over.

Contract: whoever is to learn is given the report once, at the end of the run. On an event loop that
happens in a thread, for it may write a file. A fault is contained: the run is not hurt by it.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from shearpin.adapters.reports import report_of

if TYPE_CHECKING:
    from shearpin.adapters.run import Run
    from shearpin.report.model import Report

__all__ = ["learn_from"]


def learn_from(run: Run) -> None:
    """Give the report of a run to those who learn from it."""
    try:
        report = report_of(run, run.state.judge.session.settings)
    except Exception as error:
        run.fault("learning", error)
        return
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        _teach(run, report)
    else:
        loop.run_in_executor(None, _teach, run, report)


def _teach(run: Run, report: Report) -> None:
    for learner in run.ways.learners:
        try:
            learner.learn(report)
        except Exception as error:
            run.fault("learning", error)

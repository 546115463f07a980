"""Reports as HTML pages that need nothing else: no script, no other file.

Contract: everything that comes from a recording or a run is escaped; the pages forbid scripts and
outside content. The report of a run holds texts only where they are asked for.
"""

from __future__ import annotations

from collections import Counter

from jinja2 import Environment, PackageLoader, StrictUndefined

from shearpin.findings import Severity
from shearpin.report.model import Report
from shearpin.report.replays import ReplayTotals
from shearpin.report.taxonomy import KINDS

__all__ = ["render_replays", "render_report"]


def render_report(report: Report, title: str = "Shearpin: one run", *, texts: bool = False) -> str:
    """The report of one run as a page: outcome, budgets, failures, verdicts, contained faults.

    Args:
        report: of the run.
        title: of the page.
        texts: include the guard's messages and those of errors, masked and shortened as they are.
    """
    info = report.info
    scopes = report.budget.scopes if report.budget is not None else ()
    facts = [
        ("Run", info.run),
        ("Thread", info.thread),
        ("Graph", info.graph),
        ("Started", info.started_at),
        ("Breaker", report.state),
        *((f"Budget, {scope.per}", scope.line()) for scope in scopes),
    ]
    page = _environment().get_template("run.html.j2")
    given = [(name, value) for name, value in facts if value]
    return page.render(title=title, report=report, facts=given, texts=texts)


def render_replays(totals: ReplayTotals, title: str = "Shearpin: replayed runs") -> str:
    """The page: totals, outcome against verdict, findings, and each kept run with its timeline.

    Everything that comes from a recording is escaped; the page forbids scripts and outside content.
    """

    def share(count: int) -> str:
        percent = 100 * count / totals.runs if totals.runs else 0.0
        return f"{percent:.1f}\N{NO-BREAK SPACE}%"

    sums: Counter[str] = Counter()
    for (outcome, _), count in totals.outcomes.items():
        sums[outcome] += count
    shown = sum(1 for row in totals.kept if row.verdicts)
    page = _environment().get_template("replays.html.j2")
    return page.render(
        title=title,
        totals=totals,
        levels=tuple(Severity),
        outcomes=[outcome for outcome, _ in sums.most_common()],
        sums=sums,
        share=share,
        left=totals.shown - shown,
        kinds=[(KINDS[name], count) for name, count in totals.of_kind().most_common()],
    )


def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("shearpin", "report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )

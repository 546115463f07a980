"""The totals of a replay as one HTML page that needs nothing else: no script, no other file."""

from __future__ import annotations

from collections import Counter

from jinja2 import Environment, PackageLoader, StrictUndefined

from shearpin.findings import Severity
from shearpin.report.replays import ReplayTotals
from shearpin.report.taxonomy import KINDS

__all__ = ["render_replays"]


def render_replays(totals: ReplayTotals, title: str = "Shearpin: replayed runs") -> str:
    """The page: totals, outcome against verdict, findings, and each kept run with its timeline.

    Everything that comes from a recording is escaped; the page forbids scripts and outside content.
    """
    environment = Environment(
        loader=PackageLoader("shearpin", "report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )

    def share(count: int) -> str:
        percent = 100 * count / totals.runs if totals.runs else 0.0
        return f"{percent:.1f}\N{NO-BREAK SPACE}%"

    sums: Counter[str] = Counter()
    for (outcome, _), count in totals.outcomes.items():
        sums[outcome] += count
    shown = sum(1 for row in totals.kept if row.verdicts)
    page = environment.get_template("replays.html.j2")
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

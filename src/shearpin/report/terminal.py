"""Reports on a terminal, by rich. Import it lazily: rich is not loaded by `import shearpin`."""

from __future__ import annotations

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from shearpin.findings import Evidence, Severity
from shearpin.report.model import Report
from shearpin.report.replays import ReplayTotals, RunRow
from shearpin.report.taxonomy import KINDS, Kind

__all__ = [
    "print_kinds",
    "print_replays",
    "print_report",
    "render_kinds",
    "render_replays",
    "render_report",
]

_STYLES = {"none": "green", "nudge": "yellow", "block": "dark_orange", "stop": "bold red"}
_MOST_ROWS = 40
_MOST_FAILURES = 5
_LONGEST_MESSAGE = 240


def print_report(report: Report, console: Console | None = None) -> None:
    """Prints the report of one run."""
    (console or Console()).print(render_report(report))


def print_replays(totals: ReplayTotals, console: Console | None = None) -> None:
    """Prints the totals of a replay, and the first runs that had a verdict."""
    (console or Console()).print(render_replays(totals))


def print_kinds(totals: ReplayTotals, console: Console | None = None) -> None:
    """Prints the kinds of loops that a replay found."""
    (console or Console()).print(render_kinds(totals))


def render_report(report: Report) -> RenderableType:
    """The report of one run as something that rich prints.

    Outcome, counts, the deciding verdict with its evidence, what to change if it was wrong, all
    verdicts, the breaker's way, and faults.
    """
    parts: list[RenderableType] = [_facts(report)]
    if report.verdicts:
        table = Table(title="Verdicts", title_justify="left", box=None, pad_edge=False)
        for heading in ("step", "verdict", "finding", "evidence", "message"):
            table.add_column(heading, overflow="fold")
        for record in report.verdicts:
            table.add_row(
                str(record.step),
                Text(record.verdict, _STYLES.get(record.severity, "")),
                record.finding or "",
                _evidence(record.evidence),
                Text(_short(record.message)),
            )
        parts += ["", table]
    if report.transitions:
        way = " -> ".join(
            [report.transitions[0].source]
            + [f"{record.target} (step {record.step})" for record in report.transitions]
        )
        parts += ["", Text.assemble(("Breaker  ", "bold"), way)]
    if report.kind is not None:
        parts += ["", _kind(report.kind)]
    if report.remedy is not None:
        parts += ["", Text(report.remedy, "italic")]
    for note in report.notes:
        said = f"Noted at step {note.step}: {note.rule}, {_evidence(note.evidence)}"
        parts.append(Text(said, "dim"))
    for fault in report.faults:
        parts.append(Text(f"Contained fault: {fault}", "red"))
    for fault in report.boundary.faults if report.boundary is not None else ():
        parts.append(Text(f"Contained fault in the boundary: {fault}", "red"))
    return Group(*parts)


def _kind(kind: Kind) -> Text:
    return Text.assemble(
        ("Likely cause  ", "bold"), f"{kind.cause} ", (f"({kind.name})", "dim"), f"\n{kind.advice}"
    )


def _facts(report: Report) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    info = report.info
    outcome = info.outcome if info.reason is None else f"{info.outcome} ({info.reason})"
    table.add_row("Outcome", Text(outcome, _STYLES[report.worst.label]))
    where = [info.graph, info.thread and f"thread {info.thread}", info.run and f"run {info.run}"]
    if any(where):
        table.add_row("Run", Text(", ".join(part for part in where if part)))
    if info.started_at is not None:
        lasted = "" if info.duration_seconds is None else f", {info.duration_seconds:.2f} s"
        table.add_row("Started", f"{info.started_at}{lasted}")
    table.add_row("Steps", f"{report.steps} (breaker {report.state}, worst {report.worst.label})")
    spend = report.spend
    table.add_row("Calls", f"{spend.model_calls:,} model, {spend.tool_calls:,} tool")
    table.add_row("Tokens", f"{spend.input_tokens:,} in, {spend.output_tokens:,} out")
    if report.budget is not None:
        for scope in report.budget.scopes:
            table.add_row(f"Budget, {scope.per}", Text(scope.line()))
        for remark in report.budget.remarks:
            table.add_row("", Text(remark, "dim"))
    if report.boundary is not None:
        for number, line in enumerate(report.boundary.lines()):
            table.add_row("" if number else "Failures", Text(line))
        for one in report.boundary.failures[-_MOST_FAILURES:]:
            said = "".join(it if it.isprintable() else " " for it in one.message)
            told = f"{one.kind} {one.name} ({one.error_type}): {said}"
            table.add_row("", Text(_short(told), "dim"))
    decisive = report.decisive
    if decisive is not None:
        table.add_row(
            "Decided by",
            Text(f"rule {decisive.rule} at step {decisive.step}: {_evidence(decisive.evidence)}"),
        )
    return table


def render_replays(totals: ReplayTotals) -> RenderableType:
    """The totals of a replay as something that rich prints."""
    parts: list[RenderableType] = []
    if totals.kept:
        parts += [_runs(totals.kept[:_MOST_ROWS])]
        left = totals.shown - min(len(totals.kept), _MOST_ROWS)
        if left > 0:
            parts.append(Text(f"... and {left:,} more with a verdict (see --json or --report)"))
        parts.append("")
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="bold")
    grid.add_column()
    grid.add_row("Runs", f"{totals.runs:,} with {totals.steps:,} steps")
    for level in Severity:
        count = totals.worst[level]
        share = 100 * count / totals.runs if totals.runs else 0.0
        name = "quiet" if level is Severity.NONE else f"worst: {level.label}"
        grid.add_row(Text(name, _STYLES[level.label]), f"{count:,} ({share:.1f} %)")
    if totals.families:
        found = ", ".join(f"{name} {count:,}" for name, count in totals.families.most_common())
        grid.add_row("Findings", found)
    if totals.faults:
        grid.add_row(Text("Contained faults", "red"), f"{totals.faults:,}")
    return Group(*parts, grid)


def render_kinds(totals: ReplayTotals) -> RenderableType:
    """What loops there were, most frequent first, and what to do about each kind."""
    table = Table(title="Kinds of loops", title_justify="left", box=None, pad_edge=False)
    table.add_column("kind")
    for heading in ("runs", "nudge", "block", "stop"):
        table.add_column(heading, justify="right")
    table.add_column("likely cause, and what to do", overflow="fold")
    for name, count in totals.of_kind().most_common():
        kind = KINDS[name]
        table.add_row(
            name,
            f"{count:,}",
            *(f"{totals.kinds[name, level]:,}" for level in Severity if level),
            Text.assemble(f"{kind.cause} ", (kind.advice, "italic")),
        )
    return table if totals.kinds else Text("No loops: every run was quiet.")


def _runs(rows: list[RunRow]) -> Table:
    table = Table(box=None, pad_edge=False)
    for heading in ("run", "steps", "state", "verdicts"):
        table.add_column(heading, overflow="fold")
    for row in rows:
        timeline = Text()
        for verdict in row.verdicts[:6]:
            style = _STYLES.get(verdict.severity, "")
            timeline.append(f"{verdict.severity}@{verdict.step} ", style)
            timeline.append(f"{verdict.finding}  ")
        if len(row.verdicts) > 6:
            timeline.append(f"+{len(row.verdicts) - 6}")
        for failure in row.failures or ():
            timeline.append(f"\nFAILED {failure}", "red")
        table.add_row(Text(row.run), str(row.steps), row.state, timeline)
    return table


def _evidence(evidence: Evidence) -> str:
    return ", ".join(f"{name} {value}" for name, value in evidence.items() if value is not None)


def _short(message: str) -> str:
    if len(message) <= _LONGEST_MESSAGE:
        return message
    return message[: _LONGEST_MESSAGE - 3] + "..."

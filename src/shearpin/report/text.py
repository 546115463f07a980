"""The report of one run as a few lines of plain text: what `print(report)` shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shearpin.report.model import Report

__all__ = ["summary"]

_WIDTH = 11


def summary(report: Report) -> str:
    """How the run went, what it used, and what decided; `print_report` has the rest."""
    info, spend = report.info, report.spend
    where = (info.graph, info.thread and f"thread {info.thread}", info.run and f"run {info.run}")
    rows = [
        ("Outcome", info.outcome if info.reason is None else f"{info.outcome} ({info.reason})"),
        ("Run", ", ".join(part for part in where if part)),
        ("Steps", f"{report.steps} (breaker {report.state}, worst {report.worst.label})"),
        ("Calls", f"{spend.model_calls:,} model, {spend.tool_calls:,} tool"),
        ("Tokens", f"{spend.input_tokens:,} in, {spend.output_tokens:,} out"),
    ]
    if report.budget is not None:
        rows += [("Budget", f"{scope.per}: {scope.line()}") for scope in report.budget.scopes]
        rows += [("", remark) for remark in report.budget.remarks]
    if report.boundary is not None:
        rows += [("Failures", line) for line in report.boundary.lines()]
    decisive = report.decisive
    if decisive is not None:
        numbers = ", ".join(
            f"{name} {value}" for name, value in decisive.evidence.items() if value is not None
        )
        rows.append(("Decided by", f"rule {decisive.rule} at step {decisive.step}: {numbers}"))
    if report.remedy is not None:
        rows.append(("", report.remedy))
    if report.faults:
        rows.append(("Faults", f"{len(report.faults)} contained; see report.faults"))
    return "\n".join(f"{name:{_WIDTH}} {said}".rstrip() for name, said in rows if said)

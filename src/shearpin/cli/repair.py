"""`shearpin repair`: stored conversations that providers refuse, mended."""

from __future__ import annotations

import click

__all__ = ["repair"]


@click.command(short_help="Mend stored conversations that providers refuse.")
@click.argument("checkpoint", metavar="CHECKPOINT")
@click.option(
    "--thread", "threads", multiple=True, metavar="ID", help="Only this thread; repeatable."
)
@click.option("--dry-run", is_flag=True, help="Show what would be done, and change nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per conversation.")
@click.option(
    "--messages-key",
    metavar="KEY",
    help="The state's key that holds the conversation; looked for otherwise.",
)
@click.option(
    "--give-up",
    is_flag=True,
    help="Also give up calls that might still be answered: of runs that never ended, and of "
    "clients that answer calls themselves. Make sure that none of them is going on.",
)
@click.option(
    "--language",
    type=click.Choice(["en", "zh"]),
    default="en",
    show_default=True,
    help="Of the answers to calls that nobody answered.",
)
def repair(
    checkpoint: str,
    threads: tuple[str, ...],
    dry_run: bool,
    as_json: bool,
    messages_key: str | None,
    give_up: bool,
    language: str,
) -> None:
    """Find and mend the threads in a checkpointer whose history providers refuse.

    CHECKPOINT is the database of a LangGraph checkpointer: an SQLite file, sqlite:///file.db, or
    postgresql://user:password@host/database.

    Each tool call needs its answer right after it. A call that nobody answered gets an answer that
    says so; an answer to no call is taken out; one that came late is put where it belongs. This is
    saved as a new checkpoint on top of the thread's newest. All else stays as it is, byte for byte:
    other values, earlier checkpoints, sound threads. A second run finds nothing to do.

    A thread is left alone while somebody may still answer its calls: a person who was asked, a run
    that can be resumed or is going on. Where a step had failed, calls that others of the same step
    had answered keep these answers, and what was to be done next is not done any more.

    \b
    What is broken in a file, and what would be done about it:
        shearpin repair checkpoints.db --dry-run
    Mend one thread:
        shearpin repair checkpoints.db --thread user-42
    All threads of a server, with a record of it:
        shearpin repair postgresql://app:secret@db/agents --json > repaired.jsonl

    \b
    Exit codes:
        0  nothing is broken (any more)
        1  something is: with --dry-run, or because it had to be left
        2  wrong usage, or the database cannot be used
    """
    from shearpin.cli.repairing import Options, run_repair

    options = Options(checkpoint, threads, dry_run, as_json, messages_key, give_up, language)
    raise SystemExit(run_repair(options))

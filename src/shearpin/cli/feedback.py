"""`shearpin feedback`: what a person says about a run, for the patience of its workflow."""

from __future__ import annotations

from pathlib import Path

import click

__all__ = ["feedback"]


@click.command(short_help="Say that a stop was wrong (or right); the patience follows, slowly.")
@click.argument("run")
@click.argument(
    "judgement", type=click.Choice(["wrong-stop", "wrong-nudge", "right-stop", "missed-loop"])
)
@click.option(
    "--store",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("shearpin-learnt.json"),
    show_default=True,
    help="File that holds what was learnt.",
)
@click.option("--workflow", default="default", show_default=True, help="Whose patience it is.")
@click.option("--reset", is_flag=True, help="Forget what was learnt of the workflow first.")
def feedback(run: str, judgement: str, store: Path, workflow: str, reset: bool) -> None:
    """Mark what the guard did in RUN, and print the patience that follows.

    A guard uses it where you say so:

    \b
        from shearpin.analysis.adaptive import Learnt
        guard = Guard(patience=Learnt.load("shearpin-learnt.json").patience("billing"))

    \b
    A stop that was wrong makes the workflow a little more patient:
        shearpin feedback run-4711 wrong-stop --workflow billing

    \b
    Exit codes:
        0  done
        2  wrong usage, or a damaged file
    """
    from shearpin.analysis.adaptive import Learnt
    from shearpin.errors import ConfigError

    try:
        learnt = Learnt.load(store)
        if reset:
            learnt.reset(workflow)
        before = learnt.patience(workflow)
        learnt.judge(workflow, run, judgement)
        learnt.save(store)
    except ConfigError as error:
        click.echo(f"Error: {error}", err=True)
        raise SystemExit(2) from error
    click.echo(f"{workflow}: patience {before:g} -> {learnt.patience(workflow):g} ({judgement})")

"""`shearpin feedback`: what a person says about a run, for the patience of its workflow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

if TYPE_CHECKING:
    from shearpin.analysis.adaptive import Adaptive

__all__ = ["feedback"]

_SHOWN: Final = 20


@click.command(short_help="Say that a stop was wrong (or right); the patience follows, slowly.")
@click.argument("run", required=False)
@click.argument(
    "judgement",
    required=False,
    type=click.Choice(["wrong-stop", "wrong-nudge", "right-stop", "missed-loop"]),
)
@click.option(
    "--store",
    default="shearpin-learnt.json",
    show_default=True,
    help="File that holds what was learnt, or a store (sqlite:///learnt.db).",
)
@click.option("--workflow", default="default", show_default=True, help="Whose patience it is.")
@click.option("--reset", is_flag=True, help="Forget what was learnt of the workflow first.")
def feedback(
    run: str | None, judgement: str | None, store: str, workflow: str, reset: bool
) -> None:
    """Mark what the guard did in RUN, and print the patience that follows.

    Without RUN it prints how the patience came to be what it is.

    A guard uses it where you say so:

    \b
        guard = Guard(adaptive=Adaptive("shearpin-learnt.json", workflow="billing"))

    \b
    A stop that was wrong makes the workflow a little more patient:
        shearpin feedback run-4711 wrong-stop --workflow billing
    Why is it as patient as it is?
        shearpin feedback --workflow billing
    Start afresh:
        shearpin feedback --reset --workflow billing

    \b
    Exit codes:
        0  done
        2  wrong usage, or what is kept is damaged
    """
    from shearpin.analysis.adaptive import Adaptive
    from shearpin.errors import ConfigError, StoreError

    if (run is None) != (judgement is None):
        raise click.UsageError("a run needs a judgement: shearpin feedback RUN wrong-stop")
    try:
        adaptive = Adaptive(store, workflow=workflow)
        if reset:
            adaptive.reset()
        if run is None or judgement is None:
            _explain(adaptive)
            return
        before = adaptive.patience
        after = adaptive.judge(run, judgement)
    except (ConfigError, StoreError) as error:
        click.echo(f"Error: {store}: {error}", err=True)
        raise SystemExit(2) from error
    click.echo(f"{workflow}: patience {before:g} -> {after:g} ({judgement})")


def _explain(adaptive: Adaptive) -> None:
    click.echo(f"{adaptive.workflow}: patience {adaptive.patience:g}")
    for move in adaptive.moves[-_SHOWN:]:
        click.echo(f"  {move.patience:g}  {move.reason}  {move.run}")

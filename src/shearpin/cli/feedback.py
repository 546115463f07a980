"""`shearpin feedback`: what a person says about a run, for the patience of its workflow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NoReturn

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
@click.option("--new", is_flag=True, help="The store does not know the workflow yet: begin it.")
@click.option("--reset", is_flag=True, help="Forget what was learnt of the workflow first.")
def feedback(
    run: str | None, judgement: str | None, store: str, workflow: str, new: bool, reset: bool
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

    A run that was judged in the same way already is not counted again. RUN is a name of yours: what
    the guard learns is kept by workflow, so nothing here knows which runs there were.

    \b
    Exit codes:
        0  done
        1  nothing was done: judged already, or nothing is known of the workflow
        2  wrong usage, or what is kept is damaged
    """
    from shearpin.analysis.adaptive import Adaptive
    from shearpin.errors import ConfigError, StoreError

    if (run is None) != (judgement is None):
        raise click.UsageError("a run needs a judgement: shearpin feedback RUN wrong-stop")
    try:
        adaptive = Adaptive(store, workflow=workflow)
        begins = run is not None and not reset and (new or not adaptive.workflows)
        if workflow not in adaptive.workflows and not begins:
            _refuse(_unknown(adaptive, store, judging=run is not None and not reset))
        if reset:
            adaptive.reset()
        if run is None or judgement is None:
            _explain(adaptive)
            return
        if any((move.run, move.reason) == (run, judgement) for move in adaptive.moves):
            _refuse(f"{workflow}: {run} is judged already ({judgement}); nothing was changed")
        before = adaptive.patience
        after = adaptive.judge(run, judgement)
    except (ConfigError, StoreError) as error:
        said = str(error) if str(error).startswith(store) else f"{store}: {error}"
        click.echo(f"Error: {said}", err=True)
        raise SystemExit(2) from error
    click.echo(f"{workflow}: patience {before:g} -> {after:g} ({judgement})")


def _refuse(said: str) -> NoReturn:
    click.echo(f"Error: {said}", err=True)
    raise SystemExit(1)


def _unknown(adaptive: Adaptive, store: str, *, judging: bool) -> str:
    known = adaptive.workflows
    if not known:
        return f"{store}: nothing was learnt there yet"
    there = f"{store}: there is no workflow {adaptive.workflow!r}; there is: {', '.join(known)}"
    return f"{there} (--new begins one)" if judging else there


def _explain(adaptive: Adaptive) -> None:
    click.echo(f"{adaptive.workflow}: patience {adaptive.patience:g}")
    for move in adaptive.moves[-_SHOWN:]:
        click.echo(f"  {move.patience:g}  {move.reason}  {move.run}")

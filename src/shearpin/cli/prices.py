"""`shearpin prices`: what a model costs, from where we know, and what a call would cost."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import click

__all__ = ["prices"]

_FILE = click.option(
    "--file",
    "file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="PRICES.toml",
    help="Your own prices; they win over the list prices.",
)
_PROVIDER = click.option(
    "--provider", metavar="NAME", help="Who serves the model; inferred from its name otherwise."
)
_AT = click.option(
    "--at",
    type=click.DateTime(["%Y-%m-%d"]),
    metavar="YYYY-MM-DD",
    help="The day of the call; today otherwise.",
)
_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")


class _DefaultGroup(click.Group):
    """A group in which a word that is no command is the argument of `show`."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not args[0].startswith("-") and args[0] not in self.commands:
            args = ["show", *args]
        return super().resolve_command(ctx, args)


@click.group(cls=_DefaultGroup, short_help="Show what models cost, and where that is known from.")
def prices() -> None:
    """Show what models cost, where that is known from, and what a call would cost.

    List prices come from genai-prices, which ships with Shearpin: no network is used. Prices of
    your own (contracts, private models, names of deployments) come from a TOML file.

    \b
    What does a model cost?
        shearpin prices gpt-4o
        shearpin prices us.anthropic.claude-sonnet-4-5-20250929-v1:0
    What does a call cost, line by line?
        shearpin prices explain gpt-4o --input 12000 --cached 8000 --output 900
    Is my file right, and is anything in it old?
        shearpin prices check prices.toml

    A model of the name of a command is shown by: shearpin prices show list

    \b
    Exit codes:
        0  the price is known; the file is right
        1  the price is not known; something in the file is old
        2  wrong usage, or a wrong file
    """


@prices.command(short_help="Show the price of a model (the default).")
@click.argument("model")
@_PROVIDER
@_AT
@_FILE
@_JSON
def show(
    model: str, provider: str | None, at: datetime | None, file: Path | None, as_json: bool
) -> None:
    """Show the price of MODEL, with source, date, and what was assumed.

    MODEL may be written as any host writes it: with a provider's prefix, dated, as on Bedrock,
    Vertex or OpenRouter. Names that are only alike are never taken.

    Exit codes: 0 known, 1 unknown, 2 wrong usage or a wrong file.
    """
    from shearpin.cli.pricing import run_show

    raise SystemExit(run_show(model, provider, _day(at), file, as_json))


@prices.command("list", short_help="List the models of the catalogue.")
@click.argument("word", required=False)
@_PROVIDER
@_JSON
def list_models(word: str | None, provider: str | None, as_json: bool) -> None:
    """List the models whose name holds WORD, or all, as provider and model."""
    from shearpin.cli.pricing import run_list

    raise SystemExit(run_list(word, provider, as_json))


@prices.command(short_help="Show what a call costs, line by line.")
@click.argument("model")
@click.option("--input", "input_tokens", type=click.IntRange(0), default=0, show_default=True,
              help="Tokens of the whole prompt, cached ones included.")  # fmt: skip
@click.option("--output", "output_tokens", type=click.IntRange(0), default=0, show_default=True,
              help="Tokens of the whole answer, thinking included.")  # fmt: skip
@click.option("--cached", type=click.IntRange(0), default=0, show_default=True,
              help="Of the prompt: tokens read from the cache.")  # fmt: skip
@click.option("--written", type=click.IntRange(0), default=0, show_default=True,
              help="Of the prompt: tokens written to the cache for 5 minutes.")  # fmt: skip
@click.option("--written-1h", type=click.IntRange(0), default=0, show_default=True,
              help="Of the prompt: tokens written to the cache for 1 hour.")  # fmt: skip
@click.option("--reasoning", type=click.IntRange(0), default=0, show_default=True,
              help="Of the answer: thinking tokens.")  # fmt: skip
@click.option("--tier", metavar="NAME", help="Service tier: flex, priority, batch.")
@_PROVIDER
@_AT
@_FILE
@_JSON
def explain(
    model: str,
    input_tokens: int,
    output_tokens: int,
    cached: int,
    written: int,
    written_1h: int,
    reasoning: int,
    tier: str | None,
    provider: str | None,
    at: datetime | None,
    file: Path | None,
    as_json: bool,
) -> None:
    """Show what a call to MODEL costs, line by line, and the most it could have cost.

    Exit codes: 0 known, 1 unknown, 2 wrong usage or a wrong file.
    """
    from shearpin.cli.pricing import run_explain
    from shearpin.pricing import TokenUsage

    if cached + written + written_1h > input_tokens:
        raise click.UsageError("--cached and --written are part of --input, which is smaller")
    if reasoning > output_tokens:
        raise click.UsageError("--reasoning is part of --output, which is smaller")
    if not input_tokens and not output_tokens:
        click.echo("no tokens were given: name them with --input and --output", err=True)
    usage = TokenUsage(
        input=input_tokens - cached - written - written_1h,
        cache_read=cached,
        cache_write_5m=written,
        cache_write_1h=written_1h,
        output=output_tokens - reasoning,
        reasoning=reasoning,
        service_tier=tier,
    )
    raise SystemExit(run_explain(model, provider, _day(at), file, usage, as_json))


@prices.command(short_help="Check a file of prices.")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--stale-after-days", type=click.IntRange(1), metavar="DAYS",
              help="Age at which a price is old; the file's own, or 120, otherwise.")  # fmt: skip
def check(file: Path, stale_after_days: int | None) -> None:
    """Check FILE: every price in it, and whether any is old.

    \b
    Exit codes:
        0  the file is right and fresh
        1  something in it is old, or an alias or discount leads to no known price
        2  the file is wrong; file, key and fix are named
    """
    from shearpin.cli.pricing import run_check

    raise SystemExit(run_check(file, stale_after_days))


def _day(at: datetime | None) -> datetime | None:
    return None if at is None else at.replace(tzinfo=UTC)

"""The work behind `shearpin prices`: look up, sum up, print."""

from __future__ import annotations

import json
from datetime import datetime
from decimal import Decimal
from pathlib import Path

import click

from shearpin.errors import ConfigError
from shearpin.pricing import (
    KINDS,
    MARKS,
    Catalogue,
    ModelPrice,
    Overrides,
    Rates,
    TokenUsage,
    cost,
    load_prices,
    worst_case,
)
from shearpin.pricing import explain as explained
from shearpin.pricing.catalogue import today
from shearpin.pricing.names import provider_id
from shearpin.pricing.policy import STALE_AFTER_DAYS

__all__ = ["run_check", "run_explain", "run_list", "run_show"]

_NO_PROVIDER = "is no provider of the catalogue"
_MOST_FACTOR = 10
"""Above this a factor is rather a percentage that was written as a number."""


def run_show(
    model: str, provider: str | None, at: datetime | None, file: Path | None, as_json: bool
) -> int:
    """Print the price of a model."""
    price = _find(model, provider, at, file)
    if price is None:
        return 1
    if as_json:
        click.echo(json.dumps(_document(price), indent=2))
        return 0
    click.echo(price.model)
    _show_rates(price.rates, price)
    for tier in sorted(price.tiers, key=lambda each: each.above_input_tokens):
        click.echo(f"  prompts above {tier.above_input_tokens:,} tokens, for the whole request:")
        _show_rates(tier.rates, None)
    for name, variant in price.variants.items():
        click.echo(f"  service tier {name}:")
        _show_rates(variant.rates, None)
    day = price.date.isoformat() if price.date else "does not apply"
    click.echo(f"  source  {price.source}\n  date    {day}")
    for note in price.notes:
        click.echo(f"  note    {note}")
    return 0


def run_list(word: str | None, provider: str | None, as_json: bool) -> int:
    """Print the names in the catalogue."""
    place = None if provider is None else provider_id(provider) or provider
    found = [
        (where, name)
        for where, name in Catalogue().names(place)
        if word is None or word.lower() in f"{where}/{name}".lower()
    ]
    if as_json:
        click.echo(json.dumps([{"provider": where, "model": name} for where, name in found]))
    else:
        for where, name in found:
            click.echo(f"{where:<24}{name}")
    if not found:
        click.echo("no model of that name or provider is in the catalogue", err=True)
    return 0 if found else 1


def run_explain(
    model: str,
    provider: str | None,
    at: datetime | None,
    file: Path | None,
    usage: TokenUsage,
    as_json: bool,
) -> int:
    """Print what a usage costs."""
    price = _find(model, provider, at, file)
    if price is None:
        return 1
    paid = cost(usage, price)
    bound = worst_case(
        price, usage.prompt_tokens, usage.answer_tokens, service_tier=usage.service_tier
    )
    lines = explained(usage, price)
    if as_json:
        click.echo(
            json.dumps(
                {
                    "model": price.model,
                    "usd": _text(paid.usd),
                    "complete": paid.complete,
                    "hold_micro_usd": bound,
                    "lines": [
                        {"what": line.what, "quantity": line.quantity, "rate": _text(line.rate),
                         "usd": _text(line.usd)}
                        for line in lines
                    ],
                    "marks": list(paid.marks),
                },
                indent=2,
            )
        )  # fmt: skip
        return 0
    click.echo(f"{price.model}, {price.source}")
    for line in lines:
        rate = "no rate" if line.rate is None else f"{_plain(line.rate):>12} /M"
        if line.what not in KINDS and line.rate is not None:
            rate = f"{_plain(line.rate):>12} each"
        amount = "unknown" if line.usd is None else f"${_plain(line.usd)}"
        click.echo(f"  {line.what:<16}{line.quantity:>12,} x {rate}  {amount:>14}")
    total = "unknown" if paid.usd is None else f"${_plain(paid.usd)}"
    click.echo(f"  {'total':<49}{total:>14}{'' if paid.complete else '  (incomplete)'}")
    if bound is not None:
        click.echo(f"  a hold for such a call sets aside at most ${_plain(Decimal(bound) / 10**6)}")
    for mark in paid.marks:
        click.echo(f"  note: {MARKS[mark]}")
    return 0


def run_check(file: Path, stale_after_days: int | None) -> int:
    """Print what is wrong or old in a file of prices."""
    book = _load(file)
    days = stale_after_days or book.stale_after_days or STALE_AFTER_DAYS
    problems: list[str] = []
    for name, entry in book.prices.items():
        day = entry.date
        age = 0 if day is None else (today() - day).days
        if age > days:
            problems.append(
                f'models."{name}" is {age} days old, more than {days}: confirm its date'
            )
        factor_of_one = not isinstance(entry, ModelPrice) and "*" not in name and "?" not in name
        if factor_of_one and book.price(name) is None:
            problems.append(f'models."{name}" is a factor of a price that is not known')
        if not isinstance(entry, ModelPrice) and entry.times > _MOST_FACTOR:
            problems.append(
                f'models."{name}" is {entry.times} times the list price; a factor is a share '
                'of it, such as "0.85"'
            )
    for name, target in book.aliases.items():
        if book.price(name) is None:
            problems.append(f'aliases."{name}" stands for {target!r}, which has no known price')
    prices, aliases = len(book.prices), len(book.aliases)
    click.echo(
        f"{file}: {prices} price{'' if prices == 1 else 's'}, "
        f"{aliases} alias{'' if aliases == 1 else 'es'}"
    )
    for problem in problems:
        click.echo(f"  {problem}")
    return 1 if problems else 0


def _find(
    model: str, provider: str | None, at: datetime | None, file: Path | None
) -> ModelPrice | None:
    book: Catalogue | Overrides = Catalogue() if file is None else _load(file)
    price = book.price(model, provider, None if at is None else at.date())
    if file is None and price is not None and any(_NO_PROVIDER in it for it in price.notes):
        click.echo(
            f"{provider!r} {_NO_PROVIDER}; shearpin prices list names those there are", err=True
        )
        return None
    if price is None:
        where = f" of {provider!r}" if provider else ""
        click.echo(f"no price is known for model {model!r}{where}", err=True)
        alike = book.closest(model, provider)
        if alike:
            click.echo(f"spelt alike, but not taken: {', '.join(alike)}", err=True)
        click.echo(
            f'give it one in a price file: [models."{model}"], or say what it stands for under '
            "[aliases]; shearpin prices --help shows how to check it with --file",
            err=True,
        )
    return price


def _load(file: Path) -> Overrides:
    try:
        return load_prices(file)
    except ConfigError as error:
        click.echo(str(error), err=True)
        raise SystemExit(2) from None


def _show_rates(rates: Rates, price: ModelPrice | None) -> None:
    if price is not None and price.free:
        click.echo("  free")
    for kind in KINDS:
        rate: Decimal | None = getattr(rates, kind)
        if rate is not None:
            indent = "  " if price is not None else "    "
            click.echo(f"{indent}{kind:<18}${_plain(rate)} per million tokens")
    if price is None:
        return
    if price.per_request:
        click.echo(f"  {'request':<18}${_plain(price.per_request)} each")
    for tool, each in price.per_tool.items():
        click.echo(f"  {tool:<18}${_plain(each)} each")


def _document(price: ModelPrice) -> dict[str, object]:
    return {
        "model": price.model,
        "free": price.free,
        "usd_per_million_tokens": _rates(price.rates),
        "tiers": [
            {"above_input_tokens": tier.above_input_tokens, **_rates(tier.rates)}
            for tier in price.tiers
        ],
        "per_request": _text(price.per_request),
        "per_tool": {tool: _text(each) for tool, each in price.per_tool.items()},
        "variants": {name: _rates(each.rates) for name, each in price.variants.items()},
        "source": price.source,
        "date": price.date.isoformat() if price.date else None,
        "notes": list(price.notes),
    }


def _rates(rates: Rates) -> dict[str, str | None]:
    return {kind: _text(rate) for kind in KINDS if (rate := getattr(rates, kind)) is not None}


def _text(amount: Decimal | None) -> str | None:
    return None if amount is None else _plain(amount)


def _plain(amount: Decimal) -> str:
    """Exact, without an exponent or idle zeros."""
    text = f"{amount:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text

"""Reads a user's prices from TOML; whatever is wrong names the file, the key and the fix.

date = 2026-07-01                      # of every price below that has none of its own
source = "contract 4711"

[models."gpt-4o"]
input = "2.50"                         # dollars per million tokens, in quotes: exact
output = "10"
cache_read = "1.25"

[models."claude-*"]
factor = "0.80"                        # 20 % off the list price

[models."local/*"]
free = true

[aliases]
"my-deployment" = "openai/gpt-4o"
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import cast

from shearpin.errors import ConfigError
from shearpin.pricing.model import KINDS, ModelPrice, PriceBook, Rates, Tier
from shearpin.pricing.money import dollars
from shearpin.pricing.overrides import Factor, Overrides

__all__ = ["load_prices"]

_TOP = ("date", "source", "stale_after_days", "models", "aliases")
_RATES = (*KINDS, "cache_write")
_TIER = ("above_input_tokens", *_RATES)
_MODEL = (*_RATES, "tiers", "per_request", "per_tool", "free", "factor", "source", "date")


def load_prices(path: str | Path, behind: PriceBook | None = None) -> Overrides:
    """The prices in a TOML file, in front of another book.

    Args:
        path: the file.
        behind: asked for what the file does not price; None is the catalogue of list prices.

    Raises:
        ConfigError: the file cannot be read, or something in it is wrong; names key and fix.
    """
    file = Path(path)
    try:
        data: dict[str, object] = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file}: cannot be read: {error}") from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{file}: is no TOML: {error}") from error
    if behind is None:
        from shearpin.pricing.catalogue import Catalogue

        behind = Catalogue()
    return _Reader(file).read(data, behind)


class _Reader:
    """Reads one file; knows its name for the messages."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._date: date | None = None
        self._source = file.name

    def read(self, data: Mapping[str, object], behind: PriceBook) -> Overrides:
        self._keys("", data, _TOP)
        if "date" in data:
            self._date = self._day("date", data["date"])
        if "source" in data:
            self._source = self._text("source", data["source"])
        days = data.get("stale_after_days")
        if days is not None and (not isinstance(days, int) or isinstance(days, bool) or days < 1):
            raise self._wrong("stale_after_days", f"must be a whole number of days, not {days!r}")
        models = self._table("models", data.get("models", {}))
        aliases = self._table("aliases", data.get("aliases", {}))
        prices = {
            name: self._model(f'models."{name}"', name, self._table(f'models."{name}"', entry))
            for name, entry in models.items()
        }
        for name, target in aliases.items():
            self._text(f'aliases."{name}"', target)
            if str(target).strip().lower() in {alias.strip().lower() for alias in aliases}:
                raise self._wrong(
                    f'aliases."{name}"',
                    f"stands for another alias; name the model of {target!r} here",
                )
        return Overrides(prices, behind, cast("dict[str, str]", aliases), days)

    def _model(self, key: str, name: str, entry: Mapping[str, object]) -> ModelPrice | Factor:
        self._keys(key, entry, _MODEL)
        source = self._text(f"{key}.source", entry.get("source", self._source))
        day = self._day(f"{key}.date", entry["date"]) if "date" in entry else self._date
        if day is None:
            raise self._wrong(
                key, "has no date; add `date = 2026-07-01`, or one for all at the top of the file"
            )
        if "factor" in entry:
            others = sorted(entry.keys() - {"factor", "source", "date"})
            if others:
                raise self._wrong(
                    f"{key}.{others[0]}", "cannot stand beside factor; remove one of them"
                )
            return Factor(self._amount(f"{key}.factor", entry["factor"]), source, day)
        free = entry.get("free", False)
        if not isinstance(free, bool):
            raise self._wrong(f"{key}.free", f"must be true or false, not {free!r}")
        rates = self._rates(key, entry)
        priced = [kind for kind in KINDS if getattr(rates, kind) is not None]
        if free and priced:
            raise self._wrong(f"{key}.free", f"cannot stand beside {priced[0]}; remove one of them")
        if not free and (rates.input is None or rates.output is None):
            missing = "input" if rates.input is None else "output"
            raise self._wrong(
                key, f'has no {missing} rate; add `{missing} = "..."`, or `free = true`'
            )
        tools = self._table(f"{key}.per_tool", entry.get("per_tool", {}))
        return ModelPrice(
            name,
            rates,
            self._tiers(key, entry.get("tiers", [])),
            self._amount(f"{key}.per_request", entry.get("per_request", "0")),
            {tool: self._amount(f"{key}.per_tool.{tool}", each) for tool, each in tools.items()},
            free,
            source,
            day,
        )

    def _rates(self, key: str, entry: Mapping[str, object]) -> Rates:
        found = {
            kind: self._amount(f"{key}.{kind}", entry[kind]) for kind in _RATES if kind in entry
        }
        if "cache_write" in found and "cache_write_5m" in found:
            raise self._wrong(f"{key}.cache_write", "is cache_write_5m; give one of them")
        return Rates.of(**found)

    def _tiers(self, key: str, value: object) -> tuple[Tier, ...]:
        if not isinstance(value, list):
            raise self._wrong(f"{key}.tiers", f"must be written as [[{key}.tiers]]")
        tiers: list[Tier] = []
        for index, entry in enumerate(cast("list[object]", value)):
            where = f"{key}.tiers[{index}]"
            table = self._table(where, entry)
            self._keys(where, table, _TIER)
            above = table.get("above_input_tokens")
            if not isinstance(above, int) or isinstance(above, bool) or above < 0:
                raise self._wrong(
                    f"{where}.above_input_tokens",
                    f"must be the number of tokens above which the tier starts, not {above!r}",
                )
            tiers.append(Tier(above, self._rates(where, table)))
        if len({tier.above_input_tokens for tier in tiers}) != len(tiers):
            raise self._wrong(f"{key}.tiers", "has two tiers with the same threshold; remove one")
        return tuple(tiers)

    def _amount(self, key: str, value: object) -> Decimal:
        try:
            return dollars(cast("str", value), key)
        except ConfigError as error:
            raise ConfigError(f"{self._file}: {error}") from None

    def _keys(self, key: str, table: Mapping[str, object], known: tuple[str, ...]) -> None:
        for name in table:
            if name not in known:
                close = difflib.get_close_matches(name, known, n=1)
                fix = f"did you mean {close[0]!r}?" if close else f"known are: {', '.join(known)}"
                raise self._wrong(f"{key}.{name}" if key else name, f"is not known; {fix}")

    def _table(self, key: str, value: object) -> dict[str, object]:
        if not isinstance(value, dict):
            raise self._wrong(key, f"must be a table, written as [{key}], not {value!r}")
        return cast("dict[str, object]", value)

    def _text(self, key: str, value: object) -> str:
        if not isinstance(value, str) or not value.strip():
            raise self._wrong(key, f"must be a text in quotes, not {value!r}")
        return value

    def _day(self, key: str, value: object) -> date:
        if isinstance(value, date) and not isinstance(value, datetime):
            return value
        if isinstance(value, str):
            try:
                return date.fromisoformat(value)
            except ValueError as error:
                raise self._wrong(key, f"is no day: {error}; write 2026-07-01") from None
        raise self._wrong(key, f"must be a day such as 2026-07-01, not {value!r}")

    def _wrong(self, key: str, what: str) -> ConfigError:
        return ConfigError(f"{self._file}: {key} {what}")

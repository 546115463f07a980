"""The catalogue of public list prices: genai-prices behind the `PriceBook` protocol.

genai-prices ships its data in the wheel, so a lookup needs no network. It is imported on the first
lookup. Its own matching accepts parts of names; here a name has to be one that the catalogue spells
out, as a whole, for the provider in question, so that no model gets the price of another family.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Final, cast

from shearpin.pricing.conversion import converted
from shearpin.pricing.model import ModelPrice
from shearpin.pricing.names import LOCAL, Candidate, candidates

if TYPE_CHECKING:
    from genai_prices import types as genai
    from genai_prices.data_snapshot import DataSnapshot

__all__ = ["Catalogue", "today"]

_CACHED = 1024
_FREE_VARIANT = ":free"


def today() -> date:
    """The day in UTC."""
    return datetime.now(UTC).date()


_FOUND: Final = ("_cached", "_indexes")
_ALIKE: Final = 0.8
"""Least similarity of a name that a message offers: `curie` is no help for `our-service`."""


class Catalogue:
    """List prices of public providers, from genai-prices.

    A found price is kept, so a repeated lookup is one look into a dictionary; at most 1,024 answers
    are kept, known or not.

    Args:
        day: returns the day that counts where a lookup gives none.
        snapshot: the data; None is what genai-prices holds at the first lookup (what its wheel
            ships, or what its own updater has fetched).

    Example:
        >>> Catalogue().price("gpt-4") == Catalogue().price("gpt-4o")
        False
    """

    def __init__(
        self, *, day: Callable[[], date] = today, snapshot: DataSnapshot | None = None
    ) -> None:
        self._day = day
        self._snapshot = snapshot
        self._indexes: dict[str, dict[str, genai.ModelInfo]] = {}
        self._as_of: date | None = None
        self._cached = lru_cache(maxsize=_CACHED)(self._find)

    def __getstate__(self) -> dict[str, object]:
        """All but what was found so far, so that a guard can be copied and sent elsewhere."""
        return {name: value for name, value in self.__dict__.items() if name not in _FOUND}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state, _indexes={})
        self._cached = lru_cache(maxsize=_CACHED)(self._find)

    def price(
        self, model: str, provider: str | None = None, at: date | None = None
    ) -> ModelPrice | None:
        """The list price of a model on a day, or None if the catalogue does not know it."""
        return self._cached(model, provider, at or self._day())

    @property
    def version(self) -> str:
        """The source and its version."""
        from importlib.metadata import version

        return f"genai-prices {version('genai-prices')}"

    @property
    def as_of(self) -> date:
        """The day up to which the data was looked after, at least: its newest price change."""
        if self._as_of is None:
            data = self._data()
            if data.from_auto_update:
                self._as_of = data.timestamp.date()
            else:
                self._as_of = _newest_change(data, self._day())
        return self._as_of

    def names(self, provider: str | None = None) -> Iterator[tuple[str, str]]:
        """Provider and id of every model in the catalogue."""
        for entry in self._data().providers:
            if provider is None or entry.id == provider:
                for model in entry.models:
                    yield entry.id, model.id

    def closest(self, model: str, provider: str | None = None) -> list[str]:
        """Names in the catalogue that are spelt alike, for a message; never used as a match."""
        looked = candidates(model, provider)
        places = dict.fromkeys(candidate.provider for candidate in looked if candidate.provider)
        known: dict[str, None] = {}
        for place in places:
            known.update(dict.fromkeys(self._index(place)))
        wanted = looked[-1].name if looked else model.lower()
        known.pop(wanted, None)
        return difflib.get_close_matches(wanted, known, n=3, cutoff=_ALIKE)

    def _find(self, model: str, provider: str | None, at: date) -> ModelPrice | None:
        for candidate in candidates(model, provider):
            if candidate.provider == LOCAL:
                return _local(candidate.name)
            found = self._index(candidate.provider).get(candidate.name)
            if found is not None:
                return self._priced(candidate, found, at)
            if candidate.provider == "openrouter" and candidate.name.endswith(_FREE_VARIANT):
                return self._free(candidate, "OpenRouter's :free variants cost nothing")
        return None

    def _priced(self, candidate: Candidate, found: genai.ModelInfo, at: date) -> ModelPrice | None:
        note = candidate.note
        price = converted(
            found,
            f"{candidate.provider}/{found.id}",
            at,
            source=self.version,
            as_of=self.as_of,
            notes=(f"found as {candidate.name!r}: {note}",) if note else (),
        )
        if price is None and found.id.endswith(_FREE_VARIANT):
            return self._free(candidate, "listed as a free variant")
        return price

    def _free(self, candidate: Candidate, why: str) -> ModelPrice:
        return ModelPrice(
            f"{candidate.provider}/{candidate.name}",
            free=True,
            source=self.version,
            date=self.as_of,
            notes=(why,),
        )

    def _data(self) -> DataSnapshot:
        if self._snapshot is None:
            from genai_prices.data_snapshot import get_snapshot

            self._snapshot = get_snapshot()
        return self._snapshot

    def _index(self, provider: str) -> dict[str, genai.ModelInfo]:
        """Every name that the catalogue spells out for a provider, whole, in lower case."""
        index = self._indexes.get(provider)
        if index is None:
            index = dict[str, "genai.ModelInfo"]()
            for entry in self._data().providers:
                if entry.id == provider:
                    for model in entry.models:
                        for name in _exact(model.match):
                            index.setdefault(name, model)
                    for model in entry.models:
                        for name in (model.id.lower(), *_beginnings(model.match)):
                            index.setdefault(name.rstrip("-@"), model)
            self._indexes[provider] = index
        return index


def _local(name: str) -> ModelPrice | None:
    if name.endswith(("-cloud", ":cloud")):
        # Ollama's hosted models carry this ending and are billed.
        return None
    return ModelPrice(
        f"{LOCAL}/{name}",
        free=True,
        source="runs on the user's own machine",
        notes=("the provider runs models locally",),
    )


def _clauses(match: object) -> Iterator[object]:
    """A clause and all within it; `and` conditions are narrower than their names and left out."""
    yield match
    for inner in cast("list[object]", getattr(match, "or_", ())):
        yield from _clauses(inner)


def _exact(match: object) -> Iterator[str]:
    for clause in _clauses(match):
        name = getattr(clause, "equals", None)
        if isinstance(name, str):
            yield name.lower()


def _beginnings(match: object) -> Iterator[str]:
    for clause in _clauses(match):
        for attribute in ("starts_with", "contains", "ends_with"):
            name = getattr(clause, attribute, None)
            if isinstance(name, str):
                yield name.lower()


def _newest_change(data: DataSnapshot, day: date) -> date:
    starts = (
        start
        for provider in data.providers
        for model in provider.models
        if isinstance(model.prices, list)
        for entry in model.prices
        if isinstance(start := getattr(entry.constraint, "start_date", None), date)
    )
    return max((start for start in starts if start <= day), default=date.min)

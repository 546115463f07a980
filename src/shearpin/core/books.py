"""One budget at work: a book for each scope, and what can be said about it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias, cast

from shearpin.core.budget import COUNTED, TIMED, Budget, Span
from shearpin.core.forecast import Forecast, Trend
from shearpin.core.holds import Amounts, Tally
from shearpin.core.stopwatch import Stopwatch

__all__ = ["Book", "Exhausted", "Notice", "notices_of"]


_Dump: TypeAlias = (
    "tuple[list[float], dict[str, int], list[str], dict[str, int], dict[str, object]]"
)


class Exhausted(NamedTuple):
    """A limit that leaves no room for a call.

    Attributes:
        dimension: `usd`, `model_calls`, `seconds`, `tool:<name>` ...
        per: the kind of scope: `call`, `run` or `thread`.
        limit, spent, held, wanted: in that dimension.
        crowded: whether only calls that are under way stand in the way.
        key: of the scope in the ledger.
    """

    dimension: str
    per: Span
    limit: float
    spent: float
    held: float = 0
    wanted: float = 0
    crowded: bool = False
    key: str = ""

    @property
    def reason(self) -> str:
        """Machine-readable: `budget:usd`, `budget:per_tool` ..."""
        return "budget:" + ("per_tool" if self.dimension.startswith("tool:") else self.dimension)


class Notice(NamedTuple):
    """A limit is nearly used (`soft`), or the next call is the last one (`last`)."""

    kind: str
    dimension: str
    per: Span
    limit: float
    spent: float
    forecast: Forecast | None = None


@dataclass(slots=True, eq=False)
class Book:
    """One budget at work: its scope in the ledger, extensions, clock and trend.

    Attributes:
        budget: as configured.
        key: of the scope in the ledger.
        extra: what it was extended by, by dimension.
        limits: in force, by dimension.
        thresholds: from where on a limit counts as nearly used.
        trends: what each step used, by dimension.
        spent, held: where the ledger last said the scope stands.
        told: dimensions for which a notice was given, with its kind.
        seen: what was spent when the last step ended.
    """

    budget: Budget
    key: str
    watch: Stopwatch = field(default_factory=Stopwatch)
    extra: dict[str, int] = field(default_factory=dict[str, int])
    told: set[str] = field(default_factory=set[str])
    limits: dict[str, int] = field(default_factory=dict[str, int])
    thresholds: dict[str, int] = field(default_factory=dict[str, int])
    trends: dict[str, Trend] = field(default_factory=dict[str, Trend])
    spent: Amounts = field(default_factory=dict[str, int])
    held: Amounts = field(default_factory=dict[str, int])
    seen: dict[str, int] = field(default_factory=dict[str, int])

    def __post_init__(self) -> None:
        self._relimit()

    def _relimit(self) -> None:
        self.limits = {
            name: limit + self.extra.get(name, 0) for name, limit in self.budget.limits.items()
        }
        self.thresholds = {
            name: self.budget.threshold(limit)
            for name, limit in self.limits.items()
            if limit and name in COUNTED
        }
        for name in self.limits:
            self.trends.setdefault(name, Trend())

    def extend(self, amounts: Amounts) -> None:
        """Raise the limits that there are; a dimension without a limit stays without one."""
        for name, more in amounts.items():
            self.extra[name] = self.extra.get(name, 0) + more
            self.told -= {f"soft:{name}", f"last:{name}"}
        self._relimit()

    def under(self, budget: Budget) -> Book:
        """The same scope, with what was spent in it, under another budget."""
        twin = Book(budget, self.key, self.watch, dict(self.extra))
        twin.spent, twin.held, twin.seen = self.spent, self.held, dict(self.seen)
        return twin

    def take(self, tally: Tally) -> None:
        """Remember where the ledger says this scope stands."""
        self.spent, self.held = tally.spent, tally.held

    def step(self, at: float) -> None:
        """A step is over: what it used goes into the trends."""
        for name, trend in self.trends.items():
            now = self.spent.get(name, 0)
            trend.add(now - self.seen.get(name, 0), at)
            self.seen[name] = now

    def forecast(self, name: str, at: float) -> Forecast | None:
        """When a limit of this scope will be reached."""
        trend = self.trends.get(name)
        return (
            None
            if trend is None
            else trend.forecast(name, self.limits[name] - self.spent.get(name, 0), at)
        )

    def notice(self, kind: str, name: str, at: float) -> Notice | None:
        """A notice, unless it was given before."""
        if f"{kind}:{name}" in self.told:
            return None
        self.told.add(f"{kind}:{name}")
        return Notice(
            kind,
            name,
            self.budget.per,
            self.limits[name],
            self.spent.get(name, 0),
            self.forecast(name, at),
        )

    def dump(self, at: float) -> list[object]:
        """The state as JSON-ready data; what was spent is the ledger's."""
        trends = {name: trend.dump() for name, trend in self.trends.items()}
        return [self.watch.dump(at), self.extra, sorted(self.told), self.seen, trends]

    def load(self, data: object, at: float) -> None:
        """Restore what `dump` gave."""
        watch, extra, told, seen, trends = cast("_Dump", data)
        self.watch.load(watch, at)
        self.extend(extra)
        self.told, self.seen = set(told), dict(seen)
        for name, trend in self.trends.items():
            if name in trends:
                trend.load(trends[name])

    def deadlines(self, at: float) -> Iterator[tuple[float, Exhausted]]:
        """When each time limit will have passed if work goes on, and what is to be said then."""
        for name in TIMED:
            limit = getattr(self.budget, name)
            if limit is not None:
                allowed = limit + self.extra.get(name, 0)
                passed = self.watch.wall(at) if name == "seconds" else self.watch.working(at)
                said = Exhausted(name, self.budget.per, allowed, allowed, key=self.key)
                yield at + allowed - passed, said

    def late(self, at: float) -> Exhausted | None:
        """The time limit that has passed, if any."""
        for until, found in self.deadlines(at):
            if until <= at:
                return found._replace(spent=round(found.limit + at - until, 3))
        return None


def notices_of(book: Book, at: float) -> Iterator[Notice]:
    """What there is to say about a scope now, each thing once."""
    for name, threshold in book.thresholds.items():
        spent, limit = book.spent.get(name, 0), book.limits[name]
        if spent >= limit:
            continue
        if spent >= threshold:
            notice = book.notice("soft", name, at)
            if notice is not None:
                yield notice
        if spent == limit - 1 and limit > 1 and name in ("model_calls", "steps"):
            notice = book.notice("last", name, at)
            if notice is not None:
                yield notice

"""The money side of a report: what each scope allowed, what was used, and how sure that is."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal

from shearpin.core.budget import describe
from shearpin.core.forecast import Forecast

__all__ = ["BudgetReport", "ScopeReport", "in_units"]

_MICROS = Decimal(1_000_000)


@dataclass(frozen=True, slots=True)
class ScopeReport:
    """One budget of a run.

    Attributes:
        per: what it covers: `call`, `run` or `thread`.
        limits: in force, extensions included; `usd` in dollars, time in seconds.
        spent: settled so far, in the same units, also in dimensions without a limit.
        held: set aside for calls that are under way.
        extended: by how much limits were raised.
        forecasts: when a limit will be reached if the run goes on as it did.
    """

    per: str
    limits: dict[str, float | Decimal]
    spent: dict[str, float | Decimal]
    held: dict[str, float | Decimal] = field(default_factory=dict[str, "float | Decimal"])
    extended: dict[str, float | Decimal] = field(default_factory=dict[str, "float | Decimal"])
    forecasts: tuple[Forecast, ...] = ()

    def line(self) -> str:
        """The scope in one line: what was used of each limit, and until when it lasts."""
        parts = [
            f"{_said(name, self.spent.get(name, 0))} of {_said(name, limit)}"
            for name, limit in self.limits.items()
        ]
        usd = self.spent.get("usd")
        if "usd" not in self.limits and isinstance(usd, Decimal) and usd:
            parts.append(_said("usd", usd))
        if self.extended:
            more = ", ".join(_said(name, amount) for name, amount in self.extended.items())
            parts.append(f"extended by {more}")
        for ahead in self.forecasts:
            low, high = ahead.step_low, ahead.step_high
            until = f"{low} or later" if high is None else f"{low} to {high}"
            parts.append(f"{ahead.dimension} until about step {ahead.step} ({until})")
        return "; ".join(parts)

    def to_json(self) -> dict[str, object]:
        """The scope as JSON-ready data; dollars are strings, because they are exact."""
        return {
            "per": self.per,
            "limits": _plain(self.limits),
            "spent": _plain(self.spent),
            "held": _plain(self.held),
            "extended": _plain(self.extended),
            "forecasts": [forecast._asdict() for forecast in self.forecasts],
        }


@dataclass(frozen=True, slots=True)
class BudgetReport:
    """All budgets of a run.

    Attributes:
        scopes: innermost first.
        estimated_calls: model calls of which the usage is a guess.
        cached_calls: answers from LangChain's cache, which cost nothing.
        unpriced_calls: model calls whose cost is unknown or not complete.
        unbounded_calls: model calls whose answers had no known maximum, so that the cap may have
            been overshot by what they were longer than assumed.
        notes: what has to be said once, such as old prices or missing usage.
    """

    scopes: tuple[ScopeReport, ...] = ()
    estimated_calls: int = 0
    cached_calls: int = 0
    unpriced_calls: int = 0
    unbounded_calls: int = 0
    notes: tuple[str, ...] = ()

    @property
    def usd(self) -> Decimal | None:
        """Dollars that the run has spent; None where money was not counted."""
        for scope in self.scopes:
            found = scope.spent.get("usd")
            if isinstance(found, Decimal):
                return found
        return None

    @property
    def remarks(self) -> tuple[str, ...]:
        """How sure the numbers are, in sentences; nothing where they are certain."""
        dollars = self.usd is not None or any("usd" in scope.limits for scope in self.scopes)
        unpriced = self.unpriced_calls if dollars else 0
        counts = (
            (self.estimated_calls, "model calls told no usage: it was estimated"),
            (self.cached_calls, "answers came from the cache and cost nothing"),
            (unpriced, "model calls have no known price: their cost is not in the sum"),
            (self.unbounded_calls, "model calls had no limit on their answer"),
        )
        return (*(f"{count} {said}" for count, said in counts if count), *self.notes)

    def to_json(self) -> dict[str, object]:
        """The budgets as JSON-ready data."""
        return {
            "scopes": [scope.to_json() for scope in self.scopes],
            "estimated_calls": self.estimated_calls,
            "cached_calls": self.cached_calls,
            "unpriced_calls": self.unpriced_calls,
            "unbounded_calls": self.unbounded_calls,
            "notes": list(self.notes),
        }


def in_units(amounts: dict[str, int]) -> dict[str, float | Decimal]:
    """Amounts with money in dollars."""
    return {
        name: Decimal(amount) / _MICROS if name == "usd" else amount
        for name, amount in amounts.items()
    }


def _said(name: str, amount: float | Decimal) -> str:
    value = int(amount * _MICROS) if isinstance(amount, Decimal) else amount
    return describe(name, value)


def _plain(amounts: dict[str, float | Decimal]) -> dict[str, object]:
    return {
        name: str(amount) if isinstance(amount, Decimal) else amount
        for name, amount in amounts.items()
    }

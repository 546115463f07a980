"""The failures of a run in its report: what failed, what was done about it, and how it ended.

Contract: `to_json` has a `version` of its own with the report's rules. It holds names and numbers;
messages of errors, masked and shortened as they are, only where texts are asked for.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

__all__ = ["BOUNDARY_VERSION", "BoundaryReport", "FailureReport", "PlaceReport"]

BOUNDARY_VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class PlaceReport:
    """What happened at one tool, model or node.

    Attributes:
        kind: `tool`, `model` or `node`.
        name: of it.
        steps: how often it was entered; 0 for tools and models.
        errors: failed attempts.
        retries: attempts that were made again.
        degraded: how often something else took its place.
        refused: how often it was not even tried.
        types: failed attempts by error type, e.g. `rate_limit`.
    """

    kind: str
    name: str
    steps: int = 0
    errors: int = 0
    retries: int = 0
    degraded: int = 0
    refused: int = 0
    types: dict[str, int] = field(default_factory=dict[str, int])

    def line(self) -> str:
        """The place in one line, e.g. `2 errors (timeout 2), 1 retry, degraded once`."""
        types = ", ".join(f"{name} {count}" for name, count in self.types.items())
        parts = [f"{self.steps} steps"] if self.steps else []
        if self.errors:
            parts.append(_count(self.errors, "error") + (f" ({types})" if types else ""))
        if self.retries:
            parts.append(_count(self.retries, "retry", "retries"))
        if self.degraded:
            parts.append(f"degraded {_times(self.degraded)}")
        if self.refused:
            parts.append(f"not tried {_times(self.refused)}")
        return ", ".join(parts)

    def to_json(self) -> dict[str, object]:
        """The place as JSON-ready data."""
        return {
            "kind": self.kind,
            "name": self.name,
            "steps": self.steps,
            "errors": self.errors,
            "retries": self.retries,
            "degraded": self.degraded,
            "refused": self.refused,
            "types": dict(self.types),
        }


@dataclass(frozen=True, slots=True)
class FailureReport:
    """One failed attempt.

    Attributes:
        kind: `tool`, `model` or `node`.
        name: of what failed.
        category: `retryable`, `degradable` or `fatal`.
        error_type: e.g. `rate_limit`.
        message: one short line, with secrets masked.
    """

    kind: str
    name: str
    category: str
    error_type: str
    message: str


@dataclass(frozen=True, slots=True)
class BoundaryReport:
    """What the error boundary of a run has seen and done.

    Attributes:
        errors: failed attempts, also those that a retry made good.
        retries: attempts that were made again.
        degraded: how often something else took the place of what failed.
        refused: how often a call was not tried, e.g. because what it calls counts as down.
        waited_seconds: before retries, in all.
        categories: failed attempts by category.
        actions: what was done about failures, by name of the action.
        places: each tool, model and node with something to say about.
        failures: the latest failed attempts.
        degradations: what took something's place, or why it was not tried: the latest sentences.
        faults: failures of handlers within the boundary, contained.
        error_budget: non-fatal errors after which the run ends; None for no bound.
        exhausted: whether it was reached.
        abnormal: whether an error has left the run, instead of a normal end.
        runs: runs of this guard that have ended in this process so far, this one included.
        abnormal_runs: how many of them an error has left.

    Example:
        >>> report = BoundaryReport(errors=2, retries=2, runs=400, abnormal_runs=1)
        >>> report.abnormal_rate
        0.0025
    """

    errors: int = 0
    retries: int = 0
    degraded: int = 0
    refused: int = 0
    waited_seconds: float = 0.0
    categories: dict[str, int] = field(default_factory=dict[str, int])
    actions: dict[str, int] = field(default_factory=dict[str, int])
    places: tuple[PlaceReport, ...] = ()
    failures: tuple[FailureReport, ...] = ()
    degradations: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()
    error_budget: int | None = None
    exhausted: bool = False
    abnormal: bool = False
    runs: int = 0
    abnormal_runs: int = 0

    @property
    def abnormal_rate(self) -> float | None:
        """The share of the guard's runs that an error has left, 0 to 1; None before the first."""
        return self.abnormal_runs / self.runs if self.runs else None

    def lines(self) -> tuple[str, ...]:
        """What a report says of it: one sentence on the whole, then one for each place."""
        whole = [_count(self.errors, "error"), _count(self.retries, "retry", "retries")]
        if self.waited_seconds:
            whole[-1] += f" after {self.waited_seconds:.1f} s"
        if self.degraded:
            whole.append(f"degraded {_times(self.degraded)}")
        if self.refused:
            whole.append(f"not tried {_times(self.refused)}")
        whole += [f"{name} {count}" for name, count in self.actions.items()]
        if self.exhausted:
            whole.append(f"the error budget of {self.error_budget} was reached")
        if self.abnormal:
            whole.append("an error left the run")
        said = [place for place in self.places if place.line()]
        rate = self.abnormal_rate
        ends = (
            ()
            if rate is None
            else (
                f"{self.abnormal_runs} of {self.runs} runs ended abnormally ({100 * rate:.1f} %)",
            )
        )
        return (
            ", ".join(whole),
            *(f"{place.kind} {place.name}: {place.line()}" for place in said),
            *ends,
        )

    def to_json(self, *, texts: bool = False) -> dict[str, object]:
        """The failures as JSON-ready data.

        Args:
            texts: include messages of errors and sentences on what took something's place. They
                are masked and short, but may quote what a service has said.
        """
        failures = [
            {
                "kind": one.kind,
                "name": one.name,
                "category": one.category,
                "error_type": one.error_type,
                **({"message": one.message} if texts else {}),
            }
            for one in self.failures
        ]
        return {
            "version": BOUNDARY_VERSION,
            "errors": self.errors,
            "retries": self.retries,
            "degraded": self.degraded,
            "refused": self.refused,
            "waited_seconds": self.waited_seconds,
            "categories": dict(self.categories),
            "actions": dict(self.actions),
            "places": [place.to_json() for place in self.places],
            "failures": failures,
            **({"degradations": list(self.degradations)} if texts else {}),
            "faults": list(self.faults),
            "error_budget": self.error_budget,
            "exhausted": self.exhausted,
            "abnormal": self.abnormal,
            "runs": self.runs,
            "abnormal_runs": self.abnormal_runs,
        }


def _count(number: int, one: str, many: str | None = None) -> str:
    return f"{number} {one if number == 1 else many or one + 's'}"


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number} times"

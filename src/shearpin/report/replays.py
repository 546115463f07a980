"""Totals over many replayed runs, in constant memory.

Only runs with something to show are kept, and of these at most `limit`; the rest are counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from shearpin.findings import Severity

__all__ = ["ReplayTotals", "RunRow", "VerdictRow"]


class VerdictRow(NamedTuple):
    """One verdict, as the page and the table show it."""

    step: int
    severity: str
    finding: str
    message: str
    evidence: Mapping[str, object]


class RunRow(NamedTuple):
    """One replayed run.

    Attributes:
        failures: claims of a behaviour case that do not hold; None where the run makes no claims or
            they were not judged.
        kind: of the loop, by name; see `shearpin.report.taxonomy`.
    """

    run: str
    title: str
    outcome: str
    steps: int
    state: str
    worst: Severity
    verdicts: Sequence[VerdictRow]
    failures: Sequence[str] | None = None
    kind: str | None = None


@dataclass(slots=True)
class ReplayTotals:
    """Adds up runs one at a time.

    Attributes:
        limit: how many runs with verdicts or failures are kept in `kept`.
        worst: runs by their strongest verdict.
        outcomes: runs by (recorded outcome, strongest verdict).
        families: runs by family of a finding; a run counts once for each family it had.
        kinds: runs by (kind of loop, strongest verdict).
    """

    limit: int = 1000
    runs: int = 0
    steps: int = 0
    bad: int = 0
    faults: int = 0
    passed: int = 0
    failed: int = 0
    worst: Counter[Severity] = field(default_factory=Counter[Severity])
    outcomes: Counter[tuple[str, Severity]] = field(default_factory=Counter[tuple[str, Severity]])
    families: Counter[str] = field(default_factory=Counter[str])
    kinds: Counter[tuple[str, Severity]] = field(default_factory=Counter[tuple[str, Severity]])
    kept: list[RunRow] = field(default_factory=list[RunRow])

    def add(self, row: RunRow) -> None:
        """Counts one run, and keeps it where there is something to show."""
        self.runs += 1
        self.steps += row.steps
        self.worst[row.worst] += 1
        self.outcomes[row.outcome or "unknown", row.worst] += 1
        if row.failures is not None:
            self.passed += not row.failures
            self.failed += bool(row.failures)
        if row.verdicts:
            self.families.update({verdict.finding for verdict in row.verdicts})
        if row.kind is not None:
            self.kinds[row.kind, row.worst] += 1
        if (row.verdicts or row.failures) and len(self.kept) < self.limit:
            self.kept.append(row)

    def of_kind(self) -> Counter[str]:
        """Runs by kind of loop."""
        total: Counter[str] = Counter()
        for (kind, _), count in self.kinds.items():
            total[kind] += count
        return total

    @property
    def shown(self) -> int:
        """Runs with at least one verdict."""
        return self.runs - self.worst[Severity.NONE]

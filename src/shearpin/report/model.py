"""The audit report of one run: what happened, what the guard said about it, and why.

A report is plain, frozen data. `to_json` is its stable form: the key `version` changes when a key
changes its meaning or goes away; new keys may come at any time. It is bounded, whatever the length
of the run, and holds no prompt, argument or result beyond what a guard message quotes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final, NamedTuple

from shearpin.core.journal import FaultRecord, NoteRecord, Record, TransitionRecord, VerdictRecord
from shearpin.core.session import Session, Spend
from shearpin.findings import Evidence, Severity
from shearpin.report.boundary import BoundaryReport
from shearpin.report.budget import BudgetReport
from shearpin.report.interventions import Ending, Intervention, ReportOutcome, interventions_of
from shearpin.report.remedies import remedy_for
from shearpin.report.taxonomy import Kind, kind_of

__all__ = ["REPORT_VERSION", "Report", "RunInfo", "build_report"]

REPORT_VERSION: Final = 1

_MOST_RECORDS: Final = 200
_LONGEST_MESSAGE: Final = 2000


class RunInfo(NamedTuple):
    """What the host knows of a run and the session does not.

    Attributes:
        run: id of the run.
        thread: id of the conversation, where there is one.
        graph: name of the guarded graph.
        started_at: wall time of the start, ISO 8601 with zone.
        outcome: how the run ended; `unknown` where no run is known.
        reason: machine-readable reason of a stop, e.g. `loop:repeat`.
        duration_seconds: from the start to the end, or until now.
        faults: contained failures of the guard outside the session, one sentence each.
    """

    run: str = ""
    thread: str | None = None
    graph: str | None = None
    started_at: str | None = None
    outcome: ReportOutcome = "completed"
    reason: str | None = None
    duration_seconds: float | None = None
    faults: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Report:
    """The audit report of one run.

    Attributes:
        info: identity, outcome and reason.
        state: of the breaker at the end: `closed`, `reflecting`, `half_open` or `open`.
        worst: the strongest verdict given.
        steps: model responses seen.
        spend: calls and tokens.
        verdicts: in the order they were given; the oldest are left out first.
        transitions: of the breaker.
        notes: what was remarked without a verdict, each once.
        faults: what failed inside the guard and was contained; the run went on without it.
        budget: what was allowed and what was spent, where there was a budget.
        boundary: what failed and what was done about it, where there was an error boundary.
        omitted: how many verdicts, transitions and faults were left out to bound the report.

    Example:
        >>> report = app.report(config)  # doctest: +SKIP
        >>> report.outcome, report.reason  # doctest: +SKIP
        ('stopped', 'loop:repeat')
    """

    info: RunInfo
    state: str
    worst: Severity
    steps: int
    spend: Spend
    verdicts: tuple[VerdictRecord, ...] = ()
    transitions: tuple[TransitionRecord, ...] = ()
    faults: tuple[str, ...] = ()
    omitted: int = 0
    budget: BudgetReport | None = None
    notes: tuple[NoteRecord, ...] = ()
    boundary: BoundaryReport | None = None
    version: int = field(default=REPORT_VERSION)

    def __str__(self) -> str:
        from shearpin.report.text import summary

        return summary(self)

    @property
    def outcome(self) -> ReportOutcome:
        """How the run ended; `unknown` where no run is known."""
        return self.info.outcome

    @property
    def reason(self) -> str | None:
        """Why it was stopped, e.g. `loop:repeat`; None where it was not."""
        return self.info.reason

    @property
    def decisive(self) -> VerdictRecord | None:
        """The first of the strongest verdicts, which decided the run; None where all was quiet."""
        strongest = max(
            (Severity[verdict.severity.upper()] for verdict in self.verdicts), default=None
        )
        if strongest is None:
            return None
        return next(verdict for verdict in self.verdicts if verdict.severity == strongest.label)

    @property
    def kind(self) -> Kind | None:
        """The kind of loop that decided the run, and its likely cause; None where there is none."""
        decisive = self.decisive
        return None if decisive is None else kind_of(decisive.rule, decisive.evidence)

    @property
    def interventions(self) -> tuple[Intervention, ...]:
        """What became of each nudge and block."""
        ending = Ending(self.outcome, _tokens(self.spend), _price(self.budget))
        return interventions_of(self.verdicts, self.transitions, ending)

    @property
    def risk(self) -> float | None:
        """The highest loop probability that was written down; None below a half, or without it.

        It is there where the rule `loop_risk` is on, see `Guard(early_nudges=...)`.
        """
        found = [
            record.evidence.get("probability")
            for record in (*self.verdicts, *self.notes)
            if record.rule == "loop_risk"
        ]
        return max((one for one in found if isinstance(one, float)), default=None)

    @property
    def remedy(self) -> str | None:
        """What to change if the decisive verdict was wrong; None where all was quiet."""
        decisive = self.decisive
        return None if decisive is None else remedy_for(decisive)

    def to_json(self, *, texts: bool = False) -> dict[str, object]:
        """The report as JSON-ready data. See the module for what is stable.

        Args:
            texts: include the guard's messages, which may quote a shortened, masked argument or
                result, and messages of errors. Off by default: a report is made to be stored and
                sent.
        """
        decisive = self.decisive
        info = self.info
        evidence: Evidence = {} if decisive is None else decisive.evidence
        return {
            "version": self.version,
            "run": info.run,
            "thread": info.thread,
            "graph": info.graph,
            "started_at": info.started_at,
            "duration_seconds": info.duration_seconds,
            "outcome": info.outcome,
            "reason": info.reason,
            "state": self.state,
            "worst": self.worst.label,
            "steps": self.steps,
            "finding": None if decisive is None else decisive.finding,
            "rule": None if decisive is None else decisive.rule,
            "evidence": evidence,
            "kind": None if self.kind is None else self.kind._asdict(),
            "remedy": self.remedy,
            "risk": self.risk,
            "spend": self.spend._asdict(),
            "budget": None if self.budget is None else self.budget.to_json(),
            "boundary": None if self.boundary is None else self.boundary.to_json(texts=texts),
            "verdicts": [_verdict(record, texts) for record in self.verdicts],
            "notes": [record._asdict() for record in self.notes],
            "transitions": [record._asdict() for record in self.transitions],
            "interventions": [one.to_json() for one in self.interventions],
            "faults": list(self.faults),
            "omitted": self.omitted,
        }


def build_report(
    session: Session,
    records: Sequence[Record],
    *,
    run: RunInfo,
    budget: BudgetReport | None = None,
    boundary: BoundaryReport | None = None,
) -> Report:
    """A report from a session and the journal records that were drained from it during the run.

    Args:
        session: of the run; it is only read.
        records: all journal records of the run, oldest first.
        run: what the host knows of the run.
        budget: where its budgets stand, where it has any.
        boundary: what its error boundary has seen, where it has one.
    """
    verdicts: list[VerdictRecord] = []
    transitions: list[TransitionRecord] = []
    notes: list[NoteRecord] = []
    faults = list(run.faults)
    for record in records:
        if isinstance(record, VerdictRecord):
            verdicts.append(record)
        elif isinstance(record, TransitionRecord):
            transitions.append(record)
        elif isinstance(record, NoteRecord):
            notes.append(record)
        else:
            faults.append(_fault(record))
    total = len(verdicts) + len(transitions) + len(faults)
    kept = verdicts[-_MOST_RECORDS:], transitions[-_MOST_RECORDS:], faults[-_MOST_RECORDS:]
    return Report(
        info=run,
        state=session.state,
        worst=session.worst,
        steps=session.step,
        spend=session.spend,
        verdicts=tuple(_bounded(record) for record in kept[0]),
        transitions=tuple(kept[1]),
        faults=tuple(fault[:_LONGEST_MESSAGE] for fault in kept[2]),
        omitted=total - sum(map(len, kept)),
        budget=budget,
        notes=tuple(notes[-_MOST_RECORDS:]),
        boundary=boundary,
    )


def _tokens(spend: Spend) -> int:
    return spend.input_tokens + spend.output_tokens


def _price(budget: BudgetReport | None) -> Decimal | None:
    """What a token of the run has cost on average, where money was counted."""
    for scope in () if budget is None else budget.scopes:
        usd = scope.spent.get("usd")
        tokens = sum(int(scope.spent.get(name, 0)) for name in ("input_tokens", "output_tokens"))
        if isinstance(usd, Decimal) and tokens:
            return usd / tokens
    return None


def _bounded(record: VerdictRecord) -> VerdictRecord:
    if len(record.message) <= _LONGEST_MESSAGE:
        return record
    return record._replace(message=record.message[: _LONGEST_MESSAGE - 3] + "...")


def _fault(record: FaultRecord) -> str:
    return f"step {record.step}, {record.where}: {record.error}"


def _verdict(record: VerdictRecord, texts: bool) -> dict[str, object]:
    out: dict[str, object] = record._asdict()
    if not texts:
        del out["message"]
    return out

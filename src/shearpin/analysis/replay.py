"""A recorded run through a session: trace -> facts -> verdicts.

The replay is open loop: the recorded agent cannot hear the guard, so it goes on after a nudge, runs
a call that was refused, and continues after a stop. The session is fed to the end of the recording
all the same, and a stop is recorded once, when it is first given.

Per step: `HistoryCompacted` and `TurnStarted` where the recording says so, then the model call and
its answer, then all tool calls of the batch, then all their results. A call of which neither result
nor digest was recorded is announced but never answered: it must not pass for an empty result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple, Protocol, TypeVar, cast

from shearpin.core.journal import FaultRecord, Record, TransitionRecord, VerdictRecord
from shearpin.core.session import Session
from shearpin.core.settings import Settings
from shearpin.core.tools import ToolFacts
from shearpin.events import (
    HistoryCompacted,
    ModelCalled,
    ModelReturned,
    ToolCalled,
    ToolRequest,
    ToolReturned,
    TurnStarted,
)
from shearpin.findings import Evidence, Severity
from shearpin.report.replays import RunRow, VerdictRow
from shearpin.traces.model import TraceRun, TraceStep

__all__ = ["Replay", "ReplayedVerdict", "replay_run"]

_LEVELS: Final = {level.label: level for level in Severity}


_Made = TypeVar("_Made")


class _New(Protocol):
    def __call__(self, kind: type[_Made], values: tuple[object, ...]) -> _Made: ...


# A named tuple's own constructor takes twice as long, and a replay makes five facts per step. It
# also fills in defaults; here every field is given, which a test watches.
_new = cast("_New", tuple.__new__)  # pyright: ignore[reportUnknownMemberType]


class ReplayedVerdict(NamedTuple):
    """One verdict, and the 1-based step of the recording at which it was given.

    `acted` is False where the configured mode (`observe`, `warn`) would have kept it from acting.
    """

    step: int
    verdict: str
    severity: Severity
    finding: str | None
    rule: str | None
    evidence: Evidence
    message: str
    acted: bool = True

    def to_json(self) -> dict[str, object]:
        """The shape that `shearpin replay --json` prints."""
        out: dict[str, object] = {
            "step": self.step,
            "verdict": self.verdict,
            "severity": self.severity.label,
            "finding": self.finding,
            "rule": self.rule,
            "evidence": self.evidence,
            "message": self.message,
        }
        if not self.acted:
            out["acted"] = False
        return out


class Spent(NamedTuple):
    """What the recorded run cost. The price is None: recordings do not name their price list."""

    model_calls: int
    tool_calls: int
    input_tokens: int
    output_tokens: int
    usd: str | None = None


@dataclass(frozen=True, slots=True)
class Replay:
    """What a guard would have said about one recorded run.

    Attributes:
        state: of the breaker after the last step.
        worst: the strongest verdict given.
        transitions: of the breaker, as (step, from, to).
        faults: what failed inside the guard and was contained; empty in a healthy guard.
    """

    run: str
    title: str
    outcome: str
    steps: int
    state: str
    worst: Severity
    verdicts: tuple[ReplayedVerdict, ...]
    spend: Spent
    transitions: tuple[tuple[int, str, str], ...] = ()
    faults: tuple[str, ...] = ()

    def to_json(self) -> dict[str, object]:
        """The object that `shearpin replay --json` prints for this run."""
        return {
            "run": self.run,
            "steps": self.steps,
            "state": self.state,
            "worst": self.worst.label,
            "verdicts": [verdict.to_json() for verdict in self.verdicts],
            "spend": self.spend._asdict(),
        }

    def row(self, failures: Sequence[str] | None = None, kind: str | None = None) -> RunRow:
        """A row of the totals, with the failed claims of a behaviour case and the kind of loop."""
        verdicts = tuple(
            VerdictRow(
                verdict.step,
                verdict.severity.label,
                verdict.finding or verdict.verdict,
                verdict.message,
                verdict.evidence,
            )
            for verdict in self.verdicts
        )
        return RunRow(
            self.run,
            self.title,
            self.outcome,
            self.steps,
            self.state,
            self.worst,
            verdicts,
            failures,
            kind,
        )


def replay_run(run: TraceRun, settings: Settings) -> Replay:
    """Feeds a recorded run to a fresh session and collects its verdicts.

    Args:
        run: the recording.
        settings: how to judge. Tools that the recording declares are added; a tool that `settings`
            itself describes keeps that description.

    Example:
        >>> from shearpin.traces import parse_run
        >>> call = {"name": "ls", "args": {}, "result": "a.txt"}
        >>> run = parse_run({"run": "r", "steps": [{"calls": [call]}] * 9})
        >>> replay_run(run, Settings()).worst.label
        'stop'
    """
    if run.tools:
        settings = replace(settings, tools={**_declared(run.tools), **settings.tools})
    session = Session(settings)
    notes = _Notes()
    turn = run.steps[0].turn if run.steps else 0
    at = 0.0
    index = 0
    for index, step in enumerate(run.steps, 1):
        if step.at > at:
            at = step.at
        if step.turn != turn:
            turn = step.turn
            session.after(TurnStarted(at, turn))
        if step.compacted:
            session.after(HistoryCompacted(at, step.agent))
        _feed(session, step, index, at)
        records = session.drain()
        if records:
            notes.add(records, index, index - session.step)
    spend = session.spend
    return Replay(
        run.run,
        run.title,
        run.outcome,
        index,
        session.state,
        max((verdict.severity for verdict in notes.verdicts), default=Severity.NONE),
        tuple(notes.verdicts),
        Spent(spend.model_calls, spend.tool_calls, spend.input_tokens, spend.output_tokens),
        tuple(notes.transitions),
        tuple(notes.faults),
    )


def _feed(session: Session, step: TraceStep, index: int, at: float) -> None:
    """One step as facts. Calls get ids of our own, for a recording may use the same id twice."""
    _, _, agent, node, text, calls, usage, _, _ = step
    after = session.after
    call = f"m{index}"
    session.before(_new(ModelCalled, (at, call, agent, node, None)))
    requests = tuple(
        [
            _new(ToolRequest, (f"c{index}.{place}", asked[1], asked[2]))
            for place, asked in enumerate(calls)
        ]
    )
    after(_new(ModelReturned, (at, call, agent, node, text, requests, usage, None, "success")))
    for (key, name, args), asked in zip(requests, calls, strict=True):
        session.before(_new(ToolCalled, (at, key, name, args, agent, node, asked.args_digest)))
    for (key, _, _), (_, name, args, result, status, answered, asked, found) in zip(
        requests, calls, strict=True
    ):
        if answered:
            after(
                _new(
                    ToolReturned,
                    (at, key, name, args, result, status, agent, node, asked, found),
                )
            )


class _Notes:
    """What a session wrote down, in steps of the recording instead of steps of its turn."""

    def __init__(self) -> None:
        self.verdicts: list[ReplayedVerdict] = []
        self.transitions: list[tuple[int, str, str]] = []
        self.faults: list[str] = []

    def add(
        self,
        records: Sequence[Record],
        index: int,
        earlier: int,
    ) -> None:
        """Takes over `records` of step `index`; `earlier` steps were made in earlier turns."""
        for record in records:
            if isinstance(record, VerdictRecord):
                evidence = record.evidence
                onset = evidence.get("onset_step")
                if earlier and isinstance(onset, int):
                    evidence = {**evidence, "onset_step": onset + earlier}
                self.verdicts.append(
                    ReplayedVerdict(
                        index,
                        record.verdict,
                        _LEVELS[record.severity],
                        record.finding,
                        record.rule,
                        evidence,
                        record.message,
                        record.acted,
                    )
                )
            elif isinstance(record, TransitionRecord):
                self.transitions.append((index, record.source, record.target))
            elif isinstance(record, FaultRecord):
                self.faults.append(f"step {index}: {record.where}: {record.error}")


def _declared(tools: Mapping[str, Mapping[str, bool | None]]) -> dict[str, ToolFacts]:
    """Facts that a recording declares; the reader drops flags that it does not know."""
    return {
        name: ToolFacts(
            read_only=flags.get("read_only"),
            polling=flags.get("polling"),
            idempotent=flags.get("idempotent"),
            destructive=flags.get("destructive"),
        )
        for name, flags in tools.items()
    }

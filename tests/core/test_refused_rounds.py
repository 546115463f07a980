"""Rounds in which nothing may run: the agent does not take the hint, and the run ends."""

from __future__ import annotations

from shearpin.core.session import Session
from shearpin.core.settings import Settings
from shearpin.events import ModelCalled, ModelReturned, ToolCalled, ToolRequest, ToolReturned
from shearpin.findings import Severity
from shearpin.verdicts import Block


def _round(session: Session, step: int, tools: tuple[str, ...], result: str) -> Severity:
    """One round in closed loop: a refused call is answered by the guard."""
    at, model = float(step), f"m{step}"
    session.before(ModelCalled(at, model))
    requests = tuple(ToolRequest(f"c{step}.{i}", tool, {"job": 7}) for i, tool in enumerate(tools))
    worst = session.after(ModelReturned(at, model, requests=requests)).severity
    for request in requests:
        verdict = session.before(ToolCalled(at, request.id, request.name, request.args))
        refused = isinstance(verdict, Block)
        fact = ToolReturned(
            at,
            request.id,
            request.name,
            request.args,
            None if refused else result,
            "blocked" if refused else "success",
        )
        worst = max(worst, verdict.severity, session.after(fact).severity)
    return worst


def test_a_waiting_result_is_never_stopped_by_its_count_but_by_three_refused_rounds() -> None:
    session = Session(Settings())
    seen = [_round(session, step, ("render_status",), "still running") for step in range(1, 13)]
    assert seen[:3] == [Severity.NONE, Severity.NONE, Severity.NUDGE]
    assert max(seen[3:9]) == Severity.NUDGE
    assert seen[9:] == [Severity.BLOCK, Severity.BLOCK, Severity.STOP]
    assert session.stopped is not None
    assert session.stopped.reason == "loop:repeat"


def test_a_round_in_which_one_call_runs_is_not_refused() -> None:
    session = Session(Settings())
    for step in range(1, 30):
        tools = ("render_status", f"read_{step}")
        assert _round(session, step, tools, "still running") < Severity.STOP


def test_the_count_survives_a_dump() -> None:
    session = Session(Settings())
    for step in range(1, 12):
        _round(session, step, ("render_status",), "still running")
    session = Session.load(session.settings, session.dump())
    assert _round(session, 12, ("render_status",), "still running") is Severity.STOP


def test_an_outage_is_stopped_late_and_never_blocked() -> None:
    session = Session(Settings())
    outage = "503 service unavailable"
    seen = [_round(session, step, ("quote",), outage) for step in range(1, 17)]
    assert max(seen[:15]) == Severity.NUDGE
    assert seen[15] == Severity.STOP

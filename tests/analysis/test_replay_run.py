"""A recorded run as facts: order, identity, turns, declared tools, and what becomes of verdicts."""

from __future__ import annotations

from typing import Any

import pytest

from shearpin.analysis import replay, replay_run
from shearpin.core.session import Session
from shearpin.core.settings import Settings
from shearpin.core.tools import ToolFacts
from shearpin.events import (
    Fact,
    HistoryCompacted,
    ModelCalled,
    ModelReturned,
    ToolCalled,
    ToolReturned,
    TurnStarted,
    Usage,
)
from shearpin.findings import Severity
from shearpin.traces import TraceRun, parse_run
from shearpin.verdicts import Verdict

Heard = list[tuple[str, Fact]]


def run_of(*steps: dict[str, Any], **more: object) -> TraceRun:
    return parse_run({"run": "r", "steps": list(steps), **more})


def looping(times: int, result: str = "1 failed", **step: object) -> list[dict[str, Any]]:
    call = {"id": "c1", "name": "run_tests", "args": {"path": "t"}, "result": result}
    return [{"calls": [call], **step} for _ in range(times)]


@pytest.fixture
def heard(monkeypatch: pytest.MonkeyPatch) -> Heard:
    """Every fact that the session of a replay is told, in order."""
    facts: Heard = []

    class Listening(Session):
        def before(self, fact: Fact) -> Verdict:
            facts.append(("before", fact))
            return super().before(fact)

        def after(self, fact: Fact) -> Verdict:
            facts.append(("after", fact))
            return super().after(fact)

    monkeypatch.setattr(replay, "Session", Listening)
    return facts


def test_a_batch_is_announced_before_it_is_answered(heard: Heard) -> None:
    calls = [{"name": "a", "result": 1}, {"name": "b", "result": 2, "status": "error"}]
    replay_run(
        run_of({"at": 2.5, "agent": "x", "node": "n", "text": "hi", "calls": calls}), Settings()
    )
    assert [(when, type(fact)) for when, fact in heard] == [
        ("before", ModelCalled),
        ("after", ModelReturned),
        ("before", ToolCalled),
        ("before", ToolCalled),
        ("after", ToolReturned),
        ("after", ToolReturned),
    ]
    assert {fact.at for _, fact in heard} == {2.5}
    assert all(len(fact) == len(fact._fields) for _, fact in heard), "no field is left out"
    returned = heard[1][1]
    assert isinstance(returned, ModelReturned)
    assert all(len(request) == len(request._fields) for request in returned.requests)
    assert (returned.agent, returned.node, returned.text) == ("x", "n", "hi")
    assert [request.name for request in returned.requests] == ["a", "b"]
    last = heard[-1][1]
    assert isinstance(last, ToolReturned)
    assert (last.tool, last.result, last.status, last.agent) == ("b", 2, "error", "x")
    assert last.call == returned.requests[1].id


def test_digests_and_usage_are_handed_on(heard: Heard) -> None:
    call = {"name": "a", "args_digest": "aa", "result": "x", "result_digest": "bb"}
    replay_run(run_of({"calls": [call], "usage": {"input_tokens": 5}}), Settings())
    _, (_, returned), (_, called), (_, answered) = heard
    assert isinstance(returned, ModelReturned)
    assert isinstance(called, ToolCalled)
    assert isinstance(answered, ToolReturned)
    assert returned.usage == Usage(5)
    assert (called.args_digest, answered.args_digest, answered.result_digest) == ("aa", "aa", "bb")


def test_a_call_without_recorded_result_is_never_answered(heard: Heard) -> None:
    replay_run(run_of({"calls": [{"name": "a"}, {"name": "b", "result": None}]}), Settings())
    answered = [fact.tool for _, fact in heard if isinstance(fact, ToolReturned)]
    assert answered == ["b"]


def test_arguments_that_were_not_json_reach_the_session_raw(heard: Heard) -> None:
    replay_run(
        run_of({"calls": [{"name": "a", "args": {"_unparsed": "{x"}, "result": ""}]}), Settings()
    )
    assert [fact.args for _, fact in heard if isinstance(fact, ToolCalled | ToolReturned)] == [
        "{x",
        "{x",
    ]


def test_turns_and_compaction_come_before_their_step(heard: Heard) -> None:
    replay_run(
        run_of({"turn": 2}, {"turn": 2, "compacted": True, "agent": "b"}, {"turn": 3}), Settings()
    )
    kinds = [type(fact) for _, fact in heard]
    step = [ModelCalled, ModelReturned]
    assert kinds == [*step, HistoryCompacted, *step, TurnStarted, *step]
    assert heard[2][1] == HistoryCompacted(2.0, "b")
    assert heard[5][1] == TurnStarted(3.0, 3)


def test_time_never_goes_back(heard: Heard) -> None:
    replay_run(run_of({"at": 5.0}, {"at": 3.0}, {}, {"at": 9}), Settings())
    assert [fact.at for _, fact in heard][::2] == [5.0, 5.0, 5.0, 9.0]


def test_ids_used_twice_in_a_recording_are_different_calls() -> None:
    found = replay_run(run_of(*looping(9)), Settings())
    assert found.spend.tool_calls == 9
    assert found.worst >= Severity.BLOCK


def test_a_loop_is_nudged_blocked_and_stopped_once() -> None:
    found = replay_run(run_of(*looping(20), outcome="fail", title="t"), Settings())
    assert (found.steps, found.state, found.outcome, found.title) == (20, "open", "fail", "t")
    assert found.verdicts[0].severity is Severity.NUDGE
    assert found.verdicts[0].evidence["onset_step"] == 1
    stops = [verdict for verdict in found.verdicts if verdict.severity is Severity.STOP]
    assert len(stops) == 1, "the run went on after the stop, which is recorded once"
    assert found.transitions[-1][2] == "open"
    assert found.faults == ()


def test_steps_are_counted_over_the_whole_recording() -> None:
    honest = [
        {"turn": 1, "calls": [{"name": "a", "args": {"n": n}, "result": n}]} for n in range(6)
    ]
    found = replay_run(run_of(*honest, *looping(9, turn=2)), Settings())
    first = found.verdicts[0]
    assert (first.step, first.evidence["onset_step"]) == (9, 7)


def test_what_a_recording_declares_of_its_tools_counts() -> None:
    declared = {"run_tests": {"polling": True, "read_only": True, "unheard_of": True}}
    waiting = looping(12, "running")
    assert replay_run(run_of(*waiting), Settings()).worst >= Severity.BLOCK
    assert replay_run(run_of(*waiting, tools=declared), Settings()).worst <= Severity.NUDGE
    strict = Settings(tools={"run_tests": ToolFacts(polling=False)})
    assert replay_run(run_of(*waiting, tools=declared), strict).worst >= Severity.BLOCK


def test_what_a_mode_would_have_kept_from_acting_is_marked() -> None:
    found = replay_run(run_of(*looping(9)), Settings(mode="observe"))
    assert found.verdicts
    assert not any(verdict.acted for verdict in found.verdicts)
    assert found.verdicts[0].to_json()["acted"] is False


def test_a_run_without_steps_is_quiet() -> None:
    found = replay_run(run_of(), Settings())
    assert found.to_json() == {
        "run": "r",
        "steps": 0,
        "state": "closed",
        "worst": "none",
        "verdicts": [],
        "spend": {
            "model_calls": 0,
            "tool_calls": 0,
            "input_tokens": 0,
            "output_tokens": 0,
            "usd": None,
        },
    }

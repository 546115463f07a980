"""Tools that fail in guarded graphs: every call is answered, and nothing is done twice."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.messages import AIMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver

import shearpin
from shearpin.boundary import (
    Availability,
    Boundary,
    Cached,
    Effects,
    ErrorCategory,
    Retries,
    Static,
    ToolPolicy,
    ToolResult,
)
from shearpin.core.tools import ToolFacts
from tests.boundary.failing import HOW, faultless, run
from tests.boundary.tool_agents import (
    AGAIN,
    HELLO,
    HOSTS,
    THREAD,
    agent,
    answered,
    made,
    script,
    tool_node,
)
from tests.boundary.tool_bench import PRICES, Outcomes

each_host = pytest.mark.parametrize("host", HOSTS.values(), ids=HOSTS)
each_way = pytest.mark.parametrize("how", HOW)

SLOW = TimeoutError("no answer in 10 s")
REFUSED = ConnectionRefusedError("connection refused")
READS = {"search": ToolFacts(read_only=True)}
SECRET = "sk-live-abcdefghijklmnop"


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Nobody waits; what would have been waited is noted."""
    waited: list[float] = []

    async def asleep(seconds: float) -> None:
        waited.append(seconds)

    monkeypatch.setattr("shearpin.clock.sleep", waited.append)
    monkeypatch.setattr("shearpin.clock.asleep", asleep)
    return waited


def guarded(graph: Any, **options: Any) -> Any:
    return shearpin.guard(graph, **{"boundary": True, **options})


# -- answers ---------------------------------------------------------------------------------------


@each_host
@each_way
def test_a_tool_that_raises_is_answered_and_the_run_goes_on(host: Any, how: str) -> None:
    tools = [
        made("good", Outcomes("found")),
        made("bad", Outcomes(ValueError(f"no index for {SECRET}"))),
        made("also_good", Outcomes("found too")),
    ]
    calls = [("good", {"query": "x"}), ("bad", {"query": "y"}), ("also_good", {"query": "z"})]
    model = script(calls)
    app = guarded(host(tools, model, InMemorySaver()))
    messages = run(app, how, HELLO, THREAD)["messages"]
    faultless(messages)
    found = answered(messages)
    assert (found["good"].content, found["also_good"].content) == ("found", "found too")
    failed = found["bad"]
    assert (failed.status, failed.name) == ("error", "bad")
    assert str(failed.content).startswith("bad failed (")
    assert SECRET not in json.dumps([m.model_dump() for m in messages], default=str)
    assert messages[-1].content == "done"
    result = ToolResult.from_json(failed.artifact)
    assert (result.success, result.tool_name, result.attempts) == (False, "bad", 1)
    after = run(app, how, AGAIN, THREAD)["messages"]
    faultless(after)
    assert after[-1].content == "done"
    saved = repr(list(app.checkpointer.list(THREAD)))
    assert SECRET not in saved
    assert SECRET not in app.report(THREAD).to_json()


def test_without_a_boundary_the_same_tool_ends_the_run() -> None:
    tools = [made("bad", Outcomes(ValueError("no index")))]
    for app in (tool_node(tools, script([("bad", {"query": "x"})])),) * 2:
        with pytest.raises(ValueError, match="no index"):
            app.invoke(HELLO)
    with pytest.raises(ValueError, match="no index"):
        shearpin.guard(tool_node(tools, script([("bad", {"query": "x"})]))).invoke(HELLO)


@each_host
@each_way
def test_what_passes_by_itself_is_tried_again(host: Any, how: str, waits: list[float]) -> None:
    outcomes = Outcomes(SLOW, SLOW, "found")
    model = script([("search", {"query": "x"})])
    app = guarded(host([made("search", outcomes)], model), tools=READS)
    messages = run(app, how, HELLO)["messages"]
    faultless(messages)
    assert answered(messages)["search"].content == "found"
    assert outcomes.calls == 3
    assert len(waits) == 2
    assert app.report().spend.tool_calls == 1  # for the rules it is one call


@each_host
@each_way
def test_what_may_have_happened_is_not_tried_again(host: Any, how: str) -> None:
    outcomes = Outcomes(SLOW, "refunded twice")
    model = script([("refund", {"number": 1})])
    app = guarded(host([made("refund", outcomes)], model))
    message = answered(run(app, how, HELLO)["messages"])["refund"]
    assert outcomes.calls == 1
    assert "Verify with a read" in str(message.content)


def test_it_speaks_the_language_of_the_guard() -> None:
    tools = [made("bad", Outcomes(SLOW))]
    app = guarded(tool_node(tools, script([("bad", {"query": "x"})])), language="zh")
    assert "请先用只读操作核实" in str(answered(app.invoke(HELLO)["messages"])["bad"].content)


def test_a_run_whose_tools_work_is_as_without_a_boundary() -> None:
    def messages(app: Any) -> list[Any]:
        found = app.invoke(HELLO)["messages"]
        return [(m.type, m.content, getattr(m, "artifact", None)) for m in found]

    calls = [("search", {"query": "x"}), ("nope", {"query": "y"}), ("search", {"wrong": 1})]
    for host in (tool_node, agent):
        tools = [made("search", Outcomes("found"))]
        plain, bounded = host(tools, script(calls)), guarded(host(tools, script(calls)))
        assert messages(plain) == messages(bounded)


# -- the host's own ways ---------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["invoke", "ainvoke"])
@pytest.mark.parametrize(
    ("handles", "says"),
    [(True, "Error: "), ("sorry", "sorry"), (lambda e: f"own: {e}", "own: no index")],
    ids=["true", "text", "function"],
)
def test_what_a_tool_node_handles_by_itself_stays_its_own(
    how: str, handles: Any, says: str
) -> None:
    outcomes = Outcomes(SLOW if handles is not True else ValueError("no index"))
    if callable(handles):
        outcomes = Outcomes(ValueError("no index"))
    graph = tool_node(
        [made("bad", outcomes)], script([("bad", {"query": "x"})]), handle_tool_errors=handles
    )
    app = guarded(graph, tools={"bad": ToolFacts(read_only=True)})
    message = answered(run(app, how, HELLO)["messages"])["bad"]
    assert str(message.content).startswith(says)
    assert outcomes.calls == 1
    assert message.artifact is None
    assert app.report().boundary.errors == 1


def test_wrapped_tool_calls_of_the_host_still_happen() -> None:
    seen: list[str] = []

    def wrap(request: Any, execute: Callable[[Any], Any]) -> Any:
        seen.append(request.tool_call["name"])
        return execute(request)

    outcomes = Outcomes(SLOW, "found")
    graph = tool_node(
        [made("search", outcomes)], script([("search", {"query": "x"})]), wrap_tool_call=wrap
    )
    app = guarded(graph, tools=READS)
    assert answered(app.invoke(HELLO)["messages"])["search"].content == "found"
    assert seen == ["search", "search"]


# -- the budget and the detectors ------------------------------------------------------------------


@PRICES
@each_host
def test_each_attempt_is_charged(host: Any) -> None:
    outcomes = Outcomes(SLOW, SLOW, "found")
    app = guarded(
        host([made("search", outcomes)], script([("search", {"query": "x"})])),
        tools=READS,
        budget=shearpin.Budget(tool_calls=20, per_tool={"search": 9}),
    )
    run(app, "invoke", HELLO)
    (scope,) = app.report().budget.scopes
    assert (scope.spent["tool_calls"], scope.spent["tool:search"]) == (3, 3)
    assert not scope.held


@PRICES
def test_there_is_no_attempt_without_room() -> None:
    outcomes = Outcomes(SLOW)
    budget = shearpin.Budget(tool_calls=2)
    app = guarded(
        tool_node([made("search", outcomes)], script([("search", {"query": "x"})])),
        tools=READS,
        budget=budget,
        boundary=Boundary(retries=Retries(attempts=9)),
    )
    messages = app.invoke(HELLO)["messages"]
    faultless(messages)
    assert outcomes.calls == 2
    assert "tried 2 times" in str(answered(messages)["search"].content)
    (scope,) = app.report().budget.scopes
    assert scope.spent["tool_calls"] == 2


@PRICES
def test_a_call_that_was_not_made_costs_nothing() -> None:
    tools = [made("send", Outcomes("sent"))]
    calls = [("send", {"query": "ann"})]
    app = guarded(
        tool_node(tools, script(calls, calls, calls)),
        boundary=Boundary(tools={"send": ToolPolicy(effect=Effects())}),
        budget=shearpin.Budget(tool_calls=20),
    )
    app.invoke(HELLO)
    (scope,) = app.report().budget.scopes
    assert scope.spent["tool_calls"] == 1


def test_retries_of_a_run_are_bounded() -> None:
    outcomes = Outcomes(SLOW)
    rounds = [[("search", {"query": str(n)})] for n in range(5)]
    app = guarded(
        tool_node([made("search", outcomes)], script(*rounds)),
        tools=READS,
        boundary=Boundary(retries=Retries(per_run=4), error_budget=None),
    )
    app.invoke(HELLO)
    assert outcomes.calls == 5 + 4


def test_attempts_are_no_repetition_but_failures_without_end_are_seen() -> None:
    outcomes = Outcomes(SLOW, SLOW, "found")
    app = guarded(
        tool_node([made("search", outcomes)], script(*[[("search", {"query": "x"})]])),
        tools=READS,
        boundary=Boundary(retries=Retries(attempts=30, per_run=None), error_budget=None),
    )
    app.invoke(HELLO)
    assert not app.report().verdicts
    always = Outcomes(ValueError("no index"))
    rounds = [[("search", {"query": "x"})]] * 60
    app = guarded(
        tool_node([made("search", always)], script(*rounds)),
        boundary=Boundary(error_budget=None),
    )
    messages = app.invoke(HELLO, {"recursion_limit": 500})["messages"]
    faultless(messages)
    assert app.report().info.outcome == "stopped"
    assert always.calls < 20


# -- effects ---------------------------------------------------------------------------------------


@each_host
@each_way
def test_127_text_messages_are_impossible(host: Any, how: str) -> None:
    sms = Outcomes("sent")
    rounds = [[("sms", {"query": f"hello {n}"})] for n in range(127)]
    policy = ToolPolicy(effect=Effects(at_most=3))
    app = guarded(
        host([made("sms", sms)], script(*rounds), InMemorySaver()),
        boundary=Boundary(tools={"sms": policy}, error_budget=None),
    )
    config = {**THREAD, "recursion_limit": 500}
    messages = run(app, how, HELLO, config)["messages"]
    faultless(messages)
    run(app, how, AGAIN, config)
    assert sms.calls == 3


def test_the_same_message_is_sent_once() -> None:
    sms = Outcomes("sent")
    rounds = [[("sms", {"query": "hello"})] * 2] * 3
    app = guarded(
        tool_node([made("sms", sms)], script(*rounds)),
        boundary=Boundary(tools={"sms": ToolPolicy(effect=Effects())}),
    )
    messages = app.invoke(HELLO)["messages"]
    faultless(messages)
    assert sms.calls == 1
    said = [str(message.content) for message in messages if isinstance(message, ToolMessage)]
    assert said[0] == "sent"
    assert any("done this already" in text for text in said)


@PRICES
def test_another_tool_that_stands_in_is_charged_and_answers() -> None:
    backup = Outcomes("from the backup")
    policy = ToolPolicy(fallbacks=[Cached(), made("backup", backup), Static("never")])
    app = guarded(
        tool_node([made("search", Outcomes(REFUSED))], script([("search", {"query": "x"})])),
        boundary=Boundary(tools={"search": policy}, retries=Retries(attempts=1)),
        budget=shearpin.Budget(tool_calls=20),
    )
    messages = app.invoke(HELLO)["messages"]
    faultless(messages)
    message = answered(messages)["search"]
    assert (message.status, message.name) == ("success", "search")
    assert str(message.content) == (
        "[search is down (network); backup has answered in its place.]\nfrom the backup"
    )
    (scope,) = app.report().budget.scopes
    assert (scope.spent["tool:backup"], scope.spent["tool:search"]) == (1, 1)
    assert app.report().boundary.degraded == 1


def test_the_last_good_answer_is_given_with_its_age(monkeypatch: pytest.MonkeyPatch) -> None:
    outcomes = Outcomes("fresh", REFUSED)
    rounds = [[("search", {"query": "x"})]] * 2
    policy = ToolPolicy(fallbacks=[Cached()], retries=Retries(attempts=1))
    app = guarded(
        tool_node([made("search", outcomes)], script(*rounds)),
        boundary=Boundary(tools={"search": policy}),
    )
    message = answered(app.invoke(HELLO)["messages"])["search"]
    assert str(message.content).startswith("[search is down (network); this is its answer from ")
    assert str(message.content).endswith("\nfresh")
    assert message.artifact["degraded"] == "cached"


@each_way
def test_a_tool_that_is_down_is_not_waited_for(how: str) -> None:
    down = Outcomes(SLOW)
    rounds = [[("search", {"query": str(n)})] for n in range(9)]
    app = guarded(
        tool_node([made("search", down)], script(*rounds)),
        tools=READS,
        boundary=Boundary(availability=Availability(min_calls=4), error_budget=None),
    )
    messages = run(app, how, HELLO)["messages"]
    faultless(messages)
    assert down.calls == 4
    last = answered(messages)["search"]
    assert str(last.content).startswith("search was not run: it keeps failing, and is left alone")
    assert last.artifact["error_type"] == "unavailable"


# -- modes -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["observe", "warn"])
@pytest.mark.parametrize("how", ["invoke", "ainvoke"])
def test_a_mode_that_does_not_act_counts_and_raises(mode: str, how: str) -> None:
    outcomes = Outcomes(SLOW)
    app = guarded(
        tool_node([made("search", outcomes)], script([("search", {"query": "x"})])),
        tools=READS,
        mode=mode,
    )
    with pytest.raises(TimeoutError):
        run(app, how, HELLO)
    assert outcomes.calls == 1
    report = app.report().boundary
    assert (report.errors, report.retries, report.abnormal) == (1, 0, True)


def test_a_fatal_failure_ends_nothing_either() -> None:
    tools = [made("bad", Outcomes(TypeError("not callable")))]
    app = guarded(tool_node(tools, script([("bad", {"query": "x"})])))
    messages = app.invoke(HELLO)["messages"]
    assert messages[-1].content == "done"
    result = ToolResult.from_json(answered(messages)["bad"].artifact)
    assert result.category is ErrorCategory.FATAL


def test_the_original_error_is_there_for_this_process() -> None:
    error = ValueError("no index")
    tools = [made("bad", Outcomes(error))]
    app = guarded(tool_node(tools, script([("bad", {"query": "x"})])))
    message = answered(app.invoke(HELLO)["messages"])["bad"]
    assert ToolResult.from_json(message.artifact).error is error
    assert isinstance(app.invoke(HELLO)["messages"][-1], AIMessage)

"""Tools in other places: tasks, plain nodes, chains, agents in tools, calls side by side."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint, task
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Command, RetryPolicy, interrupt

import shearpin
from shearpin import Guard
from shearpin.adapters.boundary.bounds import shared_of
from shearpin.adapters.langgraph.wiring import wiring_of
from shearpin.boundary import Boundary, EffectRefusedError, Effects, Retries, ToolPolicy, resilient
from shearpin.boundary.effects import EffectRecords
from shearpin.core.tools import ToolFacts
from shearpin.langchain import GuardMiddleware
from shearpin.testing import ManualClock, StrictProvider, asks_for
from tests.boundary.failing import faultless, run
from tests.boundary.tool_agents import (
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

each_way = pytest.mark.parametrize("how", ["invoke", "ainvoke"])

SEND: dict[str, ToolPolicy] = {"send": ToolPolicy(effect=Effects())}
REFUSED = ConnectionRefusedError("connection refused")


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    waited: list[float] = []

    async def asleep(seconds: float) -> None:
        waited.append(seconds)

    monkeypatch.setattr("shearpin.clock.sleep", waited.append)
    monkeypatch.setattr("shearpin.clock.asleep", asleep)
    return waited


def plain_graph(node: Any, saver: Any = None, **options: Any) -> Any:
    builder = StateGraph(MessagesState)
    builder.add_node("work", node, **options)
    builder.add_edge(START, "work")
    builder.add_edge("work", END)
    return builder.compile(checkpointer=saver)


# -- carried out again -----------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["tool_node", "nested"])
def test_calls_beside_one_that_asks_a_person_are_carried_out_once(host: str) -> None:
    sent, deleted = Outcomes("sent"), Outcomes("deleted")

    @tool
    def approve(query: str) -> str:
        """Ask a person."""
        return str(interrupt(query))

    app = asking(host, [made("send", sent), approve, made("delete", deleted)])
    app.invoke(HELLO, THREAD)
    messages = app.invoke(Command(resume="yes"), THREAD)["messages"]
    faultless(messages)
    assert said(messages) == ["sent", "yes", "deleted"]
    assert (sent.calls, deleted.calls) == (1, 1)


@pytest.mark.parametrize("host", ["tool_node", "nested"])
async def test_so_they_are_in_event_loops(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sent, deleted = Outcomes("sent"), Outcomes("deleted")
    recorded, finish, finished = asyncio.Event(), EffectRecords.finish, []

    def finishing(*args: Any, **more: Any) -> None:
        finish(*args, **more)
        finished.append(1)
        if len(finished) == 2:
            recorded.set()

    monkeypatch.setattr(EffectRecords, "finish", finishing)

    @tool
    async def approve(query: str) -> str:
        """Ask a person, when the others are done."""
        await recorded.wait()
        return str(interrupt(query))

    app = asking(host, [made("send", sent), approve, made("delete", deleted)])
    await app.ainvoke(HELLO, THREAD)
    messages = (await app.ainvoke(Command(resume="yes"), THREAD))["messages"]
    faultless(messages)
    assert said(messages) == ["sent", "yes", "deleted"]
    assert (sent.calls, deleted.calls) == (1, 1)


def asking(host: str, tools: list[Any]) -> Any:
    calls = [("send", {"query": "ann"}), ("approve", {"query": "?"}), ("delete", {"query": "x"})]
    return shearpin.guard(
        HOSTS[host](tools, script(calls), InMemorySaver()),
        boundary=Boundary(tools=SEND),
        tools={"delete": ToolFacts(destructive=True)},
    )


def said(messages: list[Any]) -> list[str]:
    found = answered(messages)
    return [str(found[name].content) for name in ("send", "approve", "delete")]


@each_way
def test_a_tool_that_asks_before_it_acts_acts_when_it_may(how: str) -> None:
    acted: list[str] = []

    @tool
    def send(query: str) -> str:
        """Ask, then send."""
        answer = interrupt(f"send to {query}?")
        acted.append(query)
        return f"sent: {answer}"

    app = shearpin.guard(
        tool_node([send], script([("send", {"query": "ann"})]), InMemorySaver()),
        boundary=Boundary(tools=SEND),
    )
    run(app, how, HELLO, THREAD)
    messages = run(app, how, Command(resume="yes"), THREAD)["messages"]
    assert answered(messages)["send"].content == "sent: yes"
    assert acted == ["ann"]


def test_a_task_that_is_carried_out_again_acts_once() -> None:
    acted: list[str] = []

    @resilient(effect=Effects())
    def send(to: str) -> str:
        acted.append(to)
        return f"sent to {to}"

    @task
    def notify(to: str) -> str:
        said = send(to).text()
        if len(failures) < 1:
            failures.append(to)
            raise ConnectionError("lost after sending")
        return said

    failures: list[str] = []

    @entrypoint(checkpointer=InMemorySaver())
    def flow(to: str) -> str:
        return notify(to).result()

    app = shearpin.guard(flow, boundary=Boundary(max_retries=0))
    try:
        app.invoke("ann", THREAD)
    except ConnectionError:
        app.invoke(None, THREAD)
    assert acted == ["ann"]


def test_a_node_that_the_host_runs_again_acts_once() -> None:
    acted: list[str] = []

    @resilient(effect=Effects())
    def send(to: str) -> str:
        acted.append(to)
        return f"sent to {to}"

    said: list[str] = []

    def work(state: MessagesState) -> dict[str, Any]:
        said.append(send("ann").text())
        if len(said) < 3:
            raise ConnectionError("lost after sending")
        return {"messages": [AIMessage(said[-1])]}

    policy = RetryPolicy(initial_interval=0.0, jitter=False, retry_on=ConnectionError)
    for graph in (
        plain_graph(work, retry_policy=policy),
        shearpin.guard(plain_graph(work, retry_policy=policy), boundary=True),
    ):
        acted.clear()
        said.clear()
        graph.invoke(HELLO, {"configurable": {"thread_id": f"t{id(graph)}"}})
        assert acted == ["ann"]
        assert said == ["sent to ann"] * 3


# -- where nobody can answer -----------------------------------------------------------------------


@PRICES
@each_way
def test_a_plain_node_is_refused_a_second_effect_with_the_first_result(how: str) -> None:
    sent = Outcomes("sent", "sent twice")
    send = made("send", sent)
    refused: list[EffectRefusedError] = []

    def work(state: MessagesState) -> dict[str, Any]:
        first = send.invoke({"query": "ann"})
        try:
            send.invoke({"query": "ann"})
        except EffectRefusedError as error:
            refused.append(error)
        return {"messages": [AIMessage(first)]}

    app = shearpin.guard(plain_graph(work), boundary=Boundary(tools=SEND), budget="9 calls")
    assert run(app, how, HELLO)["messages"][-1].content == "sent"
    assert sent.calls == 1
    (error,) = refused
    assert (error.reason, error.output) == ("done", "sent")
    assert "has done this already" in str(error)
    report = app.report()
    assert report.boundary.refused == 1
    assert report.budget.scopes[0].spent["tool_calls"] == 1


def test_a_plain_node_whose_tool_failed_may_have_acted() -> None:
    outcomes = Outcomes(TimeoutError("slow"), "sent twice")
    send = made("send", outcomes)
    seen: list[str] = []

    def work(state: MessagesState) -> dict[str, Any]:
        for _ in range(2):
            try:
                send.invoke({"query": "ann"})
            except (TimeoutError, EffectRefusedError) as error:
                seen.append(getattr(error, "reason", "slow"))
        return {"messages": [AIMessage("done")]}

    app = shearpin.guard(plain_graph(work), boundary=Boundary(tools=SEND))
    app.invoke(HELLO)
    assert (outcomes.calls, seen) == (1, ["slow", "outcome_unknown"])
    assert app.report().boundary.errors == 1


def test_what_certainly_did_not_happen_may_be_tried_again_in_a_plain_node() -> None:
    outcomes = Outcomes(REFUSED, "sent")
    send = made("send", outcomes)

    def work(state: MessagesState) -> dict[str, Any]:
        with pytest.raises(ConnectionRefusedError):
            send.invoke({"query": "ann"})
        return {"messages": [AIMessage(send.invoke({"query": "ann"}))]}

    app = shearpin.guard(plain_graph(work), boundary=Boundary(tools=SEND))
    assert app.invoke(HELLO)["messages"][-1].content == "sent"


def test_a_chain_is_held_to_it_as_well() -> None:
    outcomes = Outcomes("sent", "sent twice")
    send = made("send", outcomes)
    chain = RunnableLambda(lambda query: {"query": query}) | send
    guard = Guard(boundary=Boundary(tools=SEND))
    with guard.run(thread="t1"):
        assert chain.invoke("ann") == "sent"
        with pytest.raises(EffectRefusedError):
            chain.invoke("ann")
        assert chain.invoke("bob") == "sent twice"
    with guard.run(thread="t1"), pytest.raises(EffectRefusedError):
        chain.invoke("ann")
    assert outcomes.calls == 2


def test_a_record_is_begun_once_where_tool_and_run_both_ask_for_it() -> None:
    outcomes = Outcomes("sent")
    send = resilient(made("send", outcomes), effect=Effects())
    for host in HOSTS.values():
        outcomes.calls = 0
        app = shearpin.guard(
            host([send], script([("send", {"query": "ann"})])), boundary=Boundary(tools=SEND)
        )
        messages = app.invoke(HELLO)["messages"]
        assert (answered(messages)["send"].content, outcomes.calls) == ("sent", 1)
    outcomes.calls = 0

    @resilient(effect=Effects())
    @tool("send")
    def plain_send(query: str) -> str:
        """Send it; without arguments that a call leaves out."""
        outcomes.calls += 1
        return "sent"

    def work(state: MessagesState) -> dict[str, Any]:
        return {"messages": [AIMessage(plain_send.invoke({"query": "ann"}))]}

    app = shearpin.guard(plain_graph(work), boundary=Boundary(tools=SEND))
    assert app.invoke(HELLO)["messages"][-1].content == "sent"
    assert outcomes.calls == 1


@PRICES
def test_resilient_tools_count_in_the_run_that_they_are_called_in() -> None:
    outcomes = Outcomes(REFUSED, "found")
    search = resilient(made("search", outcomes), retries=Retries(base_seconds=0.0))
    app = shearpin.guard(
        tool_node([search], script([("search", {"query": "x"})])),
        boundary=True,
        budget=shearpin.Budget(tool_calls=9),
    )
    messages = app.invoke(HELLO)["messages"]
    assert answered(messages)["search"].content == "found"
    report = app.report()
    assert (report.boundary.errors, report.boundary.retries) == (1, 1)
    assert report.budget.scopes[0].spent["tool_calls"] == 2


def test_a_resilient_tool_that_failed_is_not_tried_again_around_it() -> None:
    outcomes = Outcomes(REFUSED)
    search = resilient(made("search", outcomes), retries=Retries(attempts=2, base_seconds=0.0))
    app = shearpin.guard(tool_node([search], script([("search", {"query": "x"})])), boundary=True)
    message = answered(app.invoke(HELLO)["messages"])["search"]
    assert outcomes.calls == 2
    assert message.artifact["attempts"] == 2
    assert app.report().boundary.errors == 2


@each_way
def test_the_middleware_alone_does_it_too(how: str) -> None:
    flaky, bad = Outcomes(REFUSED, "found"), Outcomes(ValueError("no index"))
    calls = [("flaky", {"query": "x"}), ("bad", {"query": "y"})]
    middleware = GuardMiddleware(boundary=Boundary(tools=SEND))
    app = create_agent(
        script(calls), [made("flaky", flaky), made("bad", bad)], middleware=[middleware]
    )
    messages = run(app, how, HELLO)["messages"]
    faultless(messages)
    found = answered(messages)
    assert (found["flaky"].content, found["bad"].status) == ("found", "error")
    assert messages[-1].content == "done"


# -- agents in tools -------------------------------------------------------------------------------


@each_way
def test_an_agent_in_a_tool_is_not_run_again_for_its_last_failure(how: str) -> None:
    acted = Outcomes("charged")

    def inner_model(messages: Any, call: int) -> AIMessage:
        if any(isinstance(message, ToolMessage) for message in messages):
            raise REFUSED
        return asks_for(("charge", {"number": 5}))

    inner = agent([made("charge", acted)], StrictProvider(inner_model))

    @tool
    def delegate(query: str) -> str:
        """Ask another agent."""
        return str(inner.invoke({"messages": [HumanMessage(query)]})["messages"][-1].content)

    app = shearpin.guard(
        tool_node([delegate], script([("delegate", {"query": "x"})])),
        boundary=Boundary(nodes=["tools"]),
    )
    message = answered(run(app, how, HELLO)["messages"])["delegate"]
    assert acted.calls == 1
    assert message.status == "error"


# -- side by side ----------------------------------------------------------------------------------


class KeyRefusedError(Exception):
    """It concerns the whole run, and not only the tool that had it."""

    status_code = 401


def fatal() -> Outcomes:
    return Outcomes(KeyRefusedError("no such key"))


@pytest.mark.parametrize("host", ["tool_node", "agent"])
def test_where_one_fails_for_good_the_others_are_cancelled_and_answered(host: str) -> None:
    started, finished = asyncio.Event(), []

    @tool
    async def slow(query: str) -> str:
        """Take long."""
        started.set()
        await asyncio.Event().wait()
        finished.append(query)
        return query

    @tool
    async def broken(query: str) -> str:
        """Break."""
        await started.wait()
        raise KeyRefusedError("no such key")

    @tool
    async def quick(query: str) -> str:
        """Be quick."""
        return f"quick {query}"

    calls = [("slow", {"query": "x"}), ("quick", {"query": "y"}), ("broken", {"query": "z"})]
    app = shearpin.guard(HOSTS[host]([slow, broken, quick], script(calls)), boundary=True)
    messages = run(app, "ainvoke", HELLO)["messages"]
    faultless(messages)
    found = answered(messages)
    assert found["quick"].content == "quick y"
    assert found["broken"].status == found["slow"].status == "error"
    assert "given up" in str(found["slow"].content)
    assert "may or may not have happened" in str(found["slow"].content)
    assert finished == []
    assert messages[-1].content == "done"


def test_a_call_whose_effect_is_recorded_is_left_to_finish() -> None:
    started, go = asyncio.Event(), asyncio.Event()

    @tool
    async def send(query: str) -> str:
        """Send."""
        started.set()
        await go.wait()
        return f"sent to {query}"

    @tool
    async def broken(query: str) -> str:
        """Break."""
        await started.wait()
        asyncio.get_running_loop().call_soon(go.set)
        raise KeyRefusedError("no such key")

    calls = [("send", {"query": "ann"}), ("broken", {"query": "z"})]
    app = shearpin.guard(tool_node([send, broken], script(calls)), boundary=Boundary(tools=SEND))
    found = answered(run(app, "ainvoke", HELLO)["messages"])
    assert found["send"].content == "sent to ann"


def test_in_threads_what_has_not_begun_is_not_begun() -> None:
    outcomes, bad = Outcomes("done"), fatal()
    calls = [("bad", {"query": "x"}), ("other", {"query": "y"})]
    app = shearpin.guard(
        tool_node([made("bad", bad), made("other", outcomes)], script(calls)), boundary=True
    )
    found = answered(app.invoke(HELLO, {"max_concurrency": 1})["messages"])
    assert outcomes.calls == 0
    assert "given up" in str(found["other"].content)
    assert "may or may not" not in str(found["other"].content)


def test_what_the_host_answers_gives_nobody_up() -> None:
    outcomes = Outcomes("done")
    calls = [("bad", {"query": "x"}), ("other", {"query": "y"})]
    tools = [made("bad", fatal()), made("other", outcomes)]
    app = shearpin.guard(tool_node(tools, script(calls), handle_tool_errors="sorry"), boundary=True)
    found = answered(app.invoke(HELLO, {"max_concurrency": 1})["messages"])
    assert (found["bad"].content, found["other"].content) == ("sorry", "done")


def test_who_wants_it_otherwise_says_so() -> None:
    outcomes = Outcomes("done")
    calls = [("bad", {"query": "x"}), ("other", {"query": "y"})]
    app = shearpin.guard(
        tool_node([made("bad", fatal()), made("other", outcomes)], script(calls)),
        boundary=Boundary(cancel_siblings=False),
    )
    found = answered(app.invoke(HELLO, {"max_concurrency": 1})["messages"])
    assert found["other"].content == "done"


async def test_an_outer_cancellation_always_propagates() -> None:
    started = asyncio.Event()

    @tool
    async def slow(query: str) -> str:
        """Take long."""
        started.set()
        await asyncio.Event().wait()
        return query

    app = shearpin.guard(tool_node([slow], script([("slow", {"query": "x"})])), boundary=True)
    running = asyncio.create_task(app.ainvoke(HELLO))
    await started.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


async def test_an_outer_cancellation_leaves_a_wait_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    waiting = asyncio.Event()

    async def asleep(seconds: float) -> None:
        waiting.set()
        await asyncio.Event().wait()

    monkeypatch.setattr("shearpin.clock.asleep", asleep)
    outcomes = Outcomes(REFUSED)
    app = shearpin.guard(
        tool_node([made("search", outcomes)], script([("search", {"query": "x"})])), boundary=True
    )
    running = asyncio.create_task(app.ainvoke(HELLO))
    await waiting.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert outcomes.calls == 1


@PRICES
def test_a_wait_is_no_working_time(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = ManualClock()
    monkeypatch.setattr("shearpin.clock.sleep", clock.advance)
    hour = Retries(base_seconds=3600.0, cap_seconds=3600.0, deadline_seconds=None)
    outcomes = Outcomes(REFUSED, "found")
    boundary = Boundary(retries=hour)
    app = shearpin.guard(
        tool_node([made("search", outcomes)], script([("search", {"query": "x"})])),
        boundary=boundary,
        budget=shearpin.Budget(seconds=10_000, working_seconds=5_000),
    )
    shared_of(boundary).uniform = lambda low, high: high
    wiring = wiring_of(app)
    assert wiring is not None
    wiring.now = clock
    messages = app.invoke(HELLO)["messages"]
    assert answered(messages)["search"].content == "found"
    spent = app.report().budget.scopes[0].spent
    assert (spent["seconds"], spent["working_seconds"]) == (3600, 0)


def test_threads_share_nothing_but_the_store() -> None:
    outcomes = Outcomes("sent")
    app = shearpin.guard(
        tool_node([made("send", outcomes)], script([("send", {"query": "ann"})]), InMemorySaver()),
        boundary=Boundary(tools=SEND),
    )
    lock, seen = threading.Lock(), []

    def turn(number: int) -> None:
        config: Any = {"configurable": {"thread_id": f"t{number}"}}
        messages = app.invoke(HELLO, config)["messages"]
        with lock:
            seen.append(answered(messages)["send"].content)

    workers = [threading.Thread(target=turn, args=(n,)) for n in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert seen == ["sent"] * 8
    assert outcomes.calls == 8

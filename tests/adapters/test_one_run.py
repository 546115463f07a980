"""What belongs to one run and what does not: re-execution, turns, compaction, other users."""

from __future__ import annotations

import asyncio
import inspect
import os
import pickle
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import SummarizationMiddleware
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, RemoveMessage
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Command, RetryPolicy, interrupt

import shearpin
from shearpin.adapters.judge import Judge
from shearpin.testing import StrictProvider, asks_for
from tests.adapters.builds import (
    HELLO,
    MOST_CALLS,
    THREAD,
    agent,
    look,
    polite,
    react,
    react_builder,
    runaway,
    saver,
)


@pytest.fixture
def facts(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What the core is told."""
    told: list[Any] = []
    plain = Judge.after

    def spy(self: Judge, fact: Any) -> Any:
        told.append(fact)
        return plain(self, fact)

    monkeypatch.setattr(Judge, "after", spy)
    return told


# -- executed again --------------------------------------------------------------------------------


def test_a_node_with_many_pauses_is_no_repetition() -> None:
    """Each answer runs the node from its start: the same model and tool call eight times over."""
    model = StrictProvider(lambda messages, call: asks_for(("look", {"place": "desk"})))

    def node(state: MessagesState) -> dict[str, Any]:
        asked = model.invoke(state["messages"])
        for call in asked.tool_calls:
            look.invoke(call)
        answers = [interrupt(f"question {number}") for number in range(8)]
        return {"messages": [AIMessage(" ".join(answers))]}

    builder: StateGraph[Any] = StateGraph(MessagesState)
    builder.add_node("node", node)
    builder.add_edge(START, "node")
    app = shearpin.guard(builder.compile(checkpointer=saver()))
    app.invoke(HELLO, THREAD)
    for number in range(8):
        result = app.invoke(Command(resume=str(number)), THREAD)
    assert result["messages"][-1].content == "0 1 2 3 4 5 6 7"
    assert model.calls == 9
    report = app.report(THREAD)
    assert report.verdicts == ()
    spend = report.to_json()["spend"]
    assert (spend["model_calls"], spend["tool_calls"]) == (1, 1)


@pytest.mark.parametrize("how", ["invoke", "ainvoke"])
async def test_a_retried_node_is_no_repetition(how: str) -> None:
    model = StrictProvider(lambda messages, call: asks_for(("look", {"place": "desk"})))
    tries: list[int] = []

    def node(state: MessagesState) -> dict[str, Any]:
        asked = model.invoke(state["messages"])
        for call in asked.tool_calls:
            look.invoke(call)
        tries.append(1)
        if len(tries) < 7:
            raise ConnectionError("not yet")
        return {"messages": [AIMessage("done")]}

    builder: StateGraph[Any] = StateGraph(MessagesState)
    policy = RetryPolicy(max_attempts=9, initial_interval=0.0, jitter=False)
    builder.add_node("node", node, retry_policy=policy)
    builder.add_edge(START, "node")
    app: Any = shearpin.guard(builder.compile(checkpointer=saver()))
    result = app.invoke(HELLO, THREAD) if how == "invoke" else await app.ainvoke(HELLO, THREAD)
    assert (result["messages"][-1].content, len(tries)) == ("done", 7)
    assert app.report(THREAD).verdicts == ()
    assert app.report(THREAD).to_json()["spend"]["model_calls"] == 1


# -- turns -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("build", [react, agent], ids=["react", "create_agent"])
def test_heartbeats_on_one_thread_do_not_add_up(build: Any) -> None:
    """A scheduled run that looks at the same thing each time is at work, not in a loop."""

    def script(messages: Sequence[BaseMessage], call: int) -> AIMessage | str:
        if isinstance(messages[-1], HumanMessage):
            return asks_for(("look", {"place": "desk"}))
        return "Nothing new."

    app = shearpin.guard(build(StrictProvider(script), saver()))
    for _ in range(40):
        app.invoke({"messages": [HumanMessage("heartbeat")]}, THREAD)
        report = app.report(THREAD)
        assert (report.outcome, report.verdicts) == ("completed", ())
    assert report.to_json()["spend"]["model_calls"] == 80


def test_a_run_that_was_stopped_is_followed_by_a_fresh_one() -> None:
    model = runaway()
    app = shearpin.guard(react(model, saver()))
    app.invoke(HELLO, THREAD)
    first = model.calls
    app.invoke(HELLO, THREAD)
    assert app.report(THREAD).outcome == "stopped"
    assert model.calls == 2 * first


# -- compaction ------------------------------------------------------------------------------------


LAPS = 6
"""So many calls are a block without compaction, and a hint at most with it."""


# LangChain 1.0 counted tokens only; there every message is one.
SEVEN_MESSAGES: dict[str, Any] = (
    {"trigger": ("messages", 7), "keep": ("messages", 3)}
    if "trigger" in inspect.signature(SummarizationMiddleware).parameters
    else {
        "max_tokens_before_summary": 7,
        "messages_to_keep": 3,
        "token_counter": lambda messages: len(list(messages)),
    }
)


def compacted(facts: list[Any]) -> int:
    return sum(type(fact).__name__ == "HistoryCompacted" for fact in facts)


def strongest(app: Any) -> str:
    return app.report(THREAD).worst.label


def test_the_summarization_middleware_is_recognised(facts: list[Any]) -> None:
    """An agent that asks again for what its summary has lost is not in a loop yet."""
    summariser = StrictProvider(lambda messages, call: f"They have looked {call} times.")
    model = StrictProvider(
        lambda messages, call: "done" if call == LAPS else asks_for(("look", {"place": "desk"}))
    )
    hook = SummarizationMiddleware(model=summariser, **SEVEN_MESSAGES)
    app = shearpin.guard(create_agent(model, [look], middleware=[hook], checkpointer=saver()))
    messages = app.invoke(HELLO, {**THREAD, "recursion_limit": 100})["messages"]
    assert summariser.calls >= 2
    assert compacted(facts) >= summariser.calls
    assert messages[-1].content == "done"
    assert strongest(app) in ("none", "nudge")


def test_without_compaction_the_same_agent_is_held_back() -> None:
    model = StrictProvider(
        lambda messages, call: "done" if call == LAPS else asks_for(("look", {"place": "desk"}))
    )
    app = shearpin.guard(agent(model, saver()))
    app.invoke(HELLO, THREAD)
    assert strongest(app) in ("block", "stop")


@pytest.mark.parametrize("kind", ["remove", "replace"])
def test_a_history_that_is_cut_by_hand(kind: str, facts: list[Any]) -> None:
    model = StrictProvider(
        lambda messages, call: "done" if call == LAPS else asks_for(("look", {"place": "desk"})),
        flavour="openai",
    )
    builder = react_builder(model)

    def cut(state: MessagesState) -> dict[str, Any]:
        if len(state["messages"]) < 5:
            return {}
        if kind == "remove":
            return {"messages": [RemoveMessage(id=m.id or "") for m in state["messages"][1:]]}
        removed = RemoveMessage(id="__remove_all__")
        return {"messages": [removed, state["messages"][0]]}

    builder.edges.discard(("tools", "agent"))
    builder.add_node("cut", cut)
    builder.add_edge("tools", "cut")
    builder.add_edge("cut", "agent")
    app = shearpin.guard(builder.compile(checkpointer=saver()))
    messages = app.invoke(HELLO, {**THREAD, "recursion_limit": 100})["messages"]
    assert compacted(facts) >= 2
    assert messages[-1].content == "done"
    assert strongest(app) in ("none", "nudge")


# -- one guard, many runs --------------------------------------------------------------------------


def mixed() -> StrictProvider:
    """Goes round in circles where the user says so, and answers at once where not."""

    def script(messages: Sequence[BaseMessage], call: int) -> Any:
        asked = next(
            m for m in reversed(messages) if isinstance(m, HumanMessage) and m.name == "user"
        )
        return asks_for(("look", {"place": "desk"})) if "loop" in str(asked.content) else "fine"

    return StrictProvider(script)


def question(number: int) -> dict[str, Any]:
    return {"messages": [HumanMessage("loop" if number % 2 else "calm", name="user")]}


def config(number: int) -> dict[str, Any]:
    return {"configurable": {"thread_id": str(number)}}


def check(app: Any, number: int) -> None:
    report = app.report(config(number))
    assert (report.outcome, report.info.thread) == (
        "stopped" if number % 2 else "completed", str(number),
    )  # fmt: skip
    calls = report.to_json()["spend"]["model_calls"]
    assert 1 < calls <= MOST_CALLS if number % 2 else calls == 1
    assert report.faults == ()


async def test_a_thousand_coroutines_share_a_guard() -> None:
    app: Any = shearpin.guard(react(mixed()))
    reports: dict[int, Any] = {}

    async def one(number: int) -> None:
        result = await app.ainvoke(question(number))
        reports[number] = result["messages"]

    await asyncio.gather(*(one(number) for number in range(1000)))
    for number, messages in reports.items():
        stopped = "shearpin" in messages[-1].response_metadata
        assert stopped == bool(number % 2)
        calls = sum(isinstance(m, AIMessage) for m in messages)
        assert calls <= MOST_CALLS + 1 if number % 2 else calls == 1


def test_64_threads_at_once_on_one_thread_id_each() -> None:
    app = shearpin.guard(react(mixed(), saver()))
    with ThreadPoolExecutor(64) as pool:
        list(pool.map(lambda n: app.invoke(question(n), config(n)), range(128)))
    for number in range(128):
        check(app, number)


def test_two_users_take_turns() -> None:
    """One is half way into a loop when the other one asks: neither is taken for the other."""
    app = shearpin.guard(react(mixed(), saver()))
    alone = shearpin.guard(react(mixed(), saver()))
    alone.invoke(question(1), config(1))
    expected = alone.report(config(1)).to_json()["spend"]["model_calls"]
    given: Any = question(1)
    for number in range(40):
        app.invoke(given, config(1), interrupt_after=["tools"])
        app.invoke(question(2), config(2))
        check(app, 2) if number == 0 else None
        given = None
        if not app.get_state(config(1)).next:
            break
    assert app.report(config(1)).outcome == "stopped"
    assert app.report(config(1)).to_json()["spend"]["model_calls"] == expected
    assert app.report(config(2)).verdicts == ()


def test_two_graphs_under_one_guard_on_one_thread_id() -> None:
    recipe = shearpin.Guard()
    first, second = recipe.wrap(react(runaway(), saver())), recipe.wrap(react(polite(), saver()))
    for _ in range(3):
        second.invoke(HELLO, THREAD)
        first.invoke(HELLO, THREAD)
        assert first.report(THREAD).outcome == "stopped"
        assert second.report(THREAD).outcome == "completed"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_guard_used_before_and_after_a_fork() -> None:
    app = shearpin.guard(react(mixed(), saver()))
    app.invoke(question(0), config(0))
    app.invoke(question(1), config(1))
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            for number in (0, 1, 2, 3):
                app.invoke(question(number), config(number))
            told = [app.report(config(n)).to_json() for n in (0, 1, 2, 3)]
            os.write(writing, pickle.dumps([(t["outcome"], t["spend"]) for t in told]))
            code = 0
        finally:
            os._exit(code)
    app.invoke(question(3), config(3))
    assert os.waitpid(child, 0)[1] == 0
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        told = pickle.loads(pipe.read())
    assert [outcome for outcome, _ in told] == ["completed", "stopped", "completed", "stopped"]
    loop = app.report(config(3)).to_json()["spend"]["model_calls"]
    assert [spend["model_calls"] for _, spend in told] == [2, 2 * loop, 1, loop]
    check(app, 3)


def test_a_loop_is_seen_although_each_step_pauses() -> None:
    model = runaway()
    builder = react_builder(model)
    builder.add_node("ask", lambda s: {"messages": [HumanMessage(str(interrupt("go on?")))]})
    builder.edges.discard(("tools", "agent"))
    builder.add_edge("tools", "ask")
    builder.add_edge("ask", "agent")
    app = shearpin.guard(builder.compile(checkpointer=saver()))
    app.invoke(HELLO, THREAD)
    for _ in range(20):
        if not app.get_state(THREAD).next:
            break
        app.invoke(Command(resume="go on"), THREAD)
    assert app.get_state(THREAD).next == ()
    assert app.report(THREAD).outcome == "stopped"
    assert END not in app.nodes

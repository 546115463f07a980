"""Where a conversation's session lives: it survives pauses and processes, and is not seen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command, interrupt

import shearpin
from shearpin.adapters.langgraph.state import CHANNEL, load
from shearpin.testing import StrictProvider, asks_for
from tests.adapters.builds import HELLO, THREAD, look, polite, react, runaway, saver


def spend(app: Any) -> dict[str, int]:
    return app.report(THREAD).to_json()["spend"]


def counter(checkpointer: Any) -> Any:
    """A graph that calls no model and no tool."""
    builder: StateGraph[Any] = StateGraph(MessagesState)
    builder.add_node("echo", lambda s: {"messages": [AIMessage("echo")]})
    builder.add_edge(START, "echo")
    return builder.compile(checkpointer=checkpointer)


def asking(model: StrictProvider, checkpointer: Any) -> Any:
    """Calls the model and a tool, asks a person, and calls the model again."""

    def node(state: MessagesState) -> dict[str, Any]:
        first = model.invoke(state["messages"])
        seen = [look.invoke(call) for call in first.tool_calls]
        answer = interrupt("go on?")
        last = model.invoke([*state["messages"], first, *seen])
        return {"messages": [AIMessage(f"{answer}: {last.content}")]}

    builder: StateGraph[Any] = StateGraph(MessagesState)
    builder.add_node("node", node)
    builder.add_edge(START, "node")
    return builder.compile(checkpointer=checkpointer)


@pytest.mark.parametrize("state", ["memory", "auto"])
def test_a_re_executed_task_is_not_counted_again(state: Any) -> None:
    model = StrictProvider(
        [asks_for(("look", {"place": "a"})), asks_for(("look", {"place": "a"})), "end"]
    )
    app = shearpin.guard(asking(model, saver()), state=state)
    paused = app.invoke(HELLO, THREAD)
    assert "__interrupt__" in paused
    assert app.report(THREAD).outcome == "interrupted"
    assert (spend(app)["model_calls"], spend(app)["tool_calls"]) == (1, 1)
    result = app.invoke(Command(resume="yes"), THREAD)
    assert result["messages"][-1].content == "yes: end"
    assert model.calls == 3
    assert (spend(app)["model_calls"], spend(app)["tool_calls"]) == (2, 1)


def test_a_static_pause_is_an_interruption() -> None:
    app = shearpin.guard(react(polite(), saver()))
    app.invoke(HELLO, THREAD, interrupt_before=["tools"])
    assert app.get_state(THREAD).next == ("tools",)
    assert app.report(THREAD).outcome == "interrupted"
    app.invoke(None, THREAD)
    assert app.report(THREAD).outcome == "completed"


def test_a_fresh_process_goes_on_where_the_last_one_was(tmp_path: Path) -> None:
    totals: list[int] = []
    for _ in range(3):
        with SqliteSaver.from_conn_string(str(tmp_path / "threads.db")) as checkpointer:
            app = shearpin.guard(react(polite(), checkpointer))
            app.invoke(HELLO, THREAD)
            totals.append(spend(app)["model_calls"])
    assert totals == [3, 6, 9]


async def test_the_same_with_an_asynchronous_saver(tmp_path: Path) -> None:
    totals: list[int] = []
    for _ in range(3):
        async with AsyncSqliteSaver.from_conn_string(str(tmp_path / "threads.db")) as checkpointer:
            app = shearpin.guard(react(polite(), checkpointer))
            await app.ainvoke(HELLO, THREAD)
            totals.append(spend(app)["model_calls"])
    assert totals == [3, 6, 9]


def test_a_pause_in_one_process_is_resumed_in_another() -> None:
    """The loop that was half done before the pause is stopped on time after it."""
    checkpointer = saver()
    whole = runaway()
    shearpin.guard(react(whole, saver())).invoke(HELLO, THREAD)
    model = runaway()
    given: Any = HELLO
    for _ in range(whole.calls + 1):
        app = shearpin.guard(react(model, checkpointer))
        app.invoke(given, THREAD, interrupt_after=["tools"])
        given = None
        if app.report(THREAD).outcome == "stopped":
            break
    assert model.calls == whole.calls
    state = app.get_state(THREAD)
    while state.next:
        app.invoke(None, THREAD)
        state = app.get_state(THREAD)
    assert "shearpin" in state.values["messages"][-1].response_metadata
    assert model.calls == whole.calls


def test_nothing_is_written_for_a_graph_that_made_no_call() -> None:
    plain, guarded = InMemorySaver(), InMemorySaver()
    counter(plain).invoke(HELLO, THREAD)
    shearpin.guard(counter(guarded)).invoke(HELLO, THREAD)
    assert len(guarded.writes) == len(plain.writes)
    assert load(guarded, "t1", lambda where, error: None) is None


def test_a_snapshot_is_not_seen() -> None:
    checkpointer = saver()
    app = shearpin.guard(react(polite(), checkpointer))
    app.invoke(HELLO, THREAD)
    history = list(app.get_state_history(THREAD))
    assert all(CHANNEL not in snapshot.values for snapshot in history)
    assert all(not snapshot.tasks for snapshot in history[:1])
    head = checkpointer.get_tuple(THREAD)
    assert head is not None
    assert [channel for _, channel, _ in head.pending_writes or ()] == [CHANNEL]
    text = str(head.pending_writes)
    assert "room" not in text and "where is it" not in text and len(text) < 4500


def test_a_snapshot_survives_unguarded_runs_and_edits() -> None:
    checkpointer = saver()
    graph = react(polite(), checkpointer)
    app = shearpin.guard(graph)
    app.invoke(HELLO, THREAD)
    graph.invoke(HELLO, THREAD)
    graph.update_state(THREAD, {"messages": [HumanMessage("by hand")]})
    again = shearpin.guard(graph)
    again.invoke(HELLO, THREAD)
    assert spend(again)["model_calls"] == 6


def test_spend_does_not_go_back_with_a_fork() -> None:
    app = shearpin.guard(react(polite(), saver()))
    app.invoke(HELLO, THREAD)
    early = list(app.get_state_history(THREAD))[-2].config
    app.invoke(None, early)
    # Older versions of LangGraph run the first task again under its old id: not counted twice.
    assert spend(app)["model_calls"] in (5, 6)


def test_deleting_the_thread_deletes_the_session() -> None:
    checkpointer = saver()
    app = shearpin.guard(react(polite(), checkpointer))
    app.invoke(HELLO, THREAD)
    checkpointer.delete_thread("t1")
    app.invoke(HELLO, THREAD)
    assert spend(app)["model_calls"] == 3


def test_a_client_that_answers_tool_calls_itself_continues_the_turn() -> None:
    from langchain_core.messages import ToolMessage

    builder: StateGraph[Any] = StateGraph(MessagesState)
    model = runaway()
    builder.add_node("agent", lambda s: {"messages": [model.invoke(s["messages"])]})
    builder.add_edge(START, "agent")
    app = shearpin.guard(builder.compile(checkpointer=saver()))
    given: Any = HELLO
    for _ in range(12):
        call = app.invoke(given, THREAD)["messages"][-1].tool_calls
        if not call:
            break
        given = {"messages": [ToolMessage("same", tool_call_id=call[0]["id"])]}
    assert app.report(THREAD).to_json()["steps"] == model.calls


@pytest.mark.parametrize(
    "damage", ["not json", '{"v": 1}', '{"v": 1, "sequence": 1, "turn": 1, "session": {}}']
)
def test_a_damaged_snapshot_is_reported_and_forgotten(damage: str) -> None:
    checkpointer = saver()
    app = shearpin.guard(react(polite(), checkpointer))
    app.invoke(HELLO, THREAD)
    for writes in checkpointer.writes.values():
        for key, (task, channel, _, path) in list(writes.items()):
            if channel == CHANNEL:
                writes[key] = (task, channel, checkpointer.serde.dumps_typed(damage), path)
    again = shearpin.guard(react(polite(), checkpointer))
    result = again.invoke(HELLO, THREAD)
    assert result["messages"][-1].content == "It is not there."
    assert spend(again)["model_calls"] == 3

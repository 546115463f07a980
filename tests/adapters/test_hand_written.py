"""Nodes that call no LangChain model: a provider's SDK, a model of one's own, plain functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolCall, ToolMessage
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Command

import shearpin
from shearpin.testing import StrictProvider, asks_for
from tests.adapters.builds import HELLO, MOST_CALLS, THREAD, assert_valid, run, saver


class Sdk:
    """Stands for a provider's SDK: gives answers that no callback sees."""

    def __init__(self, answer: Callable[[int], Any], form: str = "message") -> None:
        self.calls = 0
        self.answer = answer
        self.form = form
        self.told: list[list[Any]] = []

    def __call__(self, state: MessagesState) -> Any:
        self.calls += 1
        self.told.append(state["messages"])
        message = self.answer(self.calls)
        if self.form == "message":
            return {"messages": [message]}
        if self.form == "single":
            return {"messages": message}
        if self.form == "command":
            return Command(update={"messages": [message]})
        content: dict[str, Any] = {"role": "assistant", "content": message.content}
        if message.tool_calls:
            content["tool_calls"] = message.tool_calls
        return {"messages": [content]}


def asking(number: int) -> AIMessage:
    call = ToolCall(name="look", args={"place": "desk"}, id=f"c{number}", type="tool_call")
    return AIMessage("", tool_calls=[call])


def tools(state: MessagesState) -> dict[str, Any]:
    """Carries out calls without LangChain's tools."""
    last: Any = state["messages"][-1]
    return {
        "messages": [
            ToolMessage(f"{c['args']['place']}: it is locked", tool_call_id=c["id"])
            for c in last.tool_calls
        ]
    }


def loop(sdk: Sdk, checkpointer: Any = None) -> Any:
    builder: StateGraph[Any] = StateGraph(MessagesState)
    builder.add_node("agent", sdk)
    builder.add_node("tools", tools)
    builder.add_edge(START, "agent")

    def onward(state: MessagesState) -> str:
        return "tools" if getattr(state["messages"][-1], "tool_calls", None) else END

    builder.add_conditional_edges("agent", onward, ["tools", END])
    builder.add_edge("tools", "agent")
    return builder.compile(checkpointer=checkpointer)


@pytest.mark.parametrize("how", ["invoke", "ainvoke", "stream", "astream"])
@pytest.mark.parametrize("form", ["message", "single", "command", "dict"])
async def test_a_loop_of_plain_functions_is_stopped(form: str, how: str) -> None:
    sdk = Sdk(asking, form)
    app = shearpin.guard(loop(sdk, saver()))
    await run(app, how)
    report = app.report(THREAD)
    assert (report.outcome, report.reason) == ("stopped", "loop:repeat")
    assert sdk.calls <= MOST_CALLS
    assert report.to_json()["spend"]["model_calls"] == sdk.calls
    messages = app.get_state(THREAD).values["messages"]
    assert "shearpin" in messages[-1].response_metadata
    assert_valid(messages)


def test_the_node_is_told_like_any_other() -> None:
    sdk = Sdk(asking)
    app = shearpin.guard(loop(sdk, saver()))
    app.invoke(HELLO, THREAD)
    nudges = [v.message for v in app.report(THREAD).verdicts if v.verdict == "nudge" and v.acted]
    said = [m.content for told in sdk.told for m in told if isinstance(m, HumanMessage)]
    assert nudges[0] in said
    held = app.get_state(THREAD).values["messages"]
    assert not any(m.content in nudges for m in held)


def test_a_monologue_is_stopped() -> None:
    sdk = Sdk(lambda number: AIMessage("I will look into it."))
    builder: StateGraph[Any] = StateGraph(MessagesState)
    builder.add_node("agent", sdk)
    builder.add_edge(START, "agent")
    builder.add_conditional_edges("agent", lambda s: "agent", ["agent", END])
    app = shearpin.guard(builder.compile(checkpointer=saver()))
    app.invoke(HELLO, {**THREAD, "recursion_limit": 60})
    assert app.report(THREAD).reason == "loop:monologue"
    assert sdk.calls <= 12


def test_work_that_gets_on_is_left_alone() -> None:
    def answer(number: int) -> AIMessage:
        if number == 8:
            return AIMessage("done")
        call = ToolCall(name="look", args={"place": str(number)}, id=str(number), type="tool_call")
        return AIMessage("", tool_calls=[call])

    app = shearpin.guard(loop(Sdk(answer), saver()))
    assert app.invoke(HELLO, THREAD)["messages"][-1].content == "done"
    report = app.report(THREAD)
    assert (report.outcome, report.verdicts) == ("completed", ())
    assert report.to_json()["spend"] == {
        "model_calls": 8, "tool_calls": 7, "input_tokens": 0, "output_tokens": 0,
    }  # fmt: skip


def test_usage_that_the_message_carries_counts() -> None:
    usage: Any = {"input_tokens": 7, "output_tokens": 2, "total_tokens": 9}

    def answer(number: int) -> AIMessage:
        if number == 2:
            return AIMessage("done", usage_metadata=usage)
        return asking(number).model_copy(update={"usage_metadata": usage})

    app = shearpin.guard(loop(Sdk(answer), saver()))
    app.invoke(HELLO, THREAD)
    spend = app.report(THREAD).to_json()["spend"]
    assert (spend["input_tokens"], spend["output_tokens"]) == (14, 4)


def test_a_model_that_was_seen_counts_once() -> None:
    model = StrictProvider([asks_for(("look", {"place": "a"})), "done"])
    app = shearpin.guard(loop(Sdk(lambda n: model.invoke("where is it?")), saver()))
    app.invoke(HELLO, THREAD)
    spend = app.report(THREAD).to_json()["spend"]
    assert (spend["model_calls"], spend["tool_calls"]) == (2, 1)


def test_messages_that_were_there_before_are_nobodys_answers() -> None:
    class State(TypedDict):
        messages: Annotated[list[Any], add_messages]
        rounds: int

    def rewrite(state: State) -> dict[str, Any]:
        return {"messages": state["messages"], "rounds": state["rounds"] + 1}

    builder: StateGraph[Any] = StateGraph(State)
    builder.add_node("rewrite", rewrite)
    builder.add_edge(START, "rewrite")
    builder.add_conditional_edges(
        "rewrite", lambda s: "rewrite" if s["rounds"] < 20 else END, ["rewrite", END]
    )
    app = shearpin.guard(builder.compile())
    given = [HumanMessage("a"), AIMessage("b", id="b"), HumanMessage("c")]
    app.invoke({"messages": given, "rounds": 0})
    assert app.report().to_json()["spend"]["model_calls"] == 0


def test_a_node_that_runs_once_leaves_no_trace() -> None:
    builder: StateGraph[Any] = StateGraph(MessagesState)
    for name in ("one", "two"):
        builder.add_node(name, lambda s: {"messages": [AIMessage("noted")]})
    builder.add_edge(START, "one")
    builder.add_edge("one", "two")
    app = shearpin.guard(builder.compile(checkpointer=saver()))
    app.invoke(HELLO, THREAD)
    assert app.report(THREAD).to_json()["spend"]["model_calls"] == 0

"""Parallel branches that answer alike are no loop; a branch that loops is one."""

from __future__ import annotations

import operator
from typing import Annotated, Any, TypedDict

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, AnyMessage
from langchain_core.tools import tool
from langgraph.graph import START, StateGraph, add_messages
from langgraph.types import Send

import shearpin
from shearpin.testing import ScriptedModel, asks_for


class State(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]
    done: Annotated[list[str], operator.add]


@tool
def read_catalog(part: str) -> str:
    """Read the catalogue."""
    return "catalog v8, 212 items"


def fan_out(worker: Any, width: int) -> Any:
    builder: StateGraph[Any] = StateGraph(State)
    builder.add_node("worker", worker)
    hello = {"messages": [("user", "go")], "done": []}
    builder.add_conditional_edges(START, lambda _: [Send("worker", hello)] * width)
    return builder.compile()


@pytest.mark.parametrize("how", ["invoke", "ainvoke"])
async def test_branches_that_say_the_same_are_no_monologue(how: str) -> None:
    model = ScriptedModel(["Nothing to report."], repeat_last=True)

    def worker(state: Any) -> Any:
        return {"done": [model.invoke(state["messages"]).text]}

    app = shearpin.guard(fan_out(worker, 16))
    inputs: Any = {"messages": [("user", "go")], "done": []}
    out = app.invoke(inputs) if how == "invoke" else await app.ainvoke(inputs)
    assert len(out["done"]) == 16
    assert app.report().verdicts == ()


async def test_branches_with_the_same_agent_and_the_same_look_up_are_no_repetition() -> None:
    def script(messages: Any, number: int) -> Any:
        if isinstance(messages[-1], AIMessage) or len(messages) > 2:
            return "All is there."
        return asks_for(("read_catalog", {"part": "all"}))

    agent = create_agent(ScriptedModel(script), [read_catalog])

    async def worker(state: Any) -> Any:
        result = await agent.ainvoke({"messages": state["messages"]})
        return {"done": [result["messages"][-1].text]}

    app = shearpin.guard(fan_out(worker, 8))
    out = await app.ainvoke({"messages": [("user", "go")], "done": []})
    assert out["done"] == ["All is there."] * 8
    assert app.report().verdicts == ()


def test_an_agent_that_loops_in_one_branch_is_stopped() -> None:
    again = asks_for(("read_catalog", {"part": "all"}))
    agent = create_agent(ScriptedModel([again], repeat_last=True), [read_catalog])
    builder: StateGraph[Any] = StateGraph(State)
    builder.add_node("first", lambda _: {"done": ["ok"]})
    builder.add_node("agent", agent)
    hello = {"messages": [("user", "go")], "done": []}
    builder.add_conditional_edges(START, lambda _: [Send("first", hello), Send("agent", hello)])
    app = shearpin.guard(builder.compile())
    app.invoke({"messages": [("user", "go")], "done": []})
    report = app.report()
    assert report.reason == "loop:repeat"
    assert report.decisive is not None
    assert report.decisive.agent == "agent#1"
    assert any(verdict.verdict == "nudge" and verdict.acted for verdict in report.verdicts)

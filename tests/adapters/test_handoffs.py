"""A history that breaks in the middle of a turn, as by a hand-off beside other calls, is mended."""

from __future__ import annotations

from typing import Annotated, Any, cast

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.tools import BaseTool, InjectedToolCallId, tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import InjectedState, ToolNode, tools_condition
from langgraph.types import Command

import shearpin
from shearpin.testing import ProviderRejectedError, StrictProvider, asks_for
from tests.adapters.builds import HELLO, THREAD, WAYS, assert_valid, run, saver


@tool
def look(place: str) -> str:
    """Look at a place."""
    return f"{place}: empty"


@tool
def hand(
    call: Annotated[str, InjectedToolCallId], state: Annotated[dict[str, Any], InjectedState]
) -> Command[Any]:
    """Hand over to another agent."""
    news = [*state["messages"], ToolMessage("handed over", tool_call_id=call)]
    return Command(goto="second", graph=Command.PARENT, update={"messages": news})


TOOLS: list[BaseTool] = [look, hand]


def first_agent() -> Any:
    """One that asks for a hand-off in the middle of other calls."""
    model = StrictProvider([asks_for(("look", {"place": "a"}), ("hand", {}), ("look", {}))])
    builder = StateGraph(MessagesState)
    builder.add_node("agent", lambda state: {"messages": [model.invoke(state["messages"])]})
    builder.add_node("tools", ToolNode(TOOLS))
    builder.add_edge(START, "agent")
    builder.add_conditional_edges("agent", tools_condition)
    builder.add_edge("tools", "agent")
    return builder.compile()


def by_function(model: StrictProvider) -> Any:
    return lambda state: {"messages": [model.invoke(state["messages"])]}


def by_agent(model: StrictProvider) -> Any:
    return create_agent(model, [look])


def by_call(model: StrictProvider) -> Any:
    inner = create_agent(model, [look])
    return lambda state: {"messages": inner.invoke({"messages": state["messages"]})["messages"][-1]}


def team(second: Any) -> Any:
    builder = StateGraph(MessagesState)
    builder.add_node("first", first_agent(), destinations=("second",))
    builder.add_node("second", second)
    builder.add_edge(START, "first")
    return builder.compile(checkpointer=saver())


@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize("boundary", [None, True])
@pytest.mark.parametrize("second", [by_function, by_agent, by_call])
async def test_a_hand_off_beside_other_calls(second: Any, boundary: Any, how: str) -> None:
    model = StrictProvider(["done"])
    app = shearpin.guard(team(second(model)), boundary=boundary)

    await run(app, how)

    assert app.get_state(THREAD).values["messages"][-1].text == "done"
    assert_valid(model.requests[0])
    report = app.report(THREAD)
    assert report.reason is None
    assert report.notes[0].evidence["unanswered"] == 2


def test_it_is_a_fault_without_the_guard() -> None:
    with pytest.raises(ProviderRejectedError):
        team(by_function(StrictProvider(["done"]))).invoke(HELLO, THREAD)


def test_an_agent_is_handed_a_history_in_which_nothing_is_answered() -> None:
    model = StrictProvider(["done"])
    builder = StateGraph(MessagesState)
    builder.add_node("breaks", lambda _: {"messages": [asks_for(("look", {"place": "a"}))]})
    builder.add_node("second", create_agent(model, [look]))
    builder.add_edge(START, "breaks")
    builder.add_edge("breaks", "second")

    result = shearpin.guard(builder.compile()).invoke(HELLO)

    assert result["messages"][-1].text == "done"


def in_between(node: Any) -> Any:
    """A node that is entered while calls stand open."""
    builder = StateGraph(MessagesState)
    calls = asks_for(("look", {"place": "a"}), ("look", {"place": "b"}))
    builder.add_node("agent", lambda _: {"messages": [calls]})
    builder.add_node("between", node)
    builder.add_edge(START, "agent")
    builder.add_edge("agent", "between")
    return builder.compile()


def test_a_judge_of_open_calls_sees_them_as_they_are() -> None:
    model = StrictProvider(["fine"])
    seen: list[BaseMessage] = []

    def judge(state: MessagesState) -> dict[str, Any]:
        seen.append(state["messages"][-1])
        return {"messages": [model.invoke([HumanMessage("are these calls fine?")])]}

    app = shearpin.guard(in_between(judge))
    app.invoke(HELLO)

    assert isinstance(seen[0], AIMessage)
    assert app.report().notes == ()


@pytest.mark.parametrize("form", ["code", "tool node"])
def test_a_node_that_carries_calls_out_sees_them_as_they_are(form: str) -> None:
    model = StrictProvider(["short"])
    tools = ToolNode(TOOLS)
    seen: list[list[BaseMessage]] = []

    def by_hand(state: MessagesState) -> dict[str, Any]:
        asked = cast("AIMessage", state["messages"][1]).tool_calls
        seen.append(state["messages"])
        summary = model.invoke([HumanMessage("summarise")])
        return {"messages": [ToolMessage(summary.text, tool_call_id=asked[-1]["id"])]}

    def by_node(state: MessagesState) -> dict[str, Any]:
        seen.append(state["messages"])
        model.invoke([HumanMessage("summarise")])
        return {} if tools.name else {"messages": []}

    def half(state: MessagesState) -> dict[str, Any]:
        call = cast("AIMessage", state["messages"][-1]).tool_calls[0]
        return {"messages": [ToolMessage("a", tool_call_id=call["id"])]}

    builder = StateGraph(MessagesState)
    calls = asks_for(("look", {"place": "a"}), ("look", {"place": "b"}))
    builder.add_node("agent", lambda _: {"messages": [calls]})
    builder.add_node("half", half)
    builder.add_node("rest", by_hand if form == "code" else by_node)
    builder.add_edge(START, "agent")
    builder.add_edge("agent", "half")
    builder.add_edge("half", "rest")
    app = shearpin.guard(builder.compile())
    app.invoke(HELLO)

    assert [message.type for message in seen[0]] == ["human", "ai", "tool"]
    assert app.report().notes == ()

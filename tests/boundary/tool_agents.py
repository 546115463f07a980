"""Agents whose tools fail, in every kind of graph that tools are called in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.tools import BaseTool, StructuredTool
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import Send

from shearpin.testing import StrictProvider, asks_for
from tests.boundary.tool_bench import Outcomes

HELLO: dict[str, Any] = {"messages": [HumanMessage("where is it?", id="h1")]}
AGAIN: dict[str, Any] = {"messages": [HumanMessage("and then?", id="h2")]}
THREAD: dict[str, Any] = {"configurable": {"thread_id": "t1"}}

Calls = Sequence[tuple[str, dict[str, Any]]]


def made(name: str, outcomes: Outcomes) -> BaseTool:
    """A tool that does what it is told; in event loops, too."""

    def act(query: str = "", number: int = 0) -> Any:
        return outcomes(query=query) if query else outcomes(number=number)

    return StructuredTool.from_function(act, name=name, description=f"The tool {name}.")


def script(*rounds: Calls) -> StrictProvider:
    """A model that asks for these calls, round by round, and then says that it is done."""

    def reply(messages: Sequence[BaseMessage], call: int) -> AIMessage:
        turn = sum(isinstance(message, AIMessage) for message in messages)
        over = turn >= len(rounds) or any(message.id == "h2" for message in messages)
        return AIMessage("done") if over else asks_for(*rounds[turn])

    return StrictProvider(reply)


def tool_node(tools: Sequence[BaseTool], model: Any, saver: Any = None, **options: Any) -> Any:
    """A model and a ToolNode."""
    builder = StateGraph(MessagesState)
    builder.add_node("model", lambda state: {"messages": [model.invoke(state["messages"])]})
    builder.add_node("tools", ToolNode(list(tools), **options))
    builder.add_edge(START, "model")
    builder.add_conditional_edges("model", tools_condition)
    builder.add_edge("tools", "model")
    return builder.compile(checkpointer=saver)


def agent(tools: Sequence[BaseTool], model: Any, saver: Any = None) -> Any:
    """An agent of LangChain: each call is a Send of its own."""
    return create_agent(model, list(tools), checkpointer=saver)


def nested(tools: Sequence[BaseTool], model: Any, saver: Any = None) -> Any:
    """An agent as a subgraph."""
    builder = StateGraph(MessagesState)
    builder.add_node("team", tool_node(tools, model))
    builder.add_edge(START, "team")
    builder.add_edge("team", END)
    return builder.compile(checkpointer=saver)


def fan(tools: Sequence[BaseTool], model: Any, saver: Any = None) -> Any:
    """A model, and a branch with a tool node of its own for each of its calls."""
    node = ToolNode(list(tools))

    def branches(state: MessagesState) -> Any:
        last = state["messages"][-1]
        calls = last.tool_calls if isinstance(last, AIMessage) else []
        asked = [{"messages": [last.model_copy(update={"tool_calls": [call]})]} for call in calls]
        return [Send("tools", each) for each in asked] or END

    builder = StateGraph(MessagesState)
    builder.add_node("model", lambda state: {"messages": [model.invoke(state["messages"])]})
    builder.add_node("tools", node)
    builder.add_edge(START, "model")
    builder.add_conditional_edges("model", branches, ["tools", END])
    builder.add_edge("tools", "model")
    return builder.compile(checkpointer=saver)


HOSTS = {"tool_node": tool_node, "agent": agent, "nested": nested, "fan": fan}


def answered(messages: Sequence[BaseMessage]) -> dict[str, ToolMessage]:
    """The answers by tool; of several, the last."""
    return {str(message.name): message for message in messages if isinstance(message, ToolMessage)}

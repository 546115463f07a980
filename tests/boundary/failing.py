"""Graphs of each kind with one node that fails, and each way of running them."""

from __future__ import annotations

import asyncio
import operator
from collections.abc import Callable, Sequence
from typing import Annotated, Any, TypedDict

from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage
from langchain_core.tools import tool
from langgraph.func import entrypoint, task
from langgraph.graph import START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Send

from shearpin.testing import StrictProvider
from shearpin.testing.provider import complaints

HOW = ("invoke", "ainvoke", "stream", "astream")
THREAD: dict[str, Any] = {"configurable": {"thread_id": "t1"}}
HELLO: dict[str, Any] = {"messages": [HumanMessage("where is it?", id="h1")]}


class OutageError(Exception):
    """What the failing node raises."""


class Failing:
    """Decides whether a node fails, and remembers what it was given.

    Args:
        until: told the messages and the number of the call; the node fails while this is false.
        error: what it fails with.
    """

    def __init__(
        self,
        until: Callable[[list[BaseMessage], int], bool],
        error: Callable[[], BaseException] = lambda: OutageError("the drawer is stuck"),
    ) -> None:
        self.until = until
        self.error = error
        self.seen: list[list[BaseMessage]] = []

    def __call__(self, messages: Sequence[BaseMessage]) -> None:
        self.seen.append(list(messages))
        if not self.until(self.seen[-1], len(self.seen)):
            raise self.error()

    @property
    def calls(self) -> int:
        return len(self.seen)


class State(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]
    found: Annotated[list[str], operator.add]


def planner() -> StrictProvider:
    """A model that has another plan each time it is asked."""
    return StrictProvider(lambda messages, call: f"plan {call}")


def texts(messages: Sequence[BaseMessage]) -> list[str]:
    return [str(message.content) for message in messages]


def plan_graph(fails: Failing, saver: Any = None, model: StrictProvider | None = None) -> Any:
    """ask -> work -> close; `work` may fail, `other` may take its place."""
    asked = model or planner()

    def work(state: State) -> dict[str, Any]:
        fails(state["messages"])
        return {"found": ["worked"]}

    builder: StateGraph[Any] = StateGraph(State)
    builder.add_node("ask", lambda state: {"messages": [asked.invoke(state["messages"])]})
    builder.add_node("work", work)
    builder.add_node("other", lambda state: {"found": ["from memory"]})
    builder.add_node("close", closing)
    builder.add_edge(START, "ask")
    builder.add_edge("ask", "work")
    builder.add_edge("work", "close")
    builder.add_edge("other", "close")
    return builder.compile(checkpointer=saver)


def closing(state: State) -> dict[str, Any]:
    return {"messages": [AIMessage("closed: " + ", ".join(state["found"]))]}


def nested_graph(fails: Failing, saver: Any = None) -> Any:
    """The same as a subgraph."""
    builder: StateGraph[Any] = StateGraph(State)
    builder.add_node("team", plan_graph(fails))
    builder.add_node("after", lambda state: {"found": ["after"]})
    builder.add_edge(START, "team")
    builder.add_edge("team", "after")
    return builder.compile(checkpointer=saver)


def fan_graph(fails: Failing, saver: Any = None) -> Any:
    """ask -> three branches of `work`, of which the second may fail -> collect."""
    asked = planner()

    def work(given: dict[str, Any]) -> dict[str, Any]:
        if given["number"] == 1:
            fails(given["messages"])
        return {"found": [f"worked {given['number']}"]}

    def other(given: dict[str, Any]) -> dict[str, Any]:
        return {"found": [f"from memory {given['number']}"]}

    def fan(state: State) -> list[Send]:
        return [
            Send("work", {"messages": state["messages"], "number": number}) for number in range(3)
        ]

    builder: StateGraph[Any] = StateGraph(State)
    builder.add_node("ask", lambda state: {"messages": [asked.invoke(state["messages"])]})
    builder.add_node("work", work)
    builder.add_node("other", other)
    builder.add_node("close", lambda state: closing({**state, "found": sorted(state["found"])}))
    builder.add_edge(START, "ask")
    builder.add_conditional_edges("ask", fan, ["work"])
    builder.add_edge("work", "close")
    builder.add_edge("other", "close")
    return builder.compile(checkpointer=saver)


class Rescue(AgentMiddleware[Any, Any]):
    """A node of an agent that another one may lead to."""

    def after_agent(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        if isinstance(state["messages"][-1], HumanMessage):
            return {"messages": [AIMessage("from memory")]}
        return None


@tool
def look(place: str) -> str:
    """Look at a place."""
    return f"{place}: nothing"


def agent_graph(fails: Failing, saver: Any = None) -> Any:
    """An agent whose model fails."""

    def script(messages: Sequence[BaseMessage], call: int) -> str:
        fails(messages)
        return f"worked {call}"

    return create_agent(StrictProvider(script), [look], middleware=[Rescue()], checkpointer=saver)


def flow(fails: Failing, saver: Any = None) -> Any:
    """An entrypoint with a task that is finished before the body fails."""
    done: list[str] = []

    @task
    def prepare(text: str) -> str:
        done.append(text)
        return f"prepared {len(done)}"

    @entrypoint(checkpointer=saver)
    def work(given: dict[str, Any]) -> dict[str, Any]:
        ready = prepare(str(given["messages"][-1].content)).result()
        fails(given["messages"])
        return {"messages": [*given["messages"], AIMessage(ready)]}

    return work


def run(graph: Any, how: str, given: Any, config: Any = None) -> Any:
    """The final values of a run, however it is run; None where it left none."""
    if how == "invoke":
        return graph.invoke(given, config)
    if how == "stream":
        return [None, *graph.stream(given, config, stream_mode="values")][-1]

    async def last() -> Any:
        if how == "ainvoke":
            return await graph.ainvoke(given, config)
        chunks = [chunk async for chunk in graph.astream(given, config, stream_mode="values")]
        return [None, *chunks][-1]

    return asyncio.run(last())


def faultless(messages: Sequence[BaseMessage]) -> None:
    """A strict provider would take these messages, with a user's question after them."""
    assert list(complaints([*messages, HumanMessage("and then?")])) == []

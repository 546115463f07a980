"""Small agents of every kind, each with a model that never stops by itself unless it is told to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint, task
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

from shearpin.testing import StrictProvider, asks_for
from shearpin.testing.provider import complaints

THREAD: dict[str, Any] = {"configurable": {"thread_id": "t1"}}
HELLO: dict[str, Any] = {"messages": [("user", "where is it?")]}


@tool
def look(place: str) -> str:
    """Look at a place."""
    return f"{place}: the drawer is locked"


def runaway() -> StrictProvider:
    """A model that asks for the same look for ever."""
    return StrictProvider(lambda messages, call: asks_for(("look", {"place": "desk"})))


def polite(turns: int = 2) -> StrictProvider:
    """A model that looks at a few different places and then answers."""

    def script(messages: Sequence[BaseMessage], call: int) -> AIMessage | str:
        rounds = 0
        for message in reversed(messages):
            if isinstance(message, HumanMessage):
                break
            rounds += isinstance(message, AIMessage)
        if rounds < turns:
            return asks_for(("look", {"place": f"room {call}"}))
        return "It is not there."

    return StrictProvider(script)


def react_builder(model: StrictProvider, tools: Sequence[Any] = (look,)) -> StateGraph[Any]:
    """A hand-made ReAct loop."""
    builder: StateGraph[Any] = StateGraph(MessagesState)

    def agent(state: MessagesState) -> dict[str, Any]:
        return {"messages": [model.invoke(state["messages"])]}

    builder.add_node("agent", agent)
    builder.add_node("tools", ToolNode(list(tools)))
    builder.add_edge(START, "agent")
    builder.add_conditional_edges("agent", tools_condition)
    builder.add_edge("tools", "agent")
    return builder


def react(model: StrictProvider, saver: Any = None) -> Any:
    return react_builder(model).compile(checkpointer=saver)


def agent(model: StrictProvider, saver: Any = None) -> Any:
    return create_agent(model, [look], checkpointer=saver)


def within_parent(model: StrictProvider, saver: Any = None) -> Any:
    """The ReAct loop as a subgraph node of a graph that goes on afterwards."""
    builder: StateGraph[Any] = StateGraph(MessagesState)
    builder.add_node("team", react_builder(model).compile())
    builder.add_node("close", lambda state: {"messages": [AIMessage("closed by the parent")]})
    builder.add_edge(START, "team")
    builder.add_edge("team", "close")
    return builder.compile(checkpointer=saver)


def within_tool(model: StrictProvider, saver: Any = None) -> Any:
    """The looping agent behind a tool of another one."""
    inner = create_agent(model, [look], name="searcher")

    @tool
    def delegate(question: str) -> str:
        """Ask the searcher."""
        answer = inner.invoke({"messages": [("user", question)]})
        return str(answer["messages"][-1].content)

    def script(messages: Sequence[BaseMessage], call: int) -> AIMessage:
        return asks_for(("delegate", {"question": f"question {call}"}))

    return create_agent(StrictProvider(script), [delegate], checkpointer=saver)


def functional(model: StrictProvider, saver: Any = None) -> Any:
    """The same loop with the functional API."""

    @task
    def think(messages: list[BaseMessage]) -> Any:
        return model.invoke(messages)

    @task
    def act(call: Any) -> Any:
        return look.invoke(call)

    @entrypoint(checkpointer=saver)
    def flow(inputs: dict[str, Any]) -> list[BaseMessage]:
        messages: list[BaseMessage] = [HumanMessage(str(inputs["messages"][0][1]))]
        while True:
            answer = think(messages).result()
            messages.append(answer)
            if not answer.tool_calls:
                return messages
            messages.extend(act(call).result() for call in answer.tool_calls)

    return flow


KINDS: dict[str, Callable[..., Any]] = {
    "react": react,
    "create_agent": agent,
    "subgraph": within_parent,
    "agent in a tool": within_tool,
    "functional": functional,
}
WITH_MESSAGES = [kind for kind in KINDS if kind != "functional"]


def saver() -> InMemorySaver:
    return InMemorySaver()


async def run(app: Any, how: str, inputs: Any = None, config: Any = None) -> Any:
    """Drive a graph in one of the ways a user may."""
    given = HELLO if inputs is None else inputs
    settings = THREAD if config is None else config
    if how == "invoke":
        return app.invoke(given, settings)
    if how == "ainvoke":
        return await app.ainvoke(given, settings)
    if how == "batch":
        return app.batch([given], settings)[0]
    if how == "stream":
        modes = ["values", "updates", "messages", "custom", "tasks", "debug"]
        return [chunk[-1] for chunk in app.stream(given, settings, stream_mode=modes)][-1]
    if how == "astream":
        last = None
        async for chunk in app.astream(given, settings, stream_mode="values", subgraphs=True):
            last = chunk[-1]
        return last
    assert how == "astream_events"
    return [event async for event in app.astream_events(given, settings, version="v2")][-1]


MOST_CALLS = 10
"""No runaway of these tests gets to call its model more often than this."""

WAYS = ["invoke", "ainvoke", "batch", "stream", "astream", "astream_events"]


def assert_valid(messages: Sequence[BaseMessage]) -> None:
    """A strict provider would take this history with one more user message."""
    assert list(complaints([*messages, HumanMessage("and now?")])) == []

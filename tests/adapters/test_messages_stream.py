"""Who reads a stream of mode `messages` sees how a run was ended, as any message of a node."""

from __future__ import annotations

from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.tools import tool
from langgraph.func import entrypoint
from langgraph.graph import START, MessagesState, StateGraph

import shearpin
from shearpin import Budget
from shearpin.testing import StrictProvider, asks_for
from tests.adapters.builds import HELLO, THREAD, agent, look, react, saver


def stubborn() -> StrictProvider:
    return StrictProvider(lambda _messages, _call: asks_for(("look", {"place": "desk"})))


def one_node(node: Any) -> Any:
    builder = StateGraph(MessagesState)
    builder.add_node("only", node)
    builder.add_edge(START, "only")
    return builder.compile(checkpointer=saver())


def broken(_state: MessagesState) -> dict[str, Any]:
    raise KeyError("x")


def looping(**options: Any) -> Any:
    return shearpin.guard(react(stubborn(), saver=saver()), **options)


def looping_agent(**options: Any) -> Any:
    return shearpin.guard(agent(stubborn(), saver=saver()), **options)


def within(**options: Any) -> Any:
    """A graph in a graph; the last word is said in the inner one."""
    return shearpin.guard(one_node(agent(stubborn())), **options)


ENDS: dict[str, Any] = {
    "a loop": looping,
    "a loop of an agent": looping_agent,
    "a budget": lambda: looping(budget=Budget(model_calls=2)),
    "a boundary": lambda: shearpin.guard(one_node(broken), boundary=True),
    "a graph within": within,
    "one last answer": lambda: looping(on_stop="wrap_up"),
}


async def streamed(app: Any, how: str, mode: Any, **options: Any) -> list[Any]:
    if how == "stream":
        return list(app.stream(HELLO, THREAD, stream_mode=mode, **options))
    return [part async for part in app.astream(HELLO, THREAD, stream_mode=mode, **options)]


def words(parts: list[Any], last: BaseMessage) -> list[BaseMessage]:
    return [message for message, _ in parts if message.id == last.id]


def texts(messages: list[BaseMessage]) -> list[tuple[str, str]]:
    return [(message.type, message.text) for message in messages]


@pytest.mark.parametrize("how", ["stream", "astream"])
@pytest.mark.parametrize("end", ENDS)
async def test_the_last_word_is_streamed_once(end: str, how: str) -> None:
    app = ENDS[end]()
    parts = await streamed(app, how, "messages")
    last = app.get_state(THREAD).values["messages"][-1]

    assert app.report(THREAD).reason is not None
    assert [message.text for message in words(parts, last)] == [last.text]
    assert parts[-1][0].id == last.id


@pytest.mark.parametrize("how", ["stream", "astream"])
@pytest.mark.parametrize("end", ENDS)
async def test_the_other_modes_stay_as_they_are(end: str, how: str) -> None:
    alone = [texts(it["messages"]) for it in await streamed(ENDS[end](), how, "values")]
    app = ENDS[end]()
    both = await streamed(app, how, ["messages", "values"])
    last = app.get_state(THREAD).values["messages"][-1]

    assert [texts(it["messages"]) for mode, it in both if mode == "values"] == alone
    assert len(words([it for mode, it in both if mode == "messages"], last)) == 1
    invoked = ENDS[end]().invoke(HELLO, THREAD)
    assert texts(invoked["messages"]) == alone[-1]
    steps = [list(it) for it in await streamed(ENDS[end](), how, "updates")]
    mixed = await streamed(ENDS[end](), how, ["messages", "updates"])
    assert [list(it) for mode, it in mixed if mode == "updates"] == steps


def test_it_comes_with_what_comes_with_a_message_of_a_node() -> None:
    plain = one_node(lambda _: {"messages": [AIMessage("plain")]})
    [(_, expected)] = plain.stream(HELLO, THREAD, stream_mode="messages")
    app = shearpin.guard(one_node(broken), boundary=True)
    [(_, found)] = app.stream(HELLO, THREAD, stream_mode="messages")

    assert expected.keys() - found.keys() <= {"ls_integration"}  # LangSmith's own, of a chain
    for key in ("langgraph_node", "langgraph_step", "langgraph_triggers", "langgraph_path"):
        assert found[key] == expected[key]


def test_nothing_is_streamed_where_nodes_are_hidden() -> None:
    app = shearpin.guard(one_node(broken), boundary=True)
    config = {**THREAD, "tags": ["langsmith:hidden"]}
    assert list(app.stream(HELLO, config, stream_mode="messages")) == []


async def test_an_agent_behind_a_tool_is_heard_only_where_graphs_within_are_asked_for() -> None:
    inner = agent(stubborn())

    @tool
    def research(topic: str) -> str:
        """Research a topic."""
        return inner.invoke({"messages": [("user", topic)]})["messages"][-1].text

    model = StrictProvider(lambda _messages, _call: asks_for(("research", {"topic": "x"})))
    app = shearpin.guard(create_agent(model, [research, look], checkpointer=saver()))
    parts = await streamed(app, "stream", "messages")
    last = app.get_state(THREAD).values["messages"][-1]

    assert len(words(parts, last)) == 1


def flow_to(returned: type) -> Any:
    """An entrypoint that declares what it returns, and fails."""

    def flow(_given: Any) -> Any:
        raise KeyError("x")

    flow.__annotations__["return"] = returned
    return entrypoint(checkpointer=saver())(flow)


def test_an_entrypoint_that_returns_a_message() -> None:
    app = shearpin.guard(flow_to(AIMessage), boundary=True)
    parts = list(app.stream(HELLO, THREAD, stream_mode="messages"))

    assert [message.type for message, _ in parts] == ["ai"]
    assert app.report(THREAD).reason.startswith("failures:")
    assert app.report(THREAD).faults == ()


def test_an_entrypoint_that_returns_a_text() -> None:
    app = shearpin.guard(flow_to(str), boundary=True)

    assert list(app.stream(HELLO, THREAD, stream_mode="messages")) == []
    assert app.report(THREAD).faults == ()

"""A nudge reaches the model in its next request, once, where it is allowed, and is never saved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage
from langchain_core.tools import tool
from langgraph.graph import START, StateGraph, add_messages
from langgraph.prebuilt import ToolNode
from pydantic import BaseModel

import shearpin
from shearpin.langchain import GuardMiddleware
from shearpin.testing import StrictProvider, asks_for
from tests.adapters.builds import HELLO, THREAD, agent, look, react, react_builder, run, saver


def told(messages: Sequence[BaseMessage]) -> bool:
    return isinstance(messages[-1], HumanMessage) and "times" in str(messages[-1].content)


def obedient() -> StrictProvider:
    """Repeats itself until it is told that it does."""

    def script(messages: Any, call: int) -> Any:
        return "I will stop here." if told(messages) else asks_for(("look", {"place": "desk"}))

    return StrictProvider(script)


@pytest.mark.parametrize("how", ["invoke", "ainvoke", "stream", "astream", "astream_events"])
@pytest.mark.parametrize("kind", ["react", "create_agent", "middleware", "both"])
async def test_a_nudge_is_heard_and_not_saved(kind: str, how: str) -> None:
    model = obedient()
    app: Any = react(model, saver()) if kind == "react" else agent(model, saver())
    middleware = GuardMiddleware()
    if kind in ("middleware", "both"):
        app = create_agent(model, [look], middleware=[middleware], checkpointer=saver())
    if kind != "middleware":
        app = shearpin.guard(app)
    await run(app, how)
    messages = app.get_state(THREAD).values["messages"]
    assert messages[-1].content == "I will stop here."
    assert sum(isinstance(message, HumanMessage) for message in messages) == 1
    assert sum(told(request) for request in model.requests) == 1
    report = app.report(THREAD) if kind != "middleware" else middleware.report("t1")
    assert [(v.verdict, v.acted) for v in report.verdicts] == [("nudge", True)]
    assert report.outcome == "completed"


class Model(BaseModel):
    messages: Annotated[list[AnyMessage], add_messages]


@dataclass
class Data:
    messages: Annotated[list[AnyMessage], add_messages] = field(default_factory=list)


def custom(schema: Any, model: StrictProvider, root: bool = False, whole: bool = False) -> Any:
    """A loop over another kind of state; `whole`: the node returns all messages it was given."""
    builder: StateGraph[Any] = StateGraph(schema)

    def held(state: Any) -> list[Any]:
        return state if root else state.messages

    def think(state: Any) -> Any:
        answer = model.invoke(held(state))
        news = [*held(state), answer] if whole else [answer]
        return news if root else {"messages": news}

    def act(state: Any) -> Any:
        answers = [look.invoke(call) for call in held(state)[-1].tool_calls]
        return answers if root else {"messages": answers}

    builder.add_node("think", think)
    builder.add_node("act", act)
    builder.add_edge(START, "think")
    builder.add_conditional_edges(
        "think", lambda s: "act" if held(s)[-1].tool_calls else "__end__", ["act", "__end__"]
    )
    builder.add_edge("act", "think")
    return builder.compile()


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("kind", ["pydantic", "dataclass", "root"])
def test_every_kind_of_state(kind: str, whole: bool) -> None:
    schema: Any = {
        "pydantic": Model,
        "dataclass": Data,
        "root": Annotated[list[AnyMessage], add_messages],
    }[kind]
    model = obedient()
    app = shearpin.guard(custom(schema, model, kind == "root", whole))
    hello = [HumanMessage("hello")]
    result = app.invoke(hello if kind == "root" else {"messages": hello})
    messages = result if kind == "root" else result["messages"]
    assert messages[-1].content == "I will stop here."
    assert sum(isinstance(message, HumanMessage) for message in messages) == 1


@pytest.mark.parametrize("kind", ["pydantic", "dataclass", "root"])
def test_every_kind_of_state_is_ended_validly(kind: str) -> None:
    from tests.adapters.builds import assert_valid, runaway

    schema: Any = {
        "pydantic": Model,
        "dataclass": Data,
        "root": Annotated[list[AnyMessage], add_messages],
    }[kind]
    app = shearpin.guard(custom(schema, runaway(), kind == "root"))
    hello = [HumanMessage("hello")]
    result = app.invoke(hello if kind == "root" else {"messages": hello})
    messages = result if kind == "root" else result["messages"]
    assert "shearpin" in messages[-1].response_metadata
    assert_valid(messages)


def test_a_state_whose_messages_have_no_reducer() -> None:
    from typing import TypedDict

    from tests.adapters.builds import assert_valid, runaway

    class Plain(TypedDict):
        messages: list[Any]

    model = runaway()
    builder: StateGraph[Any] = StateGraph(Plain)
    builder.add_node("think", lambda s: {"messages": [*s["messages"], model.invoke(s["messages"])]})
    builder.add_node(
        "act",
        lambda s: {
            "messages": [*s["messages"], *(look.invoke(c) for c in s["messages"][-1].tool_calls)]
        },
    )
    builder.add_edge(START, "think")
    builder.add_edge("think", "act")
    builder.add_edge("act", "think")
    app: Any = shearpin.guard(builder.compile())
    messages = app.invoke({"messages": [HumanMessage("hello")]})["messages"]
    assert "shearpin" in messages[-1].response_metadata
    assert_valid(messages)


def test_a_nudge_that_finds_no_request_is_reported_as_not_given() -> None:
    """An agent that is only made when the tool is called has no guarded node to be told through."""

    @tool
    def delegate(question: str) -> str:
        """Ask the searcher."""
        answer = create_agent(obedient(), [look]).invoke({"messages": [("user", question)]})
        return str(answer["messages"][-1].content)

    def script(messages: Sequence[BaseMessage], call: int) -> AIMessage:
        return asks_for(("delegate", {"question": f"question {call}"}))

    app: Any = shearpin.guard(react_builder(StrictProvider(script), [delegate]).compile())
    app.invoke(HELLO)
    nudges = [verdict for verdict in app.report().verdicts if verdict.verdict == "nudge"]
    assert nudges and not any(verdict.acted for verdict in nudges if verdict.agent != "main")


def test_a_block_that_cannot_be_carried_out_is_reported_so() -> None:
    """A tool called by hand cannot be answered in its place: it runs."""

    @tool
    def poke(thing: str) -> str:
        """Poke."""
        return "nothing happens"

    def node(state: Any) -> dict[str, Any]:
        for _ in range(30):
            poke.invoke({"thing": "bear"})
        return {}

    builder: StateGraph[Any] = StateGraph(Model)
    builder.add_node("node", node)
    builder.add_edge(START, "node")
    app: Any = shearpin.guard(builder.compile())
    app.invoke({"messages": [HumanMessage("hi")]})
    blocks = [verdict for verdict in app.report().verdicts if verdict.verdict == "block"]
    assert not any(verdict.acted for verdict in blocks)


def test_only_the_repeated_call_of_a_message_is_blocked() -> None:
    from tests.adapters.builds import react_builder

    ran: list[str] = []

    @tool
    def look(place: str) -> str:
        """Look."""
        ran.append(place)
        return "locked" if place == "desk" else f"found {place}"

    def script(messages: Any, call: int) -> Any:
        if call > 6:
            return "done"
        return asks_for(("look", {"place": "desk"}), ("look", {"place": f"room {call}"}))

    app = shearpin.guard(react_builder(StrictProvider(script), [look]).compile())
    app.invoke(HELLO)
    assert [place for place in ran if place != "desk"] == [f"room {n}" for n in range(1, 7)]
    assert ran.count("desk") < 6
    assert isinstance(ToolNode([look]), ToolNode)

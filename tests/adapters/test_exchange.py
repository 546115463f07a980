"""Another model as a way out of a loop: who asks it, for how long, and where it cannot be asked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableLambda
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

import shearpin
from shearpin import ConfigError, Guard
from shearpin.langchain import GuardMiddleware
from shearpin.testing import ScriptedModel, StrictProvider, asks_for
from tests.adapters.builds import HELLO, THREAD, assert_valid, look, react, run, runaway, saver
from tests.adapters.interventions import NEXT, strong, stubborn


class Offered(StrictProvider):
    """Notes which tools are bound to it."""

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        names = [t["function"]["name"] if isinstance(t, dict) else t.name for t in tools]
        self.__dict__.setdefault("offered", []).append(names)
        return super().bind_tools(tools, **kwargs)


def answers(*given: Any) -> Offered:
    return Offered(lambda messages, call: given[min(call, len(given)) - 1])


def graph_of(thinks: Any, checkpointer: Any = None) -> Any:
    builder: StateGraph[Any] = StateGraph(MessagesState)
    builder.add_node("agent", thinks)
    builder.add_node("tools", ToolNode([look]))
    builder.add_edge(START, "agent")
    builder.add_conditional_edges("agent", tools_condition)
    builder.add_edge("tools", "agent")
    return builder.compile(checkpointer=checkpointer)


def bound(model: Any) -> Any:
    asking = model.bind_tools([look])

    def thinks(state: MessagesState) -> dict[str, Any]:
        return {"messages": [asking.invoke(state["messages"])]}

    return thinks


def chained(model: Any) -> Any:
    chain = RunnableLambda(lambda state: state["messages"]) | model.bind_tools([look])

    def thinks(state: MessagesState) -> dict[str, Any]:
        return {"messages": [chain.invoke(state)]}

    return thinks


def chain_itself(model: Any) -> Any:
    return (
        RunnableLambda(lambda state: state["messages"])
        | model.bind_tools([look])
        | RunnableLambda(lambda answer: {"messages": [answer]})
    )


def asynchronous(model: Any) -> Any:
    asking = model.bind_tools([look])

    async def thinks(state: MessagesState) -> dict[str, Any]:
        return {"messages": [await asking.ainvoke(state["messages"])]}

    return thinks


@pytest.mark.parametrize("thinks", [bound, chained, chain_itself])
@pytest.mark.parametrize("how", ["invoke", "ainvoke", "stream", "astream"])
async def test_a_nodes_model_is_exchanged_with_its_tools(thinks: Any, how: str) -> None:
    own, other = runaway(), answers(asks_for(("look", {"place": "shelf"})), "It is on the shelf.")
    plain = graph_of(thinks(own), saver())
    app: Any = shearpin.guard(plain, on_loop="model:strong", models={"strong": other})
    await run(app, how)
    messages = app.get_state(THREAD).values["messages"]
    assert messages[-1].content == "It is on the shelf."
    assert other.calls == 2
    assert other.__dict__["offered"] == [["look"]]
    report = app.report(THREAD)
    assert (report.outcome, report.faults) == ("completed", ())
    (way,) = [v for v in report.verdicts if v.verdict == "reroute"]
    assert (way.message, way.acted) == ("model:strong", True)
    assert_valid(messages)
    assert own.calls == 6


async def test_a_node_that_is_asynchronous() -> None:
    app: Any = shearpin.guard(
        graph_of(asynchronous(runaway())), on_loop="model:strong", models={"strong": strong()}
    )
    assert (await app.ainvoke(HELLO))["messages"][-1].content == "The drawer is locked."


@pytest.mark.parametrize("guarded", [True, False])
@pytest.mark.parametrize("how", ["invoke", "ainvoke"])
async def test_a_middleware_asks_the_other_model(guarded: bool, how: str) -> None:
    own, other = stubborn(None), answers("The drawer is locked.")
    recipe = Guard(on_loop="model:strong", models={"strong": other})
    middleware = GuardMiddleware(recipe)
    app: Any = create_agent(own, [look], middleware=[middleware], checkpointer=saver())
    app = shearpin.guard(app, recipe) if guarded else app
    await run(app, how)
    messages = app.get_state(THREAD).values["messages"]
    assert messages[-1].content == "The drawer is locked."
    assert other.calls == 1
    assert other.__dict__["offered"] == [["look"]]
    report = app.report(THREAD) if guarded else middleware.report("t1")
    assert report.faults == ()
    assert [v.acted for v in report.verdicts if v.verdict == "reroute"] == [True]
    assert_valid(messages)
    await run(app, how, NEXT)
    assert app.get_state(THREAD).values["messages"][-1].content == "All is well."
    assert other.calls == 1, "a new turn is its own model's again"


def test_after_some_rounds_the_agent_has_its_own_model_again() -> None:
    """`withhold_rounds` answers; the other model makes progress, so the loop is over."""

    def goes_on(messages: Sequence[BaseMessage], call: int) -> Any:
        return asks_for(("look", {"place": f"room {call}"}))

    def own_script(messages: Sequence[BaseMessage], call: int) -> Any:
        if any("room" in str(m.content) for m in messages if m.type == "tool"):
            return "I am back."
        return asks_for(("look", {"place": "desk"}))

    own, other = StrictProvider(own_script), StrictProvider(goes_on)
    app: Any = shearpin.guard(
        react(own),
        on_loop="model:strong",
        models={"strong": other},
        breaker=shearpin.BreakerSettings(withhold_rounds=3),
    )
    result = app.invoke(HELLO)
    assert result["messages"][-1].content == "I am back."
    assert other.calls == 3
    assert app.report().outcome == "completed"


def test_a_loop_that_goes_on_with_the_other_model_ends_the_run() -> None:
    own, other = runaway(), runaway()
    app: Any = shearpin.guard(react(own), on_loop="model:strong", models={"strong": other})
    app.invoke(HELLO)
    assert app.report().outcome == "stopped"
    assert 1 <= other.calls <= 3


def test_a_model_that_has_its_tools_is_taken_as_it_is() -> None:
    other = answers("The drawer is locked.")
    ready = other.bind_tools([look])
    app: Any = shearpin.guard(
        graph_of(bound(runaway())), on_loop="model:strong", models={"strong": ready}
    )
    assert app.invoke(HELLO)["messages"][-1].content == "The drawer is locked."
    assert other.__dict__["offered"] == [["look"]]


def two_models(state: MessagesState) -> dict[str, Any]:
    model = CAREFUL if len(state["messages"]) > 100 else HASTY
    return {"messages": [model.invoke(state["messages"])]}


CAREFUL, HASTY = strong(), runaway()


def test_a_node_with_two_models_cannot_be_given_another() -> None:
    with pytest.raises(ConfigError, match="holds exactly one chat model"):
        shearpin.guard(graph_of(two_models), on_loop="model:strong", models={"strong": strong()})


def test_a_way_that_is_not_found_where_the_loop_is_is_reported_as_not_taken() -> None:
    """Some node of the graph has one model, but not the one that goes round in circles."""
    builder: StateGraph[Any] = StateGraph(MessagesState)
    calm = strong()
    builder.add_node("first", lambda state: {"messages": [calm.invoke(state["messages"])]})
    builder.add_node("team", graph_of(two_models))
    builder.add_edge(START, "team")
    builder.add_edge("team", "first")
    other = strong()
    app: Any = shearpin.guard(
        builder.compile(checkpointer=saver()), on_loop="model:strong", models={"strong": other}
    )
    app.invoke(HELLO, THREAD)
    report = app.report(THREAD)
    assert report.outcome == "stopped"
    assert [v.acted for v in report.verdicts if v.verdict == "reroute"] == [False]
    assert other.calls == 0


def test_what_is_no_model_and_what_is_not_there() -> None:
    with pytest.raises(ConfigError, match=r"'strong', which models has not \(it has weak\)"):
        shearpin.guard(react(runaway()), on_loop="model:strong", models={"weak": strong()})
    with pytest.raises(ConfigError, match=r"models\['strong'\] must be a chat model"):
        shearpin.guard(react(runaway()), on_loop="model:strong", models={"strong": 3})
    with pytest.raises(ConfigError, match="cannot be made by init_chat_model"):
        shearpin.guard(react(runaway()), models={"strong": "no-such-provider:model"})
    with pytest.raises(ConfigError, match="'strong', which models has not"):
        GuardMiddleware(on_loop="model:strong")


def test_a_model_may_be_named_by_a_text(monkeypatch: pytest.MonkeyPatch) -> None:
    from shearpin.adapters import models

    made = ScriptedModel(["The drawer is locked."])
    monkeypatch.setattr(models, "_made", lambda text: made)
    app: Any = shearpin.guard(
        react(runaway()), on_loop="model:strong", models={"strong": "openai:some-model"}
    )
    assert app.invoke(HELLO)["messages"][-1].content == "The drawer is locked."


def test_the_graph_itself_keeps_its_model() -> None:
    own, other = stubborn(None), strong()
    plain = react(own, saver())
    app: Any = shearpin.guard(plain, on_loop="model:strong", models={"strong": other})
    app.invoke(HELLO, THREAD)
    calls = other.calls
    plain.invoke(NEXT, THREAD)
    assert other.calls == calls == 1

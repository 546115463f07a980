"""What the layers see, and what survives where user code gets in the way (P5)."""

from __future__ import annotations

import operator
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.language_models import FakeListLLM
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command, Send

import shearpin
from shearpin.testing import StrictProvider, asks_for
from tests.adapters.builds import HELLO, MOST_CALLS, THREAD, look, polite, react, runaway, saver


class Fan(TypedDict):
    items: list[int]
    done: Annotated[list[int], operator.add]


def spend(app: Any, config: Any = None) -> dict[str, int]:
    return app.report(config).to_json()["spend"]


def one_node(node: Any, checkpointer: Any = None) -> Any:
    builder: StateGraph[Any] = StateGraph(MessagesState)
    builder.add_node("node", node)
    builder.add_edge(START, "node")
    return builder.compile(checkpointer=checkpointer)


def loop(model: StrictProvider, rounds: int = 40) -> int:
    messages: list[Any] = [HumanMessage("go")]
    for _ in range(rounds):
        answer = model.invoke(messages)
        messages.append(answer)
        messages.extend(look.invoke(call) for call in answer.tool_calls)
    return len(messages)


def test_send_branches_are_one_run() -> None:
    model = runaway()
    builder: StateGraph[Any] = StateGraph(Fan)
    builder.add_node("worker", lambda state: {"done": [loop(model)]})
    builder.add_node("join", lambda state: {"done": [-1]})
    builder.add_conditional_edges(
        START, lambda s: [Send("worker", {}) for _ in s["items"]], ["worker"]
    )
    builder.add_edge("worker", "join")
    app: Any = shearpin.guard(builder.compile(checkpointer=saver()))
    result = app.invoke({"items": [1, 2, 3, 4, 5], "done": []}, THREAD)
    assert result == {"items": [1, 2, 3, 4, 5], "done": []}
    assert app.get_state(THREAD).next == ()
    assert model.calls <= MOST_CALLS + 5
    assert spend(app)["model_calls"] == model.calls


def test_every_call_in_the_tree_is_counted_once() -> None:
    """Models and tools in a closure, a subgraph, a nested agent, and plain lambdas."""
    inner = react(polite())

    def node(state: MessagesState) -> dict[str, Any]:
        inner.invoke({"messages": [("user", "closure")]})
        (RunnableLambda(lambda text: str(text)) | polite(0)).invoke("chain")
        FakeListLLM(responses=["text model"]).invoke("hello")
        return {"messages": [AIMessage("ok")]}

    app = shearpin.guard(one_node(node))
    app.invoke(HELLO)
    assert (spend(app)["model_calls"], spend(app)["tool_calls"]) == (3 + 1 + 1, 2)


def test_own_callbacks_do_not_hide_calls() -> None:
    model = polite(0)

    def node(state: MessagesState) -> dict[str, Any]:
        return {"messages": [model.invoke("hello", config={"callbacks": []})]}

    app = shearpin.guard(one_node(node))
    app.invoke(HELLO)
    assert spend(app)["model_calls"] == 1


@pytest.mark.parametrize("catch", [Exception, shearpin.ShearpinError])
def test_swallowing_a_stop_does_not_help(catch: type[Exception]) -> None:
    model = runaway()

    def node(state: MessagesState) -> dict[str, Any]:
        while True:
            try:
                loop(model)
            except catch:
                continue

    app = shearpin.guard(one_node(node, saver()))
    result = app.invoke(HELLO, THREAD)
    assert "shearpin" in result["messages"][-1].response_metadata
    assert model.calls <= MOST_CALLS
    assert app.get_state(THREAD).next == ()


def test_a_stop_in_disguise_is_still_a_stop() -> None:
    model = runaway()

    def node(state: MessagesState) -> dict[str, Any]:
        try:
            return {"messages": [AIMessage(str(loop(model)))]}
        except Exception as error:
            raise RuntimeError("the model is down") from error

    app = shearpin.guard(one_node(node))
    assert "shearpin" in app.invoke(HELLO)["messages"][-1].response_metadata


def test_fallbacks_and_retries_do_not_reach_another_model() -> None:
    model, spare = runaway(), polite(0)
    safe: Any = model.with_retry(stop_after_attempt=3, wait_exponential_jitter=False)

    def node(state: MessagesState) -> dict[str, Any]:
        chain = safe.with_fallbacks([spare])
        for _ in range(40):
            answer = chain.invoke("go")
            for call in answer.tool_calls:
                look.invoke(call)
        return {"messages": [AIMessage("survived")]}

    app = shearpin.guard(one_node(node))
    result = app.invoke(HELLO)
    assert "shearpin" in result["messages"][-1].response_metadata
    assert spare.calls == 0


def test_parent_commands_pass_through() -> None:
    child: StateGraph[Any] = StateGraph(MessagesState)
    child.add_node(
        "leave",
        lambda s: Command(graph=Command.PARENT, goto="after", update={"messages": [("ai", "x")]}),
    )
    child.add_edge(START, "leave")
    parent: StateGraph[Any] = StateGraph(MessagesState)
    parent.add_node("child", child.compile())
    parent.add_node("after", lambda s: {"messages": [("ai", "after")]})
    parent.add_edge(START, "child")
    app: Any = shearpin.guard(parent.compile())
    assert [m.content for m in app.invoke(HELLO)["messages"]] == ["where is it?", "x", "after"]
    assert app.report().outcome == "completed"


def test_guarding_twice_is_guarding_once() -> None:
    app = shearpin.guard(react(polite()))
    assert shearpin.guard(app) is app
    assert shearpin.guard(app.with_config(tags=["x"])).report() is not None
    again = shearpin.guard(app, mode="observe")
    again.invoke(HELLO)
    assert spend(again)["model_calls"] == 3
    nested = shearpin.guard(one_node(shearpin.guard(react(polite()))))
    nested.invoke(HELLO)
    assert spend(nested)["model_calls"] == 3


def test_a_guarded_child_of_an_unguarded_parent_has_its_own_run() -> None:
    child = shearpin.guard(react(runaway()))
    parent = one_node(child, saver())
    result = parent.invoke(HELLO, THREAD)
    assert "shearpin" in result["messages"][-1].response_metadata
    assert child.report().outcome == "stopped"


def test_a_stop_is_not_kept_in_a_node_cache() -> None:
    from langgraph.cache.memory import InMemoryCache
    from langgraph.types import CachePolicy

    model = StrictProvider(lambda messages, call: asks_for(("look", {"place": "desk"})))
    works = {"now": False}

    def node(state: MessagesState) -> dict[str, Any]:
        return {"messages": [AIMessage("good" if works["now"] else str(loop(model)))]}

    builder: StateGraph[Any] = StateGraph(MessagesState)
    builder.add_node("node", node, cache_policy=CachePolicy(key_func=lambda state: "same"))
    builder.add_edge(START, "node")
    app: Any = shearpin.guard(builder.compile(cache=InMemoryCache()))
    assert "shearpin" in app.invoke(HELLO)["messages"][-1].response_metadata
    works["now"] = True
    assert app.invoke(HELLO)["messages"][-1].content == "good"


def test_the_plain_scope() -> None:
    model = runaway()
    with shearpin.Guard().run("chain") as run:
        loop(model)
    assert run.stopped is not None and model.calls <= MOST_CALLS
    assert run.report().outcome == "stopped"
    with pytest.raises(shearpin.LoopDetectedError), shearpin.Guard(on_stop="raise").run():
        loop(model)
    with shearpin.Guard().run() as calm:
        polite(0).invoke("hello")
    assert calm.stopped is None and calm.report().outcome == "completed"


def test_a_graph_joins_the_plain_scope() -> None:
    app = shearpin.guard(react(runaway()))
    with shearpin.Guard().run() as run:
        app.invoke(HELLO)
        polite(0).invoke("refused")
        raise AssertionError("a call after the stop was let through")
    assert run.stopped is not None


def test_tools_that_do_not_exist_and_bad_arguments_are_told_apart() -> None:
    from shearpin.adapters.judge import Judge

    statuses: list[str] = []
    original = Judge.after

    def spy(self: Judge, fact: Any) -> Any:
        if type(fact).__name__ == "ToolReturned":
            statuses.append(fact.status)
        return original(self, fact)

    @tool
    def measure(length: int) -> int:
        """Measure."""
        if length < 0:
            raise ValueError("negative")
        return length

    script = [
        asks_for(("measur", {"length": 1})),
        asks_for(("measure", {"length": "long"})),
        asks_for(("measure", {"length": 3})),
        "done",
    ]
    from tests.adapters.builds import react_builder

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Judge, "after", spy)
        shearpin.guard(react_builder(StrictProvider(script), [measure]).compile()).invoke(HELLO)
    assert statuses == ["unknown_tool", "bad_args", "success"]


def test_retry_policies_and_error_handlers_are_left_out_of_a_stop() -> None:
    from langgraph.types import RetryPolicy

    model = runaway()
    tries: list[int] = []

    def node(state: MessagesState) -> dict[str, Any]:
        tries.append(1)
        return {"messages": [AIMessage(str(loop(model)))]}

    builder: StateGraph[Any] = StateGraph(MessagesState)
    builder.add_node("node", node, retry_policy=RetryPolicy(max_attempts=4, retry_on=Exception))
    builder.add_edge(START, "node")
    app: Any = shearpin.guard(builder.compile())
    assert "shearpin" in app.invoke(HELLO)["messages"][-1].response_metadata
    assert len(tries) == 1


@pytest.mark.parametrize("kind", [str, AIMessage])
def test_an_entrypoint_returns_the_last_word_and_keeps_what_it_saved(kind: Any) -> None:
    from langgraph.func import entrypoint

    model = runaway()

    def flow(text: str, *, previous: Any = None) -> Any:
        if text == "save":
            return entrypoint.final(value=kind("saved"), save="kept")
        assert previous == "kept"
        return kind(str(loop(model)))

    flow.__annotations__["return"] = kind
    app: Any = shearpin.guard(entrypoint(checkpointer=saver())(flow))
    app.invoke("save", THREAD)
    for _ in range(2):
        result = app.invoke("loop", THREAD)
        assert "stopped" in (result if kind is str else result.content)
        assert app.report(THREAD).outcome == "stopped"

"""Models in guarded graphs with an error boundary: nothing in the graph has to change."""

from __future__ import annotations

from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage
from langchain_core.messages.tool import InvalidToolCall
from langchain_core.tools import tool
from langgraph.graph import END, START, MessagesState, StateGraph

from shearpin import guard
from shearpin.boundary import Boundary, Retries
from shearpin.langchain import ResilienceMiddleware, resilient_model
from shearpin.testing import ScriptedModel, asks_for
from tests.boundary.models_setup import (
    DONE,
    HELLO,
    PRICES,
    QUICK,
    UnauthorizedError,
    asks,
    assert_answered,
    down,
    last,
    look,
    mark,
    model,
)

WAYS = pytest.mark.parametrize("how", ["invoke", "ainvoke"])
BOUNDARY = Boundary(retries=QUICK)


async def asked(app: Any, how: str) -> Any:
    return app.invoke(HELLO) if how == "invoke" else await app.ainvoke(HELLO)


def react(brain: Any) -> Any:
    return create_agent(brain, [look])


def bound_node(brain: Any) -> Any:
    bound = brain.bind_tools([look])

    def speak(state: MessagesState) -> Any:
        return {"messages": [bound.invoke(state["messages"])]}

    async def aspeak(state: MessagesState) -> Any:
        return {"messages": [await bound.ainvoke(state["messages"])]}

    from langchain_core.runnables import RunnableLambda

    graph = StateGraph(MessagesState)
    graph.add_node("speak", RunnableLambda(speak, aspeak))
    graph.add_edge(START, "speak")
    graph.add_edge("speak", END)
    return graph.compile()


GRAPHS = pytest.mark.parametrize("build", [react, bound_node])


@PRICES
@WAYS
@GRAPHS
async def test_failed_calls_are_made_again_within_the_node(how: str, build: Any) -> None:
    brain = model(TimeoutError("x"), AIMessage(""), DONE)
    app = guard(build(brain), boundary=BOUNDARY, budget="10 calls")
    out = await asked(app, how)
    assert last(out).content == DONE
    report = app.report()
    assert report.boundary is not None
    assert (report.boundary.errors, report.boundary.retries) == (2, 2)
    assert [place.kind for place in report.boundary.places if place.errors] == ["model"]
    assert report.budget is not None
    assert report.budget.scopes[0].spent["model_calls"] == 3
    assert report.steps == 1


@WAYS
@GRAPHS
async def test_fallback_models_answer(how: str, build: Any) -> None:
    app = guard(
        build(down(UnauthorizedError("no"))),
        boundary=Boundary(retries=QUICK, models=[model(DONE, model_name="b")]),
    )
    out = await asked(app, how)
    assert last(out).content == DONE
    assert mark(last(out))["failures"][0]["error_type"] == "authentication"


@WAYS
@GRAPHS
async def test_where_no_model_answers_the_run_ends_honestly(how: str, build: Any) -> None:
    brain = down()
    app = guard(build(brain), boundary=BOUNDARY)
    out = await asked(app, how)
    assert brain.calls == 3
    assert "did not answer in time" in str(last(out).content)
    report = app.report()
    assert (report.outcome, report.reason) == ("stopped", "failures:timeout")
    assert report.boundary is not None
    assert not report.boundary.abnormal


@WAYS
async def test_sub_agents_in_tools_endure_too(how: str) -> None:
    inner_brain = model(TimeoutError("x"), "from within")
    inner = create_agent(inner_brain, [])

    @tool
    def delegate(what: str) -> str:
        """Ask somebody."""
        return str(inner.invoke({"messages": [("user", what)]})["messages"][-1].content)

    outer = create_agent(model(asks_for(("delegate", {"what": "a"})), DONE), [delegate])
    app = guard(outer, boundary=BOUNDARY)
    out = await asked(app, how)
    assert_answered(out["messages"])
    assert [message.content for message in out["messages"][-2:]] == ["from within", DONE]
    assert inner_brain.calls == 2


async def test_structured_output_in_a_node_is_made_again() -> None:
    from pydantic import BaseModel

    class Sum(BaseModel):
        total: int

    brain = model(TimeoutError("x"), asks_for(("Sum", {"total": 4})))
    chain = brain.with_structured_output(Sum)

    def add(state: MessagesState) -> Any:
        return {"messages": [AIMessage(str(chain.invoke(state["messages"])))]}

    graph = StateGraph(MessagesState)
    graph.add_node("add", add)
    graph.add_edge(START, "add")
    app = guard(graph.compile(), boundary=BOUNDARY)
    assert last(app.invoke(HELLO)).content == "total=4"


async def test_nodes_that_the_boundary_leaves_out_are_as_they_were() -> None:
    brain = model(TimeoutError("x"), DONE)
    app = guard(react(brain), boundary=Boundary(nodes=["tools"], retries=QUICK))
    with pytest.raises(TimeoutError):
        app.invoke(HELLO)
    assert app.report().boundary is not None
    assert app.report().boundary.abnormal  # type: ignore[union-attr]


async def test_in_mode_observe_nothing_is_done_and_all_is_counted() -> None:
    brain = model(TimeoutError("x"), DONE)
    app = guard(react(brain), boundary=BOUNDARY, mode="observe")
    with pytest.raises(TimeoutError):
        app.invoke(HELLO)
    told = app.report().boundary
    assert told is not None
    assert (told.errors, told.retries, told.abnormal) == (1, 0, True)


async def test_attempts_are_not_multiplied_where_several_of_us_meet() -> None:
    brain = down()
    agent = create_agent(brain, [look], middleware=[ResilienceMiddleware(retries=QUICK)])
    guard(agent, boundary=BOUNDARY).invoke(HELLO)
    assert brain.calls == 3
    brain = down()
    guard(react(resilient_model(brain)), boundary=BOUNDARY).invoke(HELLO)
    assert brain.calls == 3


async def test_without_a_boundary_models_are_left_alone() -> None:
    brain = model(asks(), TimeoutError("x"))
    with pytest.raises(TimeoutError):
        guard(react(brain)).invoke(HELLO)
    assert brain.calls == 2


async def test_how_the_guards_runs_have_ended_is_counted() -> None:
    brain = model(DONE, KeyError("a bug"), DONE)
    app = guard(react(brain), boundary=Boundary(on={"fatal": "raise", "degradable": "raise"}))
    for number in range(3):
        if number == 1:
            with pytest.raises(KeyError):
                app.invoke(HELLO)
        else:
            app.invoke(HELLO)
    told = app.report().boundary
    assert told is not None
    assert (told.runs, told.abnormal_runs) == (3, 1)
    assert told.abnormal_rate == pytest.approx(1 / 3)
    assert "1 of 3 runs ended abnormally" in told.lines()[-1]


def shown(chunks: Any) -> list[Any]:
    return [(chunk.type, chunk.text, meta["langgraph_node"]) for chunk, meta in chunks]


@GRAPHS
async def test_where_nothing_fails_streams_and_events_are_as_without_us(build: Any) -> None:
    plain, app = build(model("one two")), guard(build(model("one two")), boundary=BOUNDARY)
    modes = [list(graph.stream(HELLO, stream_mode="messages")) for graph in (plain, app)]
    assert shown(modes[0]) == shown(modes[1])
    plain, app = build(model("one two")), guard(build(model("one two")), boundary=BOUNDARY)
    told = []
    for graph in (plain, app):
        events = [event async for event in graph.astream_events(HELLO, version="v2")]
        told.append([(event["event"], event["name"]) for event in events])
    assert told[0] == told[1]


def test_the_graphs_own_model_stays_as_it_is() -> None:
    brain = model(TimeoutError("x"), DONE, DONE)
    agent = react(brain)
    app = guard(agent, boundary=BOUNDARY)
    assert last(app.invoke(HELLO)).content == DONE
    assert type(brain) is ScriptedModel
    assert "__shearpin_plan__" not in brain.__dict__
    assert last(agent.invoke(HELLO)).content == DONE


@WAYS
async def test_a_run_in_which_too_much_fails_may_wrap_up_with_its_model(how: str) -> None:
    @tool
    def broken(what: str) -> str:
        """Never works."""
        raise ConnectionError("connection lost")

    def script(messages: Any, number: int) -> Any:
        if "too much failed" in str(messages[-1].content):
            return "What I have is this."
        return asks_for(("broken", {"what": str(number)}))

    brain = ScriptedModel(script)
    boundary = Boundary(retries=QUICK, error_budget=3)
    app = guard(create_agent(brain, [broken]), boundary=boundary, on_stop="wrap_up")
    out = await asked(app, how)
    assert_answered(out["messages"])
    assert last(out).content == "What I have is this."
    report = app.report()
    assert (report.outcome, report.reason) == ("stopped", "failures:error_budget")
    assert report.boundary is not None
    assert report.boundary.exhausted
    assert brain.calls == 4


@WAYS
async def test_the_last_answer_may_come_from_a_fallback(how: str) -> None:
    """What has used up the error budget may be the model itself."""
    primary = model(*[TimeoutError("x")] * 9)
    second = model("from the other one", repeat_last=True, model_name="b")
    boundary = Boundary(retries=QUICK, models=[second], error_budget=2)
    app = guard(react(primary), boundary=boundary, on_stop="wrap_up")
    out = await asked(app, how)
    assert last(out).content == "from the other one"


@WAYS
async def test_what_is_asked_for_again_is_no_loop(how: str) -> None:
    """The same useless answer before every good one, and before it an outage."""
    bad = AIMessage(
        "",
        invalid_tool_calls=[
            InvalidToolCall(name="look", args="{", id="1", error=None, type="invalid_tool_call")
        ],
    )
    script = [
        answer
        for number in range(9)
        for answer in (TimeoutError("x"), bad, asks(f"number {number}"))
    ]
    brain = model(*script, DONE)
    boundary = Boundary(retries=Retries(base_seconds=0.0, per_run=None), error_budget=None)
    app = guard(react(brain), boundary=boundary)
    out = await asked(app, how)
    assert last(out).content == DONE
    assert_answered(out["messages"])
    report = app.report()
    assert (report.steps, report.verdicts, report.notes) == (10, (), ())
    assert report.boundary is not None
    assert report.boundary.errors == 18


@WAYS
@GRAPHS
@pytest.mark.parametrize(
    ("answer", "reason", "words"),
    [
        (AIMessage(""), "empty_answer", "gave no answer"),
        (
            AIMessage("", response_metadata={"finish_reason": "content_filter"}),
            "content_filter",
            "content filter",
        ),
        (
            AIMessage("", response_metadata={"finish_reason": "refusal"}),
            "refusal",
            "declined to answer",
        ),
    ],
)
async def test_a_run_that_ends_for_want_of_an_answer_says_why(
    how: str, build: Any, answer: AIMessage, reason: str, words: str
) -> None:
    app = guard(build(model(answer, repeat_last=True)), boundary=BOUNDARY)
    out = await asked(app, how)
    assert app.report().reason == f"failures:{reason}"
    assert words in str(last(out).content)

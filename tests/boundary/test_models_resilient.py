"""`resilient_model`: failed calls of models in plain nodes and chains."""

from __future__ import annotations

from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.prompts import ChatPromptTemplate
from langgraph.graph import END, START, MessagesState, StateGraph
from pydantic import BaseModel, ValidationError

from shearpin import ConfigError, Guard, guard
from shearpin.boundary import Answers, Boundary, Retries
from shearpin.boundary.modelcalls import UselessAnswer
from shearpin.langchain import ResilienceMiddleware, clamped, resilient_model
from shearpin.testing import ScriptedModel
from tests.boundary.models_setup import (
    DONE,
    HELLO,
    PRICES,
    QUICK,
    BreaksOff,
    UnauthorizedError,
    asks,
    down,
    last,
    look,
    mark,
    model,
)

BOUNDARY = Boundary(retries=QUICK)
WAYS = pytest.mark.parametrize("how", ["invoke", "ainvoke", "stream", "astream", "batch"])


async def asked(brain: Any, how: str, given: Any = "hello") -> AIMessage:
    if how == "invoke":
        return brain.invoke(given)
    if how == "ainvoke":
        return await brain.ainvoke(given)
    if how == "batch":
        return brain.batch([given])[0]
    whole: Any = None
    if how == "stream":
        for part in brain.stream(given):
            whole = part if whole is None else whole + part
    else:
        async for part in brain.astream(given):
            whole = part if whole is None else whole + part
    return whole


@WAYS
async def test_where_nothing_fails_it_is_the_model_itself(how: str) -> None:
    plain, twin = model("one two"), resilient_model(model("one two"), boundary=BOUNDARY)
    assert type(twin).__name__ == "ScriptedModel"
    assert isinstance(twin, ScriptedModel)
    first, second = await asked(plain, how), await asked(twin, how)
    assert (first.text, first.response_metadata) == (second.text, second.response_metadata)
    assert first.usage_metadata == second.usage_metadata


@WAYS
async def test_failed_calls_are_made_again_then_elsewhere(how: str) -> None:
    primary = model(TimeoutError("a"), AIMessage(""), *[TimeoutError("b")] * 3, model_name="a")
    other = model("from the other one", model_name="b")
    answer = await asked(resilient_model(primary, [other], boundary=BOUNDARY), how)
    assert answer.text == "from the other one"
    told = mark(answer)
    assert told["fallback"] is True
    assert told["failures"][0]["error_type"] == "timeout"
    assert other.calls == 1


@WAYS
async def test_the_models_own_error_is_raised_or_answered(how: str) -> None:
    primary, other = down(UnauthorizedError("mine")), down(TimeoutError("theirs"))
    with pytest.raises(UnauthorizedError, match="mine"):
        await asked(resilient_model(primary, [other], boundary=BOUNDARY), how)
    polite = resilient_model(primary, [other], boundary=BOUNDARY, on_failure="answer")
    answer = await asked(polite, how)
    assert "could not be finished" in answer.text
    assert mark(answer)["reason"] == "failures:authentication"


@WAYS
async def test_bound_tools_go_to_the_fallbacks_too(how: str) -> None:
    primary, other = down(UnauthorizedError("no")), model(asks())
    bound = resilient_model(primary, [other], boundary=BOUNDARY).bind_tools([look])
    answer = await asked(bound, how)
    assert answer.tool_calls[0]["name"] == "look"


class Sum(BaseModel):
    """A sum."""

    total: int


@pytest.mark.parametrize("how", ["invoke", "ainvoke"])
async def test_structured_output_is_asked_for_again_and_elsewhere(how: str) -> None:
    from shearpin.testing import asks_for

    bad, good = asks_for(("Sum", {"total": "many"})), asks_for(("Sum", {"total": 4}))
    twin = resilient_model(model("no call", bad, good), boundary=BOUNDARY)
    assert await asked(twin.with_structured_output(Sum), how) == Sum(total=4)
    twin = resilient_model(model(bad, repeat_last=True), [model(good)], boundary=BOUNDARY)
    assert await asked(twin.with_structured_output(Sum), how) == Sum(total=4)
    twin = resilient_model(model(bad, repeat_last=True), boundary=BOUNDARY)
    with pytest.raises(ValidationError):
        await asked(twin.with_structured_output(Sum), how)


async def test_structured_output_with_its_raw_message_is_asked_for_again() -> None:
    from shearpin.testing import asks_for

    bad, good = asks_for(("Sum", {"total": "many"})), asks_for(("Sum", {"total": 4}))
    twin = resilient_model(model(bad, good), boundary=BOUNDARY)
    out: Any = twin.with_structured_output(Sum, include_raw=True).invoke("hi")
    assert out["parsed"] == Sum(total=4)


async def test_a_stream_that_was_begun_is_not_begun_anew() -> None:
    brain = resilient_model(BreaksOff(["one two three", DONE]), boundary=BOUNDARY)
    seen: list[str] = []
    with pytest.raises(ConnectionResetError):
        seen.extend(part.text for part in brain.stream("hi"))
    brain = resilient_model(
        BreaksOff(["one two three", DONE]), boundary=BOUNDARY, on_failure="answer"
    )
    text = "".join([part.text for part in brain.stream("hi")])
    assert text.startswith("one two \n\n[The answer broke off here")
    again = Boundary(retries=QUICK, answers=Answers(restart_streams=True))
    brain = resilient_model(BreaksOff(["one two three", DONE]), boundary=again)
    assert "".join([part.text async for part in brain.astream("hi")]) == "one two " + DONE


@WAYS
async def test_answers_of_no_use_end_in_an_error_that_says_so(how: str) -> None:
    brain = model(AIMessage(""), repeat_last=True)
    twin = resilient_model(brain, boundary=BOUNDARY)
    with pytest.raises(UselessAnswer, match="empty"):
        await asked(twin, how)
    assert brain.calls == 3


def test_it_is_part_of_chains() -> None:
    prompt = ChatPromptTemplate.from_messages([("system", "Be kind."), ("human", "{what}")])
    brain = model(TimeoutError("x"), DONE)
    chain = prompt | resilient_model(brain, boundary=BOUNDARY)
    assert chain.invoke({"what": "hi"}).content == DONE
    assert [message.type for message in brain.requests[1]] == ["system", "human"]


def plain_graph(brain: Any) -> Any:
    def speak(state: MessagesState) -> Any:
        return {"messages": [brain.invoke(state["messages"])]}

    graph = StateGraph(MessagesState)
    graph.add_node("speak", speak)
    graph.add_edge(START, "speak")
    graph.add_edge("speak", END)
    return graph.compile()


@PRICES
def test_in_a_guarded_graph_it_is_counted_there_and_held_against_the_budget() -> None:
    brain = model(TimeoutError("x"), AIMessage(""), DONE)
    app = guard(plain_graph(resilient_model(brain)), boundary=BOUNDARY, budget="10 calls")
    assert last(app.invoke(HELLO)).content == DONE
    report = app.report()
    assert report.boundary is not None
    assert (report.boundary.errors, report.boundary.retries) == (2, 2)
    assert report.budget is not None
    assert report.budget.scopes[0].spent["model_calls"] == 3
    assert report.steps == 1


def test_nodes_do_not_begin_anew_with_what_a_model_has_tried() -> None:
    """Three attempts of the model, and two retries of the node, are not nine calls."""
    brain = down()
    app = guard(plain_graph(resilient_model(brain)), boundary=BOUNDARY)
    out = app.invoke(HELLO)
    assert brain.calls == 3
    assert "could not be finished" in str(last(out).content)
    assert app.report().reason == "failures:timeout"


def test_without_a_boundary_of_the_guard_it_works_by_its_own() -> None:
    brain = model(TimeoutError("x"), DONE)
    app = guard(plain_graph(resilient_model(brain, boundary=BOUNDARY)))
    assert last(app.invoke(HELLO)).content == DONE
    assert app.report().boundary is None


def test_retries_of_a_run_are_bounded_for_all_its_calls() -> None:
    brain = down()
    boundary = Boundary(retries=Retries(attempts=5, base_seconds=0.0, per_run=3))
    twin = resilient_model(brain, boundary=boundary, on_failure="answer")
    with Guard().run():
        for _ in range(4):
            twin.invoke("hi")
    assert brain.calls == 4 + 3


def test_middleware_and_model_do_not_multiply_their_attempts() -> None:
    primary, other = down(), down(UnauthorizedError("no"))
    twin = resilient_model(primary, [other], boundary=BOUNDARY)
    middleware = ResilienceMiddleware(retries=QUICK)
    create_agent(twin, [look], middleware=[middleware]).invoke(HELLO)
    assert primary.calls == 3
    assert other.calls == 3


def test_it_goes_with_limits_on_answers() -> None:
    twin = clamped(resilient_model(model(TimeoutError("x"), DONE), boundary=BOUNDARY))
    assert twin.invoke("hi").content == DONE
    twin = resilient_model(clamped(model(TimeoutError("x"), DONE)), boundary=BOUNDARY)
    assert twin.invoke("hi").content == DONE


def test_the_original_stays_as_it_is() -> None:
    brain = model(TimeoutError("x"), DONE)
    twin = resilient_model(brain, boundary=BOUNDARY)
    with pytest.raises(TimeoutError):
        brain.invoke([HumanMessage("hi")])
    assert twin.invoke("hi").content == DONE


def test_what_is_no_chat_model_is_refused() -> None:
    with pytest.raises(ConfigError, match="chat models"):
        resilient_model("gpt-4o")  # type: ignore[type-var]
    with pytest.raises(ConfigError, match="chat models"):
        resilient_model(model(), ["gpt-4o"])  # type: ignore[list-item]
    with pytest.raises(ConfigError, match="already"):
        resilient_model(resilient_model(model()))
    with pytest.raises(ConfigError, match="on_failure"):
        resilient_model(model(), on_failure="ignore")  # type: ignore[arg-type]


@WAYS
async def test_faults_of_ours_leave_the_model_as_it_is(
    how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> Any:
        raise ZeroDivisionError("ours")

    monkeypatch.setattr("shearpin.adapters.langchain.plans.opened", fails)
    twin = resilient_model(model(DONE, TimeoutError("x")), boundary=BOUNDARY)
    assert (await asked(twin, how)).text == DONE
    with pytest.raises(TimeoutError):
        await asked(twin, how)


class NoTools(ScriptedModel):
    """A model that takes no tools."""

    def bind_tools(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError("no tools")


def test_a_fallback_that_takes_no_tools_is_left_out() -> None:
    twin = resilient_model(
        down(UnauthorizedError("no")), [NoTools(["never"]), model(asks())], boundary=BOUNDARY
    )
    assert twin.bind_tools([look]).invoke("hi").tool_calls[0]["name"] == "look"
    assert twin.invoke("hi").text == "never"

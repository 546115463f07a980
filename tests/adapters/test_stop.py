"""A stop is a normal end (P4): on every kind of graph, however it is run."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

import pytest
from langchain_core.messages import AIMessage, ToolMessage

import shearpin
from shearpin.testing import StrictProvider
from tests.adapters.builds import (
    HELLO,
    KINDS,
    MOST_CALLS,
    THREAD,
    WAYS,
    WITH_MESSAGES,
    assert_valid,
    functional,
    react,
    react_builder,
    run,
    runaway,
    saver,
)


@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize("kind", WITH_MESSAGES)
async def test_a_runaway_ends_the_normal_way(kind: str, how: str) -> None:
    model = runaway()
    app = shearpin.guard(KINDS[kind](model, saver()))
    await run(app, how)
    state = app.get_state(THREAD)
    assert state.next == ()
    messages = state.values["messages"]
    last = messages[-1]
    assert isinstance(last, AIMessage) and last.content and not last.tool_calls
    reason = last.response_metadata["shearpin"]["reason"]
    assert reason.startswith("loop:")
    assert sum("shearpin" in message.response_metadata for message in messages) == 1
    assert_valid(messages)
    assert model.calls <= MOST_CALLS
    report = app.report(THREAD)
    assert (report.outcome, report.reason) == ("stopped", reason)
    assert report.faults == ()


@pytest.mark.parametrize("how", WAYS)
async def test_a_runaway_entrypoint_ends_the_normal_way(how: str) -> None:
    if how == "astream_events" and version("langgraph").startswith("1.0."):
        pytest.skip("LangGraph 1.0 gives None for a task's result when events are streamed")
    model = runaway()
    app = shearpin.guard(functional(model, saver()))
    await run(app, how)
    assert app.get_state(THREAD).next == ()
    assert model.calls <= MOST_CALLS
    assert app.report(THREAD).outcome == "stopped"


def test_invoke_returns_the_state_it_saved() -> None:
    app = shearpin.guard(react(runaway(), saver()))
    assert app.invoke(HELLO, THREAD) == app.get_state(THREAD).values


@pytest.mark.parametrize("how", ["invoke", "ainvoke", "stream", "astream"])
@pytest.mark.parametrize("kind", WITH_MESSAGES)
async def test_the_next_turn_starts_afresh(kind: str, how: str) -> None:
    model = runaway()
    app = shearpin.guard(KINDS[kind](model, saver()))
    for turn in (1, 2, 3):
        await run(app, how)
        assert model.calls == turn * (model.calls // turn)
        assert model.calls <= MOST_CALLS * turn
        assert_valid(app.get_state(THREAD).values["messages"])
        assert app.report(THREAD).outcome == "stopped"


def test_raising_is_an_option_and_comes_after_saving() -> None:
    app = shearpin.guard(react(runaway(), saver()), on_stop="raise")
    with pytest.raises(shearpin.LoopDetectedError) as caught:
        app.invoke(HELLO, THREAD)
    assert caught.value.reason == "loop:repeat"
    assert caught.value.evidence["tool"] == "look"
    state = app.get_state(THREAD)
    assert state.next == ()
    assert_valid(state.values["messages"])


async def test_raising_from_astream() -> None:
    app = shearpin.guard(react(runaway(), saver()), on_stop="raise")
    with pytest.raises(shearpin.LoopDetectedError):
        async for _ in app.astream(HELLO, THREAD):
            pass
    assert app.report(THREAD).outcome == "stopped"


def test_a_builder_compiles_to_a_guarded_graph() -> None:
    model = runaway()
    builder = react_builder(model)
    guarded = shearpin.guard(builder)
    assert type(guarded).__name__ == "StateGraph"
    app: Any = guarded.compile(checkpointer=saver())
    app.invoke(HELLO, THREAD)
    assert app.report(THREAD).outcome == "stopped"
    assert not hasattr(builder.compile(), "report")


def test_a_blocked_call_is_answered_and_not_run() -> None:
    from langchain_core.tools import tool

    ran: list[str] = []

    @tool
    def look(place: str) -> str:
        """Look."""
        ran.append(place)
        return "locked"

    model = runaway()
    app = shearpin.guard(react_builder(model, [look]).compile())
    messages = app.invoke(HELLO)["messages"]
    answers = [message for message in messages if isinstance(message, ToolMessage)]
    assert len(ran) < len(answers) == model.calls
    assert all(message.status == "error" for message in answers[len(ran) :])
    assert app.report().to_json()["spend"]["tool_calls"] == len(ran)


def test_observe_never_acts() -> None:
    model = runaway()
    app = shearpin.guard(react(model), mode="observe")
    from langgraph.errors import GraphRecursionError

    with pytest.raises(GraphRecursionError):
        app.invoke(HELLO, {"recursion_limit": 41})
    report = app.report()
    assert model.calls == 21
    assert report.outcome == "failed"
    assert report.verdicts and not any(verdict.acted for verdict in report.verdicts)


def test_a_polite_agent_is_left_alone() -> None:
    from tests.adapters.builds import polite

    plain, guarded = polite(), polite()
    expected = react(plain).invoke(HELLO)["messages"]
    app = shearpin.guard(react(guarded))
    found = app.invoke(HELLO)["messages"]
    assert [message.content for message in found] == [message.content for message in expected]
    report = app.report()
    assert (report.outcome, report.verdicts) == ("completed", ())
    assert report.to_json()["spend"]["model_calls"] == 3


def test_a_strict_provider_sees_valid_requests_only() -> None:
    model = runaway()
    assert isinstance(model, StrictProvider)
    app = shearpin.guard(react(model))
    app.invoke(HELLO)
    assert any("3 times" in str(request[-1].content) for request in model.requests), (
        "the nudge reached the model"
    )

"""`GuardMiddleware` by itself: stops, answers, and keeps conversations apart."""

from __future__ import annotations

from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool

import shearpin
from shearpin import ConfigError, Guard
from shearpin.langchain import GuardMiddleware
from tests.adapters.builds import (
    HELLO,
    MOST_CALLS,
    THREAD,
    assert_valid,
    look,
    polite,
    run,
    runaway,
    saver,
)


def build(model: Any, middleware: list[Any], checkpointer: Any = None, tools: Any = (look,)) -> Any:
    return create_agent(model, list(tools), middleware=middleware, checkpointer=checkpointer)


@pytest.mark.parametrize("how", ["invoke", "ainvoke", "batch", "stream", "astream"])
async def test_every_turn_of_a_runaway_is_ended(how: str) -> None:
    model, middleware = runaway(), GuardMiddleware()
    app = build(model, [middleware], saver())
    for turn in (1, 2, 3):
        await run(app, how)
        assert model.calls <= MOST_CALLS * turn
        messages = app.get_state(THREAD).values["messages"]
        assert "shearpin" in messages[-1].response_metadata
        assert_valid(messages)
        assert middleware.report("t1").outcome == "stopped"
    assert app.get_state(THREAD).next == ()


def test_it_adds_no_step() -> None:
    plain, guarded = build(polite(), []), build(polite(), [GuardMiddleware()])
    assert list(plain.nodes) == list(guarded.nodes)
    steps = [list(app.stream(HELLO, stream_mode="updates")) for app in (plain, guarded)]
    assert [list(chunk) for chunk in steps[0]] == [list(chunk) for chunk in steps[1]]


def test_conversations_are_kept_apart() -> None:
    middleware = GuardMiddleware()
    app = build(polite(), [middleware], saver())
    for thread in ("a", "b"):
        app.invoke(HELLO, {"configurable": {"thread_id": thread}})
    for thread in ("a", "b"):
        report = middleware.report(thread)
        assert report.to_json()["spend"]["model_calls"] == 3
        assert report.info.thread == thread


def test_without_threads_every_run_is_its_own() -> None:
    middleware = GuardMiddleware()
    model = runaway()
    app = build(model, [middleware])
    calls: list[int] = []
    for _ in range(3):
        app.invoke(HELLO)
        calls.append(model.calls - sum(calls))
    assert len(set(calls)) == 1


def test_a_blocked_call_is_not_run() -> None:
    ran: list[str] = []

    @tool
    def look(place: str) -> str:
        """Look."""
        ran.append(place)
        return "locked"

    model = runaway()
    messages = build(model, [GuardMiddleware()], tools=[look]).invoke(HELLO)["messages"]
    answers = [message for message in messages if isinstance(message, ToolMessage)]
    assert len(ran) < len(answers)


def test_retries_and_fallbacks_inside_do_not_hide_a_stop() -> None:
    class Stubborn(AgentMiddleware):
        """Answers every failure of the model by itself."""

        def wrap_model_call(self, request: Any, handler: Any) -> Any:
            failures: list[Exception] = []
            while len(failures) < 3:
                try:
                    return handler(request)
                except Exception as error:
                    failures.append(error)
            return AIMessage("gave up")

    model = runaway()
    messages = build(model, [GuardMiddleware(), Stubborn()]).invoke(HELLO)["messages"]
    assert "shearpin" in messages[-1].response_metadata
    assert model.calls <= MOST_CALLS


def test_raising_is_an_option() -> None:
    app = build(runaway(), [GuardMiddleware(on_stop="raise")])
    with pytest.raises(shearpin.LoopDetectedError):
        app.invoke(HELLO)


def test_with_a_guarded_graph_there_is_one_run() -> None:
    middleware = GuardMiddleware()
    app = shearpin.guard(build(polite(), [middleware]))
    app.invoke(HELLO)
    assert app.report().to_json()["spend"] == {
        **app.report().to_json()["spend"],
        "model_calls": 3,
        "tool_calls": 2,
    }
    assert middleware.report().to_json()["steps"] == 0


def test_sub_agents_in_tools_belong_to_the_run() -> None:
    inner = create_agent(polite(), [look])

    @tool
    def ask(question: str) -> str:
        """Ask."""
        return str(inner.invoke({"messages": [("user", question)]})["messages"][-1].content)

    from shearpin.testing import StrictProvider, asks_for

    middleware = GuardMiddleware()
    outer = StrictProvider([asks_for(("ask", {"question": "?"})), "done"])
    build(outer, [middleware], tools=[ask]).invoke(HELLO)
    spend = middleware.report().to_json()["spend"]
    assert (spend["model_calls"], spend["tool_calls"]) == (5, 3)


def test_options() -> None:
    assert GuardMiddleware(Guard(mode="warn")).guard.mode == "warn"
    assert GuardMiddleware(mode="observe").guard.mode == "observe"
    with pytest.raises(ConfigError, match="did you mean 'mode'"):
        GuardMiddleware(mod="observe")


def test_a_user_message_in_the_middle_of_a_turn_is_no_new_turn() -> None:
    class Impatient(AgentMiddleware):
        """Adds a user message after each answer of a tool."""

        def before_model(self, state: Any, runtime: Any) -> Any:
            if isinstance(state["messages"][-1], ToolMessage):
                return {"messages": [HumanMessage("hurry up")]}
            return None

    model = runaway()
    messages = build(model, [GuardMiddleware(), Impatient()]).invoke(HELLO)["messages"]
    assert "shearpin" in messages[-1].response_metadata
    assert model.calls <= MOST_CALLS

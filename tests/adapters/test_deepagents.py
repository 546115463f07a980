"""Agents made by deepagents: the main agent and the sub-agents behind its `task` tool."""

from __future__ import annotations

from inspect import signature
from typing import Any

import pytest

import shearpin
from shearpin.testing import StrictProvider, asks_for
from tests.adapters.builds import HELLO, MOST_CALLS, THREAD, assert_valid, look, run, saver

deepagents = pytest.importorskip("deepagents")
create_deep_agent: Any = deepagents.create_deep_agent
if "checkpointer" not in signature(create_deep_agent).parameters:
    pytest.skip("this deepagents is too old", allow_module_level=True)


def runaway() -> StrictProvider:
    """OpenAI's rules: without a prompt, deepagents sends a system message with no text in it."""
    return StrictProvider(
        lambda messages, call: asks_for(("look", {"place": "desk"})), flavour="openai"
    )


@pytest.mark.parametrize("how", ["invoke", "ainvoke", "astream"])
@pytest.mark.parametrize("flavour", ["openai", "anthropic"])
async def test_the_main_agent(how: str, flavour: Any) -> None:
    model = runaway()
    model.flavour = flavour
    prompt = "Be brief." if flavour == "anthropic" else None
    app: Any = shearpin.guard(
        create_deep_agent(model=model, tools=[look], system_prompt=prompt, checkpointer=saver())
    )
    await run(app, how)
    messages = app.get_state(THREAD).values["messages"]
    assert "shearpin" in messages[-1].response_metadata
    assert model.calls <= MOST_CALLS
    assert_valid(messages)


@pytest.mark.parametrize("how", ["invoke", "ainvoke", "astream"])
async def test_a_sub_agent(how: str) -> None:
    model = runaway()
    boss = StrictProvider(
        lambda messages, call: asks_for(
            ("task", {"description": f"find it, attempt {call}", "subagent_type": "finder"})
        ),
        flavour="openai",
    )
    finder = {
        "name": "finder",
        "description": "finds things",
        "system_prompt": "Find it.",
        "tools": [look],
        "model": model,
    }
    app: Any = shearpin.guard(
        create_deep_agent(model=boss, tools=[], subagents=[finder], checkpointer=saver())
    )
    await run(app, how)
    assert app.get_state(THREAD).next == ()
    messages = app.get_state(THREAD).values["messages"]
    assert "shearpin" in messages[-1].response_metadata
    assert (boss.calls, model.calls) == (1, model.calls)
    assert model.calls <= MOST_CALLS
    assert {verdict.agent for verdict in app.report(THREAD).verdicts} == {"tools:finder"}
    assert_valid(messages)


def test_it_draws_the_same() -> None:
    plain = create_deep_agent(model=runaway(), tools=[look])
    assert shearpin.guard(plain).get_graph().to_json() == plain.get_graph().to_json()
    shearpin.guard(plain).invoke(HELLO)

"""The hooks that run once an agent is done run after a stop as well."""

from __future__ import annotations

from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware

import shearpin
from shearpin.langchain import GuardMiddleware
from tests.adapters.builds import (
    HELLO,
    MOST_CALLS,
    THREAD,
    assert_valid,
    look,
    run,
    runaway,
    saver,
)


class Hook(AgentMiddleware):
    """Notes what the conversation looked like when the agent was done."""

    def __init__(self, name: str, seen: list[tuple[str, int]]) -> None:
        super().__init__()
        self._name = name
        self._seen = seen

    @property
    def name(self) -> str:
        return self._name

    def after_agent(self, state: Any, runtime: Any) -> None:
        assert_valid(state["messages"])
        assert "shearpin" in state["messages"][-1].response_metadata
        self._seen.append((self._name, len(state["messages"])))


@pytest.mark.parametrize("how", ["invoke", "ainvoke", "stream", "astream"])
@pytest.mark.parametrize("layer", ["guard", "middleware", "both"])
async def test_after_hooks_run(layer: str, how: str) -> None:
    seen: list[tuple[str, int]] = []
    hooks: list[Any] = [Hook("first", seen), Hook("second", seen)]
    if layer != "guard":
        hooks.insert(0, GuardMiddleware())
    model = runaway()
    app: Any = create_agent(model, [look], middleware=hooks, checkpointer=saver())
    if layer != "middleware":
        app = shearpin.guard(app)
    await run(app, how)
    assert [name for name, _ in seen] == ["second", "first"]
    assert app.get_state(THREAD).next == ()
    assert model.calls <= MOST_CALLS
    assert_valid(app.get_state(THREAD).values["messages"])


def test_a_guarded_agent_draws_the_same() -> None:
    agent = create_agent(runaway(), [look], middleware=[Hook("hook", [])])
    app = shearpin.guard(agent)
    assert app.get_graph().draw_mermaid() == agent.get_graph().draw_mermaid()
    assert app.get_graph(xray=True).to_json() == agent.get_graph(xray=True).to_json()
    app.invoke(HELLO)

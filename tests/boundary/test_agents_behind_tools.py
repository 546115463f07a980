"""A failure of an agent behind a tool is that tool's failure: the agent that called it goes on."""

from __future__ import annotations

from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import HumanMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver

import shearpin
from shearpin.boundary import Boundary, Retries
from shearpin.testing import ScriptedModel, StrictProvider, asks_for

THREAD: dict[str, Any] = {"configurable": {"thread_id": "t1"}}
HELLO: dict[str, Any] = {"messages": [HumanMessage("go")]}
HOW = pytest.mark.parametrize("how", ["invoke", "ainvoke"])


def build(model: Any, **options: Any) -> Any:
    inner = create_agent(ScriptedModel([TimeoutError("provider down")] * 9), [])

    @tool
    def research(topic: str) -> str:
        """Research a topic."""
        return inner.invoke({"messages": [("user", topic)]})["messages"][-1].text

    graph = create_agent(model, [research], checkpointer=InMemorySaver())
    return shearpin.guard(graph, boundary=Boundary(retries=Retries(base_seconds=0.001), **options))


async def go(app: Any, how: str) -> Any:
    return app.invoke(HELLO, THREAD) if how == "invoke" else await app.ainvoke(HELLO, THREAD)


@HOW
async def test_the_outer_agent_goes_on(how: str) -> None:
    model = StrictProvider([asks_for(("research", {"topic": "x"})), "done without it"])
    app = build(model)

    result = await go(app, how)

    assert result["messages"][-1].text == "done without it"
    answer = result["messages"][-2]
    assert (answer.type, answer.status) == ("tool", "error")
    assert "provider down" in answer.text
    assert app.report(THREAD).reason is None


@HOW
async def test_who_asks_for_an_end_gets_it(how: str) -> None:
    model = StrictProvider([asks_for(("research", {"topic": "x"})), "done without it"])
    app = build(model, on={"timeout": "terminate"})

    await go(app, how)

    assert app.report(THREAD).reason == "failures:timeout"

"""Answers that no tool gave: a rejection by a person, invalid structured output."""

from __future__ import annotations

from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain.agents.structured_output import ToolStrategy
from langgraph.types import Command
from pydantic import BaseModel

import shearpin
from shearpin.adapters.judge import Judge
from shearpin.testing import StrictProvider, asks_for
from tests.adapters.builds import HELLO, THREAD, assert_valid, look, react_builder, runaway, saver


class Place(BaseModel):
    """Where it is."""

    floor: int


@pytest.fixture
def returned(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The tool results that the core is told of."""
    facts: list[Any] = []
    plain = Judge.after

    def spy(self: Judge, fact: Any) -> Any:
        if type(fact).__name__ == "ToolReturned":
            facts.append(fact)
        return plain(self, fact)

    monkeypatch.setattr(Judge, "after", spy)
    return facts


def test_invalid_structured_output(returned: list[Any]) -> None:
    model = StrictProvider(lambda messages, call: asks_for(("Place", {"floor": "upstairs"})))
    app = shearpin.guard(create_agent(model, [look], response_format=ToolStrategy(Place)))
    messages = app.invoke(HELLO, {"recursion_limit": 60})["messages"]
    assert {(fact.tool, fact.status) for fact in returned} == {("Place", "bad_args")}
    assert "shearpin" in messages[-1].response_metadata
    assert model.calls < 20
    assert_valid(messages)


def test_a_rejection_by_a_person(returned: list[Any]) -> None:
    hook = HumanInTheLoopMiddleware(interrupt_on={"look": True})
    app: Any = shearpin.guard(
        create_agent(runaway(), [look], middleware=[hook], checkpointer=saver())
    )
    app.invoke(HELLO, THREAD)
    for _ in range(12):
        if not app.get_state(THREAD).next:
            break
        app.invoke(Command(resume={"decisions": [{"type": "reject", "message": "no"}]}), THREAD)
    messages = app.get_state(THREAD).values["messages"]
    assert app.get_state(THREAD).next == ()
    assert "shearpin" in messages[-1].response_metadata
    assert {fact.status for fact in returned} == {"error", "blocked"}
    assert_valid(messages)


def test_answers_of_tools_are_reported_once(returned: list[Any]) -> None:
    model = StrictProvider([asks_for(("look", {"place": "a"}), ("look", {"place": "b"})), "done"])
    app = shearpin.guard(react_builder(model).compile())
    app.invoke(HELLO)
    assert sorted(fact.args["place"] for fact in returned) == ["a", "b"]


def test_parallel_calls_are_all_answered() -> None:
    """Three calls in each message, for ever the same: whatever is refused, every id is answered."""
    calls = [("look", {"place": place}) for place in ("a", "b", "c")]
    for build in (
        lambda model: react_builder(model).compile(),
        lambda model: create_agent(model, [look]),
    ):
        model = StrictProvider(lambda messages, call: asks_for(*calls))
        app = shearpin.guard(build(model))
        messages = app.invoke(HELLO)["messages"]
        assert "shearpin" in messages[-1].response_metadata
        assert_valid(messages)

"""Answers are limited to what is left, by the middleware or around a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage
from langgraph.graph import START, MessagesState, StateGraph

import shearpin
from shearpin import Budget, ConfigError, Guard
from shearpin.langchain import GuardMiddleware, clamped
from shearpin.testing import asks_for
from tests.budget.paying import HELLO, PRICE, Counter, Paid, always_asks

LONG = {"recursion_limit": 1000}


def chatty(messages: Sequence[BaseMessage], number: int) -> AIMessage:
    """Asks for a tool for ever, and says as much as it is let."""
    return asks_for(("search", {"query": f"{number}"}), text=f"word{number} " * 400)


@pytest.mark.parametrize("alone", [True, False])
@pytest.mark.parametrize("how", ["invoke", "ainvoke"])
async def test_the_middleware_limits_answers_that_have_no_bound(alone: bool, how: str) -> None:
    model, search = Paid(chatty, max_tokens=None), Counter()
    guard = Guard(budget=Budget(tokens=60_000), detectors=())
    app: Any = create_agent(model, [search.tool], middleware=[GuardMiddleware(guard)])
    if not alone:
        app = guard.wrap(app)
    await app.ainvoke(HELLO, LONG) if how == "ainvoke" else app.invoke(HELLO, LONG)
    assert 48_000 <= model.tokens <= 60_000
    assert model.bounds[0] is None, "there is room enough: nothing is limited"
    assert model.bounds[-1] is not None


def test_the_last_answer_has_no_tools_and_is_told_so() -> None:
    seen: list[tuple[bool, str]] = []

    class Watched(Paid):
        def _generate(self, messages: Any, *args: Any, **kwargs: Any) -> Any:
            seen.append(("tools" in kwargs, messages[-1].text))
            return super()._generate(messages, *args, **kwargs)

    def script(messages: Sequence[BaseMessage], number: int) -> AIMessage | str:
        if "without calling tools" in messages[-1].text:
            return "this is what I have"
        return asks_for(("search", {"query": f"{number}"}))

    model, search = Watched(script, max_tokens=50), Counter()
    guard = Guard(budget=Budget(tokens=2_000))
    app = guard.wrap(create_agent(model, [search.tool], middleware=[GuardMiddleware(guard)]))
    result = app.invoke(HELLO, LONG)
    assert result["messages"][-1].text == "this is what I have"
    assert app.report().outcome == "completed"
    assert [has_tools for has_tools, _ in seen] == [True] * (len(seen) - 1) + [False]
    assert "the last answer that the limit of 2,000 tokens" in seen[-1][1]
    assert all("the last answer" not in message.text for message in result["messages"])
    assert model.tokens <= 2_000


def test_g12_x_the_third_of_three_calls_goes_without_tools() -> None:
    model, search = Paid(always_asks()), Counter()
    guard = Guard(budget="3 calls")
    app = guard.wrap(create_agent(model, [search.tool], middleware=[GuardMiddleware(guard)]))
    app.invoke(HELLO, LONG)
    assert model.calls == 3


def test_where_not_even_a_short_answer_fits_the_call_is_refused() -> None:
    model = Paid(chatty, max_tokens=None)
    guard = Guard(budget=Budget(tokens=20))
    app = guard.wrap(create_agent(model, [Counter().tool], middleware=[GuardMiddleware(guard)]))
    app.invoke(HELLO, LONG)
    assert model.calls == 0
    assert app.report().reason == "budget:tokens"


def test_observing_limits_nothing() -> None:
    def script(messages: Sequence[BaseMessage], number: int) -> AIMessage | str:
        return chatty(messages, number) if number < 5 else "done"

    model = Paid(script, max_tokens=None)
    guard = Guard(budget=Budget(tokens=1_000), mode="observe")
    app = guard.wrap(create_agent(model, [Counter().tool], middleware=[GuardMiddleware(guard)]))
    app.invoke(HELLO, LONG)
    assert model.bounds == [None] * 5


def talk(model: Any, how: str) -> Any:
    """A graph without an agent: its node asks the model again and again."""

    def node(state: MessagesState) -> dict[str, Any]:
        for number in range(100):
            if how == "invoke":
                model.invoke(f"question {number}")
            else:
                list(model.stream(f"question {number}"))
        return {}

    graph = StateGraph(MessagesState)
    graph.add_node("node", node)
    graph.add_edge(START, "node")
    return graph.compile()


@pytest.mark.parametrize("how", ["invoke", "stream"])
def test_a_clamped_model_fits_into_what_is_left(how: str) -> None:
    model = Paid(lambda messages, number: "word " * 500, max_tokens=None)
    limited = clamped(model)
    app = shearpin.guard(talk(limited, how), budget="$0.10", unknown_price=PRICE, detectors=())
    app.invoke(HELLO)
    assert isinstance(limited, Paid)
    assert clamped(limited) is limited
    assert 80_000 <= limited.micros <= 100_000


async def test_a_clamped_model_is_the_same_where_nothing_is_guarded() -> None:
    model = clamped(Paid(lambda messages, number: "word " * 500, max_tokens=None))
    assert len(model.invoke("hi").text.split()) == 500
    assert len((await model.ainvoke("hi")).text.split()) == 500
    assert len([chunk async for chunk in model.astream("hi")]) > 400
    assert model.bounds == [None] * 3


def test_clamping_is_for_chat_models() -> None:
    with pytest.raises(ConfigError, match="takes a chat model, not a str"):
        clamped("gpt-4o")  # type: ignore[type-var]

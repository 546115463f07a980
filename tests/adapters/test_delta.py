"""The digest of what a node wrote: equal for an equal effect, never where that is unsure."""

from __future__ import annotations

from dataclasses import dataclass
from time import process_time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.types import Command, Send
from pydantic import BaseModel

from shearpin.adapters.langgraph.delta import delta_of

NONE: frozenset[str] = frozenset()


def delta(output: object, before: object = None, merged: frozenset[str] = NONE) -> str | None:
    return delta_of(output, before if before is not None else {}, merged)


class Model(BaseModel):
    text: str


@dataclass
class Data:
    text: str


SAME: list[tuple[Any, Any]] = [
    ({"a": 1, "b": "x"}, {"b": "x", "a": 1}),
    ({"messages": [AIMessage("same", id="1")]}, {"messages": [AIMessage("same", id="2")]}),
    (Command(update={"a": 1}, goto="x"), Command(update={"a": 1}, goto="x")),
    ([Command(update={"a": 1}), {"b": 2}], [Command(update={"a": 1}), {"b": 2}]),
    (Model(text="a"), Model(text="a")),
    (Data("a"), Data("a")),
    ({"long": "x" * 50_000}, {"long": "x" * 50_000}),
    (Command(goto=[Send("n", {"i": 1})]), Command(goto=[Send("n", {"i": 1})])),
]

DIFFERENT: list[tuple[Any, Any]] = [
    ({"a": 1}, {"a": 2}),
    ({"a": 1}, {"b": 1}),
    ({"a": True}, {"a": 1}),
    ({"a": ["x", "y"]}, {"a": ["xy"]}),
    (Command(update={"a": 1}, goto="x"), Command(update={"a": 1}, goto="y")),
    (Command(goto=[Send("n", {"i": 1})]), Command(goto=[Send("n", {"i": 2})])),
    ({"long": "x" * 30_000 + "a" + "x" * 30_000}, {"long": "x" * 30_000 + "b" + "x" * 30_000}),
    (
        {"messages": [AIMessage("", tool_calls=[{"name": "t", "args": {"a": 1}, "id": "1"}])]},
        {"messages": [AIMessage("", tool_calls=[{"name": "t", "args": {"a": 2}, "id": "1"}])]},
    ),
]

UNSAYABLE: list[Any] = [
    {"huge": "x" * 100_000},
    {"many": list(range(1000))},
    {"foreign": object()},
    {"deep": {str(n): {"x": n} for n in range(100)}},
    object(),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_the_same_effect(one: Any, other: Any) -> None:
    assert delta(one) == delta(other) is not None


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_different_effects(one: Any, other: Any) -> None:
    assert delta(one) != delta(other)


@pytest.mark.parametrize("output", UNSAYABLE, ids=range(len(UNSAYABLE)))
def test_what_cannot_be_said_equals_nothing(output: Any) -> None:
    assert delta(output) != delta(output)


def test_nothing_written_is_no_effect() -> None:
    assert delta(None) is None


def test_a_merged_value_counts_with_what_it_is_merged_into() -> None:
    merged = frozenset({"count", "log"})
    assert delta({"count": 1}, {"count": 1}, merged) != delta({"count": 1}, {"count": 2}, merged)
    assert delta({"count": 1}, {"count": 1}, merged) == delta({"count": 1}, {"count": 1}, merged)
    assert delta({"log": ["x"]}, {"log": []}, merged) != delta({"log": ["x"]}, {"log": [1]}, merged)
    assert delta({"log": ["x"]}, {}, merged) != delta({"log": ["x"]}, {}, merged)


def test_messages_are_not_held_against_their_history() -> None:
    merged = frozenset({"messages"})
    update = {"messages": [AIMessage("same")]}
    short, long = {"messages": []}, {"messages": [HumanMessage("x")] * 9}
    assert delta(update, short, merged) == delta(update, long, merged)


def test_a_whole_history_is_read_from_its_end_only() -> None:
    history = [HumanMessage(f"{n}" * 50) for n in range(20_000)]
    started = process_time()
    for _ in range(100):
        delta({"messages": history})
    assert process_time() - started < 0.5


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists, max_leaves=9))
def test_it_never_raises_and_is_stable(value: Any) -> None:
    first, second = delta({"v": value}), delta({"v": value})
    assert first == second or str(first).startswith("unique")

"""The scripted model: every way to call it, counted, with usage that grows as a provider's does."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, SystemMessage
from langchain_core.tools import tool

from shearpin import ConfigError
from shearpin.testing import ManualClock, ScriptedModel, ScriptEndedError, asks_for


@tool
def look(place: str) -> str:
    """Look somewhere."""
    return place


def added(chunks: list[AIMessageChunk]) -> AIMessageChunk:
    total = chunks[0]
    for chunk in chunks[1:]:
        total = total + chunk
    return total


SCRIPT = [asks_for(("look", {"place": "here"}), text="let me look"), "it is here"]


def test_answers_come_in_order_and_are_counted() -> None:
    model = ScriptedModel(SCRIPT)
    first = model.invoke("where?")
    assert (first.tool_calls[0]["name"], first.text) == ("look", "let me look")
    assert model.invoke([HumanMessage("and now?")]).text == "it is here"
    assert model.calls == 2
    assert [request[0].text for request in model.requests] == ["where?", "and now?"]
    assert [answer.text for answer in model.answers] == ["let me look", "it is here"]
    assert first.response_metadata["finish_reason"] == "tool_calls"


async def test_async_and_streams_give_the_same() -> None:
    plain = ScriptedModel(SCRIPT).invoke("where?")
    asynchronous = await ScriptedModel(SCRIPT).ainvoke("where?")
    streamed = added(list(ScriptedModel(SCRIPT).stream("where?")))
    astreamed = added([chunk async for chunk in ScriptedModel(SCRIPT).astream("where?")])
    for message in (asynchronous, streamed, astreamed):
        assert message.text == plain.text
        assert message.tool_calls == plain.tool_calls
        assert message.usage_metadata == plain.usage_metadata
        assert message.response_metadata == plain.response_metadata


def test_words_are_streamed_one_by_one() -> None:
    chunks = list(ScriptedModel(["one two  three"]).stream("count"))
    assert [chunk.text for chunk in chunks if chunk.text] == ["one ", "two ", " ", "three"]


def test_usage_grows_with_the_history_unless_it_is_scripted() -> None:
    own = AIMessage("x", usage_metadata={"input_tokens": 7, "output_tokens": 1, "total_tokens": 8})
    model = ScriptedModel(["a", "b", own])
    short = model.invoke([HumanMessage("x" * 400)]).usage_metadata
    longer = model.invoke([SystemMessage("y" * 400), HumanMessage("x" * 400)]).usage_metadata
    assert short is not None
    assert longer is not None
    assert (short["input_tokens"], longer["input_tokens"]) == (104, 208)
    assert model.invoke("x").usage_metadata == own.usage_metadata


def test_a_call_too_many_is_an_error_that_says_so() -> None:
    model = ScriptedModel(["only one"])
    model.invoke("x")
    with pytest.raises(ScriptEndedError, match=r"1 answer\(s\), and this is call 2"):
        model.invoke("x")


def test_the_last_answer_can_go_on_for_ever_with_new_ids() -> None:
    model = ScriptedModel(["first", asks_for(("look", {"place": "there"}))], repeat_last=True)
    ids = [call["id"] for _ in range(5) for call in model.invoke("x").tool_calls]
    assert len(set(ids)) == 4


def test_a_function_can_be_the_script() -> None:
    model = ScriptedModel(lambda messages, number: f"{messages[-1].text} {number}")
    assert [model.invoke("call").text for _ in range(2)] == ["call 1", "call 2"]


def test_errors_are_raised_and_counted() -> None:
    model = ScriptedModel([ConnectionError("reset"), "fine"])
    with pytest.raises(ConnectionError, match="reset"):
        model.invoke("x")
    assert (model.invoke("x").text, model.calls, len(model.answers)) == ("fine", 2, 1)


def test_tools_are_bound_without_changing_the_model() -> None:
    model = ScriptedModel(SCRIPT)
    bound = model.bind_tools([look], tool_choice="any")
    assert bound.kwargs["tools"][0]["function"]["name"] == "look"  # type: ignore[attr-defined]
    assert bound.invoke("x").tool_calls
    assert model.calls == 1


def test_calls_are_counted_across_threads() -> None:
    model = ScriptedModel(lambda _, number: str(number))
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: model.invoke("x").text, range(200)))
    assert sorted(answers, key=int) == [str(number) for number in range(1, 201)]


def test_a_clock_moves_only_when_told_and_never_back() -> None:
    clock = ManualClock(5)
    assert clock() == clock() == 5.0
    assert clock.advance(0.5) == clock() == 5.5
    with pytest.raises(ValueError, match="cannot go back"):
        clock.advance(-1)
    with pytest.raises(ValueError, match="0 seconds or more"):
        ManualClock(-1)


@pytest.mark.parametrize(
    ("script", "said"),
    [("hello", r"write \[answer\]"), (["a", 3], r"script\[1\] must be"), (7, "a list of answers")],
)
def test_what_is_no_script_is_refused(script: Any, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        ScriptedModel(script)


def test_unknown_options_are_refused_and_known_ones_are_not() -> None:
    with pytest.raises(ConfigError, match="no option repeat; it has repeat_last"):
        ScriptedModel(["a"], repeat=True)
    assert ScriptedModel(["a"], tags=["t"]).tags == ["t"]


@pytest.mark.parametrize("call", ["look", ("look",), ("look", "x"), ({}, "look")])
def test_what_is_no_call_is_refused(call: Any) -> None:
    with pytest.raises(ConfigError, match="pairs of a tool name and arguments"):
        asks_for(call)

"""Reading chat messages of any provider."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, ToolMessage

from shearpin.adapters import messages as m
from shearpin.adapters.signals import HardStop, Stop, stop_in
from shearpin.events import Usage
from shearpin.verdicts import Halt

HALT = Halt("loop:repeat", "stopped")
CALLS: Any = [
    {"name": "a", "args": {}, "id": "1"},
    {"name": "b", "args": {"x": 1}, "id": "2"},
]


@pytest.mark.parametrize(
    ("given", "opens"),
    [
        ({"messages": [("user", "hi")]}, True),
        ({"messages": "hi"}, True),
        ({"messages": [{"role": "user", "content": "hi"}]}, True),
        ({"messages": {"role": "user", "content": "hi"}}, True),
        ({"messages": [HumanMessage("hi")]}, True),
        ([HumanMessage("hi")], True),
        ("hi", True),
        ({"n": 1}, True),
        ({"messages": []}, True),
        ({"messages": [ToolMessage("x", tool_call_id="1")]}, False),
        ({"messages": [{"role": "tool", "content": "x", "tool_call_id": "1"}]}, False),
        ({"messages": [ToolMessage("x", tool_call_id="1"), HumanMessage("and")]}, True),
        ([ToolMessage("x", tool_call_id="1")], False),
    ],
)
def test_what_opens_a_turn(given: Any, opens: bool) -> None:
    assert m.has_genuine_turn(given) is opens


def test_unanswered_calls_at_the_end() -> None:
    asks = AIMessage("", tool_calls=CALLS)
    answers = [ToolMessage("x", tool_call_id=n) for n in ("1", "2")]
    assert [request.id for request in m.unanswered([asks])] == ["1", "2"]
    assert [request.id for request in m.unanswered([asks, answers[1]])] == ["1"]
    assert m.unanswered([asks, *answers]) == []
    assert m.unanswered([asks, HumanMessage("too late")]) == []
    assert m.unanswered([]) == []


def test_unreadable_arguments_are_requests_too() -> None:
    message = AIMessage(
        "", invalid_tool_calls=[{"name": "a", "args": "{oops", "id": "9", "error": "no JSON"}]
    )
    assert [(r.id, r.name, r.args) for r in m.requests_of(message)] == [("9", "a", "{oops")]
    assert m.unanswered([message])[0].id == "9"


def test_usage_with_all_its_parts() -> None:
    message = AIMessage(
        "x",
        usage_metadata={
            "input_tokens": 10,
            "output_tokens": 5,
            "total_tokens": 15,
            "input_token_details": {"cache_read": 3, "cache_creation": 2},
            "output_token_details": {"reasoning": 4},
        },
    )
    assert m.usage_of(message) == Usage(10, 5, 3, 2, 4)
    assert m.usage_of(AIMessage("x")) is None


def test_text_of_blocks() -> None:
    blocks: Any = [{"type": "text", "text": "a"}, {"type": "image_url"}, "b", 3]
    assert m.content_text(blocks) == "ab"
    assert m.content_text(None) == ""


def test_our_words_are_recognisable_and_the_same_everywhere() -> None:
    word = m.last_word("run", HALT)
    assert word.id == m.last_word_id("run") != m.last_word_id("other")
    assert word.response_metadata == {"shearpin": {"reason": "loop:repeat", "run": "run"}}
    assert m.last_word("run", Halt("x", "")).content


def test_removals() -> None:
    assert m.removes([RemoveMessage(id="1")])
    assert not m.removes([AIMessage("x")])


def test_a_stop_is_found_however_it_is_wrapped() -> None:
    def raised(error: BaseException) -> BaseException:
        try:
            try:
                raise error
            except BaseException as inner:
                raise RuntimeError("wrapped") from inner
        except RuntimeError as outer:
            return outer

    assert stop_in(Stop(HALT)) is HALT
    assert stop_in(HardStop(HALT)) is HALT
    assert stop_in(raised(Stop(HALT))) is HALT
    assert stop_in(ExceptionGroup("several", [ValueError(), raised(Stop(HALT))])) is HALT  # type: ignore[list-item]
    assert stop_in(ValueError()) is None
    interrupt = KeyboardInterrupt()
    interrupt.__context__ = Stop(HALT)
    assert stop_in(interrupt) is None

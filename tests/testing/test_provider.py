"""The strict provider refuses what real providers refuse, and nothing else."""

from __future__ import annotations

import pickle

import pytest
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolCall,
    ToolMessage,
)

from shearpin.testing import ProviderRejectedError, StrictProvider


def asking(*ids: str, text: str = "") -> AIMessage:
    calls = [ToolCall(name="look", args={}, id=identity, type="tool_call") for identity in ids]
    return AIMessage(text, tool_calls=calls)


def answer(identity: str, text: str = "ok") -> ToolMessage:
    return ToolMessage(text, tool_call_id=identity)


SYSTEM, USER = SystemMessage("be brief"), HumanMessage("hello")


@pytest.mark.parametrize(
    "messages",
    [
        [USER],
        [SYSTEM, USER],
        [SYSTEM, SYSTEM, USER],
        [USER, asking("a"), answer("a")],
        [USER, asking("a"), answer("a", "")],
        [USER, asking("a", "b"), answer("b"), answer("a"), HumanMessage("go on")],
        [USER, asking("a"), answer("a"), AIMessage("done"), USER, asking("b"), answer("b")],
        [USER, AIMessage("hi"), HumanMessage([{"type": "text", "text": "look"}])],
    ],
)
def test_what_is_valid_is_answered(messages: list[BaseMessage]) -> None:
    assert StrictProvider(["fine"]).invoke(messages).text == "fine"


@pytest.mark.parametrize(
    ("messages", "complaint"),
    [
        ([], "at least one message"),
        ([SYSTEM], "besides the system message"),
        ([USER, asking("a")], "messages.1: tool call 'a' is not answered"),
        ([USER, asking("a"), HumanMessage("well?"), answer("a")], "'a' is not answered"),
        ([USER, asking("a", "b"), answer("a")], "'b' is not answered"),
        ([USER, answer("a")], "messages.1: tool result 'a' answers no tool call"),
        ([USER, asking("a"), answer("a"), answer("a")], "messages.3: tool result 'a' answers no"),
        ([USER, asking("a"), answer("a"), asking("a"), answer("a")], "not unique"),
        ([USER, asking("a", "a"), answer("a")], "not unique"),
        ([USER, asking(""), answer("")], "is empty or not unique"),
        ([USER, SYSTEM], "messages.1: a system message is only accepted at the start"),
        ([AIMessage("hi"), USER], "messages.0: the first message must be the user's"),
        ([HumanMessage("")], "messages.0: content must not be empty"),
        ([USER, AIMessage(""), USER], "messages.1: content must not be empty"),
        ([HumanMessage([{"type": "text", "text": " "}])], "content must not be empty"),
        ([HumanMessage([])], "content must not be empty"),
    ],
)
def test_what_is_not_valid_is_refused(messages: list[BaseMessage], complaint: str) -> None:
    model = StrictProvider(["fine"])
    with pytest.raises(ProviderRejectedError, match="400 invalid_request_error") as caught:
        model.invoke(messages)
    assert any(complaint in problem for problem in caught.value.complaints)
    assert (caught.value.status_code, model.calls) == (400, 0)


def test_openai_takes_what_only_anthropic_refuses() -> None:
    messages = [USER, SYSTEM, AIMessage(""), USER]
    assert StrictProvider(["fine"], provider="openai").invoke(messages).text == "fine"
    with pytest.raises(ProviderRejectedError):
        StrictProvider(["fine"], provider="anthropic").invoke(messages)


async def test_streams_are_refused_before_the_first_chunk() -> None:
    model = StrictProvider(["fine"])
    with pytest.raises(ProviderRejectedError):
        list(model.stream([USER, asking("a")]))
    with pytest.raises(ProviderRejectedError):
        await model.ainvoke([USER, asking("a")])


def test_the_error_pickles() -> None:
    error = ProviderRejectedError(["messages: wrong"])
    assert pickle.loads(pickle.dumps(error)).complaints == ["messages: wrong"]

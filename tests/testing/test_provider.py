"""The strict provider refuses what real providers refuse, and nothing else."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    InvalidToolCall,
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


def unreadable(identity: str) -> AIMessage:
    call = InvalidToolCall(name="look", args="{", id=identity, error="", type="invalid_tool_call")
    return AIMessage("", invalid_tool_calls=[call])


SYSTEM, USER = SystemMessage("be brief"), HumanMessage("hello")


@pytest.mark.parametrize(
    "messages",
    [
        [USER],
        [SYSTEM, USER],
        [SYSTEM, SYSTEM, USER],
        [USER, asking("a"), answer("a")],
        [USER, asking("a"), answer("a", "")],
        [USER, unreadable("a"), answer("a")],
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
        ([USER, unreadable("a")], "messages.1: tool call 'a' is not answered"),
        ([SystemMessage(""), USER], "system: content must not be empty"),
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
    assert StrictProvider(["fine"], flavour="openai").invoke(messages).text == "fine"
    with pytest.raises(ProviderRejectedError):
        StrictProvider(["fine"], flavour="anthropic").invoke(messages)


async def test_streams_are_refused_before_the_first_chunk() -> None:
    model = StrictProvider(["fine"])
    with pytest.raises(ProviderRejectedError):
        list(model.stream([USER, asking("a")]))
    with pytest.raises(ProviderRejectedError):
        await model.ainvoke([USER, asking("a")])


def test_the_error_pickles() -> None:
    error = ProviderRejectedError(["messages: wrong"])
    assert pickle.loads(pickle.dumps(error)).complaints == ["messages: wrong"]


@pytest.mark.parametrize(
    ("flavour", "messages"),
    [
        ("openai", [SystemMessage(""), USER]),
        ("openai", [USER, asking("a"), answer("a"), asking("a"), answer("a")]),
        ("openai", [SYSTEM]),
        ("anthropic", [USER, HumanMessage("once more")]),
    ],
)
def test_what_one_provider_takes(flavour: Any, messages: list[BaseMessage]) -> None:
    assert StrictProvider(["fine"], flavour=flavour).invoke(messages).text == "fine"


@pytest.mark.parametrize(
    ("flavour", "messages", "words"),
    [
        ("openai", [USER, asking("a")], "did not have response messages: a"),
        ("openai", [USER, answer("a")], "must be a response to a preceeding message"),
        ("openai", [USER, asking("a", "b"), answer("a"), answer("a")], "Duplicate value for 'tool"),
        ("openai", [USER, asking("a", "a"), answer("a")], "Duplicate value for 'tool_call_id'"),
        ("openai", [HumanMessage([])], "Invalid 'messages[0].content': empty array"),
        ("anthropic", [USER, asking("a")], "`tool_use` ids were found without `tool_result`"),
        ("anthropic", [USER, answer("a")], "unexpected `tool_use_id` found"),
        ("anthropic", [USER, asking("a"), answer("a"), asking("a"), answer("a")], "must be unique"),
        ("anthropic", [USER, SYSTEM], 'Unexpected role "system"'),
        ("anthropic", [SystemMessage(""), USER], "system: text content blocks must be non-empty"),
        ("anthropic", [AIMessage("hi"), USER], 'first message must use the "user" role'),
        ("anthropic", [HumanMessage("")], "all messages must have non-empty content"),
        ("anthropic", [SYSTEM], "at least one message is required"),
    ],
)
def test_the_providers_own_kind_of_error(
    flavour: Any, messages: list[BaseMessage], words: str
) -> None:
    sdk = pytest.importorskip(flavour)
    with pytest.raises(sdk.BadRequestError) as caught:
        StrictProvider(["fine"], flavour=flavour).invoke(messages)
    error = caught.value
    assert isinstance(error, ProviderRejectedError)
    assert words in str(error) and str(error).startswith("Error code: 400 - {")
    assert (error.status_code, error.response.status_code) == (400, 400)
    assert error.complaints and error.type == "invalid_request_error"
    body: Any = error.body
    detail = body if flavour == "openai" else body["error"]
    assert words in detail["message"]
    assert pickle.loads(pickle.dumps(error)).complaints == error.complaints


@pytest.mark.parametrize("flavour", ["openai", "anthropic"])
def test_the_error_is_classified_like_a_real_one(flavour: Any) -> None:
    pytest.importorskip(flavour)
    exceptions: Any = pytest.importorskip("langchain_core.exceptions")
    if not hasattr(exceptions, "ModelInvalidRequestError"):
        pytest.skip("this LangChain does not classify errors")
    with pytest.raises(exceptions.ModelInvalidRequestError) as caught:
        StrictProvider(["fine"], flavour=flavour).invoke([USER, asking("a")])
    assert not caught.value.is_retryable


def test_without_the_sdk_the_error_is_our_own(monkeypatch: pytest.MonkeyPatch) -> None:
    from shearpin.testing import provider

    monkeypatch.setitem(__import__("sys").modules, "openai", None)
    provider._kind.cache_clear()
    with pytest.raises(ProviderRejectedError, match="400 invalid_request_error") as caught:
        StrictProvider(["fine"], flavour="openai").invoke([USER, asking("a")])
    assert type(caught.value) is ProviderRejectedError
    provider._kind.cache_clear()

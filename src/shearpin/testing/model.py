"""A chat model with a script: deterministic, offline, counted."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from itertools import count
from threading import Lock
from typing import Any, TypeAlias, cast

from langchain_core.callbacks import (
    AsyncCallbackManagerForLLMRun,
    CallbackManagerForLLMRun,
)
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    ToolCall,
    ToolCallChunk,
    UsageMetadata,
)
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import PrivateAttr

from shearpin.errors import ConfigError

__all__ = ["Answer", "Script", "ScriptEndedError", "ScriptedModel", "asks_for"]

Answer: TypeAlias = "AIMessage | str | BaseException"
"""One prepared answer; an exception is raised instead of given."""

Script: TypeAlias = "Sequence[Answer] | Callable[[Sequence[BaseMessage], int], Answer]"
"""Answers in order, or a function of the request's messages and the 1-based number of the call."""

_CHARACTERS_PER_TOKEN = 4
_TOKENS_PER_MESSAGE = 4
_calls = count(1)


class ScriptEndedError(AssertionError):
    """A model was called more often than its script has answers."""


def asks_for(*calls: tuple[str, Mapping[str, object]], text: str = "") -> AIMessage:
    """An answer that requests tool calls, each a pair of tool name and arguments.

    Ids are unique in this process.

    Raises:
        ConfigError: something is no pair of a name and arguments.

    Example:
        >>> asks_for(("search", {"query": "shear pin"})).tool_calls[0]["name"]
        'search'
    """
    for call in cast("tuple[object, ...]", calls):
        if not _is_pair(call):
            raise ConfigError(
                f"asks_for takes pairs of a tool name and arguments, not {call!r}; write "
                'asks_for(("look", {"path": "."}))'
            )
    return AIMessage(
        content=text,
        tool_calls=[
            ToolCall(name=name, args=dict(args), id=f"call_{next(_calls)}", type="tool_call")
            for name, args in calls
        ],
    )


def _is_pair(call: object) -> bool:
    if not isinstance(call, tuple):
        return False
    parts = cast("tuple[object, ...]", call)
    return len(parts) == 2 and isinstance(parts[0], str) and isinstance(parts[1], Mapping)


class ScriptedModel(BaseChatModel):
    """A chat model that gives prepared answers, in invoke, ainvoke, stream, astream and batch.

    Every answer carries usage: its own, or an estimate from the lengths of the request and the
    answer, so that it grows with the history as a real provider's does. Answers are handed out in
    order to whoever calls; calls are counted across threads and event loops.

    Args:
        script: the answers; see `Script`.
        repeat_last: give the last answer again for ever, with fresh tool-call ids, instead of
            raising `ScriptEndedError`. Off, so that a test notices a call too many.
        model_name: what the model calls itself.
        options: fields of every chat model, such as `callbacks`, `tags` or `name`.

    Raises:
        ConfigError: the script is none, or an option is unknown.

    Example:
        >>> model = ScriptedModel(["hello", "again"])
        >>> model.invoke("hi").content, model.calls
        ('hello', 1)
    """

    repeat_last: bool = False
    model_name: str = "scripted"

    _script: Script = PrivateAttr(default=())
    _lock: Lock = PrivateAttr(default_factory=Lock)
    _requests: list[list[BaseMessage]] = PrivateAttr(default_factory=list[list[BaseMessage]])
    _answers: list[AIMessage] = PrivateAttr(default_factory=list[AIMessage])

    def __init__(
        self,
        script: Script = (),
        *,
        repeat_last: bool = False,
        model_name: str = "scripted",
        **options: object,
    ) -> None:
        _check_script(script)
        unknown = options.keys() - type(self).model_fields.keys()
        if unknown:
            raise ConfigError(
                f"{type(self).__name__} has no option {', '.join(sorted(unknown))}; it has "
                "repeat_last, model_name, and the fields of every chat model"
            )
        fields: dict[str, Any] = {"repeat_last": repeat_last, "model_name": model_name, **options}
        super().__init__(**fields)
        self._script = script

    @property
    def calls(self) -> int:
        """How often the model was called."""
        return len(self._requests)

    @property
    def requests(self) -> list[list[BaseMessage]]:
        """The messages of each call, in order."""
        return [list(request) for request in self._requests]

    @property
    def answers(self) -> list[AIMessage]:
        """The answers given so far, each with its usage."""
        return list(self._answers)

    def bind_tools(
        self,
        tools: Sequence[dict[str, object] | type | Callable[..., object] | BaseTool],
        *,
        tool_choice: str | None = None,
        **kwargs: object,
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """The same model with tools bound; the script decides whether they are called."""
        offered = [convert_to_openai_tool(tool) for tool in tools]
        if tool_choice is None:
            return self.bind(tools=offered, **kwargs)
        return self.bind(tools=offered, tool_choice=tool_choice, **kwargs)

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def _next(self, messages: Sequence[BaseMessage]) -> AIMessage:
        """The next answer of the script, which counts as given even where it is an error."""
        self._check(messages)
        # One lock for both: the number of a call is its place in the list.
        with self._lock:
            self._requests.append(list(messages))
            number = len(self._requests)
        answer = self._planned(messages, number)
        if isinstance(answer, BaseException):
            raise answer
        message = AIMessage(content=answer) if isinstance(answer, str) else answer
        given = message.model_copy(
            update={
                "usage_metadata": message.usage_metadata or _estimated(messages, message),
                "response_metadata": {
                    "model_name": self.model_name,
                    "finish_reason": "tool_calls" if message.tool_calls else "stop",
                    **message.response_metadata,
                },
            }
        )
        with self._lock:
            self._answers.append(given)
        return given

    def _check(self, messages: Sequence[BaseMessage]) -> None:
        """Where a stricter provider looks at the request; the plain one takes everything."""

    def _planned(self, messages: Sequence[BaseMessage], number: int) -> Answer:
        if callable(self._script):
            return self._script(messages, number)
        answers = self._script
        if number <= len(answers):
            return answers[number - 1]
        if not (self.repeat_last and answers):
            raise ScriptEndedError(
                f"the script has {len(answers)} answer(s), and this is call {number}; "
                "add answers, or set repeat_last=True"
            )
        last = answers[-1]
        if isinstance(last, AIMessage) and last.tool_calls:
            renewed = [{**call, "id": f"call_{next(_calls)}"} for call in last.tool_calls]
            return last.model_copy(update={"tool_calls": renewed})
        return last

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self._next(messages))])

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self._next(messages))])

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        for chunk in _chunks(self._next(messages)):
            if run_manager is not None:
                run_manager.on_llm_new_token(chunk.text, chunk=chunk)
            yield chunk

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        for chunk in _chunks(self._next(messages)):
            if run_manager is not None:
                await run_manager.on_llm_new_token(chunk.text, chunk=chunk)
            yield chunk


def _check_script(script: object) -> None:
    if callable(script):
        return
    if isinstance(script, str) or not isinstance(script, Sequence):
        raise ConfigError(
            f"a script is a list of answers or a function, not {script!r}; for one answer write "
            "[answer]"
        )
    for place, answer in enumerate(cast("Sequence[object]", script)):
        if not isinstance(answer, (AIMessage, str, BaseException)):
            raise ConfigError(
                f"script[{place}] must be an AIMessage, a text or an exception, not {answer!r}"
            )


def _chunks(message: AIMessage) -> Iterable[ChatGenerationChunk]:
    """The answer as a provider streams it: word by word, then the tool calls, then the usage."""
    words = message.text.split(" ")
    parts = [word + " " for word in words[:-1]] + words[-1:]
    for part in parts:
        if part:
            yield ChatGenerationChunk(message=AIMessageChunk(content=part, id=message.id))
    for index, call in enumerate(message.tool_calls):
        asked = ToolCallChunk(
            name=call["name"],
            args=json.dumps(call["args"]),
            id=call["id"],
            index=index,
            type="tool_call_chunk",
        )
        yield ChatGenerationChunk(
            message=AIMessageChunk(content="", id=message.id, tool_call_chunks=[asked])
        )
    yield ChatGenerationChunk(
        message=AIMessageChunk(
            content="",
            id=message.id,
            usage_metadata=message.usage_metadata,
            response_metadata=message.response_metadata,
            chunk_position="last",
        )
    )


def _estimated(messages: Sequence[BaseMessage], answer: AIMessage) -> UsageMetadata:
    spent = sum(_tokens(message) for message in messages)
    made = _tokens(answer)
    return UsageMetadata(input_tokens=spent, output_tokens=made, total_tokens=spent + made)


def _tokens(message: BaseMessage) -> int:
    length = len(str(message.content))
    if isinstance(message, AIMessage):
        length += sum(len(call["name"]) + len(str(call["args"])) for call in message.tool_calls)
    return _TOKENS_PER_MESSAGE + length // _CHARACTERS_PER_TOKEN

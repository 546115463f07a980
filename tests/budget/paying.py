"""A provider that counts what it is truly paid, and agents that spend at it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from threading import Lock
from typing import Any

from langchain.agents import create_agent
from langchain_core.callbacks import (
    AsyncCallbackManagerForLLMRun,
    CallbackManagerForLLMRun,
)
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool, tool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from pydantic import PrivateAttr

from shearpin.testing import asks_for

PRICE = {"input": "10", "output": "30"}
"""Dollars per million tokens: 10 and 30 millionths of a dollar per token."""

Script = Callable[[Sequence[BaseMessage], int], "AIMessage | str | BaseException"]


class Paid(BaseChatModel):
    """A model whose calls are paid for by true tokens: words of the prompt and of the answer.

    An answer is never longer than `max_tokens` (of the model, or of the call), as with a real
    provider. `reports` is whether usage is told. What was paid is in `micros`.
    """

    max_tokens: int | None = 60
    reports: bool = True
    model_name: str = "paid"

    _script: Script = PrivateAttr()
    _lock: Lock = PrivateAttr(default_factory=Lock)
    _bills: list[tuple[int, int]] = PrivateAttr(default_factory=list[tuple[int, int]])
    _attempts: int = PrivateAttr(default=0)
    _bounds: list[int | None] = PrivateAttr(default_factory=list["int | None"])

    def __init__(self, script: Script, **options: Any) -> None:
        super().__init__(**options)
        self._script = script

    @property
    def _llm_type(self) -> str:
        return "paid"

    @property
    def calls(self) -> int:
        """Calls that were begun, failed ones included."""
        return self._attempts

    @property
    def tokens(self) -> int:
        """Tokens that were truly used."""
        return sum(into + out for into, out in self._bills)

    @property
    def micros(self) -> int:
        """What was truly paid, in millionths of a dollar."""
        return sum(10 * into + 30 * out for into, out in self._bills)

    @property
    def bounds(self) -> list[int | None]:
        """The limit on the answer that each call came with."""
        return list(self._bounds)

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Runnable[Any, AIMessage]:
        return self.bind(tools=[convert_to_openai_tool(each) for each in tools], **kwargs)

    def _get_ls_params(self, stop: list[str] | None = None, **kwargs: Any) -> Any:
        params: dict[str, Any] = {"ls_provider": "paid", "ls_model_name": self.model_name}
        bound = kwargs.get("max_tokens", self.max_tokens)
        if bound is not None:
            params["ls_max_tokens"] = bound
        return params

    def _answer(
        self, messages: Sequence[BaseMessage], bound: int | None, *, piecemeal: bool = False
    ) -> AIMessage:
        with self._lock:
            self._attempts += 1
            number = self._attempts
            self._bounds.append(bound)
        planned = self._script(messages, number)
        if isinstance(planned, BaseException):
            raise planned
        answer = AIMessage(planned) if isinstance(planned, str) else planned
        into = sum(_words(message) for message in messages)
        out = _words(answer)
        if bound is not None and out > bound:
            answer = AIMessage(" ".join(answer.text.split()[:bound]))
            out = bound
        with self._lock:
            self._bills.append((into, 0 if piecemeal else out))
        usage = {"input_tokens": into, "output_tokens": out, "total_tokens": into + out}
        return answer.model_copy(update={"usage_metadata": usage if self.reports else None})

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        answer = self._answer(messages, kwargs.get("max_tokens", self.max_tokens))
        return ChatResult(generations=[ChatGeneration(message=answer)])

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        yield from self._pieces(messages, kwargs.get("max_tokens", self.max_tokens))

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        for chunk in self._pieces(messages, kwargs.get("max_tokens", self.max_tokens)):
            yield chunk

    def _pieces(
        self, messages: Sequence[BaseMessage], bound: int | None
    ) -> Iterator[ChatGenerationChunk]:
        """A stream is paid for by what was sent of it."""
        answer = self._answer(messages, bound, piecemeal=True)
        chunks = list(_chunks(answer))
        out = min(_words(answer), bound or 10**9)
        paid = 0
        for number, chunk in enumerate(chunks, 1):
            made = out if number == len(chunks) else min(number, out)
            with self._lock:
                self._bills.append((0, made - paid))
            paid = made
            yield chunk


def _chunks(answer: AIMessage) -> Iterator[ChatGenerationChunk]:
    for word in answer.text.split():
        yield ChatGenerationChunk(message=AIMessageChunk(content=word + " "))
    rest = AIMessageChunk(
        content="",
        tool_call_chunks=[
            {"name": c["name"], "args": "{}", "id": c["id"], "index": n, "type": "tool_call_chunk"}
            for n, c in enumerate(answer.tool_calls)
        ],
        usage_metadata=answer.usage_metadata,
        chunk_position="last",
    )
    yield ChatGenerationChunk(message=rest)


def _words(message: BaseMessage) -> int:
    words = len(message.text.split()) + 3
    if isinstance(message, AIMessage):
        words += 8 * len(message.tool_calls)
    return words


class Counter:
    """A tool that counts how often it was run."""

    def __init__(
        self, name: str = "search", result: str = "some words of a result", *, counted: bool = True
    ) -> None:
        self.runs = 0
        self._lock = Lock()

        def run(query: str = "") -> str:
            with self._lock:
                self.runs += 1
                return f"{result} {self.runs}" if counted else result

        run.__name__ = name
        self.tool: BaseTool = tool(run, description="Looks something up.")


def always_asks(name: str = "search", times: int = 1) -> Script:
    """A model that asks for a tool, with new arguments each time, for ever."""

    def script(messages: Sequence[BaseMessage], number: int) -> AIMessage:
        return asks_for(*[(name, {"query": f"{number}.{n}"}) for n in range(times)])

    return script


def react(model: BaseChatModel, *tools: BaseTool, saver: InMemorySaver | None = None) -> Any:
    """An agent as a graph of its own: a model node, a tool node."""
    bound = model.bind_tools(list(tools))
    graph = StateGraph(MessagesState)
    graph.add_node("agent", lambda state: {"messages": [bound.invoke(state["messages"])]})
    graph.add_node("tools", ToolNode(list(tools)))
    graph.add_edge(START, "agent")
    graph.add_conditional_edges("agent", tools_condition)
    graph.add_edge("tools", "agent")
    return graph.compile(checkpointer=saver)


def agent(model: BaseChatModel, *tools: BaseTool, saver: InMemorySaver | None = None) -> Any:
    """The same, by `create_agent`."""
    return create_agent(model, list(tools), checkpointer=saver)


HELLO: dict[str, Any] = {"messages": [("user", "find it")]}

"""Chat models that answer from a script, the same on every run."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.utils.function_calling import convert_to_openai_tool

Reply = Callable[[Sequence[BaseMessage]], AIMessage]


class ScriptedModel(BaseChatModel):
    """Answers with a function of the request; streams prose word by word."""

    reply: Reply

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Any:
        """Accept any tools: the script knows which to call."""
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools])

    def _answer(self, messages: Sequence[BaseMessage]) -> AIMessage:
        answer = self.reply(messages)
        words = len(str(answer.content).split())
        seen = sum(len(str(message.content).split()) for message in messages)
        usage = UsageMetadata(input_tokens=seen, output_tokens=words, total_tokens=seen + words)
        return answer.model_copy(update={"usage_metadata": usage})

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self._answer(messages))])

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        answer = self._answer(messages)
        for word in str(answer.content).split():
            chunk = ChatGenerationChunk(message=AIMessageChunk(content=word + " "))
            if run_manager:
                run_manager.on_llm_new_token(word, chunk=chunk)
            yield chunk
        last = AIMessageChunk(
            content="",
            usage_metadata=answer.usage_metadata,
            tool_call_chunks=[
                {"name": c["name"], "args": json.dumps(c["args"]), "id": c["id"], "index": i}
                for i, c in enumerate(answer.tool_calls)
            ],
        )
        yield ChatGenerationChunk(message=last)


def call(name: str, id: str, **args: object) -> dict[str, Any]:
    """A tool call as a message carries it."""
    return {"name": name, "args": args, "id": id, "type": "tool_call"}


def script(*answers: AIMessage | str) -> ScriptedModel:
    """A model whose n-th answer in a turn is the n-th given.

    A turn begins with the last human message; what comes after the last answer repeats it.
    """

    def reply(messages: Sequence[BaseMessage]) -> AIMessage:
        turn = 0
        for message in reversed(messages):
            if message.type == "human":
                break
            turn += message.type == "ai"
        answer = answers[min(turn, len(answers) - 1)]
        return AIMessage(answer) if isinstance(answer, str) else answer

    return ScriptedModel(reply=reply)

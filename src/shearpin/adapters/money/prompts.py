"""How large a prompt is, measured before it is sent; and how large its answer can become.

Contract: work grows with what is new since the speaker's last call, not with the whole history, as
long as the history is carried on as it was. Nothing here raises on odd messages.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib import import_module
from threading import Lock
from typing import Any, Final, NamedTuple, cast

from langchain_core.messages import AIMessage, BaseMessage

from shearpin.adapters.money.tokenizing import Counter, counter_for
from shearpin.core.estimate import ProviderRates, rates_of, text_tokens

__all__ = ["ASSUMED_OUTPUT", "OutputBound", "Prompts", "answer_tokens", "output_bound"]

ASSUMED_OUTPUT: Final = 4_096
"""Output tokens that are set aside where neither the call nor the catalogue names a maximum."""

_SPEAKERS: Final = 64
_BOUNDS: Final = (
    "max_tokens",
    "max_completion_tokens",
    "max_output_tokens",
    "max_tokens_to_sample",
    "max_new_tokens",
    "num_predict",
)
_TEXTS: Final = ("text", "thinking", "reasoning", "input", "arguments", "partial_json")
_IMAGES: Final = frozenset({"image", "image_url", "input_image"})
_PROFILES: Final = {
    "openai": "langchain_openai",
    "azure": "langchain_openai",
    "anthropic": "langchain_anthropic",
    "google_genai": "langchain_google_genai",
    "google_vertexai": "langchain_google_vertexai",
    "mistralai": "langchain_mistralai",
    "groq": "langchain_groq",
}


class _Known(NamedTuple):
    """How far a speaker's history has been measured."""

    size: int
    first: object
    last: object
    tokens: float


class Prompts:
    """Measures the prompts of a run; remembers per speaker how far it got."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, _Known] = OrderedDict()
        self._tools: OrderedDict[int, tuple[object, float]] = OrderedDict()
        self._lock = Lock()

    def measure(
        self,
        speaker: str,
        messages: Sequence[BaseMessage],
        offered: object,
        provider: str | None,
        model: str | None = None,
    ) -> float:
        """Tokens of a prompt, guessed high.

        Args:
            speaker: whose history this is.
            messages: the prompt.
            offered: the definitions of the tools that go with it.
            provider: LangChain's name of the provider.
            model: its name, for an exact count where that can be had.
        """
        rates = rates_of(provider)
        count = counter_for(provider, model, text_tokens) or text_tokens
        known = self._known.get(speaker)
        start, tokens = 0, 3.0
        if known is not None and _goes_on(known, messages):
            start, tokens = known.size, known.tokens
        for message in messages[start:]:
            tokens += _message_tokens(message, rates, count)
        with self._lock:
            if messages:
                self._known[speaker] = _Known(len(messages), messages[0], messages[-1], tokens)
                self._known.move_to_end(speaker)
                if len(self._known) > _SPEAKERS:
                    self._known.popitem(last=False)
        return tokens + self._tool_tokens(offered, rates, count)

    def _tool_tokens(self, offered: object, rates: ProviderRates, count: Counter) -> float:
        if not offered:
            return 0.0
        found = self._tools.get(id(offered))
        if found is not None and found[0] is offered:
            return found[1]
        tokens = count(_json(offered)) * rates.scale + rates.tools
        with self._lock:
            # The definitions are kept too, so that their identity is not given to others.
            self._tools[id(offered)] = (offered, tokens)
            if len(self._tools) > _SPEAKERS:
                self._tools.popitem(last=False)
        return tokens


def _goes_on(known: _Known, messages: Sequence[BaseMessage]) -> bool:
    if len(messages) < known.size:
        return False
    return _same(messages[0], known.first) and _same(messages[known.size - 1], known.last)


def _same(message: BaseMessage, other: object) -> bool:
    if message is other:
        return True
    name = message.id
    return name is not None and name == getattr(other, "id", None) and message == other


def _message_tokens(message: BaseMessage, rates: ProviderRates, count: Counter) -> float:
    tokens = rates.message + rates.scale * count(message.name or "")
    tokens += _content_tokens(cast("object", message.content), rates, count)  # pyright: ignore[reportUnknownMemberType]
    if isinstance(message, AIMessage):
        for call in (*message.tool_calls, *message.invalid_tool_calls):
            tokens += rates.message + rates.scale * count(_called(call))
    return tokens


def _called(call: Mapping[str, Any]) -> str:
    return f"{call['name']} {_json(call['args'])}"


def _content_tokens(content: object, rates: ProviderRates, count: Counter) -> float:
    if isinstance(content, str):
        return rates.scale * count(content)
    if not isinstance(content, list):
        return 0.0
    tokens = 0.0
    for block in cast("list[object]", content):
        if isinstance(block, str):
            tokens += rates.scale * count(block)
        elif isinstance(block, dict):
            tokens += _block_tokens(cast("dict[str, object]", block), rates, count)
    return tokens


def _block_tokens(block: dict[str, object], rates: ProviderRates, count: Counter) -> float:
    kind = block.get("type")
    if kind in _IMAGES:
        return rates.image
    texts = [value for name in _TEXTS if isinstance(value := block.get(name), str)]
    if texts:
        return sum(rates.scale * count(text) for text in texts)
    inner = block.get("content")
    if isinstance(inner, (str, list)):
        return _content_tokens(cast("object", inner), rates, count)
    if kind == "tool_use":  # counted as a tool call already
        return 0.0
    # Sound, films and files: providers read them at far fewer tokens than the encoding has letters.
    return rates.image + len(_json(block)) / 6


def _json(value: object) -> str:
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False, default=str)
    except (TypeError, ValueError):
        return str(value)


def answer_tokens(text: str, calls: Sequence[Any], provider: str | None) -> int:
    """Tokens of an answer of which the provider did not say the size."""
    rates = rates_of(provider)
    tokens = text_tokens(text) + sum(text_tokens(f"{call[1]} {_json(call[2])}") for call in calls)
    return int(rates.scale * tokens) + 1 if tokens else 0


class OutputBound(NamedTuple):
    """How many tokens an answer can have, and whether that is certain."""

    tokens: int
    certain: bool


def output_bound(
    params: Mapping[str, object], metadata: Mapping[str, object], model: str | None
) -> OutputBound:
    """The model's own limit, else the catalogue's, else an assumption that is no bound."""
    for name in _BOUNDS:
        value = params.get(name)
        if type(value) is int and value > 0:
            return OutputBound(value, True)
    value = metadata.get("ls_max_tokens")
    if type(value) is int and value > 0:
        return OutputBound(value, True)
    provider = metadata.get("ls_provider")
    if model and isinstance(provider, str):
        most = _catalogued(provider, model)
        if most:
            return OutputBound(most, True)
    return OutputBound(ASSUMED_OUTPUT, False)


@lru_cache(maxsize=256)
def _catalogued(provider: str, model: str) -> int | None:
    """The most output tokens that LangChain's own model profiles name; None where they do not."""
    package = _PROFILES.get(provider)
    if package is None:
        return None
    try:
        profiles = cast("Any", import_module(f"{package}.data._profiles"))._PROFILES
        most: object = cast("dict[str, dict[str, object]]", profiles)[model]["max_output_tokens"]
    except (ImportError, AttributeError, KeyError):
        return None
    return most if type(most) is int and most > 0 else None

"""The forms in which hosts and providers write usage down, brought to one set of counts.

Known forms: LangChain's `usage_metadata`; raw OpenAI (chat and responses, and those who copy it),
Anthropic, Bedrock Converse, Google, Cohere, DeepSeek and Ollama. Nothing is interpreted here: what
the counts mean together is `shearpin.pricing.reading`'s business.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, cast

__all__ = ["Reported", "reported"]

_TIER_PREFIXES = ("priority", "flex")
_TOOL_NAMES = {"web_search_requests": "web_search", "web_fetch_requests": "web_fetch"}
_NOTHING: Mapping[str, object] = {}
_LANGCHAIN = {
    "input_tokens",
    "output_tokens",
    "total_tokens",
    "input_token_details",
    "output_token_details",
}


class Reported(NamedTuple):
    """The counts of a report as they stand there; `inputs` to `total` are None where missing."""

    inputs: int | None
    outputs: int | None
    total: int | None
    cache_read: int = 0
    cache_write: int = 0
    cache_write_5m: int = 0
    cache_write_1h: int = 0
    reasoning: int = 0
    audio_input: int = 0
    audio_cached: int = 0
    audio_output: int = 0
    image_output: int = 0
    cache_is_apart: bool = False
    thoughts_apart: int = 0
    tool_prompt: int = 0
    tools: Mapping[str, int] = {}
    service_tier: str | None = None
    invalid: bool = False


def reported(raw: Mapping[str, object]) -> Reported:
    """The counts in a raw report of any known form."""
    if raw.keys() <= _LANGCHAIN:
        return _langchain(raw)
    if "usage_metadata" in raw and not any("token" in key.lower() for key in raw):
        return reported(_mapping(raw["usage_metadata"]))
    if "billed_units" in raw:
        return reported(_mapping(raw["billed_units"]))
    return _provider(raw)


def _langchain(raw: Mapping[str, object]) -> Reported:
    """The form of the hot path: LangChain's own, with its service tiers as prefixes."""
    ins = _mapping(raw.get("input_token_details"))
    outs = _mapping(raw.get("output_token_details"))
    read = _Reader()
    tier = _prefixed_tier(ins) or _prefixed_tier(outs)
    at = f"{tier}_" if tier else ""
    return Reported(
        read.count(raw.get("input_tokens")),
        read.count(raw.get("output_tokens")),
        read.count(raw.get("total_tokens")),
        read.sure(ins.get("cache_read") or ins.get(f"{at}cache_read")),
        read.sure(ins.get("cache_creation") or ins.get(f"{at}cache_creation")),
        read.sure(ins.get("ephemeral_5m_input_tokens")),
        read.sure(ins.get("ephemeral_1h_input_tokens")),
        read.sure(outs.get("reasoning") or outs.get(f"{at}reasoning")),
        read.sure(ins.get("audio")),
        0,
        read.sure(outs.get("audio")),
        read.sure(outs.get("image")),
        service_tier=tier,
        invalid=read.invalid,
    )


def _provider(raw: Mapping[str, object]) -> Reported:
    """What providers send. The keys of the forms are disjoint but for their common ones."""
    read = _Reader()
    ins = _first(raw, "prompt_tokens_details", "input_tokens_details", "input_token_details")
    outs = _first(raw, "completion_tokens_details", "output_tokens_details", "output_token_details")
    split = _first(raw, "cache_creation")
    server = _first(raw, "server_tool_use")
    uses = {tool: read.sure(server.get(key)) for key, tool in _TOOL_NAMES.items()}
    tier = raw.get("service_tier")
    anthropic = "prompt_tokens" not in raw and bool(
        split or raw.keys() & {"cache_read_input_tokens", "cache_creation_input_tokens"}
    )
    return Reported(
        read.any(raw, "input_tokens", "prompt_tokens", "inputTokens", "prompt_token_count",
                 "promptTokenCount", "prompt_eval_count"),
        read.any(raw, "output_tokens", "completion_tokens", "outputTokens",
                 "candidates_token_count", "candidatesTokenCount", "eval_count"),
        read.any(raw, "total_tokens", "totalTokens", "total_token_count", "totalTokenCount"),
        read.any(ins, "cached_tokens", "cache_read")
        or read.any(raw, "cache_read_input_tokens", "cacheReadInputTokens", "cached_tokens",
                    "cached_content_token_count", "cachedContentTokenCount",
                    "prompt_cache_hit_tokens")
        or 0,
        read.any(ins, "cache_write_tokens", "cache_creation")
        or read.any(raw, "cache_creation_input_tokens", "cacheWriteInputTokens")
        or 0,
        read.any(split, "ephemeral_5m_input_tokens")
        or read.any(ins, "ephemeral_5m_input_tokens")
        or 0,
        read.any(split, "ephemeral_1h_input_tokens")
        or read.any(ins, "ephemeral_1h_input_tokens")
        or 0,
        read.any(outs, "reasoning_tokens", "thinking_tokens", "reasoning") or 0,
        read.any(ins, "audio_tokens", "audio")
        or read.modality(raw, "AUDIO", "prompt_tokens_details", "promptTokensDetails"),
        read.modality(raw, "AUDIO", "cache_tokens_details", "cacheTokensDetails"),
        read.any(outs, "audio_tokens", "audio")
        or read.modality(raw, "AUDIO", "candidates_tokens_details", "candidatesTokensDetails"),
        read.modality(raw, "IMAGE", "candidates_tokens_details", "candidatesTokensDetails"),
        anthropic or "inputTokens" in raw,
        read.any(raw, "thoughts_token_count", "thoughtsTokenCount") or 0,
        read.any(raw, "tool_use_prompt_token_count", "toolUsePromptTokenCount") or 0,
        {tool: times for tool, times in uses.items() if times},
        tier.lower() if isinstance(tier, str) and tier else None,
        read.invalid,
    )  # fmt: skip


class _Reader:
    """Reads counts, and remembers whether one was none."""

    __slots__ = ("invalid",)

    def __init__(self) -> None:
        self.invalid = False

    def count(self, value: object) -> int | None:
        if value is None:
            return None
        if type(value) is int and value >= 0:
            return value
        if isinstance(value, float) and value.is_integer() and value >= 0:
            return int(value)
        self.invalid = True
        return 0

    def sure(self, value: object) -> int:
        return self.count(value) or 0

    def any(self, raw: Mapping[str, object], *keys: str) -> int | None:
        for key in keys:
            value = raw.get(key)
            if value is not None:
                return self.count(value)
        return None

    def modality(self, raw: Mapping[str, object], modality: str, *keys: str) -> int:
        """Google lists tokens by modality: `[{"modality": "AUDIO", "token_count": 5}]`."""
        tokens = 0
        for key in keys:
            entries = raw.get(key)
            if isinstance(entries, list | tuple):
                for entry in cast("list[object]", entries):
                    fields = _mapping(entry)
                    if str(fields.get("modality", "")).rpartition(".")[2].upper() == modality:
                        tokens += self.any(fields, "token_count", "tokenCount") or 0
        return tokens


def _prefixed_tier(details: Mapping[str, object]) -> str | None:
    for key in details:
        if key.startswith(_TIER_PREFIXES):
            return key.partition("_")[0]
    return None


def _first(raw: Mapping[str, object], *keys: str) -> Mapping[str, object]:
    for key in keys:
        found = raw.get(key)
        if isinstance(found, Mapping) and found:
            return cast("Mapping[str, object]", found)
    return _NOTHING


def _mapping(value: object) -> Mapping[str, object]:
    return cast("Mapping[str, object]", value) if isinstance(value, Mapping) else _NOTHING

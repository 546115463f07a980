"""What a model call has used, from whatever the provider and LangChain tell of it.

Contract: reported usage counts, cumulative reports in a stream are recognised, hits in LangChain's
cache cost nothing; what was not reported is estimated from the texts and marked, never taken as 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, cast

from langchain_core.messages import BaseMessage
from langchain_core.outputs import ChatGeneration, Generation, LLMResult

from shearpin.adapters.messages import content_text, requests_of, usage_in
from shearpin.adapters.money.prompts import answer_tokens
from shearpin.events import Usage
from shearpin.pricing import TokenUsage, read_usage

__all__ = ["Chunks", "Failure", "Outcome", "estimated", "fact_usage", "failure_of", "outcome_of"]


class Chunks:
    """The usage reports in one stream: parts to be added, or each the whole so far."""

    __slots__ = ("_first", "_last", "_rising", "count", "last")

    def __init__(self) -> None:
        self.count = 0
        self.last: Mapping[str, object] | None = None
        self._first = 0
        self._last = -1
        self._rising = True

    def take(self, usage: Mapping[str, object]) -> None:
        """One more report."""
        into, out = usage.get("input_tokens"), usage.get("output_tokens")
        into, out = (into if isinstance(into, int) else 0), (out if isinstance(out, int) else 0)
        if self.count == 0:
            self._first = into
        self._rising = self._rising and into == self._first > 0 and out >= self._last
        self._last = out
        self.count += 1
        self.last = usage

    @property
    def whole(self) -> Mapping[str, object] | None:
        """The last report, if each one was the whole so far; None if they are parts.

        *Source*: langchain-ai/langchainjs#10159: fifty reports of input 10 and output 1 to 50 were
        added up to 500 and 1,275.
        """
        return self.last if self.count > 1 and self._rising else None


class Outcome(NamedTuple):
    """What a model answered and used.

    Attributes:
        message: of a chat model.
        text: the prose.
        usage: tokens by kind; None where nothing was reported.
        cached: whether it came from LangChain's own cache.
        told: the usage as it was told, where it is not priced.
    """

    message: BaseMessage | None
    text: str
    usage: TokenUsage | None
    cached: bool = False
    told: Usage | None = None


def outcome_of(
    response: LLMResult | None, chunks: Chunks | None, *, priced: bool = True
) -> Outcome:
    """Read an answer, or what there was of it; only what is `priced` is read by kinds of tokens."""
    first = _first(response)
    message = first.message if isinstance(first, ChatGeneration) else None
    text = content_text(message.content) if message is not None else first.text if first else ""  # pyright: ignore[reportUnknownMemberType]
    raw = _raw_usage(message, response)
    if raw is not None and raw.get("total_cost") == 0:
        return Outcome(message, text, TokenUsage(requests=0), cached=True)
    if chunks is not None and chunks.whole is not None:
        raw = chunks.whole
    if priced:
        return Outcome(message, text, read_usage(raw))
    if raw is None:
        return Outcome(message, text, None)
    known = "input_tokens" in raw
    return Outcome(
        message, text, None, told=usage_in(raw) if known else fact_usage(read_usage(raw))
    )


def _first(response: LLMResult | None) -> Generation | None:
    if response is None or not response.generations or not response.generations[0]:
        return None
    first = response.generations[0][0]
    return cast("Generation", first)


def _raw_usage(
    message: BaseMessage | None, response: LLMResult | None
) -> Mapping[str, object] | None:
    usage = getattr(message, "usage_metadata", None)
    if isinstance(usage, Mapping):
        return cast("Mapping[str, object]", usage)
    output = response.llm_output if response is not None else None
    for key in ("token_usage", "usage"):
        found = (output or {}).get(key)
        if isinstance(found, Mapping) and found:
            return cast("Mapping[str, object]", found)
    return None


def estimated(outcome: Outcome, prompt_tokens: int, provider: str | None) -> TokenUsage:
    """Usage that was not reported, from the texts."""
    calls = requests_of(outcome.message) if outcome.message is not None else ()
    output = answer_tokens(outcome.text, calls, provider)
    return TokenUsage(input=prompt_tokens, output=output, estimated=True)


def fact_usage(usage: TokenUsage | None) -> Usage | None:
    """Usage as a fact tells it: input with the cache, output with the thinking."""
    if usage is None:
        return None
    return Usage(
        usage.prompt_tokens,
        usage.answer_tokens,
        usage.cache_read,
        usage.cache_write_5m + usage.cache_write_1h,
        usage.reasoning,
        usage.estimated,
    )


class Failure(NamedTuple):
    """How a failed call is to be paid for.

    Attributes:
        rejected: the provider has not begun, so nothing is due.
        unknown: it may have done all of the work: what was set aside is kept.
        limited: it was refused because of a rate limit.
    """

    rejected: bool
    unknown: bool
    limited: bool


_UNKNOWN = ("timeout", "cancelled", "generatorexit", "keyboardinterrupt", "timedout")


def failure_of(error: BaseException) -> Failure:
    """What an error says about the bill."""
    status = getattr(error, "status_code", None)
    names = " ".join(kind.__name__.lower() for kind in type(error).__mro__)
    limited = status == 429 or "ratelimit" in names
    if limited or (isinstance(status, int) and 400 <= status < 500 and status not in (408, 499)):
        return Failure(True, False, limited)
    unknown = "connecttimeout" not in names and any(word in names for word in _UNKNOWN)
    return Failure(not unknown, unknown, False)

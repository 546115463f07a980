"""What a model call used: tokens by kind, each token once.

Providers and hosts report the same call in different ways. `shearpin.pricing.reading` brings them
to this form; what did not add up on the way is kept as marks and never raised.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from shearpin.events import Usage

__all__ = ["MARKS", "TokenUsage"]

MARKS: Mapping[str, str] = {
    "input_excludes_cache": "the input count left out the cached tokens; they were added to it",
    "hidden_output": "the total is above input plus output; the difference is billed as output",
    "reasoning_exceeds_output": "more thinking than output was reported; it is billed on top",
    "total_below_parts": "the total is below input plus output; the parts are billed",
    "details_exceed_total": "the details add up to more than the count that holds them",
    "invalid_count": "a count was no whole number or negative, and was taken as 0",
    "service_tier_unpriced": "the service tier has no price; the standard price was taken",
    "tool_unpriced": "a tool that the provider runs was used and has no price",
    "estimated": "the usage is an estimate, not the provider's word",
}
"""What can be remarked about a usage or a cost, in words."""


class TokenUsage(NamedTuple):
    """Tokens of one model call by kind. No token is in two fields.

    Attributes:
        input: prompt tokens without those that have a field of their own.
        cache_read: read from the cache.
        cache_write_5m: written to the cache for five minutes, or for the provider's only duration.
        cache_write_1h: written for one hour.
        audio_input: audio in the prompt, not from the cache.
        audio_cache_read: audio from the cache.
        image_input: images in the prompt, where the provider counts them apart.
        image_cache_read: images from the cache.
        output: answer tokens without those that have a field of their own.
        reasoning: thinking tokens.
        audio_output: audio in the answer.
        image_output: images in the answer.
        requests: how many requests this is the usage of.
        tools: uses of tools that the provider runs, by name.
        service_tier: the tier that served the request; None is the standard one.
        marks: what did not add up; see `MARKS`.
        estimated: whether these are estimates.
    """

    input: int = 0
    cache_read: int = 0
    cache_write_5m: int = 0
    cache_write_1h: int = 0
    audio_input: int = 0
    audio_cache_read: int = 0
    image_input: int = 0
    image_cache_read: int = 0
    output: int = 0
    reasoning: int = 0
    audio_output: int = 0
    image_output: int = 0
    requests: int = 1
    tools: Mapping[str, int] = {}
    service_tier: str | None = None
    marks: tuple[str, ...] = ()
    estimated: bool = False

    @property
    def counts(self) -> tuple[int, ...]:
        """The tokens in `KINDS` order."""
        return self[:12]

    @property
    def prompt_tokens(self) -> int:
        """All tokens of the prompt, cached ones included."""
        return sum(self[:8])

    @property
    def answer_tokens(self) -> int:
        """All tokens of the answer, thinking included."""
        return sum(self[8:12])

    @classmethod
    def from_fact(cls, usage: Usage) -> TokenUsage:
        """The usage that a fact carries: input includes the cache, output the thinking."""
        from shearpin.pricing.reading import read_usage

        read = read_usage(
            {
                "input_tokens": usage.input_tokens,
                "output_tokens": usage.output_tokens,
                "input_token_details": {
                    "cache_read": usage.cache_read_tokens,
                    "cache_creation": usage.cache_write_tokens,
                },
                "output_token_details": {"reasoning": usage.reasoning_tokens},
            },
            estimated=usage.estimated,
        )
        return cls(estimated=usage.estimated) if read is None else read

"""What a call takes at worst, and what has to be left beyond it for a last answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from shearpin.core.estimate import Estimate
from shearpin.core.holds import Amounts

__all__ = [
    "LANDING_NOTE",
    "LANDING_OUTPUT",
    "RESERVED",
    "Cost",
    "kept_back",
    "less",
    "model_amounts",
]

Cost: TypeAlias = Callable[[int, int], int]
"""What a call costs at most, in millionths of a dollar, from its input and output tokens."""

LANDING_OUTPUT: Final = 512
"""Tokens that a last, tool-less answer is expected to need where nothing else is known."""

LANDING_NOTE: Final = 100
"""Tokens of the notice that an answer is the last one, which goes into its prompt."""

RESERVED: Final = ("usd", "tokens", "input_tokens", "output_tokens")
"""Dimensions in which a landing reserve is kept back."""


def model_amounts(
    input_tokens: int, output_tokens: int, usd: int, *, steps: int = 1
) -> dict[str, int]:
    """The amounts of one model call."""
    return {
        "usd": usd,
        "tokens": input_tokens + output_tokens,
        "input_tokens": input_tokens,
        "output_tokens": output_tokens,
        "model_calls": 1,
        "steps": steps,
    }


def kept_back(estimate: Estimate, cost: Cost | None, prompt: int, answer: int) -> Mapping[str, int]:
    """The landing reserve: what has to be left beyond the worst case of this call.

    After its likely course, a last answer without tools, to a prompt of that size, must still be
    affordable at worst.
    """
    into, worst, likely, _ = estimate
    kept = {
        "tokens": max(0, prompt + likely + answer - worst),
        "input_tokens": prompt,
        "output_tokens": max(0, likely + answer - worst),
    }
    if cost is not None:
        money = cost(prompt, answer) if prompt else 0
        kept["usd"] = max(0, cost(into, likely) + money - cost(into, worst))
    return kept


def less(limits: Amounts, kept: Mapping[str, int]) -> Amounts:
    """Limits with the landing reserve taken off."""
    return {name: limit - kept.get(name, 0) for name, limit in limits.items()}

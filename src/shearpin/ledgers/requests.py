"""What a purse is asked and told about model calls."""

from __future__ import annotations

from typing import NamedTuple

from shearpin.core.account import LANDING, Ask
from shearpin.core.books import Exhausted
from shearpin.core.estimate import Estimate
from shearpin.core.holds import Amounts
from shearpin.core.reserve import RESERVED, Cost

__all__ = ["Bill", "Granted", "ModelRequest", "may_land", "without_landing"]


class ModelRequest(NamedTuple):
    """A model call that is about to be made.

    Attributes:
        id: of this very provider call, unique in the run.
        speaker: whose prompts resemble this one; what was learnt of them is used.
        guess: tokens of the prompt as measured from its text.
        output_tokens: that the answer can have at most.
        bounded: whether that is a real bound.
        cost: of tokens, at worst; None where money is not counted.
        agent: whose call it is.
        last: whether it could be the run's final answer.
        steps: 0 where it repeats a call that was counted before.
    """

    id: str
    speaker: str
    guess: float
    output_tokens: int
    bounded: bool = True
    cost: Cost | None = None
    agent: str = "main"
    last: bool = True
    steps: int = 1


class Bill(NamedTuple):
    """What a model call has used.

    Attributes:
        input_tokens, output_tokens: as reported, or estimated.
        usd: in millionths of a dollar; 0 where money is not counted.
        estimated: whether the tokens are a guess, from which nothing is learnt.
        steps: 1 for an answer, 0 for a failure.
    """

    input_tokens: int
    output_tokens: int
    usd: int = 0
    estimated: bool = False
    steps: int = 1


class Granted(NamedTuple):
    """A call may be made.

    Attributes:
        landing: whether it is the last one that its budget allows; names the limit.
        estimate: of a model call's tokens.
    """

    landing: Exhausted | None = None
    estimate: Estimate | None = None


def may_land(ask: Ask, refused: Exhausted) -> bool:
    """Whether a call that was refused may use the landing reserve."""
    return ask.landing is not None and not refused.crowded and refused.dimension in RESERVED


def without_landing(amounts: Amounts) -> Amounts:
    """What was set aside, without the mark of a last answer."""
    return {name: amount for name, amount in amounts.items() if name != LANDING}

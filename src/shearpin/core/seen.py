"""Facts with what the core worked out about them: the input of every probe."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

from shearpin.core.outcomes import Outcome
from shearpin.core.tools import Effect, ToolFacts

__all__ = [
    "NO_FACTS",
    "MessageSeen",
    "ModelSeen",
    "NodeSeen",
    "RoundSeen",
    "Seen",
    "StartSeen",
    "ToolSeen",
    "VectorSeen",
]

NO_FACTS = ToolFacts()


class ToolSeen(NamedTuple):
    """A tool call with its answer.

    Attributes:
        step: model responses seen so far in the session, the step this call belongs to.
        round: rounds of this agent so far; calls of one model response share it.
        idle_at: `at` without the time that models spent thinking, in seconds.
        call_key: digest of tool and identifying arguments.
        result_key: digest of the normalised result.
        novel: this call was not seen before (within the session's memory).
        fresh: this call has not given this result before: it is novel, or its answer has changed.
        work: a novel call that succeeded and changed something.
        epoch: how often the agent had done such work; a repetition counts within one epoch.
    """

    at: float
    idle_at: float
    step: int
    round: int
    agent: str
    tool: str
    call_key: str
    result_key: str
    outcome: Outcome
    effect: Effect
    novel: bool
    fresh: bool
    work: bool
    epoch: int
    facts: ToolFacts
    args: Mapping[str, object] | str
    text: str
    node: str = ""


class StartSeen(NamedTuple):
    """A tool call is about to run; `copies` counts equal calls of its round, itself included."""

    at: float
    step: int
    agent: str
    tool: str
    call_key: str
    copies: int


class ModelSeen(NamedTuple):
    """A model response of either kind; `asks` counts its tool requests.

    Tokens are None where the provider reported none, or the host only estimated them.
    """

    at: float
    step: int
    round: int
    agent: str
    text: str
    asks: int
    input_tokens: int | None
    output_tokens: int | None


class MessageSeen(NamedTuple):
    """A model response without tool calls."""

    at: float
    step: int
    round: int
    agent: str
    node: str
    text: str
    blank: bool


class RoundSeen(NamedTuple):
    """A complete round: one model response with all its tool results, or its text where it had
    none.

    `symbol` is a digest of all that; `calls` are the keys of its calls (at most four are kept).
    `waits` says that it waited or polled; `refused` counts the rounds up to this one in which the
    guard let no call of the agent run.
    """

    at: float
    idle_at: float
    step: int
    agent: str
    symbol: str
    calls: tuple[str, ...]
    tools: tuple[str, ...]
    waits: bool
    refused: int = 0
    node: str = ""


class NodeSeen(NamedTuple):
    """A node has written; `paid` says that a model was called since it wrote last."""

    at: float
    step: int
    agent: str
    node: str
    delta: str
    paid: bool


class VectorSeen(NamedTuple):
    """The embedding of an earlier thought of an agent has arrived."""

    at: float
    step: int
    agent: str
    vector: Sequence[float]


Seen: TypeAlias = StartSeen | ModelSeen | ToolSeen | MessageSeen | RoundSeen | NodeSeen | VectorSeen

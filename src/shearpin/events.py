"""Facts: what happened, in the order it happened.

A fact is small, final and free of host objects: the adapters make facts, the core reads them.
Facts are plain named tuples, because two or more of them are made on every step of a guarded run.

Every fact carries `at`, in seconds on a monotonic clock that the adapter owns. Facts that belong to
a call or a task carry its id, so that a replayed or resumed step is recognised and not counted
twice. Texts (arguments, results, messages) are in the fact only; a session keeps digests of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple, TypeAlias

__all__ = [
    "CallStatus",
    "Fact",
    "HistoryCompacted",
    "ModelCalled",
    "ModelReturned",
    "NodeEntered",
    "NodeLeft",
    "RunEnded",
    "RunOutcome",
    "RunStarted",
    "SignalReceived",
    "ThoughtEmbedded",
    "ToolCalled",
    "ToolRequest",
    "ToolReturned",
    "TurnStarted",
    "Usage",
]

CallStatus: TypeAlias = Literal["success", "error", "unknown_tool", "bad_args", "blocked"]
"""How a call ended. `blocked` is the guard's own refusal; the others are the host's words.

A trace or host that only says `error` is fine: the core recognises unknown tools and invalid
arguments in the text as well.
"""

RunOutcome: TypeAlias = Literal["completed", "stopped", "interrupted", "failed", "cancelled"]


class Usage(NamedTuple):
    """Tokens of one model call, as the provider reported them (or `estimated`)."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    estimated: bool = False


class ToolRequest(NamedTuple):
    """One tool call that a model response asks for.

    `args` is a string where the arguments could not be parsed as JSON.
    """

    id: str
    name: str
    args: Mapping[str, object] | str


class RunStarted(NamedTuple):
    """A run (one user turn with all it sets off) begins, or goes on when `resumed`."""

    at: float
    run: str
    thread: str | None = None
    resumed: bool = False


class RunEnded(NamedTuple):
    """A run came to its end, or to a pause (`interrupted`)."""

    at: float
    run: str
    outcome: RunOutcome


class TurnStarted(NamedTuple):
    """A genuine user message opened a new turn: a new run scope, counters start afresh."""

    at: float
    turn: int


class NodeEntered(NamedTuple):
    """A graph node is about to run. `task` is the host's id of this execution."""

    at: float
    node: str
    task: str
    agent: str = "main"


class NodeLeft(NamedTuple):
    """A graph node has run. `delta` is a digest of what it wrote, None where it wrote nothing."""

    at: float
    node: str
    task: str
    agent: str = "main"
    delta: str | None = None
    status: Literal["success", "error"] = "success"


class ModelCalled(NamedTuple):
    """A model is about to be called. One model response opens one round."""

    at: float
    call: str
    agent: str = "main"
    node: str = ""
    model: str | None = None


class ModelReturned(NamedTuple):
    """A model has answered with prose, tool requests, or both."""

    at: float
    call: str
    agent: str = "main"
    node: str = ""
    text: str = ""
    requests: tuple[ToolRequest, ...] = ()
    usage: Usage | None = None
    model: str | None = None
    status: Literal["success", "error"] = "success"


class ToolCalled(NamedTuple):
    """A tool is about to be run. `args_digest`, where a trace has it, decides equality."""

    at: float
    call: str
    tool: str
    args: Mapping[str, object] | str
    agent: str = "main"
    node: str = ""
    args_digest: str | None = None


class ToolReturned(NamedTuple):
    """A tool call has been answered. Self-contained: it repeats the call's arguments."""

    at: float
    call: str
    tool: str
    args: Mapping[str, object] | str
    result: object
    status: CallStatus = "success"
    agent: str = "main"
    node: str = ""
    args_digest: str | None = None
    result_digest: str | None = None


class HistoryCompacted(NamedTuple):
    """The agent's history was summarised or trimmed: what it repeats now, it may have forgotten."""

    at: float
    agent: str = "main"


class ThoughtEmbedded(NamedTuple):
    """The embedding of something an agent said earlier; it may come late, or never."""

    at: float
    agent: str
    vector: Sequence[float]


class SignalReceived(NamedTuple):
    """Something outside the run spoke: `continue` from a person, or a name of the user's own."""

    at: float
    name: str


Fact: TypeAlias = (
    RunStarted
    | RunEnded
    | TurnStarted
    | NodeEntered
    | NodeLeft
    | ModelCalled
    | ModelReturned
    | ToolCalled
    | ToolReturned
    | HistoryCompacted
    | ThoughtEmbedded
    | SignalReceived
)

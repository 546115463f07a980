"""What a recorded run holds. Valid once it exists: only `shapes.parse_run` builds these.

Named tuples, because a replay makes two of them for every step it reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from shearpin.events import CallStatus, Usage
from shearpin.findings import Severity

__all__ = ["TraceCall", "TraceExpect", "TraceRun", "TraceStep"]


class TraceCall(NamedTuple):
    """One tool call of a step.

    Attributes:
        args: the arguments; the raw text where they were not valid JSON (`_unparsed` in the file).
        answered: False where the recording holds neither a result nor its digest, so that nothing
            is known of how the call ended.
        args_digest: digest of the full original, which the file may have cut; decides equality.
        result_digest: the same for the result.
    """

    id: str
    name: str
    args: Mapping[str, object] | str
    result: object
    status: CallStatus
    answered: bool
    args_digest: str | None
    result_digest: str | None


class TraceStep(NamedTuple):
    """One model response with the tool calls it asked for.

    Attributes:
        turn: count of genuine user messages so far.
        at: seconds since the start; the 1-based step index where the recording has no time.
        compacted: the history was summarised before this step.
        parent: the agent that called this step's agent, if any.
    """

    turn: int
    at: float
    agent: str
    node: str
    text: str
    calls: tuple[TraceCall, ...]
    usage: Usage | None
    compacted: bool
    parent: str | None


class TraceExpect(NamedTuple):
    """What a behaviour case claims about the verdicts on its run.

    Attributes:
        nudge_by, block_by, stop_by: the last step by which a verdict at least that strong must have
            been given; None where nothing is claimed.
        quiet: no verdict at all may be given.
        never: severities that no verdict may reach.
        findings: acceptable families of the first verdict, the expected one first; empty: any.
        why: the author's reason.
    """

    nudge_by: int | None = None
    block_by: int | None = None
    stop_by: int | None = None
    quiet: bool = False
    never: tuple[Severity, ...] = ()
    findings: tuple[str, ...] = ()
    why: str = ""


class TraceRun(NamedTuple):
    """One recorded run.

    Attributes:
        tools: what the author declared about tools: name -> flag -> value.
        raw: the JSON object as it was read, unknown keys included.
        origin: `file:line` where it was read, or empty.
    """

    run: str
    title: str
    outcome: str
    tools: Mapping[str, Mapping[str, bool | None]]
    steps: tuple[TraceStep, ...]
    expect: TraceExpect | None
    raw: Mapping[str, object]
    origin: str = ""

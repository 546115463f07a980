"""Recorded runs from conversations, and files of them.

Contract: what is written is what the messages hold, texts included: whoever records decides what
may be kept. LangChain is not imported: a message is whatever has its attributes, or is a mapping
with the keys of one.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, cast

from shearpin.errors import ConfigError
from shearpin.traces.model import TraceRun
from shearpin.traces.shapes import parse_run

__all__ = ["Outcome", "trace_of", "write_runs"]

Outcome: TypeAlias = Literal["success", "fail", "unknown"]
_OUTCOMES: Final = ("success", "fail", "unknown")
_SPEAKERS: Final = {"human": "human", "user": "human", "ai": "ai", "assistant": "ai"}
_Object = dict[str, object]


def trace_of(
    messages: Iterable[object],
    *,
    run: str,
    outcome: Outcome = "unknown",
    source: str | None = None,
    tools: Mapping[str, Mapping[str, bool]] | None = None,
) -> TraceRun:
    """A recorded run from a conversation, such as the `messages` of a graph's final state.

    Each answer of the model becomes a step; its tool messages become the results of its calls. A
    call without an answer has no result. Messages of the user count turns.

    Args:
        messages: LangChain messages, in order.
        run: name of the run.
        outcome: how it ended, in the judgement of whoever records; `tune` and `compare` need it.
        source: where it comes from (an agent, a model, a team), for `tune`.
        tools: what is declared about tools: name -> `read_only`, `polling`, `idempotent` or
            `destructive` -> true or false.

    Raises:
        ConfigError: the run has no name, the outcome is none, or something is no message.

    Example:
        >>> told = [{"type": "human", "content": "hi"}, {"type": "ai", "content": "hello"}]
        >>> trace_of(told, run="r1", outcome="success").steps[0].text
        'hello'
    """
    if not run:
        raise ConfigError("trace_of needs the name of the run: run='...'")
    if outcome not in _OUTCOMES:
        raise ConfigError(f"outcome must be one of {', '.join(_OUTCOMES)}, not {outcome!r}")
    given: _Object = {"run": run, "outcome": outcome}
    if source is not None:
        given["source"] = source
    if tools is not None:
        given["tools"] = {name: dict(flags) for name, flags in tools.items()}
    return parse_run({**given, "steps": _steps(messages)})


def _steps(messages: Iterable[object]) -> list[_Object]:
    steps: list[_Object] = []
    waiting: dict[str, _Object] = {}
    turn = 0
    for place, message in enumerate(messages):
        kind = _read(message, "type") or _read(message, "role")
        if not isinstance(kind, str):
            raise ConfigError(
                f"messages[{place}] is no message: {type(message).__name__}; give what a graph's "
                "state holds, LangChain messages"
            )
        kind = _SPEAKERS.get(kind.removesuffix("MessageChunk").lower(), kind)
        if kind == "human":
            turn += 1
        elif kind == "ai":
            steps.append(_step(message, max(turn, 1), waiting))
        elif kind == "tool":
            call = waiting.pop(str(_read(message, "tool_call_id")), None)
            if call is not None:
                call["result"] = _plain(_read(message, "content"))
                call["status"] = "error" if _read(message, "status") == "error" else "success"
    return steps


def _step(message: object, turn: int, waiting: dict[str, _Object]) -> _Object:
    calls: list[_Object] = []
    for asked in _calls(message):
        call: _Object = {
            "id": str(_read(asked, "id") or ""),
            "name": str(_read(asked, "name") or "?"),
            "args": _plain(_read(asked, "args")),
        }
        calls.append(call)
        waiting[cast("str", call["id"])] = call
    step: _Object = {"turn": turn, "text": _text(_read(message, "content")), "calls": calls}
    name = _read(message, "name")
    if isinstance(name, str) and name:
        step["agent"] = name
    usage = _read(message, "usage_metadata")
    if usage is not None:
        step["usage"] = {key: _read(usage, key) or 0 for key in ("input_tokens", "output_tokens")}
    return step


def _calls(message: object) -> Sequence[object]:
    """Valid calls, and those whose arguments were no JSON."""
    found: list[object] = []
    for key in ("tool_calls", "invalid_tool_calls"):
        found += cast("Sequence[object]", _read(message, key) or ())
    return found


def _text(content: object) -> str:
    """The prose of a message, whose content may be text or blocks."""
    if isinstance(content, str):
        return content
    if not isinstance(content, (list, tuple)):
        return ""
    parts: list[str] = []
    for block in cast("Sequence[object]", content):
        text = block if isinstance(block, str) else _read(block, "text")
        if isinstance(text, str):
            parts.append(text)
    return "".join(parts)


def _plain(value: object) -> Any:
    """A value as JSON has it; what is none is kept as its text."""
    return json.loads(json.dumps(value, default=str))


def _read(thing: object, key: str) -> object:
    if isinstance(thing, Mapping):
        return cast("Mapping[str, object]", thing).get(key)
    return cast("object", getattr(thing, key, None))


def write_runs(path: str | PathLike[str], runs: Iterable[TraceRun]) -> int:
    """Write runs to a file that `read_runs` and the commands read; an existing one is replaced.

    Args:
        path: the file; gzip where its name ends in `.gz`.
        runs: written one at a time, so that they need not fit into memory.

    Returns:
        How many runs were written.

    Raises:
        OSError: the file cannot be written.
    """
    where = Path(path)
    count = 0
    with gzip.open(where, "wb") if where.suffix == ".gz" else where.open("wb") as out:
        for run in runs:
            line = json.dumps(run.raw, ensure_ascii=False)
            out.write(line.encode("utf-8", "replace") + b"\n")
            count += 1
    return count

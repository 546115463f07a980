"""The shape of a recorded run, checked while it is converted.

One pass: every value is checked where it is used, with the cheapest test that is exact, because a
replay spends a good part of its time here. A wrong value raises `ShapeError`, which names the field
(`steps[3].calls[0].name`) and what belongs there. Unknown keys are ignored.
"""

from __future__ import annotations

from math import isfinite
from typing import Final, cast, get_args

from shearpin.events import CallStatus, Usage
from shearpin.findings import Severity
from shearpin.traces.checks import ShapeError, flag, optional_text, tokens, wrong
from shearpin.traces.model import TraceCall, TraceExpect, TraceRun, TraceStep

__all__ = ["parse_run"]

_STATUSES: Final[frozenset[str]] = frozenset(get_args(CallStatus))
_SEVERITIES: Final = {level.label: level for level in Severity if level is not Severity.NONE}
_NO_CALLS: Final[tuple[TraceCall, ...]] = ()
_Object = dict[str, object]


def parse_run(raw: object, origin: str = "") -> TraceRun:
    """A recorded run from a parsed JSON object.

    Raises:
        ShapeError: a required key is missing or a value has the wrong type.

    Example:
        >>> parse_run({"run": "r1", "steps": [{"text": "hi", "calls": []}]}).steps[0].text
        'hi'
    """
    if type(raw) is not dict:
        wrong("", raw, "a JSON object with `run` and `steps`")
    run = cast("_Object", raw)
    name = run.get("run")
    if type(name) is not str or not name:
        wrong("run", name, "non-empty text", missing="run" not in run)
    steps = run.get("steps")
    if type(steps) is not list:
        wrong("steps", steps, "a list of steps", missing="steps" not in run)
    parsed: list[TraceStep] = []
    position = 0
    try:
        for position, step in enumerate(cast("list[object]", steps), 1):
            parsed.append(_step(step, position))
    except ShapeError as error:
        raise error.under(f"steps[{position - 1}]") from None
    return TraceRun(
        name,
        _text(run, "title"),
        _text(run, "outcome"),
        _tools(run.get("tools")),
        tuple(parsed),
        _expect(run.get("expect")),
        run,
        origin,
    )


def _step(raw: object, position: int) -> TraceStep:
    if type(raw) is not dict:
        wrong("", raw, "an object")
    get = cast("_Object", raw).get
    turn = get("turn", 1)
    if type(turn) is not int or turn < 0:
        wrong("turn", turn, "a whole number, 0 or more")
    at = get("at")
    if type(at) is not float:
        at = _seconds(at, position)
    elif not isfinite(at):
        wrong("at", at, "a finite number of seconds")
    agent = get("agent", "main")
    if type(agent) is not str:
        agent = optional_text("agent", agent) or "main"
    node = get("node", "")
    if type(node) is not str:
        node = optional_text("node", node) or ""
    text = get("text", "")
    if type(text) is not str:
        text = optional_text("text", text) or ""
    parent = get("parent")
    if parent is not None and type(parent) is not str:
        wrong("parent", parent, "text or null")
    compacted = get("compacted", False)
    if type(compacted) is not bool:
        compacted = flag("compacted", compacted) or False
    usage = get("usage")
    return TraceStep(
        turn,
        at,
        agent,
        node,
        text,
        _calls(get("calls")),
        None if usage is None else _usage(usage),
        compacted,
        parent,
    )


def _calls(raw: object) -> tuple[TraceCall, ...]:
    if type(raw) is not list:
        if raw is None:
            return _NO_CALLS
        wrong("calls", raw, "a list of calls")
    calls = cast("list[object]", raw)
    if not calls:
        return _NO_CALLS
    parsed: list[TraceCall] = []
    add = parsed.append
    try:
        for call in calls:
            add(_call(call))
    except ShapeError as error:
        raise error.under(f"calls[{len(parsed)}]") from None
    return tuple(parsed)


def _call(raw: object) -> TraceCall:
    if type(raw) is not dict:
        wrong("", raw, "an object")
    call = cast("_Object", raw)
    get = call.get
    name = get("name")
    if type(name) is not str or not name:
        wrong("name", name, "non-empty text", missing="name" not in call)
    identity = get("id", "")
    if type(identity) is not str:
        identity = optional_text("id", identity) or ""
    args = get("args")
    if type(args) is not dict or "_unparsed" in cast("_Object", args):
        args = _unusual_args(cast("object", args))
    status = get("status", "success")
    if status not in _STATUSES:
        status = _no_status(status)
    args_digest = get("args_digest")
    if args_digest is not None and type(args_digest) is not str:
        wrong("args_digest", args_digest, "text or null")
    result_digest = get("result_digest")
    if result_digest is not None and type(result_digest) is not str:
        wrong("result_digest", result_digest, "text or null")
    return TraceCall(
        identity,
        name,
        cast("_Object | str", args),
        get("result"),
        cast("CallStatus", status),
        "result" in call or result_digest is not None,
        args_digest,
        result_digest,
    )


def _unusual_args(args: object) -> _Object | str:
    """Arguments that are absent, or were not valid JSON."""
    if args is None:
        return {}
    if type(args) is str:
        return args
    if type(args) is list:
        return {"": cast("object", args)}
    if type(args) is not dict:
        wrong("args", args, "an object, a list, or text where the arguments could not be parsed")
    members = cast("_Object", args)
    text = members["_unparsed"]
    return text if type(text) is str and len(members) == 1 else members


def _no_status(status: object) -> CallStatus:
    if status is not None:
        wrong("status", status, "one of " + ", ".join(sorted(_STATUSES)))
    return "success"


def _usage(raw: object) -> Usage:
    if type(raw) is not dict:
        wrong("usage", raw, "an object or null")
    get = cast("_Object", raw).get
    spent = get("input_tokens", 0)
    made = get("output_tokens", 0)
    if type(spent) is not int or spent < 0:
        spent = tokens("usage.input_tokens", spent)
    if type(made) is not int or made < 0:
        made = tokens("usage.output_tokens", made)
    if len(cast("_Object", raw)) <= 2:
        return Usage(spent, made)
    return Usage(
        spent,
        made,
        tokens("usage.cache_read_tokens", get("cache_read_tokens")),
        tokens("usage.cache_write_tokens", get("cache_write_tokens")),
        tokens("usage.reasoning_tokens", get("reasoning_tokens")),
        flag("usage.estimated", get("estimated")) or False,
    )


def _tools(raw: object) -> dict[str, dict[str, bool | None]]:
    if raw is None:
        return {}
    if type(raw) is not dict:
        wrong("tools", raw, "an object: tool name -> what is declared about it")
    tools: dict[str, dict[str, bool | None]] = {}
    for name, flags in cast("_Object", raw).items():
        where = f"tools.{name}"
        if type(flags) is not dict:
            wrong(where, flags, 'an object such as {"read_only": true}')
        declared = cast("_Object", flags)
        tools[name] = {
            key: flag(f"{where}.{key}", value)
            for key, value in declared.items()
            if key in _TOOL_FLAGS
        }
        if tools[name].get("read_only") and tools[name].get("destructive"):
            wrong(where, declared, "read_only or destructive, or neither")
    return tools


_TOOL_FLAGS: Final = frozenset({"read_only", "polling", "idempotent", "destructive"})


def _expect(raw: object) -> TraceExpect | None:
    if raw is None:
        return None
    if type(raw) is not dict:
        wrong("expect", raw, "an object")
    expect = cast("_Object", raw)
    bounds: list[int | None] = []
    for key in ("nudge_by", "block_by", "stop_by"):
        step = expect.get(key)
        if step is not None and (type(step) is not int or step < 1):
            wrong(f"expect.{key}", step, "a step number, 1 or more, or null")
        bounds.append(step)
    never: list[Severity] = []
    for word in _words("expect.never", expect.get("never")):
        if word not in _SEVERITIES:
            wrong("expect.never", word, "made of nudge, block, stop")
        never.append(_SEVERITIES[word])
    findings = _words("expect.findings", expect.get("findings"))
    finding = optional_text("expect.finding", expect.get("finding"))
    if finding is not None and finding not in findings:
        findings = (finding, *findings)
    return TraceExpect(
        *bounds,
        quiet=flag("expect.quiet", expect.get("quiet")) or False,
        never=tuple(never),
        findings=findings,
        why=optional_text("expect.why", expect.get("why")) or "",
    )


def _words(field: str, raw: object) -> tuple[str, ...]:
    if raw is None:
        return ()
    if type(raw) is not list:
        wrong(field, raw, "a list of words")
    words = cast("list[object]", raw)
    for word in words:
        if type(word) is not str:
            wrong(field, word, "made of words")
    return tuple(cast("list[str]", words))


def _seconds(at: object, position: int) -> float:
    if at is None:
        return float(position)
    if type(at) is not int:
        wrong("at", at, "a number of seconds, or null")
    return float(at)


def _text(run: _Object, key: str) -> str:
    return optional_text(key, run.get(key)) or ""

"""How a session's state is written down and read back.

What is read is checked: a value of the wrong type or shape raises `TypeError` or `ValueError`,
which the session turns into one clear error. Findings keep their numbers and names, shortened, and
no text.
"""

from __future__ import annotations

import json
import zlib
from base64 import b64decode, b64encode
from collections.abc import Mapping
from typing import cast

from shearpin.findings import Evidence, Finding, Severity

__all__ = [
    "finding_of",
    "finding_row",
    "flag",
    "mapping",
    "number",
    "pack",
    "row",
    "sequence",
    "text",
    "texts",
    "unpack",
    "whole",
    "wholes",
]

_UNPACKED = 1 << 16
_NAME = 64
_EVIDENCE = 6
_RAW = -15
_KNOWN = (
    b'"nudge","block","half_open","reflecting","open","closed","loop:repeat","unknown_tool","bad_args",'
    b'"error_not_understood","empty_taken_for_failure","same_sequence","answer_not_used","period":'
    b'"semantic_oscillation":[],"dead_end_drift":["0","0",[]],"velocity":[],"paging":[],"ping_pong":[],'
    b'"state_oscillation":[],"litany":[],"insistence":[],"revisits":[],"guesses":[],"echo":[0,[]],'
    b'"stagnation":[],"monologue":[0,[]],"duplicate_in_message":null,"error_streak":[],'
    b'"unknown_tool":[],"cycle":[["*",[0,0,0,0,0,0,0],[["#","repeat":[["main","agent",false,true,null,'
)
"""What every state begins with and holds, so that it need not be spelled out. A part of the format:
whoever changes it raises the version of the dump."""


def pack(data: object) -> str:
    """JSON-ready data as a short string. Digests and names recur, so it shrinks to about a half."""
    plain = json.dumps(data, separators=(",", ":"), ensure_ascii=False)
    writer = zlib.compressobj(6, zlib.DEFLATED, _RAW, 9, zlib.Z_DEFAULT_STRATEGY, _KNOWN)
    packed = writer.compress(plain.encode("utf-8", "surrogatepass")) + writer.flush()
    return b64encode(packed).decode("ascii")


def unpack(packed: object) -> object:
    """What `pack` was given. Never more than 64 KB, whatever the string says."""
    try:
        reader = zlib.decompressobj(_RAW, _KNOWN)
        plain = reader.decompress(b64decode(text(packed), validate=True), _UNPACKED)
    except zlib.error as error:
        raise ValueError(str(error)) from error
    if not reader.eof:
        raise ValueError("packed state is cut off or too long")
    return json.loads(plain.decode("utf-8", "surrogatepass"))


def sequence(data: object) -> list[object]:
    """A list of anything."""
    if not isinstance(data, list):
        raise TypeError(f"a list was expected, not {type(data).__name__}")
    return cast("list[object]", data)


def row(data: object, width: int) -> list[object]:
    """A list of exactly `width` values."""
    found = sequence(data)
    if len(found) != width:
        raise ValueError(f"{width} values were expected, not {len(found)}")
    return found


def mapping(data: object) -> Mapping[str, object]:
    """A mapping with text keys, as JSON has it."""
    if not isinstance(data, dict):
        raise TypeError(f"a mapping was expected, not {type(data).__name__}")
    return cast("dict[str, object]", data)


def text(data: object) -> str:
    """A string."""
    if not isinstance(data, str):
        raise TypeError(f"a string was expected, not {type(data).__name__}")
    return data


def whole(data: object) -> int:
    """A whole number; a truth value is none."""
    if type(data) is not int:
        raise TypeError(f"a whole number was expected, not {type(data).__name__}")
    return data


def number(data: object) -> float:
    """A number of any kind."""
    if type(data) is not float and type(data) is not int:
        raise TypeError(f"a number was expected, not {type(data).__name__}")
    return float(data)


def flag(data: object) -> bool:
    """A truth value."""
    if not isinstance(data, bool):
        raise TypeError(f"a truth value was expected, not {type(data).__name__}")
    return data


def texts(data: object) -> list[str]:
    """A list of strings."""
    return [text(item) for item in sequence(data)]


def wholes(data: object) -> list[int]:
    """A list of whole numbers."""
    return [whole(item) for item in sequence(data)]


def finding_row(finding: Finding | None) -> list[object] | None:
    """A finding as JSON-ready data, without what it refuses."""
    if finding is None:
        return None
    f = finding
    evidence = {
        name[:32]: value[:32] if isinstance(value, str) else value
        for name, value in list(f.evidence.items())[:_EVIDENCE]
    }
    return [
        f.family, f.rule, f.key, int(f.level), f.count, f.limit, f.onset_step, f.step, f.agent,
        f.subject[:_NAME] if f.subject is not None else None, f.cause, f.hard, evidence,
    ]  # fmt: skip


def finding_of(data: object) -> Finding | None:
    """The finding that `finding_row` wrote down."""
    if data is None:
        return None
    family, rule, key, level, count, limit, onset, step, agent, subject, cause, hard, evidence = (
        row(data, 13)
    )
    return Finding(
        family=text(family),
        rule=text(rule),
        key=text(key),
        level=Severity(whole(level)),
        count=whole(count),
        limit=whole(limit),
        onset_step=whole(onset),
        step=whole(step),
        agent=text(agent),
        subject=None if subject is None else text(subject),
        cause=None if cause is None else text(cause),
        hard=flag(hard),
        evidence=_evidence(evidence),
    )


def _evidence(data: object) -> Evidence:
    out: Evidence = {}
    for name, value in mapping(data).items():
        if value is not None and not isinstance(value, (str, int, float)):
            raise TypeError(f"evidence {name!r} must be a number or a short name")
        out[name] = value
    return out

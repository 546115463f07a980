"""Keys of recorded runs that nobody reads: most of them are misspelt.

Contract: nothing is refused; recordings may carry what they like. Of a run's own keys, where people
keep notes, only those count that are nearly a known one; in steps, calls and below all count.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import Final, cast

from shearpin.traces.model import TraceRun

__all__ = ["unknown_keys"]

_RUN: Final = frozenset({"run", "title", "outcome", "tools", "steps", "expect", "class", "source"})
_NOTES: Final = frozenset({"origin", "class", "source", "title"})
_STEP: Final = frozenset(
    {"turn", "at", "agent", "node", "text", "calls", "usage", "compacted", "parent"}
)
_CALL: Final = frozenset({"id", "name", "args", "result", "status", "args_digest", "result_digest"})
_USAGE: Final = frozenset(
    {
        "input_tokens",
        "output_tokens",
        "cache_read_tokens",
        "cache_write_tokens",
        "reasoning_tokens",
        "estimated",
    }
)
_FLAGS: Final = frozenset({"read_only", "polling", "idempotent", "destructive"})
_EXPECT: Final = frozenset(
    {"nudge_by", "block_by", "stop_by", "quiet", "never", "finding", "findings", "why"}
)
_ALIKE: Final = 0.75
"""Share of letters in common from which a key of a run counts as a misspelt one."""
_Object = Mapping[str, object]


def unknown_keys(run: TraceRun) -> Iterator[str]:
    """The keys of a run that are not read, as `steps[].cals (calls?)`.

    Example:
        >>> from shearpin.traces import parse_run
        >>> list(unknown_keys(parse_run({"run": "r", "outcom": "fail", "steps": [{"cals": []}]})))
        ['outcom (outcome?)', 'steps[].cals (calls?)']
    """
    raw = run.raw
    for key in raw.keys() - _RUN - _NOTES:
        if get_close_matches(key, _RUN, 1, _ALIKE):
            yield _named("", key, _RUN)
    for name, flags in cast("_Object", raw.get("tools") or {}).items():
        yield from _unknown(f"tools.{name}.", flags, _FLAGS)
    yield from _unknown("expect.", raw.get("expect"), _EXPECT)
    for step in cast("Iterable[_Object]", raw["steps"]):
        yield from _unknown("steps[].", step, _STEP)
        if usage := step.get("usage"):
            yield from _unknown("steps[].usage.", usage, _USAGE)
        for call in cast("Iterable[object]", step.get("calls") or ()):
            yield from _unknown("steps[].calls[].", call, _CALL)


def _unknown(where: str, found: object, known: frozenset[str]) -> Iterator[str]:
    keys = cast("_Object", found or {}).keys()
    if keys <= known:
        return
    for key in sorted(keys - known):
        yield _named(where, key, known)


def _named(where: str, key: str, known: frozenset[str]) -> str:
    near = get_close_matches(key, known, 1, 0.7)
    return f"{where}{key} ({near[0]}?)" if near else f"{where}{key}"

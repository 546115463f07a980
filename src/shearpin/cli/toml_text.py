"""A configuration as TOML: plain values, lists of texts, tables, and lists of tables."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Final, cast

__all__ = ["toml_text"]

_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")


def toml_text(data: Mapping[str, object]) -> str:
    """The text of a TOML file that holds this data.

    Example:
        >>> print(toml_text({"patience": 0.25, "breaker": {"trial_rounds": 1}}))
        patience = 0.25
        <BLANKLINE>
        [breaker]
        trial_rounds = 1
        <BLANKLINE>
    """
    lines: list[str] = []
    _write(data, (), lines)
    return "\n".join(lines).strip("\n") + "\n" if lines else ""


def _write(data: Mapping[str, object], path: tuple[str, ...], lines: list[str]) -> None:
    tables: list[tuple[str, object]] = []
    for key, value in data.items():
        if isinstance(value, Mapping) or _is_tables(value):
            tables.append((key, cast("object", value)))
        elif value is not None:
            lines.append(f"{_key(key)} = {_value(value)}")
    for key, value in tables:
        place = (*path, key)
        name = ".".join(_key(part) for part in place)
        if isinstance(value, Mapping):
            table = cast("Mapping[str, object]", value)
            if any(not isinstance(inner, Mapping) for inner in table.values()):
                lines += ["", f"[{name}]"]
            _write(table, place, lines)
        else:
            for item in cast("list[Mapping[str, object]]", value):
                lines += ["", f"[[{name}]]"]
                _write(item, place, lines)


def _is_tables(value: object) -> bool:
    if not isinstance(value, list):
        return False
    items = cast("list[object]", value)
    return bool(items) and all(isinstance(item, Mapping) for item in items)


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else json.dumps(key, ensure_ascii=False)


def _value(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        items = cast("Sequence[object]", value)
        return "[" + ", ".join(_value(item) for item in items) + "]"
    return json.dumps(value, ensure_ascii=False)

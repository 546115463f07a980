"""The short form of a budget: `"$0.50"`, `"40 calls, 5 min"`, `"100k tokens per thread"`."""

from __future__ import annotations

import re

from shearpin.errors import ConfigError

__all__ = ["read_budget"]

_SEPARATOR = re.compile(r"\s*(?:;|\+|\band\b|,(?!\d{3}(?!\d))|(?<=[^\d,]),)\s*", re.IGNORECASE)
_SPAN = re.compile(r"[\s,]*\b(?:per|each|a|every)\s+(call|run|thread)\s*$", re.IGNORECASE)
_PART = re.compile(r"(\$)?\s*(\d[\d,]*(?:\.\d+)?|\.\d+)\s*(k|m)?\s*([a-z][a-z _]*)?", re.IGNORECASE)

_COUNTS = {
    "call": "model_calls",
    "model call": "model_calls",
    "llm call": "model_calls",
    "tool call": "tool_calls",
    "token": "tokens",
    "input token": "input_tokens",
    "output token": "output_tokens",
    "step": "steps",
    "round": "steps",
    "level": "depth",
}
_SECONDS = {
    "s": 1, "sec": 1, "secs": 1, "second": 1, "seconds": 1,
    "m": 60, "min": 60, "mins": 60, "minute": 60, "minutes": 60,
    "h": 3600, "hour": 3600, "hours": 3600,
}  # fmt: skip
_MONEY = ("usd", "dollar", "dollars")
_HELP = 'write e.g. "$0.50", "40 calls, 5 min", "100k tokens" or "$5 per thread"'


def read_budget(text: str) -> dict[str, object]:
    """The arguments of a `Budget` that a short form stands for.

    Raises:
        ConfigError: a part cannot be read, or two parts limit the same.
    """
    if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ConfigError(f"a budget's short form is a string, not {text!r}; {_HELP}")
    found: dict[str, object] = {}
    rest = text.strip()
    span = _SPAN.search(rest)
    if span is not None:
        found["per"] = span.group(1).lower()
        rest = rest[: span.start()]
    if not rest:
        raise ConfigError(f"the budget {text!r} limits nothing; {_HELP}")
    for part in _SEPARATOR.split(rest):
        name, value = _read(part, text)
        if name in found:
            raise ConfigError(f"the budget {text!r} limits {name} twice; keep one of them")
        found[name] = value
    return found


def _read(part: str, whole: str) -> tuple[str, object]:
    match = _PART.fullmatch(part.strip())
    scope = _SPAN.search(part)
    if scope is not None:
        raise ConfigError(
            f"cannot read {part!r} in the budget {whole!r}: 'per {scope.group(1).lower()}' goes at "
            "the end and holds for all of it; limits of different scopes are a list, such as "
            '["$5 per thread", "3 calls"]'
        )
    if match is None:
        raise ConfigError(f"cannot read {part!r} in the budget {whole!r}; {_HELP}")
    dollar, digits, scale, words = match.groups()
    number = _digits(digits, part, whole)
    unit = " ".join((words or "").lower().replace("_", " ").split())
    if scale is not None and f"{scale}{unit}".lower() in _SECONDS:
        unit, scale = f"{scale}{unit}".lower(), None  # the m of "5 min" is no million
    elif scale is not None and f"{scale}{unit}".lower().removesuffix("s") in _COUNTS:
        unit, scale = f"{scale}{unit}".lower(), None  # neither is that of "40 model calls"
    if dollar or unit in _MONEY:
        if (dollar and unit and unit not in _MONEY) or scale is not None:
            raise ConfigError(f"cannot read {part!r} in the budget {whole!r}; {_HELP}")
        return "usd", number
    if unit in _SECONDS:
        return "seconds", float(number) * _SECONDS[unit]
    name = _COUNTS.get(unit.removesuffix("s"))
    if name is not None:
        return name, _whole(number, scale, part, whole)
    if scale is not None and words and f"{scale}{words}" in part:
        unit = f"{scale}{unit}"
    what = f"the unit {unit!r}" if unit else "a number without a unit"
    raise ConfigError(f"cannot read {what} in the budget {whole!r}; {_HELP}")


def _digits(digits: str, part: str, whole: str) -> str:
    if "," in digits and not re.fullmatch(r"\d{1,3}(,\d{3})+(\.\d+)?", digits):
        raise ConfigError(f"cannot read the number in {part!r} of the budget {whole!r}; {_HELP}")
    return digits.replace(",", "")


def _whole(number: str, scale: str | None, part: str, whole: str) -> int:
    value = float(number) * {"k": 1_000, "m": 1_000_000}.get((scale or "").lower(), 1)
    if not value.is_integer():
        raise ConfigError(f"{part.strip()!r} in the budget {whole!r} must be a whole number")
    return int(value)

"""Budgets: what one call, run or thread may use, as frozen data that is right once it exists.

Money is an exact decimal at the door and whole millionths of a dollar inside; a float is refused. A
limit of N allows N and refuses N + 1; 0 allows nothing; None is no limit. Limits are in calls,
tokens, rounds, money and time, never in graph supersteps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from decimal import ROUND_CEILING, Decimal, InvalidOperation
from math import ceil, isfinite
from types import MappingProxyType
from typing import Literal, TypeAlias, cast

from shearpin.core.checks import mapping, texts
from shearpin.errors import ConfigError

__all__ = [
    "COUNTED",
    "TIMED",
    "Budget",
    "Span",
    "budgets_of",
    "describe",
    "to_micros",
    "tool_dimension",
]

Span: TypeAlias = Literal["call", "run", "thread"]
"""What a budget covers: every single call, one run, or a whole conversation."""

COUNTED = ("usd", "tokens", "input_tokens", "output_tokens", "model_calls", "tool_calls", "steps")
"""Dimensions that a ledger counts, in the order in which they are reported."""

TIMED = ("seconds", "working_seconds")
"""Dimensions that pass by themselves."""

_MICROS = Decimal(1_000_000)
_PER_CALL = ("usd", "tokens", "input_tokens", "output_tokens", "seconds")
_NO_TOOLS: Mapping[str, int] = MappingProxyType({})
_UNITS = {
    "tokens": "tokens",
    "input_tokens": "input tokens",
    "output_tokens": "output tokens",
    "model_calls": "model calls",
    "tool_calls": "tool calls",
    "steps": "steps",
    "depth": "levels of agents",
    "seconds": "seconds",
    "working_seconds": "seconds of work",
}


def tool_dimension(tool: str) -> str:
    """The dimension in which the calls of one tool are counted."""
    return "tool:" + tool


def to_micros(usd: Decimal) -> int:
    """Dollars as whole millionths, rounded up: a price is never counted as less than it is."""
    return int((usd * _MICROS).to_integral_value(ROUND_CEILING))


def describe(dimension: str, amount: float) -> str:
    """An amount as people write it: `$0.50`, `40 model calls`, `2.5 seconds`."""
    if dimension == "usd":
        digits = f"{Decimal(int(amount)) / _MICROS:.6f}".rstrip("0")
        whole, _, part = digits.partition(".")
        return f"${whole}.{part.ljust(2, '0')}"
    number = f"{amount:,.1f}".removesuffix(".0")
    if dimension.startswith("tool:"):
        return f"{number} calls of `{dimension.removeprefix('tool:')}`"
    unit = _UNITS[dimension]
    if number == "1" and unit.endswith(("calls", "agents")):
        unit = unit.replace("s", "", 1)
    return f"{number} {unit}"


@dataclass(frozen=True, slots=True)
class Budget:
    """What may be used, checked when built.

    Attributes:
        usd: money, as `Decimal`, `str` or whole dollars; at most six decimal places, no float.
        tokens: input and output tokens together, cached ones included.
        input_tokens: tokens sent.
        output_tokens: tokens received, reasoning included.
        model_calls: provider calls, failed ones, retries and summaries included; answers from
            LangChain's cache are not.
        tool_calls: calls of tools that were run; refused ones and `exempt` tools are not.
        steps: rounds, i.e. model answers with the tool results they asked for.
        seconds: wall time, waiting included.
        working_seconds: wall time without waiting for people and for rate limits.
        per_tool: calls of single tools, by name.
        soft: share of a limit, above 0 and up to 1, at which the agent is told once to wrap up.
            Default 0.8: early enough for a few more calls, late enough to be rare.
        depth: levels of agents that call agents; the one that a run begins with is the first.
        exempt: tools that stay callable and are not charged, such as asking the user.
        max_concurrency: tool calls that may run at the same time; more wait for their turn.
        per: what the limits cover: every single `call`, one `run` (default; a user turn with all it
            sets off, interrupts and resumes included), or a whole `thread`.

    Raises:
        ConfigError: a limit is negative, of the wrong type, or makes no sense for `per`.

    Example:
        >>> Budget(usd="0.50", model_calls=40).limits
        {'usd': 500000, 'model_calls': 40}
        >>> Budget.parse("$0.50, 40 calls, 5 min").seconds
        300.0
    """

    usd: Decimal | str | int | None = None
    tokens: int | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    model_calls: int | None = None
    tool_calls: int | None = None
    steps: int | None = None
    seconds: float | None = None
    working_seconds: float | None = None
    per_tool: Mapping[str, int] = field(default_factory=lambda: _NO_TOOLS)
    depth: int | None = None
    soft: float = 0.8
    exempt: tuple[str, ...] = ()
    max_concurrency: int | None = None
    per: Span = "run"

    def __post_init__(self) -> None:
        object.__setattr__(self, "usd", _dollars(self.usd))
        for name in COUNTED[1:]:
            _check_count(f"Budget.{name}", getattr(self, name))
        _check_count("Budget.depth", self.depth)
        for name in TIMED:
            _check_seconds(f"Budget.{name}", getattr(self, name))
        mapping("Budget.per_tool", self.per_tool, '{"search": 20}')
        for tool, count in self.per_tool.items():
            if count is None:  # pyright: ignore[reportUnnecessaryComparison]
                raise ConfigError(
                    f"Budget.per_tool[{tool!r}] must be a count; leave the tool out for no limit"
                )
            _check_count(f"Budget.per_tool[{tool!r}]", count)
        object.__setattr__(self, "per_tool", MappingProxyType(dict(self.per_tool)))
        _check_soft(self.soft)
        object.__setattr__(self, "exempt", texts("Budget.exempt", self.exempt, "ask_user"))
        if self.max_concurrency is not None:
            _check_count("Budget.max_concurrency", self.max_concurrency)
            if self.max_concurrency == 0:
                raise ConfigError("Budget.max_concurrency must be 1 or more: 0 would wait for ever")
        self._check_span()

    def __reduce__(self) -> tuple[object, ...]:
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        return (_rebuild, ({**values, "per_tool": dict(self.per_tool)},))

    def _check_span(self) -> None:
        if self.per not in ("call", "run", "thread"):
            raise ConfigError(f"Budget.per must be 'call', 'run' or 'thread', not {self.per!r}")
        if self.per == "call":
            odd = [
                name
                for name in (*COUNTED, *TIMED, "depth")
                if getattr(self, name) is not None and name not in _PER_CALL
            ]
            odd += ["per_tool"] if self.per_tool else []
            if odd:
                raise ConfigError(
                    f"Budget.{odd[0]} cannot be per call; use per='run' or per='thread'"
                )

    @classmethod
    def parse(cls, text: str) -> Budget:
        """A budget from its short form, e.g. `"$0.50"`, `"40 calls, 5 min"`, `"$5 per thread"`.

        `calls` are model calls; `tool calls`, `tokens` (`100k tokens`), `steps`, `s`, `min` and `h`
        are understood, and `per call`, `per run` or `per thread` at the end.

        Raises:
            ConfigError: a part cannot be read, or two parts limit the same.
        """
        from shearpin.core.shorthand import read_budget

        return cls(**read_budget(text))  # pyright: ignore[reportArgumentType]

    @property
    def dollars(self) -> Decimal | None:
        """The limit in dollars."""
        return self.usd if isinstance(self.usd, Decimal) else None

    @property
    def limits(self) -> dict[str, int]:
        """The limits that a ledger keeps, by dimension; money in millionths of a dollar."""
        found: dict[str, int] = {}
        if isinstance(self.usd, Decimal):
            found["usd"] = int(self.usd * _MICROS)
        for name in COUNTED[1:]:
            value = getattr(self, name)
            if value is not None:
                found[name] = value
        for tool, count in self.per_tool.items():
            found[tool_dimension(tool)] = count
        return found

    def threshold(self, limit: float) -> int:
        """From which amount on a limit counts as nearly used."""
        return ceil(limit * self.soft - 1e-9)


def budgets_of(value: object, name: str = "budget") -> tuple[Budget, ...]:
    """Budgets in any form in which they may be given.

    Raises:
        ConfigError: it is none, or two cover the same kind of scope.
    """
    if value is None:
        return ()
    items = list(cast("Sequence[object]", value)) if isinstance(value, (list, tuple)) else [value]
    found: list[Budget] = []
    for given in items:
        item = Budget.parse(given) if isinstance(given, str) else given
        if not isinstance(item, Budget):
            raise ConfigError(
                f'{name} must be a Budget, a short form such as "$0.50", or several of them, '
                f"not {item!r}"
            )
        if any(other.per == item.per for other in found):
            raise ConfigError(f"{name} holds two budgets per {item.per}; put them into one")
        found.append(item)
    return tuple(found)


def _rebuild(values: dict[str, object]) -> Budget:
    return Budget(**values)  # pyright: ignore[reportArgumentType]


def _dollars(value: object) -> Decimal | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (Decimal, str, int)):
        raise ConfigError(
            f'Budget.usd must be a Decimal or a string such as "0.50", not {value!r}'
            ": money is exact"
        )
    try:
        amount = Decimal(value.strip().removeprefix("$") if isinstance(value, str) else value)
    except InvalidOperation:
        raise ConfigError(f'Budget.usd must be an amount such as "0.50", not {value!r}') from None
    if not amount.is_finite() or amount < 0:
        raise ConfigError(f"Budget.usd must be 0 or more dollars, not {value!r}; None is no limit")
    if amount * _MICROS % 1:
        raise ConfigError(f"Budget.usd is counted in millionths of a dollar; {value!r} is finer")
    return abs(amount)


def _check_count(name: str, value: object) -> None:
    if value is None:
        return
    if type(value) is not int:
        raise ConfigError(f"{name} must be a whole number, not {value!r}")
    if value < 0:
        raise ConfigError(f"{name} must be 0 or more, not {value}; None is no limit")


def _check_seconds(name: str, value: object) -> None:
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ConfigError(f"{name} must be a number of seconds, not {value!r}")
    if not isfinite(value) or value < 0:
        raise ConfigError(f"{name} must be 0 or more seconds, not {value!r}; None is no limit")


def _check_soft(value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value <= 1:
        raise ConfigError(f"Budget.soft must be above 0 and at most 1, e.g. 0.8, not {value!r}")

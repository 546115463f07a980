"""What it costs to make a fact: named tuple against frozen dataclass, with and without slots.

python -m benchmarks.fact_types
"""

from __future__ import annotations

import timeit
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from benchmarks.measuring import save, table


class AsNamedTuple(NamedTuple):
    at: float
    node: str
    task: str
    agent: str = "main"
    delta: str | None = None


@dataclass(frozen=True)
class AsFrozen:
    at: float
    node: str
    task: str
    agent: str = "main"
    delta: str | None = None


@dataclass(frozen=True, slots=True)
class AsFrozenSlotted:
    at: float
    node: str
    task: str
    agent: str = "main"
    delta: str | None = None


def nanoseconds(make: Callable[[], object]) -> float:
    """The best of seven rounds, for one."""
    number = 200_000
    return min(timeit.repeat(make, number=number, repeat=7)) / number * 1e9


def main() -> None:
    rows: list[dict[str, object]] = [
        {"kind": name, "nanoseconds": round(nanoseconds(make))}
        for name, make in (
            ("named tuple", lambda: AsNamedTuple(1.0, "agent", "task")),
            ("frozen dataclass", lambda: AsFrozen(1.0, "agent", "task")),
            ("frozen, slotted dataclass", lambda: AsFrozenSlotted(1.0, "agent", "task")),
        )
    ]
    save("fact_types", rows)
    print(table(["kind", "ns"], [[str(value) for value in row.values()] for row in rows]))


if __name__ == "__main__":
    main()

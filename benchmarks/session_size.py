"""Size of a session's dump, as compact JSON, over the steps of a run.

    python -m benchmarks.session_size

Three runs: a *varied* one as real agents make them (new calls, some repeats, errors), a *wide* one
that fills every window (sixteen agents, hundreds of tools with long names, new arguments), and a
*looping* one in which everything repeats. The bound is 4,096 bytes at any step.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import orjson

from benchmarks.measuring import save, table
from shearpin.core.session import Session
from shearpin.core.settings import Settings
from shearpin.events import (
    Fact,
    ModelCalled,
    ModelReturned,
    NodeEntered,
    NodeLeft,
    ToolCalled,
    ToolRequest,
    ToolReturned,
    Usage,
)

STEPS = (10, 1_000, 10_000, 100_000)
BOUND = 4_096
WORDS = "the plan is to look at each file and then run tests before any change lands".split()


def step_facts(
    number: int, agent: str, tool: str, args: dict[str, object], result: str, text: str
) -> Iterator[tuple[bool, Fact]]:
    """The facts of one round; True for those that are reported before they happen."""
    at = float(number)
    call, model = f"c{number}", f"m{number}"
    task = f"{number:08x}-0000-5000-8000-000000000000"
    yield True, NodeEntered(at, "agent", task, agent)
    yield True, ModelCalled(at, model, agent, "agent")
    requests = (ToolRequest(call, tool, args),)
    yield False, ModelReturned(at, model, agent, "agent", text, requests, Usage(1_200, 60))
    yield False, NodeLeft(at, "agent", task, agent, f"{number:016x}")
    yield True, ToolCalled(at, call, tool, args, agent, "tools")
    yield False, ToolReturned(at, call, tool, args, result, "success", agent, "tools")


def varied(number: int, dice: random.Random) -> Iterator[tuple[bool, Fact]]:
    tool = dice.choice(("read_file", "search", "edit_file", "run_tests", "get_status"))
    args: dict[str, object] = {"path": f"src/module_{dice.randrange(40)}.py"}
    result = dice.choice(("ok", "[]", "Error: not found", f"{number} lines, {dice.random()} s"))
    text = " ".join(dice.choices(WORDS, k=12))
    return step_facts(number, "main", tool, args, result, text)


def wide(number: int, dice: random.Random) -> Iterator[tuple[bool, Fact]]:
    agent = f"specialist_for_topic_number_{number % 16}"
    tool = f"a_tool_with_a_rather_long_name_{dice.randrange(400)}"
    args: dict[str, object] = {"query": f"{dice.random()}", "deep": {"nested": [number]}}
    return step_facts(number, agent, tool, args, f"row {dice.random()}", f"thought {dice.random()}")


def looping(number: int, dice: random.Random) -> Iterator[tuple[bool, Fact]]:
    del dice
    args: dict[str, object] = {"path": "tests"}
    return step_facts(number, "main", "run_tests", args, "1 failed", "I will run the tests again.")


def sizes(script: Callable[[int, random.Random], Iterator[tuple[bool, Fact]]]) -> dict[str, object]:
    """Bytes of the dump at each of STEPS, and the largest seen on the way."""
    session = Session(Settings())
    dice = random.Random(7)
    found: dict[str, object] = {"run": script.__name__}
    largest = 0
    for number in range(1, max(STEPS) + 1):
        for before, fact in script(number, dice):
            (session.before if before else session.after)(fact)
        session.drain()
        if number in STEPS or number % 97 == 0:
            size = len(orjson.dumps(session.dump()))
            largest = max(largest, size)
            if number in STEPS:
                found[f"at_{number}"] = size
    found["largest"] = largest
    return found


def main() -> None:
    rows = [sizes(script) for script in (varied, wide, looping)]
    save("session_size", rows)
    header = ["run", *(f"{steps:,} steps" for steps in STEPS), "largest"]
    print(table(header, [[str(value) for value in row.values()] for row in rows]))
    worst = max(int(str(row["largest"])) for row in rows)
    print(f"\nlargest dump: {worst} bytes, bound {BOUND}")


if __name__ == "__main__":
    main()

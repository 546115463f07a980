"""What runs tool calls may fail itself, anywhere: no tool is run twice for it, no run is hurt.

Every function of it that a run calls is broken in turn. The run ends as it would have, or with an
answer that says that the tool failed, or with the error that the tool itself has raised; never with
an error of ours. The report names the fault.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from types import CodeType
from typing import Any

import pytest

import shearpin
from shearpin.boundary import Boundary, Cached, Effects, Retries, ToolPolicy
from shearpin.core.tools import ToolFacts
from tests.boundary.failing import faultless, run
from tests.boundary.tool_agents import HELLO, answered, made, script, tool_node
from tests.boundary.tool_bench import PRICES, Outcomes
from tests.hosts.injector import InjectedError, calls_of, fault_in

HOMES = (
    "adapters.boundary.bounded:",
    "adapters.boundary.tooljob:",
    "adapters.boundary.toolroom:",
    "adapters.boundary.packing:",
    "boundary.calls:",
    "boundary.fallbacks:",
    "boundary.gate:",
    "boundary.inner:",
    "boundary.once:",
    "boundary.results:",
    "boundary.retrying:",
    "boundary.runner:",
    "boundary.steps:",
    "boundary.wording:",
)
SHELLS = {
    # There is nothing of ours above them that knows what the tool has done.
    "adapters.boundary.bounded:bounded",
    "adapters.boundary.bounded:abounded",
    "adapters.boundary.tooljob:Job.attempt",
    "adapters.boundary.tooljob:Job.aattempt",
    # These contain: a fault at their very entry is one of the interpreter.
    "adapters.boundary.bounded:_begun",
    "adapters.boundary.bounded:_over",
    "adapters.boundary.bounded:_is_fault",
    "adapters.boundary.bounded:_left",
    "adapters.boundary.tooljob:Job.begun",
    "adapters.boundary.tooljob:Job.bare",
    "adapters.boundary.tooljob:Job.abare",
    "boundary.inner:calls_within",  # in callbacks, which contain it
}


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    async def asleep(seconds: float) -> None:
        await asyncio.sleep(0)

    monkeypatch.setattr("shearpin.clock.sleep", lambda seconds: None)
    monkeypatch.setattr("shearpin.clock.asleep", asleep)
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


class Play:
    """An agent with a tool of each kind, and how often each was run."""

    def __init__(self) -> None:
        self.tools = {
            "good": Outcomes("found"),
            "flaky": Outcomes(TimeoutError("slow"), "found"),
            "send": Outcomes("sent"),
            "bad": Outcomes(ValueError("no index")),
            "kept": Outcomes("fresh", ValueError("down")),
        }
        rounds = [[(name, {"query": "x"})] for name in (*self.tools, "kept", "send")]
        graph = tool_node(
            [made(name, outcomes) for name, outcomes in self.tools.items()], script(*rounds)
        )
        self.app = shearpin.guard(
            graph,
            tools={"flaky": ToolFacts(read_only=True)},
            boundary=Boundary(
                tools={
                    "send": ToolPolicy(effect=Effects()),
                    "kept": ToolPolicy(fallbacks=[Cached()], retries=Retries(attempts=1)),
                },
                nodes=["nothing"],
            ),
            budget=shearpin.Budget(tool_calls=50),
            detectors=(),
        )

    def turn(self, how: str) -> Any:
        try:
            return run(self.app, how, HELLO)["messages"]
        except (TimeoutError, ValueError) as error:
            return error

    @property
    def calls(self) -> dict[str, int]:
        return {name: outcomes.calls for name, outcomes in self.tools.items()}


def called(how: str) -> dict[str, CodeType]:
    codes: dict[str, CodeType] = {}
    with calls_of(codes):
        Play().turn(how)
    return {
        name: code
        for name, code in codes.items()
        if name.startswith(HOMES) and "<genexpr>" not in name and name not in SHELLS
    }


@PRICES
@pytest.mark.parametrize(("how", "nth"), [("invoke", 1), ("ainvoke", 2)])
def test_any_function_may_fail(how: str, nth: int) -> None:
    most = {"good": 1, "flaky": 2, "send": 1, "bad": 1, "kept": 2}
    play = Play()
    assert answered(play.turn(how))["bad"].status == "error"
    assert play.calls == most
    broken = called(how)
    assert len(broken) > 50
    wrong: list[str] = []
    for name, code in broken.items():
        play = Play()
        try:
            with fault_in(code, nth) as fired:
                found = play.turn(how)
        except InjectedError:
            wrong.append(f"{name}: left the run")
            continue
        report = play.app.report()
        told = report.faults or report.boundary.faults
        if fired and not told:
            wrong.append(f"{name}: not reported")
        if any(count > most[tool] for tool, count in play.calls.items()):
            wrong.append(f"{name}: run too often: {play.calls}")
        if isinstance(found, list):
            faultless(found)
            if "broken on purpose" in repr(found):
                wrong.append(f"{name}: told to the model")
    assert not wrong, "\n".join(sorted(wrong))

"""The error boundary at nodes never hurts the guarded (P7): any function of it may fail.

Where nothing else fails, the run is as it would be without a guard, and the report names the fault.
Where a node or tool fails, the run ends as the boundary ends it, or with the error that it would
have raised without a guard; never with an error of ours.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from types import CodeType
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver

import shearpin
from shearpin.boundary import Boundary
from tests.boundary.failing import Failing, OutageError, faultless, plan_graph
from tests.hosts.injector import InjectedError, calls_of, fault_in
from tests.hosts.test_faults import SHELLS, functions, one_turn, seen_of, take
from tests.zoo.exhibit import Exhibit, Graph
from tests.zoo.models import ScriptedModel, call
from tests.zoo.observe import settings

pytestmark = [
    pytest.mark.filterwarnings("ignore::langchain_core._api.LangChainBetaWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

BOUNDARY_SHELLS = {
    # The driver, and what it does around a way to go on; what decides about that may fail.
    "adapters.langgraph.nodes:GuardedNode._failing",
    "adapters.langgraph.resuming:Bounded.resumed",
    "adapters.langgraph.resuming:Bounded.aresumed",
    "adapters.langgraph.bounding:Failing.given_up",
    # These contain: a fault at their very entry is one of the interpreter.
    "adapters.langgraph.bounding:Failing.next",
    "adapters.langgraph.bounding:Failing.done",
    "adapters.langgraph.nodes:GuardedNode._ended",
}
NODES = (
    "adapters.langgraph.",
    "adapters.boundary.bounds:",
    "adapters.ways:",
    "adapters.boundary.exhaustion:",
)
"""What belongs to the boundary at nodes; that of tools and models is tested where they are."""
ASKED_BY_OTHERS = {"adapters.boundary.bounds:Bounds.acts", "adapters.boundary.bounds:Bounds.store"}
HOW = ["invoke", "ainvoke"]
HELLO = {"messages": [HumanMessage("how is Rome?", id="h1")]}


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Faults are logged, and waits are waited; neither is needed thousands of times."""

    async def asleep(seconds: float) -> None:
        await asyncio.sleep(0)

    monkeypatch.setattr("shearpin.clock.sleep", lambda seconds: None)
    monkeypatch.setattr("shearpin.clock.asleep", asleep)
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def bounded(exhibit: Exhibit, **options: Any) -> Graph:
    boundary = Boundary(**options)
    return shearpin.guard(exhibit.build(), boundary=boundary)


def within(exhibit: Exhibit, how: str, **options: Any) -> dict[str, CodeType]:
    """All that a guard with a boundary calls in a run of an exhibit."""
    codes: dict[str, CodeType] = {}
    guarded = bounded(exhibit, **options)
    with calls_of(codes):
        try:
            take(exhibit, guarded, how)
        except OutageError:
            pytest.fail("the boundary was expected to act")
    return {
        name: code
        for name, code in codes.items()
        if name.startswith(NODES) and name not in ASKED_BY_OTHERS and "<genexpr>" not in name
    }


@pytest.mark.parametrize("how", HOW)
def test_any_function_may_fail_where_nothing_else_does(how: str) -> None:
    exhibit = one_turn("agent")
    plain = exhibit.build()
    expected = seen_of(exhibit, plain, take(exhibit, plain, how))
    known = functions(exhibit, how)
    broken = {name: code for name, code in within(exhibit, how).items() if name not in known}
    assert broken
    hurt: list[str] = []
    unreported: list[str] = []
    for function in broken.keys() - SHELLS - BOUNDARY_SHELLS:
        guarded = bounded(exhibit)
        with fault_in(broken[function]) as fired:
            given = take(exhibit, guarded, how)
        report = guarded.report(settings(exhibit))
        told = report.faults or (report.boundary is not None and report.boundary.faults)
        if seen_of(exhibit, guarded, given) != expected:
            hurt.append(function)
        elif fired and not told:
            unreported.append(function)
    assert not hurt, "\n".join(sorted(hurt))
    assert not unreported, "\n".join(sorted(unreported))


def troubled_nodes() -> Graph:
    return plan_graph(Failing(lambda messages, number: False), InMemorySaver())


def troubled_tools() -> Graph:
    """An agent with a tool that fails for good, one that fails for a time, and one that works."""
    tries: list[int] = []

    @tool
    def weather(city: str) -> str:
        """The weather in a city."""
        tries.append(1)
        if len(tries) % 2:
            raise ConnectionError("the line went dead")
        return f"{city}: sunny"

    @tool
    def broken(city: str) -> str:
        """Nothing."""
        raise OutageError("the drawer is stuck")

    def reply(messages: Any) -> AIMessage:
        if messages[-1].type == "tool":
            return AIMessage("done")
        calls = [call("weather", "c1", city="Rome"), call("broken", "c2", city="Rome")]
        return AIMessage("", tool_calls=calls)

    return create_agent(ScriptedModel(reply=reply), [weather, broken], checkpointer=InMemorySaver())


TROUBLES = {
    "continue": (troubled_nodes, {"substitute": {"work": {"found": ["substitute"]}}}),
    "alternative": (troubled_nodes, {"alternative": {"work": "other"}}),
    "retry": (troubled_nodes, {"on": {OutageError: "retry"}}),
    "modify_prompt": (troubled_nodes, {"on": {OutageError: "modify_prompt"}}),
    "rollback": (troubled_nodes, {"on": {OutageError: "rollback"}, "rollback_limit": 1}),
    "terminate": (troubled_nodes, {"on": {OutageError: "terminate"}}),
    "handler": (troubled_nodes, {"on": {OutageError: lambda failure: {"found": ["by hand"]}}}),
    "tools": (troubled_tools, {}),
}


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("trouble", TROUBLES)
def test_any_function_may_fail_where_something_else_does(trouble: str, how: str) -> None:
    build, options = TROUBLES[trouble]
    exhibit = Exhibit(trouble, build, (HELLO,))
    known = functions(one_turn("agent"), how)
    broken = within(exhibit, how, **options)
    hurt: dict[str, object] = {}
    tried = broken.keys() - known.keys() - SHELLS - BOUNDARY_SHELLS
    assert len(tried) > (10 if build is troubled_nodes else 0)
    for function in tried:
        guarded = bounded(exhibit, **options)
        try:
            with fault_in(broken[function]):
                given = take(exhibit, guarded, how)
        except (OutageError, ConnectionError):
            continue  # as it would have been without a guard
        except InjectedError as error:
            hurt[function] = error
            continue
        answer = given[0]
        if isinstance(answer, dict) and "messages" in answer:
            messages = guarded.get_state(settings(exhibit)).values["messages"]
            faultless(messages)
        elif "OutageError" not in str(given) and "ConnectionError" not in str(given):
            hurt[function] = given
    assert not hurt, "\n".join(sorted(hurt))

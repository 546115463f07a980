"""The guard never hurts the guarded (P7): any function of it may fail, and no run notices.

Every function that the guard calls in a run is broken in turn, whichever they are. The run's
results, history and stored checkpoints must equal those of the plain graph; the report must name
the fault.
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
from collections.abc import Callable, Iterator
from types import CodeType
from typing import Any, ClassVar

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver

import shearpin
from shearpin.core import acting
from shearpin.core.breaker import Breaker
from shearpin.core.ladder import Ladder
from shearpin.core.seen import RoundSeen, Seen, ToolSeen
from shearpin.core.session import Session
from tests.hosts.injector import InjectedError, calls_of, fault_in
from tests.zoo.agent_graphs import EXHIBITS as AGENTS
from tests.zoo.agent_graphs import weather
from tests.zoo.control_graphs import EXHIBITS as CONTROL
from tests.zoo.exhibit import Exhibit, Graph
from tests.zoo.models import ScriptedModel, call
from tests.zoo.observe import each_turn, each_turn_async, history, settings, stored
from tests.zoo.resilience_graphs import EXHIBITS as RESILIENCE

pytestmark = [
    pytest.mark.filterwarnings("ignore::langchain_core._api.LangChainBetaWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    # An iterator that is broken while the interpreter closes it can tell nobody else.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

SHELLS = {
    # The host calls these itself: there is nothing of ours above them, and all that they do but to
    # call the host's own code is done in the functions that they call.
    "adapters.calls:CallLayer.on_chat_model_start",
    "adapters.calls:CallLayer.on_llm_end",
    "adapters.calls:CallLayer.on_tool_start",
    "adapters.calls:CallLayer.on_tool_end",
    "adapters.calls:CallLayer.on_tool_error",
    "adapters.langgraph.compat_tools:with_calls.<locals>.guarded",
    "adapters.langgraph.compat_tools:with_calls.<locals>.aguarded",
    "adapters.langgraph.compat_tools:_executing.<locals>.executing",
    "adapters.langgraph.nodes:GuardedNode.invoke",
    "adapters.langgraph.nodes:GuardedNode.ainvoke",
    "adapters.langgraph.speaking:Unlending.invoke",
    "adapters.langgraph.speaking:Unlending.ainvoke",
    "adapters.langgraph.supervisor:_guarded_class.<locals>.stream",
    "adapters.langgraph.supervisor:_guarded_class.<locals>.astream",
    "adapters.langgraph.supervisor:_stream",
    "adapters.langgraph.supervisor:_astream",
    "adapters.langgraph.toolnodes:guarded_tool_node.<locals>.around",
    "adapters.langgraph.toolnodes:guarded_tool_node.<locals>.aaround",
    "adapters.toolcalls:around",
    "adapters.toolcalls:aaround",
    "adapters.money.timing:timed",
    "adapters.money.timing:atimed",
    # These contain: a fault at their very entry is one of the interpreter.
    "adapters.calls:CallLayer._contained",
    "adapters.calls:CallLayer._model_starts",
    "adapters.langgraph.nodes:GuardedNode._enter",
    "adapters.langgraph.nodes:GuardedNode._left",
    "adapters.langgraph.nodes:GuardedNode._failed",
    "adapters.langgraph.nodes:GuardedNode._end",
    "adapters.langgraph.nodes:GuardedNode._refused",
    "adapters.langgraph.saving:mended_input",
    "adapters.langgraph.saving:amended_input",
    "adapters.langgraph.speaking:Unlending._freed",
    "adapters.langgraph.subagents:SubAgents.instead",
    "adapters.langgraph.supervisor:_open",
    "adapters.langgraph.supervisor:_resume",
    "adapters.langgraph.supervisor:_aresume",
    "adapters.langgraph.supervisor:_not_started",
    "adapters.langgraph.supervisor:_finish",
    "adapters.langgraph.supervisor:_afinish",
    "adapters.money.metering:cut_in",
    "adapters.run:Run.leaves_alone",
    "adapters.langgraph.state:load",
    "adapters.langgraph.state:aload",
    "adapters.toolcalls:_ask",
    "adapters.toolcalls:_answered",
    "adapters.toolcalls:_failed",
    # One expression each.
    "adapters.calls:current_run",
    "adapters.langgraph.compat_tools:_config_in",
    "adapters.langgraph.supervisor:_pauses",
    "adapters.langgraph.voyage:Voyage.swallows",
    "adapters.langgraph.voyage:Voyage.verdict",
    "adapters.signals:stop_in",
}
RECOVERS = {
    # What these fail to do is done in another way, so there is nothing to report.
    "core.canonical:_is_plain",
    "core.canonical:_plain_json",
}

EXHIBITS = {
    exhibit.name: exhibit
    for exhibit in (*AGENTS, *CONTROL, *RESILIENCE)
    if exhibit.name
    in ("agent", "agent_approval", "agent_tool_error", "subgraph_interrupt", "error")
}
HOW = ["invoke", "ainvoke"]


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Faults are logged; thousands of them need not be."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def one_turn(name: str) -> Exhibit:
    exhibit = EXHIBITS[name]
    return dataclasses.replace(exhibit, turns=exhibit.turns[:1])


def take(exhibit: Exhibit, graph: Graph, how: str) -> Any:
    if how == "invoke":
        return each_turn(exhibit, graph, graph.invoke)
    return asyncio.run(each_turn_async(exhibit, graph, graph.ainvoke))


def seen_of(exhibit: Exhibit, graph: Graph, given: Any) -> Any:
    return given, history(exhibit, graph), stored(exhibit, graph)


def functions(exhibit: Exhibit, how: str) -> dict[str, CodeType]:
    """All that the guard calls in a run of an exhibit."""
    codes: dict[str, CodeType] = {}
    guarded = shearpin.guard(exhibit.build())
    with calls_of(codes):
        take(exhibit, guarded, how)
    return {name: code for name, code in codes.items() if "<genexpr>" not in name}


CASES = [("agent", 1), ("agent", 2), *((name, 1) for name in EXHIBITS if name != "agent")]


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize(("name", "nth"), CASES)
def test_any_function_may_fail(name: str, how: str, nth: int) -> None:
    """The n-th call of each fails; what the agent covers already is left out for the others."""
    exhibit = one_turn(name)
    plain = exhibit.build()
    expected = seen_of(exhibit, plain, take(exhibit, plain, how))
    hurt: list[str] = []
    unreported: list[str] = []
    broken = functions(exhibit, how)
    if name == "agent":
        assert len(broken) > 100
    else:
        broken = {f: broken[f] for f in broken.keys() - functions(one_turn("agent"), how).keys()}
        assert broken
    for function, code in broken.items():
        if function in SHELLS:
            continue
        guarded = shearpin.guard(exhibit.build())
        with fault_in(code, nth) as fired:
            given = take(exhibit, guarded, how)
        if seen_of(exhibit, guarded, given) != expected:
            hurt.append(function)
        elif fired and function not in RECOVERS and not guarded.report(settings(exhibit)).faults:
            unreported.append(function)
    assert not hurt, hurt
    assert not unreported, unreported


# -- rules and verdicts ----------------------------------------------------------------------------


def runaway() -> Graph:
    """An agent that asks the same question sixteen times, and then gives up by itself."""

    def reply(messages: Any) -> AIMessage:
        turn = sum(message.type == "ai" for message in messages)
        if turn >= 16:
            return AIMessage("I give up")
        return AIMessage("", tool_calls=[call("weather", f"call {turn}", city="Rome")])

    return create_agent(ScriptedModel(reply=reply), [weather], checkpointer=InMemorySaver())


RUNAWAY = Exhibit("runaway", runaway, ({"messages": [HumanMessage("how is Rome?", id="h1")]},))


class _FaultyProbe:
    def observe(self, seen: Seen) -> None:
        raise InjectedError("observe")

    def forget(self, agent: str | None) -> None:
        raise InjectedError("forget")

    def dump(self) -> object:
        raise InjectedError("dump")

    def load(self, data: object) -> None:
        raise InjectedError("load")


@dataclasses.dataclass(frozen=True)
class Faulty:
    """A rule of the user's own that fails whatever it is asked."""

    family: ClassVar[str] = "faulty"
    watches: ClassVar[tuple[type[Seen], ...]] = (ToolSeen, RoundSeen)

    def probe(self) -> _FaultyProbe:
        return _FaultyProbe()


def breaks(*args: object, **kwargs: object) -> Any:
    raise InjectedError("broken on purpose")


def compared(how: str, build: Callable[[Graph], Graph]) -> tuple[Any, Any, Graph]:
    plain = RUNAWAY.build()
    expected = seen_of(RUNAWAY, plain, take(RUNAWAY, plain, how))
    guarded = build(RUNAWAY.build())
    return seen_of(RUNAWAY, guarded, take(RUNAWAY, guarded, how)), expected, guarded


def test_without_a_fault_the_runaway_is_stopped() -> None:
    seen, expected, guarded = compared("invoke", shearpin.guard)
    assert seen != expected
    assert guarded.report(settings(RUNAWAY)).outcome == "stopped"


@pytest.mark.parametrize("how", HOW)
def test_a_rule_may_fail(how: str) -> None:
    seen, expected, guarded = compared(how, lambda g: shearpin.guard(g, detectors=(Faulty(),)))
    assert seen == expected
    told = guarded.report(settings(RUNAWAY)).faults
    assert any("detector faulty" in fault for fault in told)


@pytest.mark.parametrize("how", HOW)
def test_a_faulty_rule_does_not_silence_the_others(how: str) -> None:
    rules = (Faulty(), *shearpin.Guard().detectors)
    _, _, guarded = compared(how, lambda g: shearpin.guard(g, detectors=rules))
    report = guarded.report(settings(RUNAWAY))
    assert report.outcome == "stopped"
    assert any("faulty" in fault for fault in report.faults)


JUDGING = [(Session, "_answer"), (Session, "_give"), (Session, "_observe")]


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize(("owner", "name"), JUDGING, ids=[name for _, name in JUDGING])
def test_judgement_may_fail(
    owner: Any, name: str, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where no verdict can be given, a runaway runs as if unguarded."""
    monkeypatch.setattr(owner, name, breaks)
    seen, expected, guarded = compared(how, shearpin.guard)
    assert seen == expected
    assert guarded.report(settings(RUNAWAY)).faults


WORDS = [
    (acting, "nudge_text"),
    (acting, "block_text"),
    (acting, "halt_text"),
    (Ladder, "climb"),
    (Breaker, "signal"),
    (Breaker, "lease"),
    (Ladder, "refuse"),
    (Ladder, "refusal"),
]


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize(("owner", "name"), WORDS, ids=[name for _, name in WORDS])
def test_a_part_of_a_verdict_may_fail(
    owner: Any, name: str, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other rungs of the ladder still hold, or none does; the run ends either way."""
    monkeypatch.setattr(owner, name, breaks)
    seen, _, guarded = compared(how, shearpin.guard)
    (answer,) = seen[0]
    assert answer["messages"][-1]["content"], answer
    assert guarded.get_state(settings(RUNAWAY)).next == ()


@pytest.mark.parametrize("how", HOW)
def test_any_function_that_acts_may_fail(how: str) -> None:
    """A run that is being stopped ends normally, with a last word or as it would have by itself."""
    hurt: list[str] = []
    calm = functions(one_turn("agent"), how)
    broken = functions(RUNAWAY, how)
    for function in broken.keys() - calm.keys() - SHELLS:
        code = broken[function]
        guarded = shearpin.guard(RUNAWAY.build())
        with fault_in(code):
            (answer,) = take(RUNAWAY, guarded, how)
        if "messages" not in answer or guarded.get_state(settings(RUNAWAY)).next != ():
            hurt.append(function)
    assert not hurt, hurt

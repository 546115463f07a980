"""What authors plug in, each reached through a graph: state keys, progress, identity of calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypedDict

import pytest
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.tools import BaseTool, tool
from langgraph.graph import END, START, StateGraph

import shearpin
from shearpin import ConfigError, ToolFacts
from shearpin.detectors import DEFAULT_DETECTORS, NoProgress, StateOscillations
from shearpin.testing import StrictProvider, asks_for
from tests.adapters.builds import react_builder

MESSAGES: Any = {"messages": [("user", "do it")]}


# -- the state that counts -------------------------------------------------------------------------


class State(TypedDict, total=False):
    plan: str
    check: str
    round: int


def only(key: Any = None) -> tuple[StateOscillations]:
    return (StateOscillations(key=key),)


def planning(rounds: int, plan: Callable[[int], str], **options: Any) -> Any:
    """A planner and a checker, with a counter of rounds in the state."""
    model = StrictProvider(lambda messages, call: f"thought {call}")

    def planner(state: State) -> State:
        model.invoke([("user", "plan")])
        number = state.get("round", 0) + 1
        return {"plan": plan(number), "round": number}

    def checker(state: State) -> State:
        model.invoke([("user", "check")])
        return {"check": f"{state.get('plan')} will not do", "round": state.get("round", 0)}

    builder: StateGraph[Any] = StateGraph(State)
    builder.add_node("planner", planner)
    builder.add_node("checker", checker)
    builder.add_edge(START, "planner")
    builder.add_edge("planner", "checker")
    builder.add_conditional_edges(
        "checker", lambda state: END if state["round"] >= rounds else "planner", ["planner", END]
    )
    return shearpin.guard(builder.compile(), **options)


def back_and_forth(number: int) -> str:
    return "abba"[number % 4] + "plan"


def told(app: Any) -> set[str | None]:
    app.invoke({"round": 0}, {"recursion_limit": 100})
    assert not app.report().faults
    return {verdict.rule for verdict in app.report().verdicts}


@pytest.mark.parametrize(
    "key",
    [
        ("plan", "check"),
        lambda update: (update.get("plan"), update.get("check")),
        lambda update: hash((update.get("plan"), update.get("check"))),
    ],
)
def test_an_author_says_what_makes_up_the_state(key: Any) -> None:
    assert "state_oscillation" in told(planning(12, back_and_forth, detectors=only(key=key)))


def test_without_that_a_counter_makes_every_state_a_new_one() -> None:
    assert told(planning(12, back_and_forth, detectors=only())) == set()


@pytest.mark.parametrize("key", [("plan",), lambda update: update.get("plan")])
def test_a_plan_that_changes_is_left_alone(key: Any) -> None:
    app = planning(12, lambda number: f"plan {number}", detectors=only(key=key))
    assert told(app) == set()


def test_a_key_that_fails_is_reported_and_the_run_goes_on() -> None:
    app = planning(3, back_and_forth, detectors=only(key=lambda update: update["no such key"]))
    assert app.invoke({"round": 0})["round"] == 3
    assert any("nodes.left" in fault for fault in app.report().faults)


@pytest.mark.parametrize("key", ["plan", (), 7])
def test_a_wrong_key_is_refused(key: Any) -> None:
    with pytest.raises(ConfigError, match="key"):
        StateOscillations(key=key)


# -- progress --------------------------------------------------------------------------------------


def left(text: str) -> int:
    return int(text.split()[0])


def fewer_left(before: str, after: str) -> float:
    return max(0.0, (left(before) - left(after)) / max(1, left(before)))


def counting(results: Callable[[int], int], **options: Any) -> Any:
    @tool
    def run_checks(target: str) -> str:
        """Run the checks."""
        return f"{results(int(target))} checks are left"

    def script(messages: Sequence[BaseMessage], call: int) -> AIMessage | str:
        return asks_for(("run_checks", {"target": str(call)})) if call < 15 else "Done."

    tools: list[BaseTool] = [run_checks]
    return shearpin.guard(react_builder(StrictProvider(script), tools).compile(), **options)


def test_a_progress_function_tells_that_nothing_moves() -> None:
    rule = NoProgress(fewer_left, tools=("run_checks",))
    app = counting(lambda n: 7 + n, detectors=(rule,))
    app.invoke(MESSAGES)
    assert "no_progress" in {verdict.rule for verdict in app.report().verdicts}


def test_progress_is_left_alone() -> None:
    app = counting(lambda n: 40 - n, detectors=(*DEFAULT_DETECTORS, NoProgress(fewer_left)))
    app.invoke(MESSAGES)
    assert app.report().verdicts == () and not app.report().faults


# -- identity of calls -----------------------------------------------------------------------------


@tool
def fetch(url: str, nonce: int) -> str:
    """Fetch a page."""
    return "the same page"


def fetching(**options: Any) -> Any:
    def script(messages: Sequence[BaseMessage], call: int) -> AIMessage | str:
        return asks_for(("fetch", {"url": "a.example", "nonce": call})) if call < 5 else "Done."

    return shearpin.guard(react_builder(StrictProvider(script), [fetch]).compile(), **options)


@pytest.mark.parametrize("key", [("url",), lambda args: args["url"]])
def test_an_author_says_what_identifies_a_call(key: Any) -> None:
    app = fetching(tools={"fetch": ToolFacts(key=key)})
    app.invoke(MESSAGES)
    assert [verdict.rule for verdict in app.report().verdicts][:1] == ["repeat"]


def test_without_that_calls_with_other_arguments_are_other_calls() -> None:
    app = fetching()
    app.invoke(MESSAGES)
    assert app.report().verdicts == ()

"""The six actions at a failed node, in every kind of graph, however it is run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver

import shearpin
from shearpin.boundary import Boundary
from tests.boundary.failing import (
    HELLO,
    HOW,
    THREAD,
    Failing,
    OutageError,
    agent_graph,
    fan_graph,
    faultless,
    flow,
    nested_graph,
    plan_graph,
    run,
    texts,
)

each_way = pytest.mark.parametrize("how", HOW)
each_saver = pytest.mark.parametrize("saved", [False, True], ids=["without", "saver"])

HINT = "failed before: the drawer is stuck"


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Nobody waits; what would have been waited is noted."""
    waited: list[float] = []

    async def asleep(seconds: float) -> None:
        waited.append(seconds)

    monkeypatch.setattr("shearpin.clock.sleep", waited.append)
    monkeypatch.setattr("shearpin.clock.asleep", asleep)
    return waited


class Place(NamedTuple):
    """A kind of graph.

    Attributes:
        build: the graph, around what may fail.
        node: the node that fails.
        other: the node that may take its place.
        good: what its own work leaves.
        substitute: what is written in place of that.
        absent: actions that cannot exist here, and why.
    """

    build: Callable[..., Any]
    node: str
    other: str
    good: str
    substitute: Any
    absent: Mapping[str, str] = MappingProxyType({})


PLACES = {
    "graph": Place(plan_graph, "work", "other", "worked", {"found": ["substitute"]}),
    "subgraph": Place(nested_graph, "work", "other", "worked", {"found": ["substitute"]}),
    "branch": Place(
        fan_graph,
        "work",
        "other",
        "worked 1",
        {"found": ["substitute"]},
        {"rollback": "a branch shares its superstep with others: no state is its alone"},
    ),
    "agent": Place(
        agent_graph,
        "model",
        "Rescue.after_agent",
        "worked",
        {"messages": [AIMessage("substitute")]},
    ),
    "entrypoint": Place(
        flow,
        "work",
        "-",
        "prepared 1",
        {"messages": [*HELLO["messages"], AIMessage("substitute")]},
        {
            "rollback": "an entrypoint has no earlier state to go back to",
            "alternative": "an entrypoint has no other node",
            "modify_prompt": "an entrypoint's input is no conversation that LangGraph knows of",
        },
    ),
}
each_place = pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)


def never(messages: list[BaseMessage], call: int) -> bool:
    return False


def third_time(messages: list[BaseMessage], call: int) -> bool:
    return call > 2


def hinted(messages: list[BaseMessage], call: int) -> bool:
    return any(HINT in text for text in texts(messages))


def reconsidered(messages: list[BaseMessage], call: int) -> bool:
    return any(
        "the drawer is stuck" in text and "Try another way" in text for text in texts(messages)
    )


def guarded(place: Place, fails: Failing, saved: bool, **options: Any) -> Any:
    graph = place.build(fails, InMemorySaver() if saved else None)
    return shearpin.guard(graph, boundary=Boundary(**options))


def skip_absent(place: Place, action: str) -> None:
    if action in place.absent:
        pytest.skip(place.absent[action])


def told(values: Any) -> str:
    """All that a run has left, as text."""
    return "\n".join([*texts(values["messages"]), *values.get("found", [])])


def next_turn(graph: Any, place: Place, fails: Failing, values: Any, how: str, saved: bool) -> Any:
    """The conversation goes on, and nothing fails any more."""
    faultless(values["messages"])
    fails.until = lambda messages, call: True
    question = HumanMessage("and now?", id="h2")
    known = [] if saved and place.build is not flow else values["messages"]
    given = {"messages": [*known, question]}
    later = run(graph, how, given, THREAD)
    faultless(later["messages"])
    return later


@each_saver
@each_way
@each_place
def test_retry(place: Place, how: str, saved: bool, waits: list[float]) -> None:
    fails = Failing(third_time)
    graph = guarded(place, fails, saved, on={OutageError: "retry"})
    values = run(graph, how, HELLO, THREAD)
    assert place.good in told(values)
    assert fails.calls == 3
    report = graph.report(THREAD).boundary
    assert (report.errors, report.retries, report.abnormal) == (2, 2, False)
    assert report.actions == {"retry": 2}
    assert waits == []  # a wait helps only against what passes by itself
    next_turn(graph, place, fails, values, how, saved)


@each_saver
@each_way
@each_place
def test_continue(place: Place, how: str, saved: bool) -> None:
    fails = Failing(never)
    substitute = {place.node: place.substitute}
    graph = guarded(place, fails, saved, on={OutageError: "continue"}, substitute=substitute)
    values = run(graph, how, HELLO, THREAD)
    assert "substitute" in told(values)
    if "found" in values:
        assert "closed: " in told(values)  # the node's edges were followed
    assert fails.calls == 1
    report = graph.report(THREAD).boundary
    assert (report.errors, report.degraded, report.abnormal) == (1, 1, False)
    next_turn(graph, place, fails, values, how, saved)


@each_saver
@each_way
@each_place
def test_alternative(place: Place, how: str, saved: bool) -> None:
    skip_absent(place, "alternative")
    fails = Failing(never)
    ways = {place.node: place.other}
    graph = guarded(place, fails, saved, on={OutageError: "alternative"}, alternative=ways)
    values = run(graph, how, HELLO, THREAD)
    assert "from memory" in told(values)
    assert place.good not in told(values)
    report = graph.report(THREAD).boundary
    assert report.actions == {"alternative": 1}
    assert any(place.other in how for how in report.degradations)
    next_turn(graph, place, fails, values, how, saved)


@each_saver
@each_way
@each_place
def test_modify_prompt(place: Place, how: str, saved: bool) -> None:
    skip_absent(place, "modify_prompt")
    fails = Failing(hinted)
    on = {OutageError: "modify_prompt"}
    graph = guarded(place, fails, saved, on=on, prompt="{node} failed before: {error} ({attempt})")
    values = run(graph, how, HELLO, THREAD)
    assert place.good in told(values)
    assert fails.calls == 2
    assert HINT in texts(fails.seen[1])[-1]
    assert place.node in texts(fails.seen[1])[-1]
    assert HINT not in told(values)
    later = next_turn(graph, place, fails, values, how, saved)
    assert HINT not in told(later)


@each_saver
@each_way
@each_place
def test_rollback(place: Place, how: str, saved: bool) -> None:
    skip_absent(place, "rollback")
    fails = Failing(reconsidered)
    graph = guarded(place, fails, saved, on={OutageError: "rollback"})
    values = run(graph, how, HELLO, THREAD)
    assert place.good in told(values)
    if "found" in values:
        assert "plan 1" not in told(values)
        assert "plan 2" in told(values)
    assert sum("Try another way" in text for text in texts(values["messages"])) == 1
    assert graph.report(THREAD).boundary.actions == {"rollback": 1}
    next_turn(graph, place, fails, values, how, saved)


@each_saver
@each_way
@each_place
def test_terminate(place: Place, how: str, saved: bool) -> None:
    fails = Failing(never)
    graph = guarded(place, fails, saved, on={OutageError: "terminate"})
    values = run(graph, how, HELLO, THREAD)
    report = graph.report(THREAD)
    assert report.outcome == "stopped"
    assert report.reason == "failures:unknown"
    assert not report.boundary.abnormal
    if values is None:
        assert place.build is flow  # it declares no return type that could say so
        return
    words = str(values["messages"][-1].content)
    assert words.startswith("This could not be finished")
    assert "drawer" not in told(values)
    assert "closed: " not in told(values)
    if saved:
        assert graph.get_state(THREAD).next == ()
    later = next_turn(graph, place, fails, values, how, saved)
    assert place.good in told(later)


@each_saver
@each_way
@each_place
def test_raise(place: Place, how: str, saved: bool) -> None:
    fails = Failing(never)
    graph = guarded(place, fails, saved, on={OutageError: "raise"})
    with pytest.raises(OutageError, match="the drawer is stuck"):
        run(graph, how, HELLO, THREAD)
    report = graph.report(THREAD)
    assert report.outcome == "failed"
    assert report.boundary.abnormal
    assert report.boundary.errors == 1


EVENTS: dict[str, tuple[Any, dict[str, Any], str]] = {
    "retry": (third_time, {}, "closed: worked"),
    "continue": (never, {"substitute": {"work": {"found": ["by hand"]}}}, "closed: by hand"),
    "alternative": (never, {"alternative": {"work": "other"}}, "closed: from memory"),
    "modify_prompt": (hinted, {"prompt": "{node} failed before: {error}"}, "closed: worked"),
    "rollback": (reconsidered, {}, "closed: worked"),
    "terminate": (never, {}, "This could not be finished"),
}


@each_saver
@pytest.mark.parametrize("action", EVENTS)
async def test_nodes_that_are_streamed(action: str, saved: bool) -> None:
    """`astream_events` makes LangGraph stream each node instead of calling it."""
    until, options, last = EVENTS[action]
    fails = Failing(until)
    graph = guarded(PLACES["graph"], fails, saved, on={OutageError: action}, **options)
    events = [event async for event in graph.astream_events(HELLO, THREAD, version="v2")]
    assert events[-1]["event"] == "on_chain_end"
    messages = events[-1]["data"]["output"]["messages"]
    assert str(messages[-1].content).startswith(last)
    faultless(messages)
    assert set(graph.report(THREAD).boundary.actions) == {action}


async def test_an_error_that_is_raised_is_raised_from_a_stream_as_well() -> None:
    graph = guarded(PLACES["graph"], Failing(never), False, on={OutageError: "raise"})
    with pytest.raises(OutageError):
        async for _ in graph.astream_events(HELLO, THREAD, version="v2"):
            pass


@each_way
@each_place
def test_what_cannot_exist_somewhere_gives_way_to_the_next_best(place: Place, how: str) -> None:
    """Each reason by which cells of the table are left out is what really happens there."""
    for action in place.absent:
        fails = Failing(never)
        graph = guarded(place, fails, False, on={OutageError: action})
        silent = place is PLACES["entrypoint"]  # it returns a state, in which nothing could tell
        with pytest.raises(OutageError) if silent else nullcontext():
            run(graph, how, HELLO, THREAD)
        told = {"raise": 1} if silent else {"terminate": 1}
        assert graph.report(THREAD).boundary.actions == told
        assert fails.calls == 1

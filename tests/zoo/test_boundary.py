"""Promise P2 with an error boundary: nothing differs where nothing fails, or where it watches."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

import shearpin
from tests.zoo.exhibit import LANGGRAPH, Exhibit, Graph
from tests.zoo.observe import (
    MODES,
    collect,
    each_turn,
    each_turn_async,
    history,
    outside,
    settings,
    stored,
    unordered,
)
from tests.zoo.test_differential import (
    EXHIBITS,
    asynchronous,
    pytestmark,
    repair,
    synchronous,
)

__all__ = ["pytestmark"]

every = pytest.mark.parametrize("exhibit", EXHIBITS, ids=lambda exhibit: exhibit.name)
each_mode = pytest.mark.parametrize("mode", ["enforce", "observe"])


@cache
def failures(name: str) -> int:
    """How much fails in an exhibit by itself: its boundary counts, and does nothing."""
    exhibit = next(exhibit for exhibit in EXHIBITS if exhibit.name == name)
    graph = shearpin.guard(
        exhibit.build(), boundary=True, mode="observe", repair=repair(exhibit), state="memory"
    )
    if exhibit.only_async:
        return 0
    errors = 0
    for turn in exhibit.turns:
        each_turn(
            Exhibit(exhibit.name, lambda: graph, (turn,), exhibit.config, exhibit.options),
            graph,
            lambda t, c: graph.invoke(t, c, **exhibit.options),
        )
        told = graph.report(settings(exhibit)).boundary
        errors += told.errors if told is not None else 0
    return errors


def pair(exhibit: Exhibit, mode: Any) -> tuple[Graph, Graph]:
    """The same exhibit twice, plain and guarded; what fails is shown only to one that watches."""
    exhibit.require()
    if mode == "enforce" and failures(exhibit.name):
        pytest.skip("something fails in it, about which an acting boundary does something")
    guarded = shearpin.guard(exhibit.build(), boundary=True, mode=mode, repair=repair(exhibit))
    return exhibit.build(), guarded


def test_most_exhibits_are_healthy() -> None:
    there = [exhibit for exhibit in EXHIBITS if exhibit.since <= LANGGRAPH]
    known = [exhibit for exhibit in there if exhibit.needs is None]
    healthy = [exhibit for exhibit in known if not failures(exhibit.name)]
    assert len(healthy) >= 20
    assert len(healthy) < len(known)


@every
@each_mode
def test_outside_and_invoke_and_history(exhibit: Exhibit, mode: str) -> None:
    synchronous(exhibit)

    def observe(graph: Graph) -> Any:
        given = each_turn(exhibit, graph, lambda t, c: graph.invoke(t, c, **exhibit.options))
        return outside(graph), given, history(exhibit, graph), stored(exhibit, graph)

    plain, guarded = pair(exhibit, mode)
    assert observe(guarded) == observe(plain)
    assert guarded.report(settings(exhibit)).faults == ()


@every
@each_mode
async def test_ainvoke_and_history(exhibit: Exhibit, mode: str) -> None:
    asynchronous(exhibit)

    async def observe(graph: Graph) -> Any:
        given = await each_turn_async(
            exhibit, graph, lambda t, c: graph.ainvoke(t, c, **exhibit.options)
        )
        return given, history(exhibit, graph), stored(exhibit, graph)

    plain, guarded = pair(exhibit, mode)
    assert await observe(guarded) == await observe(plain)


@every
@each_mode
def test_stream(exhibit: Exhibit, mode: str) -> None:
    synchronous(exhibit)

    def observe(graph: Graph) -> Any:
        options = {"stream_mode": MODES, "subgraphs": True, **exhibit.options}
        given = each_turn(
            exhibit,
            graph,
            lambda t, c: collect(graph.stream(t, c, **options), []),
            eager=True,
        )
        return unordered(given), history(exhibit, graph)

    plain, guarded = pair(exhibit, mode)
    assert observe(guarded) == observe(plain)


@every
@each_mode
async def test_astream_events(exhibit: Exhibit, mode: str) -> None:
    asynchronous(exhibit)

    async def observe(graph: Graph) -> Any:
        async def run(turn: Any, config: Any) -> Any:
            events = graph.astream_events(turn, config, version="v2", **exhibit.options)
            return [event async for event in events]

        given = await each_turn_async(exhibit, graph, run, numbered=not exhibit.parallel)
        return unordered(given) if exhibit.parallel else given

    plain, guarded = pair(exhibit, mode)
    expected, given = await observe(plain), await observe(guarded)
    if (
        mode == "enforce"
        and LANGGRAPH < (1, 1)
        and guarded.report(settings(exhibit)).boundary.errors
    ):
        pytest.skip("fails by itself on this host where it is streamed, and is bounded")
    assert given == expected

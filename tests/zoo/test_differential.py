"""Promise P2 on our own exhibits: all that can be seen of a guarded graph equals the plain one."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph

import shearpin
from tests.zoo import (
    agent_graphs,
    control_graphs,
    functional_graphs,
    resilience_graphs,
    state_graphs,
)
from tests.zoo.exhibit import Exhibit, Graph
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

pytestmark = [
    pytest.mark.filterwarnings("ignore::langchain_core._api.LangChainBetaWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::PendingDeprecationWarning"),
    pytest.mark.filterwarnings("ignore:Pydantic serializer warnings:UserWarning"),
]

EXHIBITS: list[Exhibit] = [
    *state_graphs.EXHIBITS,
    *control_graphs.EXHIBITS,
    *resilience_graphs.EXHIBITS,
    *functional_graphs.EXHIBITS,
    *agent_graphs.EXHIBITS,
]
every = pytest.mark.parametrize("exhibit", EXHIBITS, ids=lambda exhibit: exhibit.name)
each_state = pytest.mark.parametrize("state", ["memory", "checkpointer"])


def pair(exhibit: Exhibit, state: Any = "auto") -> tuple[Graph, Graph]:
    """The same exhibit twice, plain and guarded."""
    exhibit.require()
    return exhibit.build(), shearpin.guard(exhibit.build(), state=state, repair=repair(exhibit))


def repair(exhibit: Exhibit) -> str:
    return "off" if exhibit.broken else "lend"


def synchronous(exhibit: Exhibit) -> None:
    if exhibit.only_async:
        pytest.skip("has nodes that only run async")


def asynchronous(exhibit: Exhibit) -> None:
    if any(callable(turn) for turn in exhibit.turns):
        pytest.skip("acts on the thread between turns, which is compared in the sync tests")


def one_by_one(exhibit: Exhibit) -> None:
    if exhibit.parallel:
        pytest.skip("its threads share a count, so the outcome of a batch depends on the order")


def test_there_are_enough_exhibits() -> None:
    names = [exhibit.name for exhibit in EXHIBITS]
    assert len(names) >= 25
    assert len(set(names)) == len(names)


@every
def test_outside(exhibit: Exhibit) -> None:
    plain, guarded = pair(exhibit)
    assert outside(guarded) == outside(plain)


@every
@each_state
def test_invoke_and_history(exhibit: Exhibit, state: str) -> None:
    synchronous(exhibit)

    def observe(graph: Graph) -> Any:
        given = each_turn(exhibit, graph, lambda t, c: graph.invoke(t, c, **exhibit.options))
        return given, history(exhibit, graph), stored(exhibit, graph)

    plain, guarded = pair(exhibit, state)
    assert observe(guarded) == observe(plain)


@every
@each_state
async def test_ainvoke_and_history(exhibit: Exhibit, state: str) -> None:
    asynchronous(exhibit)

    async def observe(graph: Graph) -> Any:
        given = await each_turn_async(
            exhibit, graph, lambda t, c: graph.ainvoke(t, c, **exhibit.options)
        )
        return given, history(exhibit, graph), stored(exhibit, graph)

    plain, guarded = pair(exhibit, state)
    assert await observe(guarded) == await observe(plain)


@every
@pytest.mark.parametrize(
    ("mode", "subgraphs"),
    [("values", False), ("updates", False), ("messages", False), (MODES, False), (MODES, True)],
    ids=["values", "updates", "messages", "all", "nested"],
)
def test_stream(exhibit: Exhibit, mode: Any, subgraphs: bool) -> None:
    synchronous(exhibit)

    def observe(graph: Graph) -> Any:
        items: list[Any] = []
        options = {"stream_mode": mode, "subgraphs": subgraphs, **exhibit.options}
        eager = mode is MODES or mode == "messages"
        given = each_turn(
            exhibit,
            graph,
            lambda t, c: collect(graph.stream(t, c, **options), items),
            eager=eager,
        )
        return unordered(given) if eager else given, history(exhibit, graph)

    plain, guarded = pair(exhibit)
    assert observe(guarded) == observe(plain)


@every
async def test_astream(exhibit: Exhibit) -> None:
    asynchronous(exhibit)

    async def observe(graph: Graph) -> Any:
        options = {"stream_mode": MODES, "subgraphs": True, **exhibit.options}

        async def run(turn: Any, config: Any) -> Any:
            return [item async for item in graph.astream(turn, config, **options)]

        return await each_turn_async(exhibit, graph, run)

    plain, guarded = pair(exhibit)
    assert await observe(guarded) == await observe(plain)


@every
def test_stream_of_typed_parts(exhibit: Exhibit) -> None:
    synchronous(exhibit)
    plain, guarded = pair(exhibit)
    if "version" not in inspect.signature(plain.stream).parameters:
        pytest.skip("this langgraph has one format only")

    def observe(graph: Graph) -> Any:
        options = {"stream_mode": MODES, "version": "v2", **exhibit.options}
        return unordered(
            each_turn(
                exhibit, graph, lambda t, c: collect(graph.stream(t, c, **options), []), eager=True
            )
        )

    assert observe(guarded) == observe(plain)


@every
async def test_astream_events(exhibit: Exhibit) -> None:
    asynchronous(exhibit)

    async def observe(graph: Graph) -> Any:
        async def run(turn: Any, config: Any) -> Any:
            events = graph.astream_events(turn, config, version="v2", **exhibit.options)
            return [event async for event in events]

        given = await each_turn_async(exhibit, graph, run, numbered=not exhibit.parallel)
        return unordered(given) if exhibit.parallel else given

    plain, guarded = pair(exhibit)
    assert await observe(guarded) == await observe(plain)


@every
def test_batch(exhibit: Exhibit) -> None:
    synchronous(exhibit)
    one_by_one(exhibit)

    def observe(graph: Graph) -> Any:
        def run(turn: Any, config: Any) -> Any:
            configs = [{**config, "configurable": {"thread_id": str(n)}} for n in range(3)]
            return graph.batch([turn] * 3, configs, return_exceptions=True, **exhibit.options)

        return each_turn(exhibit, graph, run)

    plain, guarded = pair(exhibit)
    assert observe(guarded) == observe(plain)


@every
async def test_abatch(exhibit: Exhibit) -> None:
    asynchronous(exhibit)
    one_by_one(exhibit)

    async def observe(graph: Graph) -> Any:
        async def run(turn: Any, config: Any) -> Any:
            configs = [{**config, "configurable": {"thread_id": str(n)}} for n in range(3)]
            given = graph.abatch([turn] * 3, configs, return_exceptions=True, **exhibit.options)
            return await given

        return await each_turn_async(exhibit, graph, run)

    plain, guarded = pair(exhibit)
    assert await observe(guarded) == await observe(plain)


@every
def test_derived_graphs_stay_guarded(exhibit: Exhibit) -> None:
    plain, guarded = pair(exhibit)
    derived = guarded.with_config(tags=["x"]).copy()
    assert type(derived) is type(guarded)
    assert outside(derived) == outside(plain.with_config(tags=["x"]).copy())
    assert shearpin.guard(guarded, repair=repair(exhibit)) is guarded


@every
def test_nothing_is_found_and_no_fault_kept(exhibit: Exhibit) -> None:
    synchronous(exhibit)
    _, guarded = pair(exhibit)
    each_turn(exhibit, guarded, lambda t, c: guarded.invoke(t, c, **exhibit.options))
    told = guarded.report(settings(exhibit)).to_json()
    assert told["verdicts"] == []
    assert told["faults"] == []


def test_the_observations_can_tell_graphs_apart() -> None:
    """A guard that left one more step, or one more key, would be seen."""

    def variant(*nodes: str) -> Graph:
        builder = StateGraph(control_graphs.Log)
        before = START
        for name in nodes:
            builder.add_node(name, lambda _: {"said": ["x"]})
            builder.add_edge(before, name)
            before = name
        return builder.compile(checkpointer=InMemorySaver())

    def observe(exhibit: Exhibit) -> list[Any]:
        graph = exhibit.build()
        given = each_turn(exhibit, graph, lambda t, c: collect(graph.stream(t, c), []))
        return [given, history(exhibit, graph), stored(exhibit, graph), outside(graph)]

    one = observe(Exhibit("one", lambda: variant("a"), ({"said": []},)))
    two = observe(Exhibit("two", lambda: variant("a", "b"), ({"said": []},)))
    assert all(left != right for left, right in zip(one, two, strict=True))

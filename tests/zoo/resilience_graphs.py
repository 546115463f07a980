"""Exhibits about what goes wrong and what is kept: errors, retries, caches, stores, history."""

from __future__ import annotations

import operator
from collections import Counter
from dataclasses import dataclass
from typing import Annotated, Any

from langgraph.cache.memory import InMemoryCache
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.config import get_config, get_store, get_stream_writer
from langgraph.graph import START, StateGraph
from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore
from langgraph.types import CachePolicy, Command, RetryPolicy, StreamWriter
from typing_extensions import TypedDict

from tests.zoo.exhibit import Exhibit, Graph


class Log(TypedDict, total=False):
    """What the nodes said."""

    said: Annotated[list[str], operator.add]
    number: int


def says(text: str) -> Any:
    return lambda state: {"said": [f"{text} after {len(state.get('said', []))}"]}


def line(*nodes: tuple[str, Any, dict[str, Any]], **compiled: Any) -> Graph:
    """Nodes one after the other."""
    builder = StateGraph(Log, context_schema=Who)
    before = START
    for name, action, options in nodes:
        builder.add_node(name, action, **options)
        builder.add_edge(before, name)
        before = name
    return builder.compile(checkpointer=InMemorySaver(), **compiled)


@dataclass
class Who:
    """The context of a run."""

    name: str = "nobody"


def failing(times: int, error: type[Exception] = ConnectionError) -> Any:
    """A node that fails some times, counted over the life of its graph."""
    seen: Counter[str] = Counter()

    def node(state: Log) -> Log:
        seen["calls"] += 1
        if seen["calls"] <= times:
            raise error(f"no {seen['calls']}")
        return {"said": [f"worked at {seen['calls']}"]}

    return node


quick = RetryPolicy(initial_interval=0.0001, jitter=False, max_attempts=3)


def retried(times: int) -> Graph:
    return line(
        ("before", says("before"), {}),
        ("flaky", failing(times), {"retry_policy": quick}),
        ("behind", says("behind"), {}),
    )


def raising() -> Graph:
    return line(("before", says("before"), {}), ("bad", failing(1, ValueError), {}))


def parallel_error() -> Graph:
    builder = StateGraph(Log)
    builder.add_node("good", says("good"))
    builder.add_node("bad", failing(1, KeyError))
    builder.add_edge(START, "good")
    builder.add_edge(START, "bad")
    return builder.compile(checkpointer=InMemorySaver())


def bad_update() -> Graph:
    builder = StateGraph(Log)
    builder.add_node("one", lambda _: {"number": 1})
    builder.add_node("two", lambda _: {"number": 2})
    builder.add_edge(START, "one")
    builder.add_edge(START, "two")
    return builder.compile(checkpointer=InMemorySaver())


def no_update() -> Graph:
    return line(("silent", lambda _: None, {}), ("wrong", lambda _: "text", {}))


def handled() -> Graph:
    from langgraph.errors import NodeError

    def handler(state: Log, error: NodeError) -> Command[Any]:
        return Command(update={"said": [f"{error.node}: {error.error!r}"]}, goto="behind")

    builder = StateGraph(Log)
    builder.add_node("bad", failing(9, ValueError), error_handler=handler, retry_policy=quick)
    builder.add_node("behind", says("behind"))
    builder.add_edge(START, "bad")
    return builder.compile(checkpointer=InMemorySaver())


def cached() -> Graph:
    policy = {"cache_policy": CachePolicy(key_func=lambda state: str(state.get("number")))}
    return line(
        ("slow", failing(0), policy),
        ("behind", says("behind"), {}),
        cache=InMemoryCache(),
    )


def writing() -> Graph:
    def writes(state: Log, writer: StreamWriter) -> Log:
        writer({"progress": 1})
        get_stream_writer()("half way")
        return {"said": ["written"]}

    return line(("writes", writes, {}), ("behind", says("behind"), {}))


def storing() -> Graph:
    def remember(state: Log, *, store: BaseStore) -> Log:
        store.put(("notes",), str(len(store.search(("notes",)))), {"said": state["said"][-1]})
        return {"said": [f"kept {len(store.search(('notes',)))}"]}

    def recall(state: Log) -> Log:
        return {"said": [str([item.value for item in get_store().search(("notes",))])]}

    return line(("remember", remember, {}), ("recall", recall, {}), store=InMemoryStore())


def contextual() -> Graph:
    def who(state: Log, runtime: Runtime[Who]) -> Log:
        return {"said": [f"{runtime.context.name} {runtime.store} {runtime.previous}"]}

    def where(state: Log) -> Log:
        config = get_config()
        metadata = {k: v for k, v in config["metadata"].items() if k.startswith("langgraph")}
        return {"said": [str(sorted(metadata.items())), str(sorted(config["configurable"]))]}

    return line(("who", who, {}), ("where", where, {}))


def durable() -> Graph:
    return line(("a", says("a"), {}), ("b", failing(1, ValueError), {}), ("c", says("c"), {}))


def travelling() -> Graph:
    return line(*((name, says(name), {}) for name in ("a", "b", "c")))


def update(graph: Graph, config: dict[str, Any]) -> object:
    """Write to the thread as if a node had."""
    return graph.update_state(config, {"said": ["from outside"]}, as_node="a")


def fork(graph: Graph, config: dict[str, Any]) -> object:
    """Change the past, and run on from there."""
    past = [s for s in graph.get_state_history(config) if s.next == ("b",)][-1]
    forked = graph.update_state(past.config, {"said": ["another past"]})
    return graph.invoke(None, {**config, **forked})


def replay(graph: Graph, config: dict[str, Any]) -> object:
    """Run on from a past checkpoint, unchanged."""
    past = [s for s in graph.get_state_history(config) if s.next == ("c",)][-1]
    return graph.invoke(None, {**config, **past.config})


def bulk(graph: Graph, config: dict[str, Any]) -> object:
    """Several updates in a row."""
    from langgraph.types import StateUpdate

    rows = [[StateUpdate({"said": ["1"]}, "a")], [StateUpdate({"said": ["2"]}, "b")]]
    return graph.bulk_update_state(config, rows)


async def async_node(state: Log) -> Log:
    return {"said": [f"async after {len(state['said'])}"]}


start: Log = {"said": ["start"]}
context = {"context": Who("Ada")}

EXHIBITS = [
    Exhibit("retry_succeeds", lambda: retried(2), (start, start)),
    Exhibit("retry_exhausted", lambda: retried(4), (start, None)),
    Exhibit("error", raising, (start, None, start)),
    Exhibit("error_in_parallel", parallel_error, (start, None)),
    Exhibit("conflicting_updates", bad_update, (start, start)),
    Exhibit("wrong_return", no_update, (start,)),
    Exhibit("error_handler", handled, (start, start), since=(1, 2)),
    Exhibit("cache", cached, ({"number": 1}, {"number": 1}, {"number": 2})),
    Exhibit("stream_writer", writing, (start,)),
    Exhibit("store", storing, (start, start)),
    Exhibit("context", contextual, (start,), options=context),
    Exhibit("durability_exit", durable, (start, None, start), options={"durability": "exit"}),
    Exhibit("durability_sync", durable, (start, None), options={"durability": "sync"}),
    Exhibit("update_state", travelling, (start, update, None, bulk, None)),
    Exhibit("time_travel", travelling, (start, fork, replay, start)),
    Exhibit(
        "async_only",
        lambda: line(("one", async_node, {}), ("two", async_node, {"retry_policy": quick})),
        (start, start),
        only_async=True,
    ),
    Exhibit("config_overrides", travelling, (start,), options={"interrupt_before": ["c"]}),
    Exhibit("output_keys", travelling, (start,), options={"output_keys": ["said"]}),
]

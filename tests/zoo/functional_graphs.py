"""Exhibits of the functional API, and of graphs made without a builder."""

from __future__ import annotations

from collections import Counter
from typing import Any

from langgraph.cache.memory import InMemoryCache
from langgraph.channels import EphemeralValue, LastValue
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint, task
from langgraph.pregel import NodeBuilder, Pregel
from langgraph.types import CachePolicy, Command, RetryPolicy, StreamWriter, interrupt

from tests.zoo.exhibit import Exhibit, Graph


def tasks() -> Graph:
    @task
    def double(number: int) -> int:
        return number * 2

    @entrypoint(checkpointer=InMemorySaver())
    def main(numbers: list[int], *, previous: Any = None) -> Any:
        total = sum(double(number).result() for number in numbers) + (previous or 0)
        return entrypoint.final(value={"total": total}, save=total)

    return main


def async_tasks() -> Graph:
    @task
    async def double(number: int) -> int:
        return number * 2

    @entrypoint(checkpointer=InMemorySaver())
    async def main(numbers: list[int], *, previous: Any = None) -> Any:
        return [await double(number) for number in numbers] + (previous or [])

    return main


def asking() -> Graph:
    @task
    def write(topic: str) -> str:
        return f"an essay about {topic}"

    @entrypoint(checkpointer=InMemorySaver())
    def main(topic: str, writer: StreamWriter) -> Any:
        essay = write(topic).result()
        writer({"essay": essay})
        return {"essay": essay, "approved": interrupt({"approve": essay})}

    return main


def flaky() -> Graph:
    seen: Counter[str] = Counter()

    @task(retry_policy=RetryPolicy(initial_interval=0.0001, jitter=False, max_attempts=3))
    def unreliable(times: int) -> str:
        seen["calls"] += 1
        if seen["calls"] <= times:
            raise ConnectionError(f"no {seen['calls']}")
        return f"worked at {seen['calls']}"

    @entrypoint(checkpointer=InMemorySaver())
    def main(times: int) -> str:
        return unreliable(times).result()

    return main


def cached() -> Graph:
    seen: Counter[int] = Counter()

    @task(cache_policy=CachePolicy())
    def slow(number: int) -> str:
        seen[number] += 1
        return f"{number} computed {seen[number]} times"

    @entrypoint(checkpointer=InMemorySaver(), cache=InMemoryCache())
    def main(numbers: list[int]) -> list[str]:
        return [slow(number).result() for number in numbers]

    return main


def nested() -> Graph:
    inner = tasks()

    @task
    def call(numbers: list[int]) -> Any:
        return inner.invoke(numbers, {"configurable": {"thread_id": "inner"}})

    @entrypoint(checkpointer=InMemorySaver())
    def main(numbers: list[int]) -> Any:
        return call(numbers).result()

    return main


def pregel() -> Graph:
    one = NodeBuilder().subscribe_only("a").do(lambda text: text + "!").write_to("b")
    two = NodeBuilder().subscribe_only("b").do(lambda text: text + "?").write_to("c")
    return Pregel(
        nodes={"one": one, "two": two},
        channels={"a": EphemeralValue(str), "b": LastValue(str), "c": EphemeralValue(str)},
        input_channels=["a"],
        output_channels=["b", "c"],
        checkpointer=InMemorySaver(),
        name="by_hand",
    )


# The entrypoint, its task and the stream need a worker each; tasks are awaited one by one.
workers = {"max_concurrency": 4}

EXHIBITS = [
    Exhibit("tasks", tasks, ([1, 2, 3], [4]), workers, parallel=True),
    Exhibit("async_tasks", async_tasks, ([1, 2], [3]), workers, only_async=True, parallel=True),
    Exhibit(
        "entrypoint_interrupt",
        asking,
        ("pins", Command(resume=True), "shears"),
        workers,
        parallel=True,
    ),
    Exhibit("task_retry", flaky, (2, 0), workers, parallel=True),
    Exhibit("task_retry_exhausted", flaky, (5, None), workers, parallel=True),
    Exhibit("task_cache", cached, ([1, 2, 1], [2]), workers, parallel=True),
    Exhibit("entrypoint_in_task", nested, ([1, 2], [3]), workers, parallel=True),
    Exhibit("pregel", pregel, ({"a": "hey"}, {"a": "ho"})),
]

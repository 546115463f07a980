"""One guard serves any number of runs at once (P6): nothing leaks from one to another."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from langchain_core.messages import AIMessage, HumanMessage
from langgraph.graph import START, MessagesState, StateGraph

import shearpin
from shearpin.adapters.calls import HANDLER
from shearpin.adapters.judge import ThreadState
from shearpin.adapters.langgraph.state import Threads
from shearpin.core.settings import Settings
from shearpin.testing import StrictProvider, asks_for
from tests.adapters.builds import HELLO, MOST_CALLS, agent, polite, react, runaway, saver


def mixed() -> StrictProvider:
    """Goes round in circles where the user says so, and answers at once where not."""

    def script(messages: Any, call: int) -> Any:
        asked = next(
            m for m in reversed(messages) if isinstance(m, HumanMessage) and m.name == "user"
        )
        return asks_for(("look", {"place": "desk"})) if "loop" in str(asked.content) else "fine"

    return StrictProvider(script)


def question(number: int) -> dict[str, Any]:
    return {"messages": [HumanMessage("loop" if number % 2 else "calm", name="user")]}


def config(number: int) -> dict[str, Any]:
    return {"configurable": {"thread_id": str(number)}}


def check(app: Any, number: int) -> None:
    report = app.report(config(number))
    assert report.outcome == ("stopped" if number % 2 else "completed")
    assert report.info.thread == str(number)
    calls = report.to_json()["spend"]["model_calls"]
    assert 1 < calls <= MOST_CALLS if number % 2 else calls == 1


def test_64_threads_share_a_guard() -> None:
    app = shearpin.guard(agent(mixed(), saver()))
    with ThreadPoolExecutor(64) as pool:
        list(pool.map(lambda n: app.invoke(question(n), config(n)), range(64)))
    for number in range(64):
        check(app, number)


async def test_many_coroutines_share_a_guard() -> None:
    app = shearpin.guard(agent(mixed(), saver()))
    await asyncio.gather(*(app.ainvoke(question(n), config(n)) for n in range(100)))
    for number in range(100):
        check(app, number)


def test_two_streams_read_in_turns_stay_apart() -> None:
    app = shearpin.guard(react(mixed(), saver()))
    streams = [app.stream(question(n), config(n)) for n in (1, 2)]
    open_streams = list(streams)
    while open_streams:
        for stream in list(open_streams):
            if next(stream, None) is None:
                open_streams.remove(stream)
            assert HANDLER.get() is None
    check(app, 1)
    check(app, 2)


def test_two_graphs_under_one_guard() -> None:
    recipe = shearpin.Guard()
    first, second = recipe.wrap(react(runaway())), recipe.wrap(react(polite()))
    first.invoke(HELLO)
    second.invoke(HELLO)
    assert first.report().outcome == "stopped"
    assert second.report().outcome == "completed"


def test_batch_runs_are_separate() -> None:
    app = shearpin.guard(react(mixed(), saver()))
    app.batch([question(n) for n in range(6)], [config(n) for n in range(6)])
    for number in range(6):
        check(app, number)


def test_the_context_is_clean_after_every_way_out() -> None:
    app = shearpin.guard(react(runaway(), saver()))
    app.invoke(HELLO, config(1))
    assert HANDLER.get() is None
    stream = app.stream(HELLO, config(2))
    next(stream)
    assert HANDLER.get() is None
    stream.close()
    assert HANDLER.get() is None
    assert app.report(config(2)).outcome == "cancelled"


async def test_a_stream_closed_by_another_task() -> None:
    app = shearpin.guard(react(runaway(), saver()))
    stream = app.astream(HELLO, config(1))
    await anext(stream)
    await asyncio.create_task(stream.aclose())
    assert HANDLER.get() is None
    assert app.report(config(1)).outcome == "cancelled"


async def test_cancellation_passes_through() -> None:
    started = asyncio.Event()

    async def wait(state: Any) -> None:
        started.set()
        await asyncio.Event().wait()

    builder: StateGraph[Any] = StateGraph(MessagesState)
    builder.add_node("wait", wait)
    builder.add_edge(START, "wait")
    app: Any = shearpin.guard(builder.compile(checkpointer=saver()))
    task = asyncio.create_task(app.ainvoke(HELLO, config(1)))
    await started.wait()
    task.cancel()
    try:
        await task
    except asyncio.CancelledError:
        pass
    else:
        raise AssertionError("the cancellation was swallowed")
    assert app.report(config(1)).outcome == "cancelled"


def test_work_that_outlives_its_run_is_left_alone() -> None:
    import contextvars

    kept: list[contextvars.Context] = []

    def node(state: Any) -> dict[str, Any]:
        kept.append(contextvars.copy_context())
        return {"messages": [AIMessage("done")]}

    builder: StateGraph[Any] = StateGraph(MessagesState)
    builder.add_node("node", node)
    builder.add_edge(START, "node")
    shearpin.guard(builder.compile()).invoke(HELLO)
    inner = shearpin.guard(react(polite()))
    kept[0].run(inner.invoke, HELLO)
    assert inner.report().to_json()["spend"]["model_calls"] == 3


def test_memory_holds_a_bounded_number_of_threads() -> None:
    threads = Threads(most=3)
    for number in range(10):
        threads.put(str(number), ThreadState.fresh(Settings(), lambda: 0.0))
    assert [number for number in range(10) if threads.get(str(number))] == [7, 8, 9]

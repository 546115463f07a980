"""Time limits of tools, and how many run at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event, Lock
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.tools import tool

from shearpin import Budget
from shearpin.adapters.turns import Turns
from shearpin.testing import StrictProvider, asks_for
from tests.budget.paying import HELLO, react
from tests.budget.test_guarded import guarded, texts


def once(name: str, times: int = 1) -> Any:
    def script(messages: Sequence[BaseMessage], number: int) -> AIMessage | str:
        if number > 1:
            return "done"
        return asks_for(*[(name, {"query": f"{n}"}) for n in range(times)])

    return script


@pytest.fixture
def release() -> Iterator[Event]:
    """Lets hung tools go when the test is over."""
    event = Event()
    yield event
    event.set()


def test_a_hung_sync_tool_is_left_behind_and_the_run_goes_on(release: Event) -> None:
    @tool
    def hangs(query: str) -> str:
        """Never answers."""
        release.wait()
        return "too late"

    model = StrictProvider(once("hangs"))
    app = guarded(react(model, hangs), Budget(seconds=0.05, per="call"))
    result = app.invoke(HELLO)
    assert texts(result)[-1] == "done"
    assert texts(result)[-2].startswith("Not finished: `hangs` was cut off")
    notes = app.report().budget.notes
    assert any("'hangs' did not end in time" in note and "left running" in note for note in notes)


async def test_a_hung_async_tool_is_cut_at_the_deadline() -> None:
    ended: list[str] = []

    async def hangs(query: str) -> str:
        """Never answers."""
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise
        return "never"

    model = StrictProvider(once("hangs"))
    app = guarded(react(model, tool(hangs)), Budget(seconds=0.05, per="call"))
    result = await app.ainvoke(HELLO)
    assert ended == ["cancelled"]
    assert texts(result)[-1] == "done"
    assert "was cut off" in texts(result)[-2]
    assert not any("left running" in note for note in app.report().budget.notes)


def test_the_end_of_a_runs_time_ends_the_run(release: Event) -> None:
    @tool
    def hangs(query: str) -> str:
        """Never answers."""
        release.wait()
        return "too late"

    model = StrictProvider(once("hangs"))
    app = guarded(react(model, hangs), Budget(seconds=0.2))
    result = app.invoke(HELLO)
    assert model.calls == 1
    assert app.report().reason == "budget:seconds"
    assert "was cut off" in texts(result)[-2]


def test_errors_and_context_of_a_timed_tool_stay_as_they_are() -> None:
    @tool
    def fails(query: str) -> str:
        """Fails."""
        raise ValueError("as ever")

    model = StrictProvider(once("fails"))
    app = guarded(react(model, fails), Budget(seconds=60))
    with pytest.raises(ValueError, match="as ever"):
        app.invoke(HELLO)


def test_two_at_a_time_and_all_get_their_turn() -> None:
    running, most, done = 0, 0, 0
    lock = Lock()

    @tool
    def work(query: str) -> str:
        """Works."""
        nonlocal running, most, done
        with lock:
            running += 1
            most = max(most, running)
        with lock:
            running -= 1
            done += 1
        return query

    app = guarded(react(StrictProvider(once("work", 8)), work), Budget(max_concurrency=2))
    assert texts(app.invoke(HELLO))[-1] == "done"
    assert done == 8
    assert 1 <= most <= 2


async def test_two_tasks_at_a_time() -> None:
    running, most, done = 0, 0, 0

    async def work(query: str) -> str:
        """Works."""
        nonlocal running, most, done
        running += 1
        most = max(most, running)
        for _ in range(5):
            await asyncio.sleep(0)
        running -= 1
        done += 1
        return query

    app = guarded(react(StrictProvider(once("work", 8)), tool(work)), Budget(max_concurrency=2))
    assert texts(await app.ainvoke(HELLO))[-1] == "done"
    assert (most, done) == (2, 8)


def test_a_tool_within_a_tool_does_not_wait_for_itself() -> None:
    @tool
    def inner(query: str) -> str:
        """Looks it up."""
        return "found"

    @tool
    def outer(query: str) -> str:
        """Asks an agent."""
        return react(StrictProvider(once("inner")), inner).invoke(HELLO)["messages"][-2].text

    app = guarded(react(StrictProvider(once("outer")), outer), Budget(max_concurrency=1))
    assert texts(app.invoke(HELLO))[-2:] == ["found", "done"]


def test_turns_of_threads() -> None:
    turns, barrier = Turns(3), Barrier(3, timeout=10)
    running: list[int] = []
    most: list[int] = []

    def work(number: int) -> None:
        turns.take()
        running.append(number)
        most.append(len(running))
        barrier.wait()  # three get through together, or none
        running.remove(number)
        turns.back()

    with ThreadPoolExecutor(9) as pool:
        list(pool.map(work, range(9)))
    assert max(most) == 3


async def test_a_task_that_is_cancelled_while_it_waits_passes_its_turn_on() -> None:
    turns = Turns(1)
    await turns.atake()
    second, third = asyncio.create_task(turns.atake()), asyncio.create_task(turns.atake())
    await asyncio.sleep(0)
    second.cancel()
    turns.back()
    await third
    assert second.cancelled()

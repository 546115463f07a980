"""A tool call through the boundary in an event loop: nothing blocks it, cancellation leaves it."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from shearpin.boundary import Effects, ToolPolicy
from shearpin.boundary.calls import CallInfo
from shearpin.boundary.effects import EffectRecords, Finished
from shearpin.stores import MemoryStore
from tests.boundary.tool_bench import READ, Bench, Outcomes

SLOW = TimeoutError("no answer in 10 s")
ONCE = ToolPolicy(effect=Effects())


async def test_cancellation_leaves_a_wait_at_once() -> None:
    asleep = asyncio.Event()

    async def forever(seconds: float) -> None:
        asleep.set()
        await asyncio.Event().wait()

    bench, tool = Bench("async", asleep=forever), Outcomes(SLOW)

    async def execute() -> Any:
        return tool()

    info = CallInfo("search", {}, "c1", "t", READ)
    task = asyncio.create_task(bench.runner.arun(info, execute, ToolPolicy()))
    await asleep.wait()
    task.cancel("the outer one")
    with pytest.raises(asyncio.CancelledError):
        await task
    assert task.cancelled()
    assert tool.calls == 1


async def test_what_is_cancelled_while_it_acts_has_an_unknown_outcome() -> None:
    bench, begun = Bench("async"), asyncio.Event()

    async def send() -> str:
        begun.set()
        await asyncio.Event().wait()
        return "sent"

    info = CallInfo("send", {}, "c1", "t")
    task = asyncio.create_task(bench.runner.arun(info, send, ONCE))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    async def again() -> str:
        return "twice"

    result = await bench.runner.arun(CallInfo("send", {}, "c2", "t"), again, ONCE)
    assert (result.success, result.error_type) == (False, "outcome_unknown")


class SlowStore(MemoryStore):
    """Blocks until it is let go, in whatever thread that is."""

    blocking = True

    def __init__(self) -> None:
        super().__init__()
        self.entered, self.go = threading.Event(), threading.Event()
        self.threads: set[int] = set()

    def get(self, key: str) -> Any:
        self.threads.add(threading.get_ident())
        self.entered.set()
        assert self.go.wait(10)
        return super().get(key)


async def test_a_slow_store_never_blocks_the_loop() -> None:
    store = SlowStore()
    bench = Bench("async", store)

    async def send() -> str:
        return "sent"

    task = asyncio.create_task(bench.runner.arun(CallInfo("send", {}, "c1", "t"), send, ONCE))
    assert await asyncio.to_thread(store.entered.wait, 10)  # the loop goes on
    store.go.set()
    assert (await task).output == "sent"
    assert threading.get_ident() not in store.threads


async def test_a_record_that_nobody_waits_for_any_more_is_taken_back() -> None:
    store = SlowStore()
    bench = Bench("async", store)
    calls: list[str] = []

    async def send() -> str:
        calls.append("sent")
        return "sent"

    task = asyncio.create_task(bench.runner.arun(CallInfo("send", {}, "c1", "t"), send, ONCE))
    assert await asyncio.to_thread(store.entered.wait, 10)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    store.go.set()
    records = EffectRecords(store, bench.clock)
    for _ in range(10_000):  # until the thread that was left behind has taken it back
        result = await bench.runner.arun(CallInfo("send", {}, "c2", "t"), send, ONCE)
        if result.success:
            break
        await asyncio.sleep(0)
    assert calls == ["sent"]
    found = records.begin("t", "send", {}, Effects(), "c3")
    assert isinstance(found, Finished)
    assert found.output == "sent"

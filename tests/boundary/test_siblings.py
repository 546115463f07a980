"""Tool calls side by side: where one fails for good, the others are given up, and all answered."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

import shearpin
from shearpin.adapters.boundary.siblings import Siblings, batch_of
from shearpin.boundary import Boundary, Effects, ToolPolicy
from shearpin.testing import StrictProvider, asks_for
from tests.boundary.failing import faultless

THREAD: dict[str, Any] = {"configurable": {"thread_id": "t1"}}
HELLO: dict[str, Any] = {"messages": [HumanMessage("do all three", id="h1")]}
SECONDS = 10  # a call that is not given up would wait for ever


def script(messages: Sequence[BaseMessage], call: int) -> AIMessage | str:
    if isinstance(messages[-1], HumanMessage) and call == 1:
        return asks_for(("fast", {}), ("broken", {}), ("slow", {}))
    return f"answer {call}"


def react(model: StrictProvider, tools: Sequence[Any], saver: Any) -> Any:
    builder: StateGraph[Any] = StateGraph(MessagesState)

    async def ask(state: MessagesState) -> dict[str, Any]:
        return {"messages": [await model.ainvoke(state["messages"])]}

    def ask_now(state: MessagesState) -> dict[str, Any]:
        return {"messages": [model.invoke(state["messages"])]}

    builder.add_node("agent", RunnableLambda(ask_now, afunc=ask))
    builder.add_node("tools", ToolNode(list(tools)))
    builder.add_edge(START, "agent")
    builder.add_conditional_edges("agent", tools_condition)
    builder.add_edge("tools", "agent")
    return builder.compile(checkpointer=saver)


def agent(model: StrictProvider, tools: Sequence[Any], saver: Any) -> Any:
    return create_agent(model, list(tools), checkpointer=saver)


class KeyRefusedError(Exception):
    """A failure that concerns the whole run, and not only the tool that had it."""

    status_code = 401


each_kind = pytest.mark.parametrize("build", [react, agent])
Build = Callable[[StrictProvider, Sequence[Any], Any], Any]


class Bench:
    """Three tools whose order is fixed: `fast` ends, `slow` has begun, then `broken` fails."""

    def __init__(self, *, ends: bool = False, error: Exception | None = None) -> None:
        self.error = error or KeyRefusedError("no such key")
        self.ran: list[str] = []
        self.cancelled = 0
        self.fast_done = asyncio.Event()
        self.slow_begun = asyncio.Event()
        self.let_slow_end = asyncio.Event()
        self.ends = ends

    @property
    def tools(self) -> list[Any]:
        @tool
        async def fast() -> str:
            """Ends at once."""
            self.ran.append("fast")
            self.fast_done.set()
            return "fast is done"

        @tool
        async def broken() -> str:
            """Fails for good."""
            await self.fast_done.wait()
            await self.slow_begun.wait()
            self.ran.append("broken")
            if self.ends:
                self.let_slow_end.set()
            raise self.error

        @tool
        async def slow() -> str:
            """Waits."""
            self.ran.append("slow")
            self.slow_begun.set()
            try:
                await self.let_slow_end.wait()
            except asyncio.CancelledError:
                self.cancelled += 1
                raise
            return "slow is done"

        return [fast, broken, slow]


def answers(values: Any) -> dict[str, str]:
    """What each tool was answered with, once each."""
    found = [message for message in values["messages"] if isinstance(message, ToolMessage)]
    assert len({message.tool_call_id for message in found}) == len(found) == 3
    return {str(message.name): str(message.content) for message in found}


@each_kind
async def test_a_waiting_call_is_cancelled_and_what_has_finished_is_kept(build: Build) -> None:
    bench, model = Bench(), StrictProvider(script)
    graph = shearpin.guard(build(model, bench.tools, InMemorySaver()), boundary=True)
    async with asyncio.timeout(SECONDS):
        values = await graph.ainvoke(HELLO, THREAD)
        told = answers(values)
        assert told["fast"] == "fast is done"
        assert "broken failed" in told["broken"]
        assert "slow was given up" in told["slow"]
        assert "may or may not have happened" in told["slow"]
        assert (sorted(bench.ran), bench.cancelled) == (["broken", "fast", "slow"], 1)
        faultless(values["messages"])
        later = await graph.ainvoke({"messages": [HumanMessage("and?", id="h2")]}, THREAD)
    assert later["messages"][-1].content == "answer 3"
    assert sorted(bench.ran) == ["broken", "fast", "slow"]


@each_kind
async def test_a_recorded_effect_is_left_to_finish(build: Build) -> None:
    bench, model = Bench(ends=True), StrictProvider(script)
    boundary = Boundary(tools={"slow": ToolPolicy(effect=Effects())})
    graph = shearpin.guard(build(model, bench.tools, InMemorySaver()), boundary=boundary)
    async with asyncio.timeout(SECONDS):
        values = await graph.ainvoke(HELLO, THREAD)
    assert answers(values)["slow"] == "slow is done"
    assert bench.cancelled == 0


@each_kind
async def test_a_bug_of_one_tool_says_nothing_about_the_others(build: Build) -> None:
    bench, model = Bench(ends=True, error=KeyError("x")), StrictProvider(script)
    graph = shearpin.guard(build(model, bench.tools, InMemorySaver()), boundary=True)
    async with asyncio.timeout(SECONDS):
        values = await graph.ainvoke(HELLO, THREAD)
    told = answers(values)
    assert (told["fast"], told["slow"]) == ("fast is done", "slow is done")
    assert told["broken"] == (
        "broken failed (programming): KeyError: 'x'. "
        "It is broken, and calling it again will not help. "
        "Use another tool, or go on without it and say so in your answer."
    )
    assert bench.cancelled == 0


@each_kind
async def test_or_it_may_end_them_where_that_is_asked_for(build: Build) -> None:
    bench, model = Bench(error=KeyError("x")), StrictProvider(script)
    boundary = Boundary(cancel_siblings="all")
    graph = shearpin.guard(build(model, bench.tools, InMemorySaver()), boundary=boundary)
    async with asyncio.timeout(SECONDS):
        values = await graph.ainvoke(HELLO, THREAD)
    assert "slow was given up" in answers(values)["slow"]


@each_kind
async def test_siblings_may_be_let_alone(build: Build) -> None:
    bench, model = Bench(ends=True), StrictProvider(script)
    boundary = Boundary(cancel_siblings=False)
    graph = shearpin.guard(build(model, bench.tools, InMemorySaver()), boundary=boundary)
    async with asyncio.timeout(SECONDS):
        values = await graph.ainvoke(HELLO, THREAD)
    assert answers(values)["slow"] == "slow is done"


@each_kind
async def test_an_outer_cancellation_always_propagates(build: Build) -> None:
    bench, model = Bench(), StrictProvider(script)
    graph = shearpin.guard(build(model, bench.tools[::2], InMemorySaver()), boundary=True)
    running = asyncio.create_task(graph.ainvoke(HELLO, THREAD))
    async with asyncio.timeout(SECONDS):
        await bench.slow_begun.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
    assert bench.cancelled == 1
    assert graph.report(THREAD).outcome == "cancelled"
    assert not graph.report(THREAD).boundary.abnormal


@each_kind
def test_a_queued_call_is_not_begun(build: Build) -> None:
    ran: list[str] = []

    def named(name: str, error: Exception | None = None) -> Any:
        def act() -> str:
            ran.append(name)
            if error is not None:
                raise error
            return f"{name} is done"

        return tool(name, description=name)(act)

    tools = [named("fast"), named("broken", KeyRefusedError("no such key")), named("slow")]
    model = StrictProvider(script)
    graph = shearpin.guard(build(model, tools, InMemorySaver()), boundary=True)
    values = graph.invoke(HELLO, {**THREAD, "max_concurrency": 1})
    told = answers(values)
    assert ran == ["fast", "broken"]
    assert told["fast"] == "fast is done"
    assert "slow was given up" in told["slow"]
    assert "may or may not" not in told["slow"]
    faultless(values["messages"])
    later = graph.invoke({"messages": [HumanMessage("and?", id="h2")]}, THREAD)
    assert later["messages"][-1].content == "answer 3"


@each_kind
def test_a_thread_that_runs_is_left_to_finish(build: Build) -> None:
    begun, failed = threading.Event(), threading.Event()

    @tool
    def fast() -> str:
        """Ends at once."""
        return "fast is done"

    @tool
    def broken() -> str:
        """Fails for good."""
        assert begun.wait(SECONDS)
        failed.set()
        raise KeyRefusedError("no such key")

    @tool
    def slow() -> str:
        """Runs while the other fails."""
        begun.set()
        assert failed.wait(SECONDS)
        return "slow is done"

    model = StrictProvider(script)
    graph = shearpin.guard(build(model, [fast, broken, slow], InMemorySaver()), boundary=True)
    assert answers(graph.invoke(HELLO, THREAD))["slow"] == "slow is done"


# -- the registry --------------------------------------------------------------------------------

BATCH = ("", 3, "tools")


def test_calls_outside_of_a_graph_have_no_siblings() -> None:
    assert batch_of(None) is None
    assert batch_of({"langgraph_step": 1}) is None
    told = {
        "langgraph_checkpoint_ns": "a:1|tools:2",
        "langgraph_step": 3,
        "langgraph_node": "tools",
    }
    assert batch_of(told) == ("a:1", 3, "tools")
    siblings = Siblings()
    siblings.fail(None, "one", "tool")
    assert siblings.join(None, "two", kept=False) is None


async def test_a_cancellation_from_outside_is_never_taken_for_ours() -> None:
    siblings, waits = Siblings(), asyncio.Event()
    ours: list[bool] = []

    async def call() -> None:
        siblings.join(BATCH, "slow", kept=False)
        try:
            await waits.wait()
        except asyncio.CancelledError:
            ours.append(siblings.gave_up("slow"))
            raise
        finally:
            siblings.leave("slow")

    task = asyncio.create_task(call())
    await asyncio.sleep(0)
    siblings.fail(BATCH, "broken", "broken")
    task.cancel()  # both in the same turn of the loop
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ours == [False]
    assert task.cancelled()


async def test_a_call_that_has_ended_is_not_cancelled() -> None:
    siblings = Siblings()

    async def call() -> int:
        siblings.join(BATCH, "quick", kept=False)
        siblings.fail(BATCH, "broken", "broken")  # the cancellation comes when this call is over
        siblings.leave("quick")
        await asyncio.sleep(0)
        return asyncio.current_task().cancelling()  # type: ignore[union-attr]

    assert await asyncio.create_task(call()) == 0


async def test_a_call_that_ignores_it_leaves_its_task_as_it_was() -> None:
    siblings, waits = Siblings(), asyncio.Event()

    async def call() -> int:
        siblings.join(BATCH, "stubborn", kept=False)
        with suppress(asyncio.CancelledError):
            await waits.wait()
        siblings.leave("stubborn")
        return asyncio.current_task().cancelling()  # type: ignore[union-attr]

    task = asyncio.create_task(call())
    await asyncio.sleep(0)
    siblings.fail(BATCH, "broken", "broken")
    assert await task == 0

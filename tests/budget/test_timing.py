"""Time limits of tools, and how many run at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Barrier, Event, Lock
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.tools import tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from pydantic import PrivateAttr

import shearpin
from shearpin import Budget
from shearpin.adapters.langgraph.wiring import wiring_of
from shearpin.adapters.money.turns import Turns
from shearpin.langchain import GuardMiddleware
from shearpin.testing import ManualClock, StrictProvider, asks_for
from shearpin.testing.provider import complaints
from tests.budget.paying import HELLO, Counter, Paid, agent, react
from tests.budget.test_guarded import guarded, texts


def once(name: str, times: int = 1) -> Any:
    def script(messages: Sequence[BaseMessage], number: int) -> AIMessage | str:
        if number > 1:
            return "done"
        return asks_for(*[(name, {"query": f"{n}"}) for n in range(times)])

    return script


def with_clock(app: Any, clock: ManualClock) -> None:
    """Let a guarded graph read the time from a clock that is moved by hand."""
    wiring = wiring_of(app)
    assert wiring is not None
    wiring.now = clock


def areact(model: Any, *tools: Any) -> Any:
    """`react`, whose model is awaited."""

    async def think(state: MessagesState) -> dict[str, Any]:
        return {"messages": [await model.bind_tools(list(tools)).ainvoke(state["messages"])]}

    graph = StateGraph(MessagesState)
    graph.add_node("agent", think)
    graph.add_node("tools", ToolNode(list(tools)))
    graph.add_edge(START, "agent")
    graph.add_conditional_edges("agent", tools_condition)
    graph.add_edge("tools", "agent")
    return graph.compile()


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


# -- model calls ----------------------------------------------------------------------------------


class Hung(Paid):
    """A provider that does not answer; a stream stalls after its second word. Meanwhile a minute
    passes on the clock, where there is one."""

    _clock: ManualClock | None = PrivateAttr(default=None)

    async def _agenerate(self, *args: Any, **kwargs: Any) -> Any:
        self.passes()
        await asyncio.Event().wait()

    def passes(self) -> None:
        if self._clock is not None:
            self._clock.advance(60.0)

    async def _astream(self, *args: Any, **kwargs: Any) -> Any:
        chunks = self._pieces(args[0], 60)
        yield next(chunks)
        yield next(chunks)
        self.passes()
        await asyncio.Event().wait()


def asks_once(model: Any, how: str) -> Any:
    async def node(state: MessagesState) -> dict[str, Any]:
        if how == "ainvoke":
            return {"messages": [await model.ainvoke("one two three")]}
        return {"messages": [("ai", " ".join([c.text async for c in model.astream("one two")]))]}

    graph = StateGraph(MessagesState)
    graph.add_node("node", node)
    graph.add_edge(START, "node")
    return graph.compile()


@pytest.mark.parametrize("per", ["run", "call"])
@pytest.mark.parametrize("how", ["ainvoke", "astream"])
async def test_a_hung_async_model_call_is_cut_at_the_deadline(how: str, per: Any) -> None:
    model = Hung(lambda messages, number: "word " * 30)
    app = guarded(
        asks_once(model, how), [Budget(seconds=0.05, per=per), Budget(tokens=999, per="thread")]
    )
    model._clock = ManualClock()
    with_clock(app, model._clock)  # so that a busy machine has all the time it needs before
    result = await app.ainvoke(HELLO)
    words = {
        "run": "0.1 seconds of the 0.1 seconds",
        "call": "a call took longer than the 0.1 seconds",
    }
    assert words[per] in texts(result)[-1]
    report = app.report()
    assert (report.outcome, report.reason, report.faults) == ("stopped", "budget:seconds", ())
    scope = report.budget.scopes[-1]
    assert not scope.held
    assert scope.spent["model_calls"] == 1
    # what was received is paid for; where nothing is known, all that was set aside
    out = scope.spent["output_tokens"]
    assert out == 60 if how == "ainvoke" else 2 <= out < 30


async def test_a_cancellation_from_outside_is_never_taken_for_ours() -> None:
    began = asyncio.Event()

    class Stuck(Paid):
        async def _agenerate(self, *args: Any, **kwargs: Any) -> Any:
            began.set()
            await asyncio.Event().wait()

    app = guarded(asks_once(Stuck(lambda m, n: "never"), "ainvoke"), Budget(seconds=60))
    task = asyncio.create_task(app.ainvoke(HELLO))
    await began.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert app.report().outcome == "cancelled"


@pytest.mark.parametrize("own_task", [True, False])
async def test_a_call_that_was_given_up_keeps_nobody_waiting(own_task: bool) -> None:
    """It counts as made, as soon as that is known; then there is room for the branch that waits."""
    began = asyncio.Event()

    class Stuck(Paid):
        async def _agenerate(self, *args: Any, **kwargs: Any) -> Any:
            began.set()
            await asyncio.Event().wait()

    stuck, model = (
        Stuck(lambda m, n: "never", max_tokens=60),
        Paid(lambda m, n: "word", max_tokens=60),
    )

    async def gives_up(state: MessagesState) -> dict[str, Any]:
        if own_task:
            task = asyncio.create_task(stuck.ainvoke("one two three"))
            await began.wait()
            for _ in range(20):  # the other branch asks, and has to wait
                await asyncio.sleep(0)
            task.cancel()
            return {}
        with suppress(TimeoutError):
            async with asyncio.timeout(0.05):
                await stuck.ainvoke("one two three")
        return {}

    async def waits(state: MessagesState) -> dict[str, Any]:
        await began.wait()
        return {"messages": [await model.ainvoke("one two three")]}

    graph = StateGraph(MessagesState)
    graph.add_node("gives_up", gives_up)
    graph.add_node("waits", waits)
    graph.add_edge(START, "gives_up")
    graph.add_edge(START, "waits")
    app = guarded(graph.compile(), Budget(tokens=180), detectors=())
    async with asyncio.timeout(60):
        await app.ainvoke(HELLO)
    assert model.calls == 1
    spent = app.report().budget.scopes[0].spent
    assert (spent["model_calls"], spent["output_tokens"]) == (2, 64)


@pytest.mark.parametrize("middleware", [True, False])
@pytest.mark.parametrize("build", ["react", "agent"])
async def test_an_agent_whose_model_hangs_ends_with_what_it_has(
    build: str, middleware: bool
) -> None:
    clock = ManualClock()

    class Second(Paid):
        async def _agenerate(self, messages: Any, *args: Any, **kwargs: Any) -> Any:
            if messages[-1].type == "tool":
                clock.advance(60.0)
                await asyncio.Event().wait()
            return self._generate(messages, *args, **kwargs)

    search, model = Counter(), Second(once("search"))
    if middleware:
        alone = GuardMiddleware(budget=Budget(seconds=1.0))
        app: Any = create_agent(model, [search.tool], middleware=[alone])
        report = alone.report
    else:
        app = guarded((areact if build == "react" else agent)(model, search.tool), "0.1 s")
        report = app.report
        with_clock(app, clock)
    result = await app.ainvoke(HELLO)
    assert search.runs == 1
    assert report().reason == "budget:seconds"
    assert texts(result)[-1].startswith("This run was stopped at its limit")
    assert not list(complaints(result["messages"]))


async def test_a_plain_chain_that_hangs_ends_its_block() -> None:
    model = Hung(lambda m, n: "never")
    with shearpin.Guard(budget=Budget(seconds=0.05)).run() as run:
        await model.ainvoke("one two three")
    assert run.stopped is not None
    assert run.stopped.reason == "budget:seconds"
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0, "nothing of the cancellation is left"


async def test_a_sub_agent_whose_model_hangs_is_cut_and_its_tool_answered() -> None:
    inner = Hung(lambda m, n: "never")

    async def delegate(query: str) -> str:
        """Hands the task to somebody else."""
        return (await asks_once(inner, "ainvoke").ainvoke(HELLO))["messages"][-1].text

    outer = Paid(once("delegate"))
    app = guarded(areact(outer, tool(delegate)), Budget(seconds=0.1))
    result = await app.ainvoke(HELLO)
    assert outer.calls == 1
    assert app.report().reason == "budget:seconds"
    assert not list(complaints(result["messages"]))
    assert not app.report().faults


def test_a_stream_ends_between_two_chunks_when_time_is_up() -> None:
    clock = ManualClock()

    class Slow(Paid):
        def _stream(self, *args: Any, **kwargs: Any) -> Any:
            for chunk in super()._stream(*args, **kwargs):
                clock.advance(1.0)
                yield chunk

    def node(state: MessagesState) -> dict[str, Any]:
        return {"messages": [("ai", "".join(chunk.text for chunk in model.stream("one two")))]}

    model = Slow(lambda messages, number: "word " * 30)
    graph = StateGraph(MessagesState)
    graph.add_node("node", node)
    graph.add_edge(START, "node")
    app = guarded(graph.compile(), Budget(seconds=10))
    with_clock(app, clock)
    app.invoke(HELLO)
    assert app.report().reason == "budget:seconds"
    scope = app.report().budget.scopes[0]
    assert not scope.held
    assert 8 <= scope.spent["output_tokens"] < 30
    assert app.report().budget.estimated_calls == 1


def test_a_synchronous_model_call_that_was_late_is_reported() -> None:
    clock = ManualClock()

    def script(messages: Sequence[BaseMessage], number: int) -> str:
        clock.advance(61.0)
        return "too late"

    def node(state: MessagesState) -> dict[str, Any]:
        return {"messages": [model.invoke("one"), model.invoke("two")]}

    model = Paid(script)
    graph = StateGraph(MessagesState)
    graph.add_node("node", node)
    graph.add_edge(START, "node")
    app = guarded(graph.compile(), "1 min")
    with_clock(app, clock)
    app.invoke(HELLO)
    assert model.calls == 1
    assert app.report().reason == "budget:seconds"
    assert any("went on after its time" in note for note in app.report().budget.notes)


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

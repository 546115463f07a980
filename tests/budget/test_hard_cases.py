"""Budgets where it is hard to keep them: mixtures of what agents do, each against the true bill."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from decimal import Decimal
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents import middleware as middlewares
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.runnables import RunnableLambda, RunnableParallel
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint, task
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command, Send, interrupt

import shearpin
from shearpin import Budget, Guard
from shearpin.langchain import GuardMiddleware, clamped
from shearpin.ledgers import MemoryLedger
from shearpin.pricing import Catalogue, ModelPrice, Overrides
from shearpin.testing import asks_for
from shearpin.testing.provider import complaints
from tests.budget.paying import HELLO, PRICE, Counter, Paid, agent, always_asks, react
from tests.budget.test_guarded import LONG, fan_out, guarded, handing_over, texts, thread
from tests.budget.test_timing import areact

# -- mixtures -------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["invoke", "ainvoke"])
@pytest.mark.parametrize("size", [1, 7, 40])
async def test_dollars_tokens_and_calls_at_once_in_a_fan_out_of_agents(how: str, size: int) -> None:
    model = Paid(always_asks())

    def branch(state: Any) -> dict[str, Any]:
        return {"messages": react(model, Counter().tool).invoke(HELLO, LONG)["messages"][-1:]}

    async def abranch(state: Any) -> dict[str, Any]:
        found = await areact(model, Counter().tool).ainvoke(HELLO, LONG)
        return {"messages": found["messages"][-1:]}

    budget = Budget(usd="0.06", tokens=5_000, model_calls=60, tool_calls=50)
    app = guarded(fan_out(abranch if how == "ainvoke" else branch, size), budget, detectors=())
    await app.ainvoke(HELLO, LONG) if how == "ainvoke" else app.invoke(HELLO, LONG)
    scope = app.report().budget.scopes[0]
    assert model.micros <= 60_000
    assert model.tokens <= 5_000
    assert model.calls <= 60
    assert Decimal(scope.spent["usd"]) * 1_000_000 == model.micros
    assert scope.spent["tool_calls"] <= 50
    assert not scope.held
    assert not app.report().faults


@pytest.mark.parametrize("how", ["invoke", "ainvoke"])
async def test_retries_of_a_middleware_and_fallbacks_pay_each(how: str) -> None:
    retrying: Any = getattr(middlewares, "ModelRetryMiddleware", None)
    if retrying is None:
        pytest.skip("this LangChain has no middleware that retries models")

    def fails(messages: Sequence[BaseMessage], number: int) -> AIMessage | BaseException:
        if number % 3:
            return RuntimeError("overloaded")
        return asks_for(("search", {"query": f"{number}"}))

    model, spare, search = Paid(fails), Paid(always_asks()), Counter()
    build = create_agent(
        model,
        [search.tool],
        middleware=[
            middlewares.ModelFallbackMiddleware(spare),
            retrying(max_retries=1, initial_delay=0.0, on_failure="error"),
        ],
    )
    app = guarded(build, Budget(model_calls=20), detectors=())
    await app.ainvoke(HELLO, LONG) if how == "ainvoke" else app.invoke(HELLO, LONG)
    assert model.calls + spare.calls == 20
    assert app.report().reason == "budget:model_calls"


def test_an_aborted_stream_of_the_graph_leaves_nothing_held() -> None:
    model = Paid(always_asks())
    app = guarded(react(model, Counter().tool, saver=InMemorySaver()), "$0.05, 9 calls")
    stream = app.stream(HELLO, thread("1"), stream_mode="messages")
    next(stream)
    stream.close()
    scope = app.report(thread("1")).budget.scopes[0]
    assert not scope.held
    assert scope.spent["model_calls"] == model.calls
    for _ in range(3):  # the next turn has a budget of its own
        app.invoke(HELLO, thread("1"))
        assert app.report(thread("1")).budget.scopes[0].spent["model_calls"] <= 9


async def test_an_aborted_async_stream_leaves_nothing_held() -> None:
    model = Paid(always_asks())
    app = guarded(areact(model, Counter().tool), "$0.05, 9 calls")
    stream = app.astream(HELLO, LONG, stream_mode="messages")
    await anext(stream)
    await stream.aclose()
    scope = app.report().budget.scopes[0]
    assert not scope.held
    assert scope.spent["model_calls"] == model.calls == 1


def test_runs_of_one_guard_in_many_threads_do_not_share_a_runs_budget() -> None:
    model = Paid(always_asks())
    app = guarded(react(model, Counter().tool, saver=InMemorySaver()), "5 calls")
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: app.invoke(HELLO, thread(str(n))), range(16)))
    assert model.calls == 16 * 5
    assert {
        app.report(thread(str(n))).budget.scopes[0].spent["model_calls"] for n in range(16)
    } == {5}


def test_one_thread_twice_at_once_shares_the_conversations_budget() -> None:
    model = Paid(lambda messages, number: "an answer")
    ledger = MemoryLedger()
    app = guarded(
        react(model, Counter().tool, saver=InMemorySaver()),
        Budget(model_calls=6, per="thread"),
        ledger=ledger,
        name="a",
    )
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: app.invoke(HELLO, thread("1")), range(16)))
    assert model.calls == 6


async def test_abatch_gives_each_run_its_own_budget() -> None:
    model = Paid(always_asks())
    app = guarded(areact(model, Counter().tool), "4 calls, $0.02")
    await app.abatch([HELLO] * 6, LONG)
    assert model.calls == 24


# -- nested ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["invoke", "ainvoke"])
async def test_guarded_children_side_by_side_never_spend_more_than_the_tree_has(how: str) -> None:
    inner = Paid(always_asks())
    child = guarded(react(inner, Counter().tool), "$0.02")
    achild = guarded(areact(inner, Counter().tool), "$0.02")

    def branch(state: Any) -> dict[str, Any]:
        return {"messages": child.invoke(HELLO, LONG)["messages"][-1:]}

    async def abranch(state: Any) -> dict[str, Any]:
        return {"messages": (await achild.ainvoke(HELLO, LONG))["messages"][-1:]}

    app = guarded(fan_out(abranch if how == "ainvoke" else branch, 6), "$0.05", detectors=())
    await app.ainvoke(HELLO, LONG) if how == "ainvoke" else app.invoke(HELLO, LONG)
    assert 0.8 * 50_000 <= inner.micros <= 50_000
    assert app.report().budget.usd == Decimal(inner.micros) / 1_000_000
    assert not app.report().budget.scopes[0].held


def test_three_guards_inside_each_other() -> None:
    models = [Paid(always_asks("delegate")), Paid(always_asks("delegate")), Paid(always_asks())]
    inner = guarded(react(models[2], Counter().tool), "4 calls")
    middle = guarded(react(models[1], handing_over(inner)), "9 calls")
    outer = guarded(react(models[0], handing_over(middle)), "20 calls")
    outer.invoke(HELLO, LONG)
    assert sum(model.calls for model in models) == 20
    assert outer.report().reason == "budget:model_calls"


def test_an_override_reaches_the_tree_and_leaks_nowhere() -> None:
    inner = Paid(always_asks())
    child = guarded(react(inner, Counter().tool), "3 calls")

    def parent(messages: Sequence[BaseMessage], number: int) -> AIMessage | str:
        return "done" if messages[-1].type == "tool" else asks_for(("delegate", {"query": "x"}))

    app = guarded(react(Paid(parent), handing_over(child)), "50 calls")
    app.invoke(HELLO, {"configurable": {"shearpin_budget": "2 calls"}, **LONG})
    assert inner.calls == 1, "two in the tree: one above, one below"
    app.invoke(HELLO, LONG)
    assert inner.calls == 1 + 3, "the child's own limit again"


def test_an_override_of_the_thread_is_for_one_invocation() -> None:
    model, saver = Paid(lambda messages, number: "an answer"), InMemorySaver()
    app = guarded(react(model, Counter().tool, saver=saver), Budget(model_calls=2, per="thread"))
    for _ in range(3):
        app.invoke(HELLO, thread("1"))
    assert model.calls == 2
    app.invoke(HELLO, thread("1", shearpin_budget=Budget(model_calls=4, per="thread")))
    assert model.calls == 3
    app.invoke(HELLO, thread("1"))
    assert model.calls == 3


# -- extending ------------------------------------------------------------------------------------


def asks_often(model: Any, saver: Any) -> Any:
    def think(state: MessagesState) -> dict[str, Any]:
        return {"messages": [model.invoke(state["messages"])]}

    graph = StateGraph(MessagesState)
    graph.add_node("think", think)
    graph.add_node("ask", lambda state: {"messages": [("user", interrupt("more?"))]})
    graph.add_edge(START, "think")
    graph.add_edge("think", "ask")
    graph.add_edge("ask", "think")
    return graph.compile(checkpointer=saver)


@pytest.mark.parametrize("restart", [False, True])
def test_extensions_add_up_over_resumes_and_restarts(restart: bool) -> None:
    model, saver = Paid(lambda messages, number: f"thought {number}"), InMemorySaver()
    app = guarded(asks_often(model, saver), "2 calls, $1")
    app.invoke(HELLO, thread("1"))
    for more in ("1 call", "1 call", None, None):
        if restart:
            app = guarded(asks_often(model, saver), "2 calls, $1")
        config = thread("1") if more is None else thread("1", shearpin_extend=more)
        app.invoke(Command(resume="go on"), config)
    assert model.calls == 4
    scope = app.report(thread("1")).budget.scopes[0]
    assert (scope.limits["model_calls"], scope.extended["model_calls"]) == (4, 2)


def test_a_run_that_was_stopped_goes_on_when_it_is_extended() -> None:
    model, saver = Paid(lambda messages, number: f"thought {number}"), InMemorySaver()
    app = guarded(asks_often(model, saver), Budget(usd="0.02", model_calls=1), on_stop="pause")
    app.invoke(HELLO, thread("1"))
    app.invoke(Command(resume="yes"), thread("1"))
    assert model.calls == 1
    app.invoke(Command(resume="continue"), thread("1", shearpin_extend="2 calls"))
    assert model.calls == 2


def test_more_than_one_kind_can_be_extended() -> None:
    model, saver = Paid(lambda messages, number: f"thought {number}"), InMemorySaver()
    budgets = [Budget(model_calls=1), Budget(model_calls=1, per="thread")]
    app = guarded(asks_often(model, saver), budgets)
    app.invoke(HELLO, thread("1"))
    more = ["5 calls", Budget(model_calls=2, per="thread")]
    for _ in range(3):
        app.invoke(Command(resume="yes"), thread("1", shearpin_extend=more))
        more = []
    assert model.calls == 3
    assert app.report(thread("1")).decisive.evidence["per"] == "thread"


# -- prices ---------------------------------------------------------------------------------------


def test_a_model_that_is_known_to_be_free_goes_on_at_a_dollar_cap() -> None:
    own = ModelPrice.of("paid", input="10", output="30", source="test")
    book = Overrides(
        {"paid": own, "gratis": ModelPrice.of("gratis", free=True, source="test")}, Catalogue()
    )
    free = Paid(lambda messages, number: "an answer for nothing", model_name="gratis")
    model = Paid(lambda messages, number: "word " * 30)

    def node(state: MessagesState) -> dict[str, Any]:
        for _ in range(5):
            free.invoke("one two three")
        return {"messages": [model.invoke("one two three")]}

    graph = StateGraph(MessagesState)
    graph.add_node("node", node)
    graph.add_edge(START, "node")
    app = shearpin.guard(graph.compile(), budget=Budget(usd=0), prices=book)
    app.invoke(HELLO)
    assert (free.calls, model.calls) == (5, 0)
    report = app.report()
    assert report.reason == "budget:usd"
    assert (report.budget.usd, report.budget.unpriced_calls) == (Decimal(0), 0)


# -- landing --------------------------------------------------------------------------------------


@pytest.mark.parametrize("cap", [1_200, 2_000, 3_500, 6_000])
@pytest.mark.parametrize("build", [react, agent])
def test_the_last_answer_is_always_affordable(build: Callable[..., Any], cap: int) -> None:
    """An agent that listens, and gives its answer when it is told that it is the last one."""

    def script(messages: Sequence[BaseMessage], number: int) -> AIMessage | str:
        if "last answer" in messages[-1].text:
            return "what I have " * 8
        return asks_for(("search", {"query": f"{number}"}))

    model = Paid(script)
    app = guarded(build(model, Counter().tool), Budget(tokens=cap), detectors=())
    result = app.invoke(HELLO, LONG)
    assert texts(result)[-1].startswith("what I have"), texts(result)[-1]
    assert model.tokens <= cap
    assert app.report().outcome == "completed"


@pytest.mark.parametrize("dimension", ["usd", "output_tokens", "input_tokens"])
def test_landing_in_each_dimension_with_sub_agents(dimension: str) -> None:
    def parent(messages: Sequence[BaseMessage], number: int) -> AIMessage | str:
        if "last answer" in messages[-1].text or "stopped" in messages[-1].text:
            return "what we have"
        return asks_for(("delegate", {"query": f"{number}"}))

    inner, outer = Paid(always_asks()), Paid(parent)
    limit: Any = {"usd": "0.04"}.get(dimension, 2_000)
    app = guarded(
        react(outer, handing_over(react(inner, Counter().tool))),
        Budget(**{dimension: limit}),
        detectors=(),
    )
    result = app.invoke(HELLO, LONG)
    assert texts(result)[-1] == "what we have"
    assert app.report().outcome == "completed"
    assert inner.micros + outer.micros <= 40_000 if dimension == "usd" else True


# -- where calls come from ------------------------------------------------------------------------


def test_calls_in_maps_parallels_and_batches_count() -> None:
    model = Paid(lambda messages, number: "word")
    chain = RunnableParallel(a=model, b=RunnableLambda(lambda text: model.batch([text] * 3)))
    with Guard(budget="7 calls", detectors=()).run() as run:
        for _ in range(5):
            chain.invoke("hi")
    assert model.calls == 7
    assert run.stopped is not None


async def test_tasks_of_the_functional_api_share_a_budget() -> None:
    model = Paid(lambda messages, number: "word")

    @task
    async def one(number: int) -> str:
        return (await model.ainvoke(f"number {number}")).text

    @entrypoint()
    async def flow(many: int) -> list[str]:
        return await asyncio.gather(*[one(number) for number in range(many)])

    app = guarded(flow, "5 calls", detectors=())
    await app.ainvoke(12)
    assert model.calls == 5


async def test_calls_in_a_task_group_are_refused_and_the_rest_ends() -> None:
    model = Paid(lambda messages, number: "word", max_tokens=60)

    async def node(state: MessagesState) -> dict[str, Any]:
        async with asyncio.TaskGroup() as group:
            found = [group.create_task(model.ainvoke("one two three")) for _ in range(10)]
        return {"messages": [each.result() for each in found]}

    graph = StateGraph(MessagesState)
    graph.add_node("node", node)
    graph.add_edge(START, "node")
    app = guarded(graph.compile(), "4 calls", detectors=())
    await app.ainvoke(HELLO)
    assert model.calls == 4
    assert app.report().reason == "budget:model_calls"


@pytest.mark.parametrize("alone", [True, False])
@pytest.mark.parametrize("how", ["invoke", "ainvoke"])
async def test_a_middleware_and_a_clamped_model_together(how: str, alone: bool) -> None:
    model = Paid(
        lambda m, n: asks_for(("search", {"query": str(n)}), text="w " * 300), max_tokens=None
    )
    guard = Guard(budget="$0.20", unknown_price=PRICE, detectors=())
    app: Any = create_agent(clamped(model), [Counter().tool], middleware=[GuardMiddleware(guard)])
    app = app if alone else guard.wrap(app)
    result = await app.ainvoke(HELLO, LONG) if how == "ainvoke" else app.invoke(HELLO, LONG)
    assert not list(complaints(result["messages"]))
    true = sum(
        10 * m.usage_metadata["input_tokens"] + 30 * m.usage_metadata["output_tokens"]
        for m in result["messages"]
        if m.type == "ai" and m.usage_metadata
    )
    assert 0.5 * 200_000 <= true <= 200_000


def test_a_tool_that_swallows_everything_still_cannot_spend() -> None:
    inner = Paid(lambda messages, number: "word")

    @tool
    def stubborn(query: str) -> str:
        """Asks until it has an answer."""
        for _ in range(50):
            with suppress(Exception):
                inner.invoke(query)
        return "gave up"

    app = guarded(react(Paid(always_asks("stubborn")), stubborn), "6 calls")
    app.invoke(HELLO, LONG)
    assert inner.calls <= 5
    assert app.report().reason == "budget:model_calls"


def test_send_branches_over_several_rounds_share_a_cap() -> None:
    model = Paid(lambda messages, number: "word " * 20)
    rounds = 0

    def plan(state: MessagesState) -> dict[str, Any]:
        nonlocal rounds
        rounds += 1
        return {}

    graph = StateGraph(MessagesState)
    graph.add_node("plan", plan)
    graph.add_node("work", lambda state: {"messages": [model.invoke("one two three")]})
    graph.add_edge(START, "plan")
    graph.add_conditional_edges(
        "plan", lambda state: [Send("work", state) for _ in range(9)] if rounds < 30 else []
    )
    graph.add_edge("work", "plan")
    app = guarded(graph.compile(), Budget(tokens=2_000), detectors=())
    app.invoke(HELLO, LONG)
    assert 1_600 <= model.tokens <= 2_000
    assert app.report().reason == "budget:tokens"

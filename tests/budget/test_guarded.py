"""Budgets end to end, on graphs and agents, each scenario by the id of the case it comes from."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Callable, Sequence
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import SummarizationMiddleware
from langchain_core.caches import InMemoryCache
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGenerationChunk
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphRecursionError
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command, Send, interrupt

import shearpin
from shearpin import Budget, BudgetExceededError, ConfigError
from shearpin.pricing import Catalogue, ModelPrice, Overrides
from shearpin.testing import ScriptedModel, StrictProvider, asks_for
from shearpin.testing.provider import complaints
from tests.budget.paying import HELLO, PRICE, Counter, Paid, agent, always_asks, react

BUILDS = pytest.mark.parametrize("build", [react, agent])
LONG = {"recursion_limit": 1000}


def thread(name: str, **more: object) -> dict[str, Any]:
    return {"configurable": {"thread_id": name, **more}, **LONG}


def guarded(graph: Any, budget: object, **options: object) -> Any:
    return shearpin.guard(graph, budget=budget, unknown_price=PRICE, **options)


def texts(result: Any) -> list[str]:
    return [message.text for message in result["messages"]]


# -- counts ---------------------------------------------------------------------------------------


def test_a_refused_call_is_none_of_those_without_a_limit() -> None:
    model = ScriptedModel(lambda messages, call: asks_for(("search", {"query": str(call)})))
    app = guarded(react(model, Counter().tool), "3 calls")
    app.invoke(HELLO, LONG)
    report = app.report()
    assert (model.calls, report.spend.model_calls) == (3, 3)
    assert report.budget is not None
    assert report.budget.unbounded_calls == 3


@BUILDS
@pytest.mark.parametrize("how", ["invoke", "ainvoke", "stream", "astream"])
async def test_g12_x_exactly_three_model_calls(build: Callable[..., Any], how: str) -> None:
    model, search = Paid(always_asks()), Counter()
    app = guarded(build(model, search.tool), "3 calls")
    if how == "invoke":
        result = app.invoke(HELLO, LONG)
    elif how == "ainvoke":
        result = await app.ainvoke(HELLO, LONG)
    elif how == "stream":
        result = list(app.stream(HELLO, LONG, stream_mode="values"))[-1]
    else:
        result = [each async for each in app.astream(HELLO, LONG, stream_mode="values")][-1]
    assert model.calls == 3
    assert search.runs == 3
    last = result["messages"][-1]
    assert last.text.startswith("This run was stopped at its limit: 3 model calls of the 3")
    assert last.response_metadata["shearpin"]["reason"] == "budget:model_calls"
    assert not list(complaints(result["messages"]))
    report = app.report()
    assert (report.outcome, report.reason) == ("stopped", "budget:model_calls")
    assert report.budget.scopes[0].spent["model_calls"] == 3
    assert not report.faults


@BUILDS
def test_h15_a_five_turns_and_an_end_at_a_turn_boundary(build: Callable[..., Any]) -> None:
    model, search = Paid(always_asks()), Counter()
    app = guarded(build(model, search.tool), Budget(steps=5))
    result = app.invoke(HELLO, LONG)
    assert (model.calls, search.runs) == (5, 5)
    assert not list(complaints(result["messages"]))
    assert app.report().reason == "budget:steps"


@BUILDS
def test_h16_a_five_of_six_run_and_control_returns_to_the_model(build: Callable[..., Any]) -> None:
    def script(messages: Sequence[BaseMessage], number: int) -> AIMessage | str:
        return asks_for(*[("draw", {"query": f"{n}"}) for n in range(6)]) if number == 1 else "done"

    model, draw = StrictProvider(script), Counter("draw")
    app = guarded(build(model, draw.tool), Budget(tool_calls=5))
    result = app.invoke(HELLO)
    assert draw.runs == 5
    answers = [message for message in result["messages"] if message.type == "tool"]
    assert [a.text.startswith("Not run: the limit of 5 tool calls") for a in answers] == [
        *[False] * 5,
        True,
    ]
    assert result["messages"][-1].text == "done"
    assert app.report().outcome == "completed"
    assert app.report().budget.scopes[0].spent["tool_calls"] == 5


@BUILDS
def test_h02_c_the_first_five_of_seven_run(build: Callable[..., Any]) -> None:
    def script(messages: Sequence[BaseMessage], number: int) -> AIMessage | str:
        return asks_for(*[("draw", {"query": f"{n}"}) for n in range(7)]) if number == 1 else "done"

    model, draw = StrictProvider(script), Counter("draw")
    result = guarded(build(model, draw.tool), Budget(per_tool={"draw": 5})).invoke(HELLO)
    answers = [message for message in result["messages"] if message.type == "tool"]
    assert [answer.text.startswith("Not run") for answer in answers] == [*[False] * 5, True, True]


@BUILDS
def test_a43_x_a_continue_never_raises_the_limit(build: Callable[..., Any]) -> None:
    model, run = StrictProvider(always_asks("run")), Counter("run")
    app = guarded(build(model, run.tool), Budget(tool_calls=100))
    result = app.invoke(HELLO, LONG)
    assert run.runs == 100
    assert model.calls == 102
    assert app.report().reason == "budget:tool_calls"
    assert not list(complaints(result["messages"]))


@BUILDS
def test_g11_x_entering_a_node_anew_resets_no_counter(build: Callable[..., Any]) -> None:
    def script(messages: Sequence[BaseMessage], number: int) -> AIMessage | str:
        return asks_for(("search", {"query": f"{number}"})) if number < 5 else "done"

    search, other = Counter(), Counter("other")
    app = guarded(build(Paid(script), search.tool, other.tool), Budget(per_tool={"search": 2}))
    app.invoke(HELLO)
    assert search.runs == 2


def test_exempt_tools_stay_callable() -> None:
    def script(messages: Sequence[BaseMessage], number: int) -> AIMessage | str:
        name = "search" if number <= 2 else "ask_user"
        return asks_for((name, {"query": f"{number}"})) if number < 6 else "done"

    search, ask = Counter(), Counter("ask_user")
    budget = Budget(tool_calls=1, exempt=("ask_user",))
    result = guarded(react(Paid(script), search.tool, ask.tool), budget).invoke(HELLO)
    assert (search.runs, ask.runs) == (1, 3)
    assert texts(result)[-1] == "done"


def test_h08_a_limits_do_not_depend_on_supersteps() -> None:
    runs = []
    for guard in (False, True):
        search = Counter()
        app: Any = react(Paid(always_asks()), search.tool)
        if guard:
            app = guarded(app, Budget(model_calls=1000))
        with pytest.raises(Exception, match="Recursion limit of 25"):
            app.invoke(HELLO, {"recursion_limit": 25})
        runs.append(search.runs)
    assert runs[0] == runs[1] > 0


def test_h12_a_without_a_budget_nothing_is_counted_or_rewritten() -> None:
    model = Paid(lambda messages, number: "the answer")
    app = shearpin.guard(react(model, Counter().tool), budget=None)
    assert texts(app.invoke(HELLO))[-1] == "the answer"
    assert app.report().budget is None
    assert app.report().to_json()["budget"] is None


@BUILDS
@pytest.mark.parametrize("silent", [True, False])
@pytest.mark.parametrize("how", ["invoke", "stream", "ainvoke"])
async def test_g03_x_the_reason_can_be_read_and_the_last_word_is_not_empty(
    build: Callable[..., Any], silent: bool, how: str
) -> None:
    def script(messages: Sequence[BaseMessage], number: int) -> AIMessage | str:
        if silent and number == 5:
            return ""
        return asks_for(("search", {"query": f"{number}"}))

    search = Counter()
    app = guarded(build(Paid(script), search.tool), Budget(tool_calls=3))
    if how == "invoke":
        result = app.invoke(HELLO, LONG)
    elif how == "ainvoke":
        result = await app.ainvoke(HELLO, LONG)
    else:
        result = list(app.stream(HELLO, LONG, stream_mode="values"))[-1]
    assert search.runs == 3
    assert result["messages"][-1].text.startswith("This run was stopped at its limit")
    assert result["messages"][-1].response_metadata["shearpin"]["reason"] == "budget:tool_calls"
    assert app.report().reason == "budget:tool_calls"
    assert not list(complaints(result["messages"]))


def test_silence_for_other_reasons_is_left_alone() -> None:
    app = guarded(react(Paid(lambda messages, number: ""), Counter().tool), Budget(tool_calls=3))
    assert texts(app.invoke(HELLO))[-1] == ""
    assert app.report().outcome == "completed"


# -- runs and threads -----------------------------------------------------------------------------


def twice(messages: Sequence[BaseMessage], number: int) -> AIMessage | str:
    return "done" if messages[-1].type == "tool" else asks_for(("search", {"query": f"{number}"}))


@BUILDS
def test_h07_a_each_invocation_starts_at_zero(build: Callable[..., Any]) -> None:
    app = guarded(build(Paid(twice), Counter().tool, saver=InMemorySaver()), "3 calls")
    for _ in range(3):
        assert texts(app.invoke(HELLO, thread("1")))[-1] == "done"
        assert app.report(thread("1")).outcome == "completed"


def asking(model: Any, saver: Any) -> Any:
    """Model, a question to a person, model again, for ever."""

    def think(state: MessagesState) -> dict[str, Any]:
        return {"messages": [model.invoke(state["messages"])]}

    graph = StateGraph(MessagesState)
    graph.add_node("first", think)
    graph.add_node("second", think)
    graph.add_node("ask", lambda state: {"messages": [("user", interrupt("go on?"))]})
    graph.add_edge(START, "first")
    graph.add_edge("first", "second")
    graph.add_edge("second", "ask")
    graph.add_edge("ask", "first")
    return graph.compile(checkpointer=saver)


@pytest.mark.parametrize("restart", [False, True])
def test_h07_b_a_resume_goes_on_with_the_same_run(restart: bool) -> None:
    model, saver = Paid(lambda messages, number: f"thought {number}"), InMemorySaver()
    app = guarded(asking(model, saver), "3 calls")
    app.invoke(HELLO, thread("1"))
    assert model.calls == 2
    if restart:  # another process would see the same: only the checkpointer remembers
        app = guarded(asking(model, saver), "3 calls")
    app.invoke(Command(resume="yes"), thread("1"))
    assert model.calls == 3
    assert app.report(thread("1")).reason == "budget:model_calls"
    assert app.report(thread("1")).budget.scopes[0].spent["model_calls"] == 3


def test_h17_a_rejections_are_resumes_of_one_run() -> None:
    model, saver = Paid(lambda messages, number: f"proposal {number}"), InMemorySaver()
    app = guarded(asking(model, saver), "3 calls")
    app.invoke(HELLO, thread("1"))
    for _ in range(4):
        app.invoke(Command(resume="no"), thread("1"))
    assert model.calls == 3


def test_h15_c_replays_use_no_steps() -> None:
    def confirm(state: MessagesState) -> dict[str, Any]:
        model.invoke([("user", "prepare the question")])
        return {"messages": [("user", f"{interrupt('a')} {interrupt('b')} {interrupt('c')}")]}

    model = Paid(lambda messages, number: f"thought {number}")
    graph = StateGraph(MessagesState)
    graph.add_node("confirm", confirm)
    graph.add_edge(START, "confirm")
    app = guarded(graph.compile(checkpointer=InMemorySaver()), Budget(steps=2))
    app.invoke(HELLO, thread("1"))
    for answer in ("x", "y", "z"):
        result = app.invoke(Command(resume=answer), thread("1"))
    assert texts(result)[-1] == "x y z"
    spent = app.report(thread("1")).budget.scopes[0].spent
    assert (spent["steps"], spent["model_calls"]) == (1, 4), "calls were made, and cost"


@pytest.mark.parametrize("restart", [False, True])
def test_g04_x_a_fresh_run_budget_and_a_thread_that_adds_up(restart: bool) -> None:
    model, saver = Paid(lambda messages, number: f"answer {number}"), InMemorySaver()
    budgets = [Budget(model_calls=1), Budget(model_calls=3, per="thread")]
    app = guarded(react(model, Counter().tool, saver=saver), budgets)
    for number in range(1, 6):
        app.invoke(HELLO, thread("1"))
        assert model.calls == min(number, 3)
        if restart:
            app = guarded(react(model, Counter().tool, saver=saver), budgets)
    app.invoke(HELLO, thread("1"))
    assert app.report(thread("1")).reason == "budget:model_calls"
    assert app.report(thread("1")).decisive.evidence["per"] == "thread"
    app.invoke(HELLO, thread("another"))
    assert model.calls == 4


@pytest.mark.parametrize("given", ["20 calls", Budget(model_calls=20)])
def test_g10_x_twenty_for_one_invocation_and_five_for_the_next(given: object) -> None:
    model = Paid(always_asks())
    app = guarded(react(model, Counter().tool), "5 calls")
    app.invoke(HELLO, {"configurable": {"shearpin_budget": given}, **LONG})
    assert model.calls == 20
    app.invoke(HELLO, LONG)
    assert model.calls == 25


def test_an_override_may_come_with_the_runtime_context() -> None:
    model = Paid(always_asks())
    app = guarded(react(model, Counter().tool), "5 calls")
    app.invoke(HELLO, LONG, context={"shearpin_budget": "2 calls"})
    assert model.calls == 2


def test_an_override_that_cannot_be_read_is_an_error_at_once() -> None:
    app = guarded(react(Paid(always_asks()), Counter().tool), "5 calls")
    with pytest.raises(ConfigError, match="cannot read"):
        app.invoke(HELLO, {"configurable": {"shearpin_budget": "a lot"}})


def test_a_run_may_be_extended_when_it_is_resumed() -> None:
    model, saver = Paid(lambda messages, number: f"thought {number}"), InMemorySaver()
    app = guarded(asking(model, saver), "2 calls")
    app.invoke(HELLO, thread("1"))
    app.invoke(Command(resume="yes"), thread("1", shearpin_extend="2 calls"))
    assert model.calls == 4
    scope = app.report(thread("1")).budget.scopes[0]
    assert (scope.limits["model_calls"], scope.extended["model_calls"]) == (4, 2)


# -- trees ----------------------------------------------------------------------------------------


def nested(parent: Any, child: Any) -> Any:
    """A parent whose only tool is an agent of its own."""

    def delegate(query: str) -> str:
        """Hands the task to somebody else."""
        return child.invoke(HELLO, LONG)["messages"][-1].text

    return react(parent, tool(delegate))


def test_h17_c_five_model_calls_in_the_tree() -> None:
    inner, outer, search = Paid(always_asks()), Paid(always_asks("delegate")), Counter()
    child = guarded(react(inner, search.tool), "5 calls")
    app = guarded(nested(outer, child), "5 calls")
    app.invoke(HELLO, LONG)
    assert inner.calls + outer.calls == 5
    assert app.report().reason == "budget:model_calls"


def test_a_child_that_is_exhausted_returns_to_its_parent() -> None:
    def parent(messages: Sequence[BaseMessage], number: int) -> AIMessage | str:
        return asks_for(("delegate", {"query": "x"})) if number == 1 else "what I have"

    inner, outer = Paid(always_asks()), Paid(parent)
    child = guarded(react(inner, Counter().tool), "2 calls")
    app = guarded(nested(outer, child), "50 calls")
    result = app.invoke(HELLO, LONG)
    assert inner.calls == 2
    assert texts(result)[-1] == "what I have"
    assert "2 model calls of the 2 model calls" in texts(result)[-2]
    assert app.report().outcome == "completed"
    assert app.report().budget.scopes[0].spent["model_calls"] == 4


def test_h06_a_limits_are_those_of_the_tree() -> None:
    def working(messages: Sequence[BaseMessage], number: int) -> AIMessage | str:
        return asks_for(("search", {"query": f"{number}"})) if number < 40 else "found"

    def parent(messages: Sequence[BaseMessage], number: int) -> AIMessage | str:
        return asks_for(("delegate", {"query": "x"})) if number == 1 else texts_of(messages)[-1]

    def texts_of(messages: Sequence[BaseMessage]) -> list[str]:
        return [message.text for message in messages]

    app = guarded(
        nested(Paid(parent), react(Paid(working), Counter().tool)), Budget(model_calls=100)
    )
    result = app.invoke(HELLO, {"recursion_limit": 10_000})
    assert texts(result)[-1] == "found"
    assert app.report().budget.scopes[0].spent["model_calls"] == 42


@pytest.mark.parametrize("how", ["invoke", "ainvoke"])
async def test_h06_b_an_error_of_langgraphs_step_limit_names_the_child(how: str) -> None:
    """In a tool, and in the function of a node: the child, and the limit that was in force."""
    inner = react(Paid(always_asks()), Counter().tool)

    def delegate(query: str) -> str:
        """Hands the task to somebody else."""
        return inner.invoke(HELLO, {"recursion_limit": 25})["messages"][-1].text

    def node(state: MessagesState) -> dict[str, Any]:
        return inner.invoke(HELLO, {"recursion_limit": 11})

    graph = StateGraph(MessagesState)
    graph.add_node("worker", node)
    graph.add_edge(START, "worker")
    for app, child, limit in (
        (react(Paid(always_asks("delegate")), tool(delegate)), "tool 'delegate'", 25),
        (graph.compile(), "node 'worker'", 11),
    ):
        with pytest.raises(GraphRecursionError) as plain:
            app.invoke(HELLO)
        safe = shearpin.guard(app, detectors=())
        with pytest.raises(GraphRecursionError) as caught:
            await safe.ainvoke(HELLO) if how == "ainvoke" else safe.invoke(HELLO)
        assert str(caught.value) == str(plain.value)
        (note,) = [each for each in caught.value.__notes__ if each.startswith("shearpin: ")]
        assert note.startswith(f"shearpin: the agent that the {child} calls ran into LangGraph's")
        assert f"recursion_limit of {limit} supersteps" in note


def test_the_step_limit_of_the_graph_itself_is_left_alone() -> None:
    app = shearpin.guard(react(Paid(always_asks()), Counter().tool), detectors=())
    with pytest.raises(GraphRecursionError) as caught:
        app.invoke(HELLO, {"recursion_limit": 11})
    assert not getattr(caught.value, "__notes__", [])


def tower(models: Sequence[Any], *, wrapped: bool = False) -> Any:
    """Agents that each hand their task to the next; the last one has a tool of its own."""
    inner: Any = None
    for model in reversed(models):
        given = Counter().tool if inner is None else handing_over(inner)
        inner = react(model, given)
        if wrapped:
            graph = StateGraph(MessagesState)
            graph.add_node("agent", inner)
            graph.add_edge(START, "agent")
            inner = graph.compile()
    return inner


def handing_over(child: Any) -> Any:
    def delegate(query: str) -> str:
        """Hands the task to somebody else."""
        return child.invoke(HELLO, LONG)["messages"][-1].text

    return tool(delegate)


def handing(messages: Sequence[BaseMessage], number: int) -> AIMessage | str:
    return "what I have" if number > 1 else asks_for(("delegate", {"query": "x"}))


@pytest.mark.parametrize("wrapped", [False, True])
def test_h16_b_the_fourth_level_of_agents_is_refused(wrapped: bool) -> None:
    models = [Paid(handing) for _ in range(4)]
    budget = Budget(depth=3, per_tool={"delegate": 10})
    app = guarded(tower(models, wrapped=wrapped), budget)
    result = app.invoke(HELLO, LONG)
    assert [model.calls for model in models] == [2, 2, 2, 0]
    assert texts(result)[-1] == "what I have"
    report = app.report()
    assert report.outcome == "completed", "who asked for it goes on"
    (refused,) = [verdict for verdict in report.verdicts if verdict.rule == "budget:exhausted"]
    assert (refused.evidence["dimension"], refused.evidence["allowed"]) == ("depth", 3)
    assert "an agent on level 4, and 3 levels of agents are allowed" in refused.message
    (scope,) = report.budget.scopes
    assert (scope.limits["depth"], scope.spent["depth"]) == (3, 3)


@pytest.mark.parametrize(("depth", "calls"), [(0, [0, 0]), (1, [2, 0]), (2, [2, 1])])
def test_levels_of_agents_are_counted_from_the_first(depth: int, calls: list[int]) -> None:
    models = [Paid(handing), Paid(lambda messages, number: "found")]
    app = guarded(tower(models), Budget(depth=depth))
    app.invoke(HELLO, LONG)
    assert [model.calls for model in models] == calls
    assert app.report().reason == ("budget:depth" if depth == 0 else None)


def test_levels_hold_over_a_pause_and_a_restart() -> None:
    """The agent above has asked its model before the pause, in a process that is gone."""
    saver, inner = InMemorySaver(), Paid(lambda messages, number: "found")
    outer = Paid(handing)

    def delegate(query: str) -> str:
        """Asks first, and then somebody else."""
        interrupt("may I?")
        return react(inner, Counter().tool).invoke(HELLO)["messages"][-1].text

    def app() -> Any:
        return guarded(react(outer, tool(delegate), saver=saver), Budget(depth=1))

    app().invoke(HELLO, thread("1"))
    again = app()
    again.invoke(Command(resume="yes"), thread("1"))
    assert (outer.calls, inner.calls) == (2, 0)


def test_a_sub_agent_leaves_the_last_answer_to_its_caller() -> None:
    def parent(messages: Sequence[BaseMessage], number: int) -> AIMessage | str:
        return asks_for(("delegate", {"query": "x"})) if number == 1 else "what we have"

    inner, outer = Paid(always_asks()), Paid(parent)
    app = guarded(nested(outer, react(inner, Counter().tool)), Budget(tokens=2_000))
    result = app.invoke(HELLO, LONG)
    assert texts(result)[-1] == "what we have"
    assert inner.tokens + outer.tokens <= 2_000
    assert inner.calls > 5


def fan_out(branch: Any, branches: int) -> Any:
    """So many branches at once; their answers come together."""
    graph = StateGraph(MessagesState)
    graph.add_node("branch", branch)
    graph.add_node("join", lambda state: {"messages": [("user", "joined")]})
    graph.add_conditional_edges(
        START, lambda state: [Send("branch", state) for _ in range(branches)], ["branch"]
    )
    graph.add_edge("branch", "join")
    return graph.compile()


def one_call(model: Paid) -> Any:
    """A branch with one model call."""

    def branch(state: Any) -> dict[str, Any]:
        return {"messages": [model.invoke([("user", "a part of the work " * 3)])]}

    return branch


@pytest.mark.parametrize(("branches", "cap"), [(8, 400), (64, 1_000)])
def test_a_fan_out_never_spends_more_than_its_cap(branches: int, cap: int) -> None:
    model = Paid(lambda messages, number: f"part {number} " * 20, max_tokens=50)
    app = guarded(fan_out(one_call(model), branches), Budget(tokens=cap), detectors=())
    app.invoke(HELLO)
    assert 0.8 * cap <= model.tokens <= cap
    assert app.report().budget.scopes[0].spent["tokens"] == model.tokens


def test_branches_wait_for_room_instead_of_being_left_out() -> None:
    model = Paid(lambda messages, number: f"part-{number}", max_tokens=400)
    app = guarded(fan_out(one_call(model), 20), Budget(tokens=1_500), detectors=())
    result = app.invoke(HELLO)
    assert model.calls == 20
    assert texts(result)[-1] == "joined"
    assert app.report().outcome == "completed"


async def test_asynchronous_branches_wait_for_room_without_blocking_the_loop() -> None:
    turns = 0

    async def other_work() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async def branch(state: Any) -> dict[str, Any]:
        return {"messages": [await model.ainvoke([("user", "a part of the work " * 3)])]}

    class Slow(Paid):
        async def _agenerate(self, messages: Any, *args: Any, **kwargs: Any) -> Any:
            before = turns
            for _ in range(5):
                await asyncio.sleep(0)
            assert turns > before, "the loop goes on while this call is under way"
            return self._generate(messages, *args, **kwargs)

    model = Slow(lambda messages, number: f"part-{number}", max_tokens=400)
    app = guarded(fan_out(branch, 20), Budget(tokens=1_500), detectors=())
    beside = asyncio.create_task(other_work())
    result = await app.ainvoke(HELLO)
    beside.cancel()
    assert model.calls == 20
    assert texts(result)[-1] == "joined"
    assert app.report().outcome == "completed"
    assert not app.report().faults


async def test_a_branch_that_waits_for_room_can_be_cancelled() -> None:
    began = asyncio.Event()

    class Hung(Paid):
        async def _agenerate(self, *args: Any, **kwargs: Any) -> Any:
            began.set()
            await asyncio.Event().wait()

    async def branch(state: Any) -> dict[str, Any]:
        return {"messages": [await model.ainvoke([("user", "a part of the work " * 3)])]}

    model = Hung(lambda messages, number: "never", max_tokens=400)
    app = guarded(fan_out(branch, 5), Budget(tokens=700), detectors=())
    task = asyncio.create_task(app.ainvoke(HELLO))
    await began.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    scope = app.report().budget.scopes[0]
    assert (scope.spent["model_calls"], dict(scope.held)) == (1, {}), "only one was ever made"
    assert app.report().outcome == "cancelled"


async def test_a_stop_reaches_the_branches_that_wait() -> None:
    """What one branch is stopped for, no branch that waited for it does any more."""

    async def branch(state: Any) -> dict[str, Any]:
        return {"messages": [await model.ainvoke([("user", "a part of the work " * 3)])]}

    class Stopping(Paid):
        async def _agenerate(self, messages: Any, *args: Any, **kwargs: Any) -> Any:
            await asyncio.sleep(0)
            return self._generate(messages, *args, **kwargs)

    model = Stopping(lambda messages, number: "word " * 30, max_tokens=30)
    app = guarded(fan_out(branch, 8), "150 tokens, 3 calls", detectors=())
    await app.ainvoke(HELLO)
    assert model.calls <= 3
    assert model.tokens <= 150
    assert app.report().outcome == "stopped"


async def test_a_task_does_not_wait_for_its_own_stream() -> None:
    async def node(state: MessagesState) -> dict[str, Any]:
        stream = model.astream("one two three")
        await anext(stream)
        return {"messages": [await model.ainvoke("one two three")]}

    model = Paid(lambda messages, number: "word " * 30, max_tokens=60)
    graph = StateGraph(MessagesState)
    graph.add_node("node", node)
    graph.add_edge(START, "node")
    app = guarded(graph.compile(), Budget(tokens=100), detectors=())
    await app.ainvoke(HELLO)
    assert model.calls == 1


# -- money ----------------------------------------------------------------------------------------


@BUILDS
def test_a_dollar_cap_is_a_cap_and_is_used(build: Callable[..., Any]) -> None:
    model, search = Paid(always_asks()), Counter()
    app = guarded(build(model, search.tool), "$0.05")
    app.invoke(HELLO, LONG)
    assert 40_000 <= model.micros <= 50_000
    report = app.report()
    assert report.reason == "budget:usd"
    assert report.budget.usd == Decimal(model.micros) / 1_000_000
    assert report.to_json()["budget"]["scopes"][0]["limits"] == {"usd": "0.05"}


def test_an_unknown_price_is_refused_with_the_fix() -> None:
    model = Paid(always_asks())
    app = shearpin.guard(react(model, Counter().tool), budget="$1")
    result = app.invoke(HELLO)
    assert model.calls == 0
    assert app.report().reason == "budget:unknown_price"
    assert texts(result)[-1].startswith("This run was stopped: what its next step costs is not")
    for inside in ("price file", "paid", "unknown_price", "Known names"):
        assert inside not in texts(result)[-1]
    [note] = app.report().budget.notes
    for part in ("model 'paid' of 'paid'", "unknown_price=", 'Guard(prices="prices.toml")'):
        assert part in note
    assert "Known names" not in note, "nothing is spelt like it"


def test_without_a_dollar_limit_nobody_asks_for_prices(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG", "shearpin")
    app = shearpin.guard(react(Paid(twice), Counter().tool), budget="9 calls")
    assert texts(app.invoke(HELLO))[-1] == "done"
    budget = app.report().budget
    assert budget.unpriced_calls == 2 and budget.remarks == ()
    said = [(r.levelname, "no price is known" in r.message) for r in caplog.records]
    assert ("DEBUG", True) in said and ("WARNING", True) not in said


def test_prices_of_your_own_from_a_file(tmp_path: Path) -> None:
    prices = tmp_path / "prices.toml"
    prices.write_text('date = 2026-07-01\n[models.paid]\ninput = "3"\noutput = "15"\n')
    (tmp_path / "guard.toml").write_text('budget = "$1"\nprices = "prices.toml"\n')
    for recipe in (
        shearpin.Guard(budget="$1", prices=prices),
        shearpin.Guard(budget="$1", prices=str(prices)),
        shearpin.Guard.from_file(tmp_path / "guard.toml"),
    ):
        app = recipe.wrap(react(Paid(twice), Counter().tool))
        assert texts(app.invoke(HELLO))[-1] == "done"
        assert app.report().budget.usd > 0


def test_a_price_book_at_fault_keeps_its_exception_out_of_the_conversation() -> None:
    class Broken:
        def price(self, model: str, provider: str | None = None, at: object = None) -> None:
            raise ArithmeticError("a bug")

    app = shearpin.guard(react(Paid(twice), Counter().tool), budget="$1", prices=Broken())
    last = texts(app.invoke(HELLO))[-1]
    assert last.startswith("This run was stopped because its budget could not be kept. What")
    assert any("a bug" in fault for fault in app.report().faults)


def test_an_unknown_price_may_be_let_pass_and_is_marked() -> None:
    model = Paid(twice)
    app = shearpin.guard(react(model, Counter().tool), budget="$1, 9 calls", unknown_price="warn")
    assert texts(app.invoke(HELLO))[-1] == "done"
    budget = app.report().budget
    assert (budget.unpriced_calls, budget.usd) == (2, None)
    assert any("no price is known" in note for note in budget.notes)


def test_a_limit_in_tokens_needs_no_price() -> None:
    app = shearpin.guard(react(Paid(twice), Counter().tool), budget="100k tokens")
    assert texts(app.invoke(HELLO))[-1] == "done"


def test_on_stop_raise_names_the_numbers() -> None:
    app = guarded(react(Paid(always_asks()), Counter().tool), "2 calls", on_stop="raise")
    with pytest.raises(BudgetExceededError, match="2 model calls of the 2") as caught:
        app.invoke(HELLO, LONG)
    assert caught.value.reason == "budget:model_calls"
    assert caught.value.evidence["spent"] == 2


def test_u06_x_what_finished_calls_used_is_kept_when_one_raises() -> None:
    def script(messages: Sequence[BaseMessage], number: int) -> AIMessage | BaseException:
        asked = asks_for(("search", {"query": f"{number}"}))
        return asked if number < 3 else RuntimeError("the third one fails")

    model = Paid(script)
    app = guarded(react(model, Counter().tool), Budget(tokens=100_000))
    with pytest.raises(RuntimeError, match="the third one"):
        app.invoke(HELLO)
    assert app.report().budget.scopes[0].spent["tokens"] == model.tokens > 0


def test_u04_x_all_calls_count_whatever_becomes_of_their_answers() -> None:
    def silent(state: MessagesState) -> dict[str, Any]:
        model.invoke([("user", "one")])
        return {}

    def trims(state: MessagesState) -> dict[str, Any]:
        model.invoke([("user", "two")])
        return {"messages": []}

    def fails(state: MessagesState) -> dict[str, Any]:
        model.invoke([("user", "three")])
        raise ValueError("after the call")

    model = Paid(lambda messages, number: "word " * 10)
    graph = StateGraph(MessagesState)
    graph.add_sequence([("silent", silent), ("trims", trims), ("fails", fails)])
    graph.add_edge(START, "silent")
    app = guarded(graph.compile(), Budget(tokens=1_000))
    with pytest.raises(ValueError, match="after the call"):
        app.invoke(HELLO)
    assert app.report().budget.scopes[0].spent["tokens"] == model.tokens


# -- what providers tell --------------------------------------------------------------------------


def test_usage_that_is_not_told_is_estimated_and_marked() -> None:
    model = Paid(twice, reports=False)
    app = guarded(react(model, Counter().tool), Budget(tokens=100_000))
    app.invoke(HELLO)
    budget = app.report().budget
    assert budget.estimated_calls == 2
    assert budget.scopes[0].spent["tokens"] >= model.tokens
    assert any("no usage was reported" in note for note in budget.notes)


def test_u02_x_cumulative_usage_of_chunks_is_recognised() -> None:
    class Cumulative(Paid):
        def _stream(self, messages: Any, *args: Any, **kwargs: Any) -> Any:
            for number in range(1, 51):
                usage = {"input_tokens": 10, "output_tokens": number, "total_tokens": 10 + number}
                yield ChatGenerationChunk(
                    message=AIMessageChunk(content="x ", usage_metadata=usage)  # type: ignore[arg-type]
                )

    def node(state: MessagesState) -> dict[str, Any]:
        return {"messages": [AIMessage("".join(chunk.text for chunk in model.stream("hi")))]}

    model = Cumulative(twice)
    graph = StateGraph(MessagesState)
    graph.add_node("node", node)
    graph.add_edge(START, "node")
    for app in (guarded(graph.compile(), "9 calls"), shearpin.guard(graph.compile())):
        app.invoke(HELLO)
        spend = app.report().spend
        assert (spend.input_tokens, spend.output_tokens) == (10, 50)
    app = guarded(graph.compile(), "9 calls")
    app.invoke(HELLO)
    spent = app.report().budget.scopes[0].spent
    assert (spent["input_tokens"], spent["output_tokens"]) == (10, 50)


def test_u05_x_an_answer_from_the_cache_costs_nothing() -> None:
    model = Paid(lambda messages, number: "the answer", cache=InMemoryCache())

    def node(state: MessagesState) -> dict[str, Any]:
        return {"messages": [model.invoke("the same"), model.invoke("the same")]}

    graph = StateGraph(MessagesState)
    graph.add_node("node", node)
    graph.add_edge(START, "node")
    app = guarded(graph.compile(), "$1.00")
    app.invoke(HELLO)
    budget = app.report().budget
    assert model.calls == 1
    assert budget.cached_calls == 1
    assert budget.scopes[0].spent["model_calls"] == 1
    assert budget.usd == Decimal(model.micros) / 1_000_000


@pytest.mark.parametrize("reports", [True, False])
def test_an_abandoned_stream_is_paid_for(reports: bool) -> None:
    def node(state: MessagesState) -> dict[str, Any]:
        chunks = model.stream("one two three")
        first = next(chunks).text
        chunks.close()
        return {"messages": [AIMessage(first)]}

    model = Paid(lambda messages, number: "word " * 30, reports=reports)
    graph = StateGraph(MessagesState)
    graph.add_node("node", node)
    graph.add_edge(START, "node")
    app = guarded(graph.compile(), Budget(tokens=10_000))
    app.invoke(HELLO)
    scope = app.report().budget.scopes[0]
    assert scope.spent["model_calls"] == 1
    assert scope.spent["input_tokens"] >= 6, "the prompt was sent, and is paid for"
    assert scope.spent["output_tokens"] >= 1
    assert app.report().budget.estimated_calls == 1
    assert not scope.held


async def test_a_cancelled_call_counts_as_if_it_had_been_made() -> None:
    begun = asyncio.Event()

    class Slow(Paid):
        async def _agenerate(self, *args: Any, **kwargs: Any) -> Any:
            begun.set()
            await asyncio.Event().wait()

    async def node(state: MessagesState) -> dict[str, Any]:
        return {"messages": [await model.ainvoke("one two three")]}

    model = Slow(twice, max_tokens=77)
    graph = StateGraph(MessagesState)
    graph.add_node("node", node)
    graph.add_edge(START, "node")
    app = guarded(graph.compile(), Budget(tokens=10_000))
    task = asyncio.create_task(app.ainvoke(HELLO))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    scope = app.report().budget.scopes[0]
    assert scope.spent["output_tokens"] == 77
    assert not scope.held


def test_retries_and_fallbacks_each_count() -> None:
    def script(messages: Sequence[BaseMessage], number: int) -> str | BaseException:
        return RuntimeError("again") if number < 3 else "at last"

    model, spare = Paid(script), Paid(lambda messages, number: "spare")
    retried = model.with_retry(stop_after_attempt=5, wait_exponential_jitter=False)

    def node(state: MessagesState) -> dict[str, Any]:
        failing = Paid(lambda messages, number: RuntimeError("no"))
        answers = [retried.invoke("hi"), failing.with_fallbacks([spare]).invoke("hi")]
        return {"messages": answers}

    graph = StateGraph(MessagesState)
    graph.add_node("node", node)
    graph.add_edge(START, "node")
    app = guarded(graph.compile(), "9 calls")
    assert texts(app.invoke(HELLO))[-2:] == ["at last", "spare"]
    spent = app.report().budget.scopes[0].spent
    assert (spent["model_calls"], spent["steps"]) == (5, 2)


def test_a_stop_is_not_swallowed_by_retries() -> None:
    model = Paid(lambda messages, number: RuntimeError("no"))
    retried = model.with_retry(stop_after_attempt=50, wait_exponential_jitter=False)

    def node(state: MessagesState) -> dict[str, Any]:
        return {"messages": [retried.invoke("hi")]}

    graph = StateGraph(MessagesState)
    graph.add_node("node", node)
    graph.add_edge(START, "node")
    app = guarded(graph.compile(), "4 calls")
    result = app.invoke(HELLO)
    assert model.calls == 4
    assert "4 model calls of the 4" in texts(result)[-1]


# -- words ----------------------------------------------------------------------------------------


@BUILDS
def test_a05_x_a_request_to_wrap_up_at_the_twentieth_call(build: Callable[..., Any]) -> None:
    heard: dict[int, list[str]] = {}

    def script(messages: Sequence[BaseMessage], number: int) -> AIMessage:
        said = [m.text for m in messages if m.type == "human" and m.text != "find it"]
        if said:
            heard[number] = said
        return asks_for(("search", {"query": f"{number}"}))

    model = StrictProvider(script)
    app = guarded(build(model, Counter().tool), Budget(model_calls=25))
    result = app.invoke(HELLO, LONG)
    assert model.calls == 25
    assert sorted(heard) == [21, 25]
    assert "20 model calls of the 25 model calls for this run are used" in heard[21][0]
    assert "Wrap up" in heard[21][0]
    assert "the last answer" in heard[25][0]
    assert [m.text for m in result["messages"] if m.type == "human"] == ["find it"]
    assert len([m for m in result["messages"] if m.type == "tool"]) == 25, "partial results stay"


def test_g18_x_a_stream_ends_with_the_reason() -> None:
    model = Paid(always_asks())
    app = guarded(react(model, Counter().tool), Budget(model_calls=4))
    chunks = list(app.stream(HELLO, LONG, stream_mode="updates"))
    assert model.calls == 4
    (update,) = chunks[-1].values()
    assert update["messages"][-1].response_metadata["shearpin"]["reason"] == "budget:model_calls"
    app.batch([HELLO, HELLO], LONG)
    assert model.calls == 12


@pytest.mark.parametrize(("mode", "calls"), [("observe", 30), ("warn", 30), ("enforce", 3)])
def test_modes(mode: str, calls: int) -> None:
    def script(messages: Sequence[BaseMessage], number: int) -> AIMessage | str:
        return asks_for(("search", {"query": f"{number}"})) if number < 30 else "done"

    model = Paid(script)
    app = guarded(react(model, Counter().tool), "3 calls", mode=mode)
    app.invoke(HELLO, LONG)
    assert model.calls == calls
    report = app.report()
    assert report.budget.scopes[0].spent["model_calls"] == calls
    refused = [v for v in report.verdicts if v.rule == "budget:exhausted"]
    assert refused
    assert all(verdict.acted == (mode == "enforce") for verdict in refused)


def test_chinese() -> None:
    app = guarded(react(Paid(always_asks()), Counter().tool), "2 calls", language="zh")
    assert "因达到限额而停止" in texts(app.invoke(HELLO, LONG))[-1]


def test_a_plain_chain_in_a_run() -> None:
    model = Paid(lambda messages, number: "word")
    with shearpin.Guard(budget="2 calls").run() as run:
        for _ in range(5):
            model.invoke("hi")
    assert model.calls == 2
    assert run.stopped is not None
    assert run.stopped.reason == "budget:model_calls"
    assert run.report().budget.scopes[0].spent["model_calls"] == 2


def test_h18_a_a_concurrency_setting_in_the_wrong_place_is_named() -> None:
    app = guarded(react(Paid(twice), Counter().tool), "9 calls")
    with pytest.warns(UserWarning, match="on the top level"):
        app.invoke(HELLO, {"configurable": {"max_concurrency": 2}})


def test_two_budgets_for_one_scope_are_refused() -> None:
    with pytest.raises(ConfigError, match="two budgets per run"):
        shearpin.Guard(budget=["$1", "5 calls"])
    with pytest.raises(ConfigError, match="must be a Budget, a short form"):
        shearpin.Guard(budget=5)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="unknown_price must be"):
        shearpin.Guard(budget="$1", unknown_price="free")  # type: ignore[arg-type]


def test_a_stop_within_a_fallback_is_not_taken_for_the_first_failure() -> None:
    model, spare = Paid(lambda messages, number: RuntimeError("no")), Paid(twice)

    def node(state: MessagesState) -> dict[str, Any]:
        return {"messages": [model.with_fallbacks([spare]).invoke("hi")]}

    graph = StateGraph(MessagesState)
    graph.add_node("node", node)
    graph.add_edge(START, "node")
    app = guarded(graph.compile(), "1 call")
    result = app.invoke(HELLO)
    assert (model.calls, spare.calls) == (1, 0)
    assert "1 model call of the 1 model call" in texts(result)[-1]


@pytest.mark.parametrize(("faults", "calls"), [("stop", 0), ("go_on", 2)])
def test_a_budget_that_is_at_fault_itself(
    faults: str, calls: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaks(*args: object, **kwargs: object) -> None:
        raise OSError("the ledger is gone")

    monkeypatch.setattr("shearpin.ledgers.memory.MemoryLedger.hold", breaks)
    model = Paid(twice)
    app = guarded(react(model, Counter().tool), Budget(tokens=9_000), budget_faults=faults)
    app.invoke(HELLO)
    report = app.report()
    assert model.calls == calls
    assert any("the ledger is gone" in fault for fault in report.faults)
    if faults == "stop":
        assert report.reason == "budget:unavailable"
    else:
        assert report.budget.scopes[0].spent["tokens"] == model.tokens, "it is charged all the same"


@BUILDS
def test_the_last_answer_that_money_allows_is_announced(build: Callable[..., Any]) -> None:
    heard: list[str] = []

    def script(messages: Sequence[BaseMessage], number: int) -> AIMessage | str:
        said = messages[-1].text
        if "limit" in said or "used" in said:
            heard.append(said)
        if "the last answer" in said:
            return "this is what I have"
        return asks_for(("search", {"query": f"{number}"}))

    model = Paid(script)
    app = guarded(build(model, Counter().tool), "$0.05")
    result = app.invoke(HELLO, LONG)
    assert "This is the last answer that the limit of $0.05 for this run allows" in heard[-1]
    assert texts(result)[-1] == "this is what I have"
    assert app.report().outcome == "completed"
    assert 40_000 <= model.micros <= 50_000


def test_p08_x_an_own_price_wins_and_an_old_one_is_remarked_once() -> None:
    own = ModelPrice.of("paid", input="10", output="30", source="contract 7", at=date(2020, 1, 1))
    book = Overrides({"paid": own}, behind=Catalogue())
    model = Paid(twice)
    app = shearpin.guard(react(model, Counter().tool), budget="$1.00", prices=book)
    app.invoke(HELLO)
    budget = app.report().budget
    assert budget.usd == Decimal(model.micros) / 1_000_000
    assert len(budget.notes) == 1
    assert "prices from contract 7" in budget.notes[0]
    assert "(2020-01-01)" in budget.notes[0]


def test_h05_a_an_agent_at_defaults_is_stopped_after_at_most_eight_identical_rounds() -> None:
    model = Paid(lambda messages, number: asks_for(("search", {"query": "the same"})))
    search = Counter(result="the same result", counted=False)
    app = shearpin.guard(react(model, search.tool))
    app.invoke(HELLO)
    assert model.calls <= 8
    assert app.report().outcome == "stopped"


def test_c01_x_what_is_saved_of_a_budget_is_bounded_and_holds_no_text() -> None:
    sizes: list[int] = []
    for steps in (80, 300):

        def script(messages: Sequence[BaseMessage], number: int, last: int = steps) -> Any:
            return asks_for(("search", {"query": f"secret {number}"})) if number < last else "done"

        model = Paid(script)
        budgets = ["$5, 500 calls, 9m tokens", "$50 per thread"]
        saver = InMemorySaver()
        app = guarded(react(model, Counter().tool, saver=saver), budgets, detectors=())
        app.invoke(HELLO, thread("1"))
        head = saver.get_tuple(thread("1"))
        assert head is not None
        (saved,) = [v for _, channel, v in head.pending_writes or () if channel == "__shearpin__"]
        assert "secret" not in saved
        sizes.append(len(json.dumps(json.loads(saved)["funds"], separators=(",", ":"))))
    assert sizes[1] <= sizes[0] + 200
    assert sizes[1] < 2_048


def summarising(model: Paid, tokens: int) -> Any:
    """Summarises above so many tokens, and keeps the last two messages; also in old versions."""
    if "trigger" in inspect.signature(SummarizationMiddleware).parameters:
        return SummarizationMiddleware(model, trigger=("tokens", tokens), keep=("messages", 2))
    old: Any = SummarizationMiddleware
    return old(model, max_tokens_before_summary=tokens, messages_to_keep=2)


def test_m04_x_calls_for_summaries_count() -> None:
    summariser = Paid(lambda messages, number: f"summary {number}")
    model, search = Paid(always_asks()), Counter()
    summing = summarising(summariser, tokens=60)
    app = guarded(
        create_agent(model, [search.tool], middleware=[summing]), Budget(tokens=3_000), detectors=()
    )
    app.invoke(HELLO, LONG)
    assert summariser.calls > 1
    assert app.report().budget.scopes[0].spent["tokens"] == model.tokens + summariser.tokens
    assert 2_400 <= model.tokens + summariser.tokens <= 3_000


def test_m04_x_summaries_that_shorten_nothing_are_told_of() -> None:
    """What is kept is longer than what triggers the next summary, three turns long."""
    summariser = Paid(lambda messages, number: f"summary {number}")
    model = Paid(always_asks())
    search = Counter(result="a long result " * 60)
    summing = summarising(summariser, tokens=100)
    app = guarded(
        create_agent(model, [search.tool], middleware=[summing]), Budget(tokens=3_000), detectors=()
    )
    app.invoke(HELLO, LONG)
    assert summariser.calls >= 3
    (note,) = [note for note in app.report().budget.notes if "summarised" in note]
    assert note.startswith("the history of 'main' was summarised 2 times in a row and did not get")
    assert "keep fewer messages" in note


def test_summaries_that_do_their_work_are_not_told_of() -> None:
    summariser = Paid(lambda messages, number: f"summary {number}")
    model = Paid(always_asks())
    search = Counter(result="a long result " * 10)
    summing = summarising(summariser, tokens=600)
    app = guarded(
        create_agent(model, [search.tool], middleware=[summing]), Budget(tokens=9_000), detectors=()
    )
    app.invoke(HELLO, LONG)
    assert summariser.calls >= 2
    assert not [note for note in app.report().budget.notes if "summarised" in note]

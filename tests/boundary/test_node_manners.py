"""What the boundary at nodes leaves alone, gives way to, and how it counts."""

from __future__ import annotations

import asyncio
import operator
from collections.abc import Callable
from typing import Annotated, Any, TypedDict

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.cache.memory import InMemoryCache
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphInterrupt, GraphRecursionError
from langgraph.func import entrypoint, task
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import CachePolicy, Command, RetryPolicy, interrupt

import shearpin
from shearpin.boundary import Boundary, ErrorCategory, Failure, Retries, retry_policy
from shearpin.errors import ConfigError, TrippedError
from shearpin.testing import ManualClock, StrictProvider, asks_for
from tests.boundary.failing import (
    HELLO,
    THREAD,
    Failing,
    OutageError,
    State,
    faultless,
    nested_graph,
    plan_graph,
    run,
    texts,
)
from tests.zoo.exhibit import LANGGRAPH

HOW = ("invoke", "ainvoke")
each_way = pytest.mark.parametrize("how", HOW)


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    waited: list[float] = []

    async def asleep(seconds: float) -> None:
        waited.append(seconds)

    monkeypatch.setattr("shearpin.clock.sleep", waited.append)
    monkeypatch.setattr("shearpin.clock.asleep", asleep)
    return waited


class Log(TypedDict):
    said: Annotated[list[str], operator.add]


def one_node(act: Callable[[Any], Any], saver: Any = None, **options: Any) -> Any:
    """work -> end, in a state without a conversation."""
    builder: StateGraph[Any] = StateGraph(Log)
    builder.add_node("work", act, **options)
    builder.add_edge(START, "work")
    return builder.compile(checkpointer=saver)


def failing(times: int, error: Callable[[], BaseException]) -> tuple[Any, list[int]]:
    calls: list[int] = []

    def act(state: Log) -> dict[str, Any]:
        calls.append(len(calls) + 1)
        if len(calls) <= times:
            raise error()
        return {"said": [f"call {len(calls)}"]}

    return act, calls


def lost() -> ConnectionError:
    return ConnectionError("the line went dead")


# -- the defaults ---------------------------------------------------------------------------------


@each_way
def test_what_may_pass_by_itself_is_retried_after_a_wait(how: str, waits: list[float]) -> None:
    act, _ = failing(2, lost)
    graph = shearpin.guard(one_node(act), boundary=True)
    assert run(graph, how, {"said": []})["said"] == ["call 3"]
    assert len(waits) == 2
    assert all(0 <= wait <= 1.0 for wait in waits)
    boundary = graph.report().boundary
    assert (boundary.errors, boundary.retries) == (2, 2)
    assert boundary.waited_seconds == pytest.approx(sum(waits))
    (place,) = boundary.places
    assert (place.name, place.steps, place.errors, place.retries) == ("work", 1, 2, 2)


@each_way
def test_then_it_is_raised_where_nothing_would_tell_of_it(how: str) -> None:
    """A state without messages has no place for a last word: its end would look like success."""
    act, calls = failing(9, lost)
    graph = shearpin.guard(one_node(act), boundary=True)
    with pytest.raises(ConnectionError):
        run(graph, how, {"said": ["before"]})
    assert len(calls) == 3
    report = graph.report()
    assert (report.outcome, report.reason) == ("failed", None)
    assert report.boundary.actions == {"retry": 2, "raise": 1}
    assert report.boundary.abnormal


@each_way
@pytest.mark.parametrize("action", ["terminate", lambda failure: "terminate"])
def test_or_the_run_ends_normally_where_that_was_asked_for(action: Any, how: str) -> None:
    act, calls = failing(9, lost)
    graph = shearpin.guard(one_node(act), boundary=Boundary(on={"network": action}))
    assert run(graph, how, {"said": ["before"]})["said"] == ["before"]
    assert len(calls) == 1
    assert graph.report().reason == "failures:network"


def test_or_an_error_of_ours_tells_of_it() -> None:
    act, _ = failing(9, lambda: RuntimeError("broken"))
    graph = shearpin.guard(one_node(act), boundary=True, on_stop="raise")
    with pytest.raises(TrippedError) as caught:
        graph.invoke({"said": []})
    assert isinstance(caught.value.__cause__, RuntimeError)


@each_way
def test_a_graph_around_it_says_what_has_failed(how: str) -> None:
    """What a graph without messages raises ends the graph around it with a last word, and what
    was tried often enough within is not tried once more around it."""
    act, calls = failing(99, lost)
    child = one_node(act)
    builder: StateGraph[Any] = StateGraph(State)
    builder.add_node("ask", lambda state: child.invoke({"said": []}) and {})
    builder.add_edge(START, "ask")
    graph = shearpin.guard(builder.compile(), boundary=True)
    values = run(graph, how, HELLO)
    assert texts(values["messages"])[-1].startswith("This could not be finished")
    assert len(calls) == 3


@each_way
def test_an_entrypoint_that_returns_nothing_raises(how: str) -> None:
    @entrypoint()
    def work(order: int) -> None:
        raise RuntimeError(f"no order {order}")

    graph = shearpin.guard(work, boundary=True)
    with pytest.raises(RuntimeError, match="no order 17"):
        run(graph, how, 17)


def test_too_many_failures_are_raised_where_nothing_would_tell_of_them() -> None:
    act, _ = failing(9, lambda: ValueError("no"))
    boundary = Boundary(substitute={"work": {"said": ["nothing"]}}, error_budget=1)
    with pytest.raises(ValueError, match="no"):
        shearpin.guard(one_node(act), boundary=boundary).invoke({"said": []})


@each_way
def test_so_is_the_end_of_the_steps(how: str) -> None:
    builder: StateGraph[Any] = StateGraph(Log)
    builder.add_node("work", lambda state: {"said": ["round"]})
    builder.add_edge(START, "work")
    builder.add_edge("work", "work")
    graph = shearpin.guard(builder.compile(), boundary=True, detectors=())
    with pytest.raises(GraphRecursionError):
        run(graph, how, {"said": []}, {"recursion_limit": 4})
    ends = Boundary(on={"recursion_limit": "terminate"})
    graph = shearpin.guard(builder.compile(), boundary=ends, detectors=())
    assert set(run(graph, how, {"said": []}, {"recursion_limit": 4})["said"]) == {"round"}


def test_a_bug_is_not_retried() -> None:
    act, calls = failing(9, lambda: TypeError("a bug"))
    graph = shearpin.guard(one_node(act), boundary=Boundary(on={"programming": "terminate"}))
    graph.invoke({"said": []})
    assert len(calls) == 1
    report = graph.report()
    assert report.reason == "failures:programming"
    assert "Boundary(on={'programming': ...})" in str(report.remedy)


def test_what_may_be_done_without_is_done_without() -> None:
    act, calls = failing(9, lambda: ValueError("no such place"))
    boundary = Boundary(substitute={"work": {"said": ["nothing"]}})
    graph = shearpin.guard(one_node(act), boundary=boundary)
    assert graph.invoke({"said": []})["said"] == ["nothing"]
    assert len(calls) == 1


def test_a_wait_that_is_too_long_is_not_waited() -> None:
    class BusyError(ConnectionError):
        retry_after = 3600

    act, calls = failing(9, BusyError)
    graph = shearpin.guard(one_node(act), boundary=Boundary(retries=Retries(cap_seconds=30)))
    with pytest.raises(BusyError):
        graph.invoke({"said": []})
    assert len(calls) == 1


def test_retries_are_bounded_in_a_run() -> None:
    act, calls = failing(9, lost)
    graph = shearpin.guard(one_node(act), boundary=Boundary(retries=Retries(per_run=1)))
    with pytest.raises(ConnectionError):
        graph.invoke({"said": []})
    assert len(calls) == 2


def test_a_deadline_ends_the_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = ManualClock()
    monkeypatch.setattr("shearpin.clock.sleep", lambda seconds: clock.advance(100.0))
    act, calls = failing(9, lost)
    boundary = Boundary(max_retries=8, retries=Retries(deadline_seconds=150.0))
    graph = shearpin.guard(one_node(act), boundary=boundary)
    shearpin_wiring(graph).now = clock
    with pytest.raises(ConnectionError):
        graph.invoke({"said": []})
    assert len(calls) == 3


def shearpin_wiring(graph: Any) -> Any:
    return type(graph).__shearpin__


# -- the author's own retries, handlers, time limits and caches ------------------------------------


@each_way
def test_a_nodes_own_retries_come_first_and_no_others(how: str) -> None:
    policy = RetryPolicy(max_attempts=3, initial_interval=0, jitter=False, retry_on=ConnectionError)
    act, calls = failing(2, lost)
    graph = shearpin.guard(one_node(act, retry_policy=policy), boundary=True)
    assert run(graph, how, {"said": []})["said"] == ["call 3"]
    act, calls = failing(9, lost)
    graph = shearpin.guard(one_node(act, retry_policy=policy), boundary=True)
    with pytest.raises(ConnectionError):
        run(graph, how, {"said": []})
    assert len(calls) == 3
    boundary = graph.report().boundary
    assert (boundary.errors, boundary.retries, boundary.abnormal) == (3, 0, True)


def test_what_a_nodes_policy_does_not_retry_is_not_retried_here() -> None:
    policy = RetryPolicy(max_attempts=3, initial_interval=0, retry_on=KeyError)
    act, calls = failing(9, lost)
    graph = shearpin.guard(one_node(act, retry_policy=policy), boundary=True)
    with pytest.raises(ConnectionError):
        graph.invoke({"said": []})
    assert len(calls) == 1


@each_way
@pytest.mark.skipif(LANGGRAPH < (1, 2), reason="no error handlers before langgraph 1.2")
def test_a_node_with_an_error_handler_is_left_to_it(how: str) -> None:
    act, calls = failing(9, lost)

    def handler(state: Log) -> dict[str, Any]:
        return {"said": ["handled"]}

    options: dict[str, Any] = {"error_handler": handler}
    graph = shearpin.guard(one_node(act, **options), boundary=True)
    assert run(graph, how, {"said": []})["said"] == ["handled"]
    assert len(calls) == 1
    assert graph.report().boundary.errors == 1


@pytest.mark.skipif(LANGGRAPH < (1, 2), reason="no time limits before langgraph 1.2")
async def test_a_node_with_a_time_limit_is_retried_within_it() -> None:
    calls: list[int] = []

    async def act(state: Log) -> dict[str, Any]:
        calls.append(1)
        if len(calls) < 3:
            raise lost()
        return {"said": ["done"]}

    options: dict[str, Any] = {"timeout": 60.0}
    graph = shearpin.guard(one_node(act, **options), boundary=True)
    assert (await graph.ainvoke({"said": []}))["said"] == ["done"]


def test_substitutes_are_not_cached() -> None:
    act, calls = failing(1, OutageError)
    builder: StateGraph[Any] = StateGraph(Log)
    builder.add_node("work", act, cache_policy=CachePolicy())
    builder.add_edge(START, "work")
    graph = builder.compile(cache=InMemoryCache())
    boundary = Boundary(substitute={"work": {"said": ["substitute"]}})
    guarded = shearpin.guard(graph, boundary=boundary)
    assert guarded.invoke({"said": []})["said"] == ["substitute"]
    assert guarded.invoke({"said": []})["said"] == ["call 2"]
    assert guarded.invoke({"said": []})["said"] == ["call 2"]
    assert len(calls) == 2


@each_way
def test_a_failing_edge_writes_nothing_twice(how: str) -> None:
    tries: list[int] = []

    def route(state: Log) -> str:
        tries.append(len(state["said"]))
        if len(tries) < 3:
            raise lost()
        return END

    builder: StateGraph[Any] = StateGraph(Log)
    builder.add_node("work", lambda state: {"said": ["worked"]})
    builder.add_edge(START, "work")
    builder.add_conditional_edges("work", route)
    graph = shearpin.guard(builder.compile(), boundary=True)
    assert run(graph, how, {"said": []})["said"] == ["worked"]
    assert tries == [1, 1, 1]


@each_way
def test_where_the_substitute_fails_as_well_the_run_ends(how: str) -> None:
    def route(state: Log) -> str:
        raise OutageError

    builder: StateGraph[Any] = StateGraph(Log)
    builder.add_node("work", lambda state: {"said": ["worked"]})
    builder.add_edge(START, "work")
    builder.add_conditional_edges("work", route)
    boundary = Boundary(substitute={"work": {"said": ["substitute"]}})
    graph = shearpin.guard(builder.compile(), boundary=boundary)
    assert run(graph, how, {"said": []})["said"] == []
    assert graph.report().outcome == "stopped"


def test_a_policy_with_our_classification() -> None:
    act, _ = failing(2, lost)
    policy = retry_policy(Retries(attempts=3, base_seconds=0.0, cap_seconds=0.0))
    graph = one_node(act, retry_policy=policy._replace(jitter=False))
    assert graph.invoke({"said": []})["said"] == ["call 3"]

    class NotFoundError(Exception):
        status_code = 404

    assert not policy.retry_on(NotFoundError())
    assert not policy.retry_on(ValueError("no"))
    assert policy.retry_on(TimeoutError())
    strict = retry_policy(rules=[lambda error: ErrorCategory.FATAL])
    assert not strict.retry_on(lost())
    assert policy.max_attempts == 3


# -- handlers -------------------------------------------------------------------------------------


def handled(how: str, answer: Any, **options: Any) -> tuple[Any, Any, list[Failure]]:
    seen: list[Failure] = []

    def handler(failure: Failure) -> object:
        seen.append(failure)
        if isinstance(answer, BaseException):
            raise answer
        return answer

    fails = Failing(lambda messages, call: call > 1)
    boundary = Boundary(on={OutageError: handler}, **options)
    graph = shearpin.guard(plan_graph(fails, InMemorySaver()), boundary=boundary)
    return run(graph, how, HELLO, THREAD), graph.report(THREAD), seen


@each_way
def test_a_handler_names_an_action(how: str) -> None:
    values, report, (failure,) = handled(how, "retry")
    assert values["found"] == ["worked"]
    assert (failure.node, failure.attempt, failure.thread) == ("work", 1, "t1")
    assert isinstance(failure.error, OutageError)
    assert failure.classification.category is ErrorCategory.DEGRADABLE
    assert texts(failure.state["messages"])[-1] == "plan 1"
    assert report.boundary.actions == {"retry": 1}


@each_way
def test_a_handler_gives_an_update(how: str) -> None:
    values, _, _ = handled(how, {"found": ["by hand"]})
    assert values["found"] == ["by hand"]
    assert texts(values["messages"])[-1] == "closed: by hand"


@each_way
def test_a_handler_gives_a_command(how: str) -> None:
    command = Command(update={"found": ["by hand"]}, goto="other")
    values, report, _ = handled(how, command)
    assert values["found"] == ["by hand", "from memory"]
    assert report.boundary.actions == {"command": 1}


@each_way
@pytest.mark.parametrize("answer", [None, KeyError("oops"), 42, "sing"], ids=str)
def test_a_handler_that_fails_or_abstains_leaves_it_to_the_boundary(how: str, answer: Any) -> None:
    values, report, _ = handled(how, answer, substitute={"work": {"found": ["substitute"]}})
    assert values["found"] == ["substitute"]
    assert len(report.boundary.faults) == (0 if answer is None else 1)
    assert not report.boundary.abnormal


def test_the_most_specific_choice_counts() -> None:
    class WorseError(OutageError):
        pass

    chosen = Boundary(on={"degradable": "raise", "unknown": "retry", OutageError: "continue"})
    classify = shearpin.boundary.classify  # type: ignore[attr-defined]
    assert chosen.decision("work", classify(WorseError())) == "continue"
    assert chosen.decision("work", classify(Exception())) == "retry"
    assert chosen.decision("work", classify(ValueError())) == "raise"
    assert chosen.decision("work", classify(lost())) == "retry"


# -- what is never touched ------------------------------------------------------------------------


@each_way
def test_interrupts_pass(how: str) -> None:
    def ask(state: Log) -> dict[str, Any]:
        return {"said": [str(interrupt("which?"))]}

    graph = shearpin.guard(one_node(ask, InMemorySaver()), boundary=True)
    run(graph, how, {"said": []}, THREAD)
    assert graph.get_state(THREAD).next == ("work",)
    assert run(graph, how, Command(resume="this"), THREAD)["said"] == ["this"]
    assert graph.report(THREAD).boundary.errors == 0


@each_way
def test_an_interrupt_after_a_failure_is_answered_once(how: str) -> None:
    calls: list[str] = []

    def ask(state: Log) -> dict[str, Any]:
        said = interrupt("which?")
        calls.append(str(said))
        if len(calls) == 1:
            raise lost()
        return {"said": [str(said)]}

    graph = shearpin.guard(one_node(ask, InMemorySaver()), boundary=True)
    run(graph, how, {"said": []}, THREAD)
    assert run(graph, how, Command(resume="this"), THREAD)["said"] == ["this"]
    assert calls == ["this", "this"]


@each_way
def test_commands_to_a_parent_pass(how: str) -> None:
    child: StateGraph[Any] = StateGraph(Log)
    child.add_node(
        "leave", lambda state: Command(graph=Command.PARENT, goto="last", update={"said": ["up"]})
    )
    child.add_edge(START, "leave")
    parent: StateGraph[Any] = StateGraph(Log)
    parent.add_node("child", child.compile())
    parent.add_node("last", lambda state: {"said": ["last"]})
    parent.add_edge(START, "child")
    graph = shearpin.guard(parent.compile(), boundary=True)
    assert run(graph, how, {"said": []})["said"] == ["up", "last"]
    assert graph.report().boundary.errors == 0


async def test_cancellation_passes() -> None:
    begun = asyncio.Event()

    async def act(state: Log) -> dict[str, Any]:
        begun.set()
        await asyncio.Event().wait()
        return {}

    graph = shearpin.guard(one_node(act), boundary=True)
    running = asyncio.create_task(graph.ainvoke({"said": []}))
    await begun.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert graph.report().boundary.errors == 0


@each_way
@pytest.mark.parametrize(
    "error", [KeyboardInterrupt, GraphInterrupt], ids=lambda kind: kind.__name__
)
def test_signals_pass(how: str, error: type[BaseException]) -> None:
    if error is KeyboardInterrupt and how == "ainvoke":
        pytest.skip("an event loop makes what it likes of it")
    act, calls = failing(1, error)
    graph = shearpin.guard(one_node(act), boundary=True)
    if error is KeyboardInterrupt:
        with pytest.raises(KeyboardInterrupt):
            run(graph, how, {"said": []})
    else:
        run(graph, how, {"said": []})
    assert len(calls) == 1


# -- where it does not act ------------------------------------------------------------------------


@each_way
def test_excluded_nodes_raise_as_before(how: str) -> None:
    act, calls = failing(9, lost)
    graph = shearpin.guard(one_node(act), boundary=True, exclude=("work",))
    with pytest.raises(ConnectionError):
        run(graph, how, {"said": []})
    assert len(calls) == 1
    assert graph.report().boundary.errors == 0
    assert graph.report().boundary.abnormal


@each_way
@pytest.mark.parametrize(
    "options",
    [
        {"mode": "observe"},
        {"mode": "warn"},
        {"modes": {"node:work": "observe"}},
        {"boundary": Boundary(nodes=("other*",))},
    ],
    ids=["observe", "warn", "place", "nodes"],
)
def test_where_it_does_not_act_it_counts(how: str, options: dict[str, Any]) -> None:
    act, calls = failing(9, lost)
    graph = shearpin.guard(one_node(act), **{"boundary": True, **options})
    with pytest.raises(ConnectionError):
        run(graph, how, {"said": []})
    assert len(calls) == 1
    boundary = graph.report().boundary
    assert (boundary.errors, boundary.retries, boundary.abnormal) == (1, 0, True)


def test_the_kill_switch() -> None:
    act, calls = failing(9, lost)
    graph = shearpin.guard(one_node(act), boundary=True)
    shearpin.disable()
    try:
        with pytest.raises(ConnectionError):
            graph.invoke({"said": []})
    finally:
        shearpin.enable()
    assert len(calls) == 1


# -- ends -----------------------------------------------------------------------------------------


@each_way
def test_raise_on_stop(how: str) -> None:
    fails = Failing(lambda messages, call: False)
    graph = shearpin.guard(
        plan_graph(fails, InMemorySaver()),
        boundary=Boundary(on={OutageError: "terminate"}),
        on_stop="raise",
    )
    with pytest.raises(TrippedError, match="could not be finished"):
        run(graph, how, HELLO, THREAD)
    assert graph.get_state(THREAD).next == ()


def test_a_person_may_have_it_tried_again() -> None:
    fails = Failing(lambda messages, call: call > 1)
    boundary = Boundary(on={OutageError: "terminate"})
    graph = shearpin.guard(plan_graph(fails, InMemorySaver()), boundary=boundary, on_stop="pause")
    paused = graph.invoke(HELLO, THREAD)
    (question,) = paused["__interrupt__"]
    assert question.value["shearpin"]["reason"] == "failures:unknown"
    values = graph.invoke(Command(resume="continue"), THREAD)
    assert texts(values["messages"])[-1] == "closed: worked"
    assert fails.calls == 2


def test_too_many_failures_end_the_run() -> None:
    builder: StateGraph[Any] = StateGraph(State)

    def work(state: State) -> dict[str, Any]:
        raise ValueError("no")

    builder.add_node("work", work)
    builder.add_node("again", lambda state: {"found": ["again"]})
    builder.add_edge(START, "work")
    builder.add_edge("work", "again")
    builder.add_edge("again", "work")
    boundary = Boundary(substitute={"work": {"found": ["substitute"]}}, error_budget=4)
    graph = shearpin.guard(builder.compile(), boundary=boundary, detectors=())
    values = graph.invoke(HELLO)
    assert values["found"].count("substitute") == 3
    assert "too much" in texts(values["messages"])[-1]
    assert graph.report().reason == "failures:error_budget"
    assert graph.report().boundary.exhausted


# -- tools ----------------------------------------------------------------------------------------


def tool_graph(node: Any, saver: Any) -> Any:
    model = StrictProvider(
        lambda messages, call: (
            asks_for(("look", {"place": "desk"}), ("look", {"place": "shelf"}))
            if call == 1
            else f"answer {call}"
        )
    )
    builder: StateGraph[Any] = StateGraph(MessagesState)
    builder.add_node("agent", lambda state: {"messages": [model.invoke(state["messages"])]})
    builder.add_node("tools", node)
    builder.add_edge(START, "agent")
    builder.add_conditional_edges("agent", tools_condition)
    builder.add_edge("tools", "agent")
    return builder.compile(checkpointer=saver)


@tool
def look(place: str) -> str:
    """Look at a place."""
    return f"{place}: nothing"


class BrokenNode(ToolNode):
    """A tool node that fails as a whole, before any call of it."""

    def _func(self, *args: Any, **kwargs: Any) -> Any:
        raise OutageError("the drawer is stuck")

    async def _afunc(self, *args: Any, **kwargs: Any) -> Any:
        raise OutageError("the drawer is stuck")


def hand_made(state: MessagesState) -> dict[str, Any]:
    raise OutageError("the drawer is stuck")


@each_way
@pytest.mark.parametrize("action", ["continue", "terminate", "rollback"])
@pytest.mark.parametrize("node", [BrokenNode([look]), hand_made], ids=["ToolNode", "by hand"])
def test_calls_of_a_node_that_fails_are_answered(node: Any, action: str, how: str) -> None:
    graph = shearpin.guard(
        tool_graph(node, InMemorySaver()), boundary=Boundary(on={OutageError: action})
    )
    values = run(graph, how, HELLO, THREAD)
    found = [message for message in values["messages"] if isinstance(message, ToolMessage)]
    if action == "rollback":
        assert found == []
        assert texts(values["messages"])[-1] == "answer 2"
    if action == "terminate":
        assert len(found) == 2
        assert texts(values["messages"])[-1].startswith("This could not be finished")
        assert not any("Not run" in text for text in texts(found))
    if action == "continue" and isinstance(node, ToolNode):
        assert len(found) == 2
        assert texts(values["messages"])[-1] == "answer 2"
    if action != "continue":
        faultless(values["messages"])
    later = run(graph, how, {"messages": [HumanMessage("and?", id="h2")]}, THREAD)
    assert isinstance(later["messages"][-1], AIMessage)
    assert texts(later["messages"])[-1] in ("answer 2", "answer 3")


# -- nothing is done twice ------------------------------------------------------------------------


@each_way
def test_finished_tasks_of_an_entrypoint_are_not_run_again(how: str) -> None:
    ran: list[str] = []

    @task
    def first() -> str:
        ran.append("first")
        return "one"

    @task
    def second() -> str:
        ran.append("second")
        if ran.count("second") == 1:
            raise lost()
        return "two"

    @entrypoint()
    def flow(given: str) -> list[str]:
        return [first().result(), second().result()]

    graph = shearpin.guard(flow, boundary=True)
    assert run(graph, how, "go") == ["one", "two"]
    assert ran == ["first", "second", "second"]


@each_way
def test_finished_nodes_of_a_subgraph_are_not_run_again(how: str) -> None:
    ran: list[str] = []

    def step(name: str, fails: bool = False) -> Any:
        def act(state: Log) -> dict[str, Any]:
            ran.append(name)
            if fails and ran.count(name) == 1:
                raise lost()
            return {"said": [name]}

        return act

    child: StateGraph[Any] = StateGraph(Log)
    child.add_node("first", step("first"))
    child.add_node("second", step("second", fails=True))
    child.add_edge(START, "first")
    child.add_edge("first", "second")
    parent: StateGraph[Any] = StateGraph(Log)
    parent.add_node("team", child.compile())
    parent.add_edge(START, "team")
    # The inner node is left out, so that the graph around it has to act.
    graph = shearpin.guard(
        parent.compile(checkpointer=InMemorySaver()), boundary=Boundary(nodes=("team",))
    )
    assert run(graph, how, {"said": []}, THREAD)["said"] == ["first", "second"]
    assert ran == ["first", "second", "second"]
    assert graph.report(THREAD).boundary.errors == 1


def test_spend_does_not_roll_back() -> None:
    fails = Failing(lambda messages, call: call > 1)
    graph = shearpin.guard(
        plan_graph(fails, InMemorySaver()),
        boundary=Boundary(on={OutageError: "rollback"}),
    )
    assert "plan 1" not in texts(graph.invoke(HELLO, THREAD)["messages"])
    assert graph.report(THREAD).spend.model_calls == 2


def test_rollbacks_are_bounded() -> None:
    fails = Failing(lambda messages, call: False)
    boundary = Boundary(on={OutageError: "rollback"}, rollback_limit=1)
    graph = shearpin.guard(plan_graph(fails, InMemorySaver()), boundary=boundary)
    graph.invoke(HELLO, THREAD)
    assert graph.report(THREAD).boundary.actions == {"rollback": 1, "terminate": 1}


def test_a_rollback_without_a_conversation() -> None:
    calls: list[str] = []

    def count(state: Any) -> dict[str, Any]:
        calls.append("count")
        return {"total": state.get("total", 0) + 1}

    def check(state: Any) -> dict[str, Any]:
        if len(calls) < 2:
            raise OutageError
        return {}

    class Sum(TypedDict, total=False):
        total: int

    builder: StateGraph[Any] = StateGraph(Sum)
    builder.add_node("count", count)
    builder.add_node("check", check)
    builder.add_edge(START, "count")
    builder.add_edge("count", "check")
    graph = shearpin.guard(builder.compile(), boundary=Boundary(on={OutageError: "rollback"}))
    assert graph.invoke({"total": 5}) == {"total": 6}


def test_a_loop_is_left_before_its_onset() -> None:
    """The run is warned of a loop, then fails: it goes back to before the loop began."""
    asked: list[int] = []

    def script(messages: Any, call: int) -> Any:
        asked.append(len(messages))
        if any("Try another way" in text for text in texts(messages)):
            return "another way"
        if call == 6:
            raise OutageError("the drawer is stuck")
        if call == 1:
            return asks_for(("look", {"place": "door"}))
        return asks_for(("look", {"place": "desk"}))

    agent = create_agent(StrictProvider(script), [look], checkpointer=InMemorySaver())
    graph = shearpin.guard(agent, boundary=Boundary(on={OutageError: "rollback"}))
    values = graph.invoke(HELLO, THREAD)
    assert graph.report(THREAD).boundary.actions == {"rollback": 1}
    said = texts(values["messages"])
    assert "door: nothing" in said
    assert "desk: nothing" not in said
    assert said[-1] == "another way"


# -- no steps left --------------------------------------------------------------------------------


def endless(saver: Any) -> Any:
    model = StrictProvider(lambda messages, call: asks_for(("look", {"place": f"room {call}"})))
    return create_agent(model, [look], checkpointer=saver)


@each_way
@pytest.mark.parametrize("limit", [4, 5], ids=["after the model", "after the tools"])
def test_a_run_without_steps_left_ends_normally(limit: int, how: str) -> None:
    graph = shearpin.guard(endless(InMemorySaver()), boundary=True)
    config = {**THREAD, "recursion_limit": limit}
    values = run(graph, how, HELLO, config)
    words = texts(values["messages"])[-1]
    assert words.startswith("This could not be finished: it took more steps than are allowed")
    assert graph.get_state(THREAD).next == ()
    assert graph.report(THREAD).reason == "failures:recursion_limit"
    assert not graph.report(THREAD).boundary.abnormal
    faultless(values["messages"])
    later = run(graph, how, {"messages": [HumanMessage("and?", id="h2")]}, config)
    assert len(later["messages"]) > len(values["messages"]) + 2
    faultless(later["messages"])


@each_way
@pytest.mark.parametrize(
    "options",
    [
        {"boundary": Boundary(on={"recursion_limit": "raise"})},
        {"boundary": Boundary(on={GraphRecursionError: "raise"})},
        {"boundary": Boundary(nodes=["other"])},
        {"boundary": True, "mode": "observe"},
        {},
    ],
    ids=["type", "class", "nodes", "observe", "none"],
)
def test_or_raises_as_before(how: str, options: dict[str, Any]) -> None:
    graph = shearpin.guard(endless(InMemorySaver()), **options)
    with pytest.raises(GraphRecursionError):
        run(graph, how, HELLO, {**THREAD, "recursion_limit": 4})


@each_way
def test_a_run_that_needs_all_of_its_steps_is_let_be(how: str) -> None:
    fails = Failing(lambda messages, call: True)
    for limit in range(1, 6):
        config = {**THREAD, "recursion_limit": limit}
        try:
            expected = texts(run(plan_graph(fails), how, HELLO, config)["messages"])
        except GraphRecursionError:
            continue
        graph = shearpin.guard(plan_graph(fails), boundary=True)
        assert texts(run(graph, how, HELLO, config)["messages"]) == expected
        assert graph.report(THREAD).boundary.errors == 0
        return
    pytest.fail("no limit was enough")


@each_way
def test_a_subgraph_without_steps_left_fails_in_its_node(how: str) -> None:
    child: StateGraph[Any] = StateGraph(Log)
    child.add_node("round", lambda state: {"said": ["round"]})
    child.add_edge(START, "round")
    child.add_edge("round", "round")
    parent: StateGraph[Any] = StateGraph(Log)
    parent.add_node("team", child.compile().with_config(recursion_limit=3))
    parent.add_node("last", lambda state: {"said": ["last"]})
    parent.add_edge(START, "team")
    parent.add_edge("team", "last")
    boundary = Boundary(substitute={"team": {"said": ["no team"]}})
    graph = shearpin.guard(parent.compile(), boundary=boundary)
    assert run(graph, how, {"said": []})["said"] == ["no team", "last"]


# -- wrapping -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alternative": {"wrok": "other"}}, "'wrok'.*did you mean 'work'"),
        ({"alternative": {"work": "othr"}}, "'othr'.*did you mean 'other'"),
        ({"substitute": {"wrok": {}}}, "'wrok'.*did you mean 'work'"),
        ({"store": "redis://here"}, "redis"),
    ],
)
def test_what_does_not_fit_the_graph_is_refused(options: dict[str, Any], message: str) -> None:
    graph = nested_graph(Failing(lambda messages, call: True))
    with pytest.raises(ConfigError, match=message):
        shearpin.guard(graph, boundary=Boundary(**options))

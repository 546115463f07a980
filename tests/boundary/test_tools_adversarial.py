"""Attempts to make the boundary act twice, say too much, wait for ever, or give up a run."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Annotated, Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import InjectedToolCallId, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphInterrupt
from langgraph.types import Command, interrupt

import shearpin
from shearpin.boundary import (
    Boundary,
    Cached,
    Classification,
    Effects,
    ErrorCategory,
    Retries,
    Static,
    ToolPolicy,
    resilient,
)
from shearpin.boundary.effects import EffectRecords
from shearpin.core.tools import ToolFacts
from shearpin.stores import MemoryStore
from shearpin.testing import StrictProvider, asks_for
from tests.boundary.failing import faultless, run
from tests.boundary.tool_agents import AGAIN, HELLO, THREAD, answered, made, script, tool_node
from tests.boundary.tool_bench import PRICES, READ, Bench, Outcomes

each_way = pytest.mark.parametrize("how", ["invoke", "ainvoke"])
ONCE = ToolPolicy(effect=Effects())
REFUSED = ConnectionRefusedError("connection refused")


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    waited: list[float] = []

    async def asleep(seconds: float) -> None:
        waited.append(seconds)

    monkeypatch.setattr("shearpin.clock.sleep", waited.append)
    monkeypatch.setattr("shearpin.clock.asleep", asleep)
    return waited


# -- twice -----------------------------------------------------------------------------------------


@each_way
def test_a_cap_holds_for_a_tool_that_stands_in_for_another(how: str) -> None:
    sms = Outcomes("texted")
    rounds = [[("mail", {"query": f"hello {n}"})] for n in range(20)]
    boundary = Boundary(
        tools={
            "mail": ToolPolicy(effect=Effects(), fallbacks=[made("sms", sms)]),
            "sms": ToolPolicy(effect=Effects(at_most=3)),
        },
        retries=Retries(attempts=1),
        error_budget=None,
    )
    tools = [made("mail", Outcomes(REFUSED)), made("sms", sms)]
    app = shearpin.guard(tool_node(tools, script(*rounds)), boundary=boundary, detectors=())
    messages = run(app, how, HELLO, {"recursion_limit": 200})["messages"]
    faultless(messages)
    assert sms.calls == 3


def test_a_hundred_threads_and_two_processes_worth_of_guards_send_one_mail(tmp_path: Path) -> None:
    lock, sent = threading.Lock(), []

    @tool
    def mail(query: str) -> str:
        """Send a mail."""
        with lock:
            sent.append(query)
        return "sent"

    def guard() -> Any:
        graph = tool_node([mail], script([("mail", {"query": "ann"})]))
        boundary = Boundary(tools={"mail": ONCE}, store=f"sqlite:///{tmp_path}/effects.db")
        return shearpin.guard(graph, boundary=boundary)

    apps = [guard(), guard()]  # each with a store of its own on the same file
    failed: list[BaseException] = []

    def turn(number: int) -> None:
        try:
            apps[number % 2].invoke(HELLO, THREAD)
        except BaseException as error:
            failed.append(error)

    workers = [threading.Thread(target=turn, args=(number,)) for number in range(20)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(120)
    assert not failed
    assert sent == ["ann"]


@each_way
def test_a_command_of_a_tool_comes_back_as_a_command(how: str) -> None:
    moved: list[str] = []

    @tool
    def move(query: str, call: Annotated[str, InjectedToolCallId]) -> Any:
        """Move on."""
        moved.append(query)
        return Command(update={"messages": [ToolMessage(f"moved to {query}", tool_call_id=call)]})

    @tool
    def approve(query: str) -> str:
        """Ask a person."""
        return str(interrupt(query))

    calls = [("move", {"query": "x"}), ("approve", {"query": "?"})]
    app = shearpin.guard(
        tool_node([move, approve], script(calls), InMemorySaver()),
        boundary=Boundary(tools={"move": ONCE}),
    )
    if how == "invoke":
        app.invoke(HELLO, THREAD)
        messages = app.invoke(Command(resume="yes"), THREAD)["messages"]
    else:

        async def both() -> Any:
            await app.ainvoke(HELLO, THREAD)
            await asyncio.sleep(0)
            return await app.ainvoke(Command(resume="yes"), THREAD)

        messages = asyncio.run(both())["messages"]
    faultless(messages)
    assert moved == ["x"]
    texts = [str(message.content) for message in messages if isinstance(message, ToolMessage)]
    assert texts == ["moved to x", "yes"]


def test_a_tool_that_changes_its_arguments_is_the_same_call_afterwards() -> None:
    bench = Bench("sync")

    def greedy(items: list[int]) -> str:
        items.clear()
        return "done"

    policy = ToolPolicy(effect=Effects(), fallbacks=[Cached()])
    bench(greedy, {"items": [1, 2]}, policy=policy)
    again = bench(Outcomes("twice"), {"items": [1, 2]}, call="c2", policy=policy)
    assert (again.output, again.degraded) == ("done", "earlier")
    reader = ToolPolicy(fallbacks=[Cached()])
    bench(greedy, {"items": [3]}, name="reader", policy=reader)
    stale = bench(Outcomes(ValueError()), {"items": [3]}, name="reader", policy=reader)
    assert stale.output == "done"


def test_two_functions_of_one_name_are_two_tools() -> None:
    done: list[str] = []

    def first() -> Any:
        @resilient(effect=Effects(), store=store)
        def send(to: str) -> str:
            done.append(f"first {to}")
            return "first"

        return send

    def second() -> Any:
        @resilient(effect=Effects(), store=store)
        def send(to: str) -> str:
            done.append(f"second {to}")
            return "second"

        return send

    store = MemoryStore()
    assert [first()("ann").output, second()("ann").output] == ["first", "second"]
    assert done == ["first ann", "second ann"]


def test_a_validation_error_after_the_effect_does_not_undo_it() -> None:
    from pydantic import BaseModel

    class Receipt(BaseModel):
        number: int

    sent: list[str] = []

    @tool
    def mail(query: str) -> str:
        """Send a mail."""
        sent.append(query)
        return str(Receipt.model_validate({"number": "none"}))

    rounds = [[("mail", {"query": "ann"})]] * 3
    app = shearpin.guard(
        tool_node([mail], script(*rounds)), boundary=Boundary(tools={"mail": ONCE})
    )
    messages = app.invoke(HELLO)["messages"]
    faultless(messages)
    assert sent == ["ann"]


def test_arguments_that_do_not_fit_can_be_corrected_and_sent_once() -> None:
    sent = Outcomes("sent")
    rounds = [[("mail", {"number": "many"})], [("mail", {"number": 1})], [("mail", {"number": 1})]]
    app = shearpin.guard(
        tool_node([made("mail", sent)], script(*rounds)),
        boundary=Boundary(tools={"mail": ToolPolicy(effect=Effects(at_most=1))}),
    )
    messages = app.invoke(HELLO)["messages"]
    faultless(messages)
    assert sent.calls == 1
    assert any(message.content == "sent" for message in messages)


@each_way
def test_a_call_that_a_middleware_answers_itself_had_no_effect(how: str) -> None:
    class Refuses(AgentMiddleware[Any, Any]):
        refused = 0

        def wrap_tool_call(self, request: Any, handler: Any) -> Any:
            if Refuses.refused:
                return handler(request)
            Refuses.refused += 1
            call = request.tool_call
            return ToolMessage("not now", tool_call_id=call["id"], status="error")

        async def awrap_tool_call(self, request: Any, handler: Any) -> Any:
            if Refuses.refused:
                return await handler(request)
            Refuses.refused += 1
            call = request.tool_call
            return ToolMessage("not now", tool_call_id=call["id"], status="error")

    sent = Outcomes("sent")
    rounds = [[("mail", {"query": "ann"})]] * 2
    agent = create_agent(script(*rounds), [made("mail", sent)], middleware=[Refuses()])
    app = shearpin.guard(agent, boundary=Boundary(tools={"mail": ONCE}))
    messages = run(app, how, HELLO)["messages"]
    texts = [str(message.content) for message in messages if isinstance(message, ToolMessage)]
    assert texts == ["not now", "sent"]
    assert sent.calls == 1


def test_somebody_who_has_looked_can_say_what_happened() -> None:
    store = MemoryStore()
    outcomes = Outcomes(TimeoutError("slow"), "refunded")
    rounds = [[("refund", {"number": 1})]] * 2

    def turn(thread: str) -> str:
        app = shearpin.guard(
            tool_node([made("refund", outcomes)], script(*rounds[:1])),
            boundary=Boundary(tools={"refund": ONCE}, store=store),
        )
        config: Any = {"configurable": {"thread_id": thread}}
        return str(answered(app.invoke(HELLO, config)["messages"])["refund"].content)

    assert "Verify with a read" in turn("t1")
    assert "was not run" in turn("t1")
    records = EffectRecords(store)
    as_the_tool_reads_it = {"query": "", "number": 1}
    assert records.resolve("t1", "refund", as_the_tool_reads_it, Effects(), happened=False)
    assert turn("t1") == "refunded"
    assert outcomes.calls == 2


@each_way
def test_what_a_tool_node_handles_and_certainly_did_not_happen_may_be_asked_for_again(
    how: str,
) -> None:
    sent = Outcomes(REFUSED, "sent")
    rounds = [[("mail", {"query": "ann"})]] * 2
    app = shearpin.guard(
        tool_node([made("mail", sent)], script(*rounds), handle_tool_errors=True),
        boundary=Boundary(tools={"mail": ONCE}),
    )
    messages = run(app, how, HELLO)["messages"]
    assert [m.content for m in messages if isinstance(m, ToolMessage)][-1] == "sent"
    assert sent.calls == 2


# -- too much --------------------------------------------------------------------------------------

SECRETS = [
    "sk-proj-abcdefghijklmnopqrstuvwx",
    "AKIAIOSFODNN7EXAMPLE",
    "Bearer abcdefghijklmnop.qrstuv",
    "password=hunter2hunter2",
    "https://ann:hunter2hunter2@db.example.org/x",
    "api_key: 'abcdef0123456789'",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl",
]


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize(
    "kind", [ValueError, KeyError, RuntimeError, ConnectionError, TimeoutError]
)
def test_no_secret_reaches_the_model(secret: str, kind: type[Exception]) -> None:
    app = shearpin.guard(
        tool_node(
            [made("bad", Outcomes(kind(f"request failed: {secret} was refused")))],
            script([("bad", {"query": "x"})]),
            InMemorySaver(),
        ),
        boundary=True,
    )
    messages = app.invoke(HELLO, THREAD)["messages"]
    part = max(secret.replace("'", " ").replace("@", " ").replace("=", " ").split(), key=len)
    hidden = part.rpartition(":")[2] if "//" in part else part
    told = str([m.model_dump() for m in messages])
    assert hidden not in told
    assert hidden not in repr([saved.checkpoint for saved in app.checkpointer.list(THREAD)])


def test_a_stack_trace_in_a_message_is_no_answer() -> None:
    trace = (
        "boom\nTraceback (most recent call last):\n"
        '  File "/srv/app/secret_place.py", line 1, in <module>\n    x()\nKeyError: 1'
    )
    app = shearpin.guard(
        tool_node([made("bad", Outcomes(ValueError(trace)))], script([("bad", {"query": "x"})])),
        boundary=True,
    )
    text = str(answered(app.invoke(HELLO)["messages"])["bad"].content)
    assert "\n" not in text
    assert "Traceback" not in text
    assert "secret_place" not in text


class UnspeakableError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("I have no words")

    __repr__ = __str__


@pytest.mark.parametrize(
    "error",
    [
        UnspeakableError(),
        ValueError("x" * 1_000_000),
        ValueError("{tool} {wait} {0} %s"),
        ValueError("\ud800 lone surrogate"),
        ValueError(),
        ExceptionGroup("several", [ValueError("a"), TimeoutError("b")]),
        StopIteration("over"),
        RecursionError(),
        OSError(5, "I/O"),
        UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad"),
    ],
    ids=lambda error: type(error).__name__,
)
@each_way
def test_any_exception_is_answered_shortly(error: Exception, how: str) -> None:
    app = shearpin.guard(
        tool_node(
            [made("bad", Outcomes(error))], script([("bad", {"query": "x"})]), InMemorySaver()
        ),
        boundary=True,
    )
    if isinstance(error, StopIteration) and how == "ainvoke":
        pytest.skip("a coroutine cannot raise it")
    messages = run(app, how, HELLO, THREAD)["messages"]
    faultless(messages)
    message = answered(messages)["bad"]
    assert message.status == "error"
    assert len(str(message.content)) < 700
    assert run(app, how, AGAIN, THREAD)["messages"][-1].content == "done"


# -- for ever --------------------------------------------------------------------------------------


@pytest.mark.parametrize("asked", [-5.0, float("nan"), float("inf"), 0.0])
@pytest.mark.parametrize("how", ["sync", "async"])
def test_a_wait_that_makes_no_sense_is_none(asked: float, how: str) -> None:
    def odd(error: BaseException) -> Classification:
        return Classification(ErrorCategory.RETRYABLE, "odd", asked, True, error, "odd")

    bench, tool_ = Bench(how, classify=odd), Outcomes(ValueError())
    result = bench(tool_, facts=READ, policy=ToolPolicy(retries=Retries(base_seconds=1.0)))
    assert not result.success
    assert tool_.calls == (1 if asked == float("inf") else 3)
    assert all(wait >= 0 for wait in bench.waits)


@PRICES
@each_way
def test_the_time_that_is_left_is_not_waited_away(how: str, waits: list[float]) -> None:
    outcomes = Outcomes(REFUSED)
    app = shearpin.guard(
        tool_node([made("search", outcomes)], script([("search", {"query": "x"})])),
        boundary=Boundary(
            retries=Retries(base_seconds=1e6, cap_seconds=1e9, deadline_seconds=None)
        ),
        budget=shearpin.Budget(seconds=30),
    )
    messages = run(app, how, HELLO)["messages"]
    faultless(messages)
    assert sum(waits) < 30


@PRICES
def test_a_sub_agent_a_retry_and_a_fallback_spend_from_one_budget() -> None:
    outcomes = Outcomes(REFUSED)
    policy = ToolPolicy(fallbacks=[made("backup", outcomes)], retries=Retries(attempts=5))
    app = shearpin.guard(
        tool_node([made("search", outcomes)], script([("search", {"query": "x"})])),
        boundary=Boundary(tools={"search": policy}),
        budget=shearpin.Budget(tool_calls=3),
    )
    messages = app.invoke(HELLO)["messages"]
    faultless(messages)
    assert outcomes.calls == 3
    assert app.report().budget.scopes[0].spent["tool_calls"] == 3


# -- giving up a run -------------------------------------------------------------------------------


async def test_a_cancellation_within_a_tool_is_a_failure_of_the_tool() -> None:
    @tool
    async def fragile(query: str) -> str:
        """Wait for something that is cancelled."""
        task = asyncio.ensure_future(asyncio.Event().wait())
        asyncio.get_running_loop().call_soon(task.cancel)
        await task
        return query

    app = shearpin.guard(tool_node([fragile], script([("fragile", {"query": "x"})])), boundary=True)
    messages = (await app.ainvoke(HELLO))["messages"]
    faultless(messages)
    assert answered(messages)["fragile"].status == "error"
    assert messages[-1].content == "done"


def test_an_interrupt_in_a_group_is_still_one() -> None:
    bench = Bench("sync")
    with pytest.raises(ExceptionGroup) as raised:
        bench(Outcomes(ExceptionGroup("both", [GraphInterrupt(), ValueError()])), facts=READ)
    assert isinstance(raised.value.exceptions[0], GraphInterrupt)


def test_what_is_asynchronous_says_so_where_nobody_can_await_it() -> None:
    async def later(query: str) -> str:
        return query

    hidden = resilient(lambda query: later(query))
    result = hidden("x")
    assert (result.success, "asynchronous" in str(result.error_detail)) == (False, True)
    fallen = resilient(lambda query: 1 / 0, fallbacks=[later, Static("fixed")])
    assert fallen("x").output == "fixed"


def test_tools_of_langchain_may_stand_in_for_functions() -> None:
    backup = made("backup", Outcomes("from the backup"))

    def search(query: str) -> str:
        raise ValueError

    async def asearch(query: str) -> str:
        raise ValueError

    assert resilient(search, fallbacks=[backup])("x").output == "from the backup"
    found = asyncio.run(resilient(asearch, fallbacks=[backup])("x"))
    assert found.output == "from the backup"


def test_nodes_that_are_left_alone_are() -> None:
    app = shearpin.guard(
        tool_node([made("bad", Outcomes(ValueError("as it is")))], script([("bad", {})])),
        boundary=True,
        exclude=("tools",),
    )
    with pytest.raises(ValueError, match="as it is"):
        app.invoke(HELLO)


def test_the_kill_switch_switches_it_off() -> None:
    app = shearpin.guard(
        tool_node([made("bad", Outcomes(ValueError("as it is")))], script([("bad", {})])),
        boundary=True,
    )
    shearpin.disable()
    try:
        with pytest.raises(ValueError, match="as it is"):
            app.invoke(HELLO)
    finally:
        shearpin.enable()


def test_a_tool_that_runs_the_same_guarded_graph_is_one_call_in_one_run() -> None:
    depth: list[int] = []

    @tool
    def again(query: str) -> str:
        """Run the graph that this is a tool of."""
        depth.append(1)
        if len(depth) > 1:
            raise ValueError("deep enough")
        return str(app.invoke(HELLO)["messages"][-1].content)

    def reply(messages: Any, call: int) -> AIMessage:
        if isinstance(messages[-1], HumanMessage):
            return asks_for(("again", {"query": "x"}))
        return AIMessage(f"heard: {messages[-1].content}"[:60])

    app = shearpin.guard(tool_node([again], StrictProvider(reply)), boundary=True)
    messages = app.invoke(HELLO)["messages"]
    faultless(messages)
    assert "deep enough" in str(messages[-1].content) or "failed" in str(messages[-1].content)
    assert len(depth) == 2


def test_names_and_details_with_braces_are_only_text() -> None:
    bench = Bench("sync")
    for name in ("{tool}", "a{b}", "%s"):
        result = bench(Outcomes(ValueError("{x}")), name=name)
        assert name in result.text()
        assert name in result.text("zh")


def test_a_tool_declared_both_ways_is_not_run_twice_for_a_guess() -> None:
    bench, outcomes = Bench("sync"), Outcomes(TimeoutError())
    bench(outcomes, name="get_or_create", facts=ToolFacts(read_only=False))
    assert outcomes.calls == 1

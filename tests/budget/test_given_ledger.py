"""`Guard(ledger=...)`: one ledger for several graphs, ledgers that are awaited, and faulty ones.

The cases about keys per day need the shared ledgers that are still to come; what can be shown of
them with one ledger in one process is shown here.
"""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Callable, Sequence
from threading import Barrier
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph

import shearpin
from shearpin import Budget, ConfigError, Guard
from shearpin.ledgers import Amounts, Hold, MemoryLedger, Refusal, Scope, Tally
from shearpin.testing import asks_for
from tests.budget.paying import HELLO, PRICE, Counter, Paid, agent, always_asks, react
from tests.budget.test_guarded import LONG, guarded, texts, thread, twice
from tests.budget.test_timing import areact

WAYS = pytest.mark.parametrize("how", ["invoke", "ainvoke"])


async def run(app: Any, how: str, config: Any = LONG) -> Any:
    return await app.ainvoke(HELLO, config) if how == "ainvoke" else app.invoke(HELLO, config)


# -- one ledger for many --------------------------------------------------------------------------


def test_graphs_with_one_ledger_and_one_name_share_a_conversations_budget() -> None:
    ledger = MemoryLedger()
    model = Paid(lambda messages, number: "an answer")
    policy: dict[str, Any] = {"name": "support", "ledger": ledger}
    budget = Budget(model_calls=3, per="thread")
    for _ in range(5):  # each time a graph of its own, which knows nothing but the ledger
        app = guarded(react(model, Counter().tool), budget, **policy)
        app.invoke(HELLO, thread("1"))
    assert model.calls == 3
    assert app.report().reason == "budget:model_calls"
    guarded(react(model, Counter().tool), budget, **policy).invoke(HELLO, thread("2"))
    guarded(react(model, Counter().tool), budget, **(policy | {"name": "sales"})).invoke(
        HELLO, thread("1")
    )
    assert model.calls == 5, "other conversations and other graphs have budgets of their own"
    assert ledger.usage("thread:support:1").spent["model_calls"] == 3


def test_h09_a_what_is_on_record_counts_after_a_restart_of_all_but_the_ledger() -> None:
    ledger = MemoryLedger()
    ledger.charge(["thread:support:user:42"], {"usd": 4_990_000})
    model = Paid(lambda messages, number: "x", max_tokens=1_600)
    app = guarded(
        react(model, Counter().tool),
        Budget(usd="5.00", per="thread"),
        name="support",
        ledger=ledger,
    )
    result = app.invoke(HELLO, thread("user:42"))
    assert model.calls == 0
    assert app.report().reason == "budget:usd"
    assert "$4.99 of the $5.00" in texts(result)[-1]


def test_h09_b_a_budget_per_day_is_refused_until_there_are_shared_ledgers() -> None:
    """That a new day starts with its own spend waits for them; nobody is led to believe it does."""
    with pytest.raises(ConfigError, match="per must be 'call', 'run' or 'thread', not 'day'"):
        Budget(usd="5.00", per="day")  # type: ignore[arg-type]


def test_h09_c_an_agent_without_a_user_is_capped_under_its_own_name() -> None:
    ledger, model = MemoryLedger(), Paid(always_asks())
    budget = Budget(usd="0.05", per="thread")
    for _ in range(3):
        app = guarded(react(model, Counter().tool), budget, name="night", ledger=ledger)
        app.invoke(HELLO, thread("agent:night-report"))
    assert 40_000 <= model.micros <= 50_000
    assert ledger.usage("thread:night:agent:night-report").spent["usd"] == model.micros


def test_h09_d_of_two_that_spend_at_the_same_time_one_is_refused_and_no_update_is_lost() -> None:
    ledger = MemoryLedger()
    ledger.charge(["thread:support:tenant:7"], {"usd": 4_500_000})
    together = Barrier(2, timeout=10)

    class Both(Paid):
        def _generate(self, *args: Any, **kwargs: Any) -> Any:
            made.append(1)
            return super()._generate(*args, **kwargs)

    made: list[int] = []

    def spend(_: int) -> Any:
        model = Both(lambda messages, number: "word " * 9_990, max_tokens=9_990)
        app = guarded(
            react(model, Counter().tool),
            Budget(usd="5.00", per="thread"),
            name="support",
            ledger=ledger,
        )
        together.wait()
        app.invoke(HELLO, thread("tenant:7"))
        return app.report().reason

    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(2) as pool:
        reasons = list(pool.map(spend, range(2)))
    assert sorted(reasons, key=str) == [None, "budget:usd"]
    assert len(made) == 1
    spent = ledger.usage("thread:support:tenant:7").spent["usd"]
    assert 4_500_000 + 299_700 <= spent <= 5_000_000


@WAYS
async def test_what_others_hold_in_a_shared_ledger_ends_a_run_with_a_reason(how: str) -> None:
    """Nobody here can be waited for."""
    ledger, model = MemoryLedger(), Paid(lambda messages, number: "an answer")
    ledger.hold("of another process", [Scope("thread:a:1", {})], {"model_calls": 1})
    build = areact if how == "ainvoke" else react
    app = guarded(
        build(model, Counter().tool),
        Budget(model_calls=1, per="thread"),
        name="a",
        ledger=ledger,
    )
    await run(app, how, thread("1"))
    assert model.calls == 0
    assert app.report().reason == "budget:model_calls"


def test_h14_b_a_scope_that_never_spent_counts_as_zero_and_is_enforced() -> None:
    ledger = MemoryLedger()
    assert dict(ledger.usage("thread:support:new").spent) == {}
    scope = Scope("thread:support:new", {"usd": 5_000_000})
    assert isinstance(ledger.hold("a", [scope], {"usd": 5_000_001}), Refusal)


def test_runs_without_a_conversation_leave_nothing_in_a_ledger_in_memory() -> None:
    ledger = MemoryLedger()
    app = guarded(react(Paid(twice), Counter().tool), "9 calls, $1", ledger=ledger)
    for _ in range(20):
        app.invoke(HELLO)
    assert app.report().budget.scopes[0].spent["model_calls"] == 2, "the report knows it still"
    kept = pickle.dumps(vars(ledger)["_pages"].keys().__len__())
    assert pickle.loads(kept) == 0


def test_a_ledger_is_checked_when_the_guard_is_built() -> None:
    for wrong in ("redis://", object(), MemoryLedger):
        with pytest.raises(ConfigError, match="ledger must be a Ledger"):
            Guard(budget="$1", ledger=wrong)  # type: ignore[arg-type]


# -- ledgers with I/O -----------------------------------------------------------------------------


class Remote:
    """A ledger whose every answer has to be waited for; it says how it was asked."""

    def __init__(self) -> None:
        self.inner = MemoryLedger()
        self.asked: list[str] = []

    def hold(self, id: str, scopes: Sequence[Scope], amounts: Amounts) -> Hold | Refusal:
        self.asked.append("hold")
        return self.inner.hold(id, scopes, amounts)

    def settle(self, hold: Hold, amounts: Amounts) -> tuple[Tally, ...]:
        self.asked.append("settle")
        return self.inner.settle(hold, amounts)

    def release(self, hold: Hold) -> None:
        self.inner.release(hold)

    def charge(self, keys: Sequence[str], amounts: Amounts) -> tuple[Tally, ...]:
        return self.inner.charge(keys, amounts)

    def usage(self, key: str) -> Tally:
        return self.inner.usage(key)

    async def ahold(self, id: str, scopes: Sequence[Scope], amounts: Amounts) -> Hold | Refusal:
        await asyncio.sleep(0)
        self.asked.append("ahold")
        return self.inner.hold(id, scopes, amounts)

    async def asettle(self, hold: Hold, amounts: Amounts) -> tuple[Tally, ...]:
        await asyncio.sleep(0)
        self.asked.append("asettle")
        return self.inner.settle(hold, amounts)

    async def arelease(self, hold: Hold) -> None:
        self.inner.release(hold)

    async def acharge(self, keys: Sequence[str], amounts: Amounts) -> tuple[Tally, ...]:
        return self.inner.charge(keys, amounts)

    async def ausage(self, key: str) -> Tally:
        await asyncio.sleep(0)
        return self.inner.usage(key)


@pytest.mark.parametrize("bound", [60, None])
async def test_model_calls_of_tasks_await_the_ledger(bound: int | None) -> None:
    ledger, search = Remote(), Counter()
    model = Paid(always_asks(), max_tokens=bound)
    app = guarded(areact(model, search.tool), "3 calls, 90k tokens", ledger=ledger)
    await app.ainvoke(HELLO, LONG)
    assert model.calls == 3
    assert [each for each in ledger.asked if each.startswith("a")] == [
        *["ahold", "asettle"] * 3,
        "ahold",
    ]
    assert app.report().reason == "budget:model_calls"
    assert not app.report().faults


async def test_a_task_that_is_cancelled_while_the_ledger_thinks_holds_nothing() -> None:
    thinks = asyncio.Event()

    class Slow(Remote):
        async def ahold(self, id: str, scopes: Sequence[Scope], amounts: Amounts) -> Hold | Refusal:
            thinks.set()
            await asyncio.Event().wait()
            raise AssertionError

    model = Paid(twice)
    app = guarded(areact(model, Counter().tool), "3 calls", ledger=Slow())
    task = asyncio.create_task(app.ainvoke(HELLO))
    await thinks.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert model.calls == 0
    assert app.report().budget.scopes[0].spent == {}


# -- ledgers at fault -----------------------------------------------------------------------------


class Broken(Remote):
    """A ledger of which some operations fail, from a certain call on."""

    def __init__(self, *operations: str, after: int = 0) -> None:
        super().__init__()
        self._operations, self._left = operations, after

    def __getattribute__(self, name: str) -> Any:
        if name.removeprefix("a") in super().__getattribute__("_operations") or name in (
            super().__getattribute__("_operations")
        ):
            if self._left <= 0:
                raise OSError("the ledger is gone")
            self._left -= 1
        return super().__getattribute__(name)


@WAYS
@pytest.mark.parametrize("build", [areact, agent])
@pytest.mark.parametrize("faults", ["stop", "go_on"])
async def test_a_ledger_that_cannot_hold(build: Callable[..., Any], faults: str, how: str) -> None:
    if build is areact and how == "invoke":
        build = react
    model, search = Paid(twice), Counter()
    ledger = Broken("hold")
    app = guarded(build(model, search.tool), "9 calls", ledger=ledger, budget_faults=faults)
    result = await run(app, how)
    report = app.report()
    assert any("the ledger is gone" in fault for fault in report.faults)
    if faults == "stop":
        assert (model.calls, search.runs) == (0, 0)
        assert report.reason == "budget:unavailable"
    else:
        assert (model.calls, search.runs) == (2, 1)
        assert texts(result)[-1] == "done"
        assert report.budget.scopes[0].spent["model_calls"] == 2, "charged all the same"


@WAYS
@pytest.mark.parametrize("faults", ["stop", "go_on"])
async def test_a_ledger_that_is_lost_in_mid_run(faults: str, how: str) -> None:
    """The model call was held, its tool call cannot be: it is not run, and the run ends."""
    model, search = Paid(twice), Counter()
    ledger = Broken("hold", after=1)
    build = areact if how == "ainvoke" else react
    app = guarded(
        build(model, search.tool), "9 calls, 9 tool calls", ledger=ledger, budget_faults=faults
    )
    result = await run(app, how)
    if faults == "stop":
        assert (model.calls, search.runs) == (1, 0)
        assert app.report().reason == "budget:unavailable"
        assert "Not run: the budget cannot be kept" in result["messages"][-2].text
    else:
        assert (model.calls, search.runs) == (2, 1)


@WAYS
@pytest.mark.parametrize("operation", ["settle", "usage", "charge", "release"])
async def test_other_faults_are_told_and_hurt_nobody(operation: str, how: str) -> None:
    """What cannot be settled stays set aside: it counts."""
    model, search = Paid(twice), Counter()
    build = areact if how == "ainvoke" else react
    app = guarded(build(model, search.tool), "9 calls", ledger=Broken(operation))
    result = await run(app, how)
    assert texts(result)[-1] == "done"
    assert (model.calls, search.runs) == (2, 1)
    report = app.report()
    assert report.spend.model_calls == 2
    assert bool(report.faults) == (operation in ("settle", "usage"))


def test_a_cap_holds_though_nothing_can_be_settled() -> None:
    model = Paid(always_asks())
    app = guarded(react(model, Counter().tool), "3 calls", ledger=Broken("settle"))
    app.invoke(HELLO, LONG)
    assert model.calls <= 3


@pytest.mark.parametrize(("faults", "calls"), [("stop", 1), ("go_on", 2)])
def test_what_was_saved_cannot_be_read_into_the_ledger(faults: str, calls: int) -> None:
    """A conversation goes on in another process, whose ledger does not answer at first."""
    model, saver = Paid(lambda messages, number: "an answer"), InMemorySaver()
    budget = Budget(model_calls=2, per="thread")
    graph = react(model, Counter().tool, saver=saver)
    guarded(graph, budget, name="a", ledger=MemoryLedger()).invoke(HELLO, thread("1"))
    app = guarded(graph, budget, name="a", ledger=Broken("usage"), budget_faults=faults)
    app.invoke(HELLO, thread("1"))
    assert model.calls == calls
    assert any("budget.load" in fault for fault in app.report().faults)
    if faults == "stop":
        assert app.report().reason == "budget:unavailable"
    healthy = guarded(graph, budget, name="a", ledger=MemoryLedger())
    healthy.invoke(HELLO, thread("1"))
    healthy.invoke(HELLO, thread("1"))
    assert model.calls == 2 + (faults == "go_on"), "what was spent before was not forgotten"


# -- nested ---------------------------------------------------------------------------------------


def test_a_guarded_child_spends_from_the_ledger_of_the_graph_around_it() -> None:
    ledger, others = MemoryLedger(), MemoryLedger()
    inner = Paid(lambda messages, number: "found")
    child = guarded(react(inner, Counter().tool), "5 calls", ledger=others)

    def node(state: MessagesState) -> dict[str, Any]:
        return {"messages": [("ai", child.invoke(HELLO)["messages"][-1].text)]}

    graph = StateGraph(MessagesState)
    graph.add_node("node", node)
    graph.add_edge(START, "node")
    app = shearpin.guard(
        graph.compile(), budget="5 calls", name="out", unknown_price=PRICE, ledger=ledger
    )
    app.invoke(HELLO, thread("1"))
    assert app.report().budget.scopes[0].spent["model_calls"] == 1
    assert not vars(others)["_pages"]


def test_a_guarded_child_of_an_unguarded_graph_uses_its_own() -> None:
    ledger = MemoryLedger()

    def script(messages: Sequence[BaseMessage], number: int) -> AIMessage | str:
        return asks_for(("search", {"query": f"{number}"})) if number % 2 else "done"

    child = guarded(
        react(Paid(script), Counter().tool),
        Budget(model_calls=3, per="thread"),
        name="child",
        ledger=ledger,
    )
    graph = StateGraph(MessagesState)
    graph.add_node("node", lambda state: child.invoke(HELLO, thread("7")) and {})
    graph.add_edge(START, "node")
    for _ in range(3):
        graph.compile().invoke(HELLO)
    assert ledger.usage("thread:child:7").spent["model_calls"] == 3

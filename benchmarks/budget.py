"""What holding and settling costs, in microseconds: the ledger alone, and the purse around it.

    python -m benchmarks.budget            with graphs, whose supersteps a budget adds to
    python -m benchmarks.budget --ledger   the ledger and the purse alone

Target: hold and settle together at most 10 us in memory, for one scope and for three nested ones,
alone and with sixteen threads at it. CPU time, the best of nine repetitions, because other work on
the machine only ever adds. In graphs: plain, guarded, and guarded with a budget take turns in one
process; what each adds to the one before is the median over the rounds.
"""

from __future__ import annotations

import random
import sys
import timeit
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from time import process_time
from typing import Any

from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langgraph.graph import END, START, MessagesState, StateGraph

import shearpin
from benchmarks.measuring import cpu_seconds, median, save, table
from shearpin.core.account import Account
from shearpin.core.books import Book
from shearpin.core.budget import Budget
from shearpin.core.holds import Hold, Scope
from shearpin.ledgers.memory import MemoryLedger
from shearpin.ledgers.purse import Purse
from shearpin.ledgers.requests import Bill, ModelRequest

TARGET = 10.0
ROUNDS = 2_000
REPEATS = 9
LIMITS = {"usd": 10**15, "tokens": 10**15, "model_calls": 10**12}
AMOUNTS = {
    "usd": 900, "tokens": 1_500, "input_tokens": 1_200, "output_tokens": 300,
    "model_calls": 1, "steps": 1,
}  # fmt: skip


def ledger_alone(scopes: int) -> Callable[[], None]:
    ledger = MemoryLedger()
    where = [Scope(f"scope:{number}", LIMITS) for number in range(scopes)]
    numbers = iter(range(10**9))

    def once() -> None:
        hold = ledger.hold(f"call-{next(numbers)}", where, AMOUNTS)
        assert isinstance(hold, Hold)
        ledger.settle(hold, AMOUNTS)

    return once


def whole_purse(scopes: int) -> Callable[[], None]:
    spans = ("run", "thread", "thread")
    budget = {span: Budget(usd=10**6, tokens=10**12, per=span) for span in ("run", "thread")}
    books = [Book(budget[spans[number]], f"scope:{number}") for number in range(scopes)]
    purse = Purse(Account(books), MemoryLedger())
    numbers = iter(range(10**9))
    bill = Bill(1_200, 300, 900)

    def once() -> None:
        call = f"call-{next(numbers)}"
        purse.open_model(ModelRequest(call, "main", 1_200.0, 300, cost=lambda i, o: i + o))
        purse.close_model(call, bill)

    return once


def tool_call(scopes: int) -> Callable[[], None]:
    books = [Book(Budget(tool_calls=10**12), f"scope:{number}") for number in range(scopes)]
    purse = Purse(Account(books), MemoryLedger())
    numbers = iter(range(10**9))

    def once() -> None:
        call = f"call-{next(numbers)}"
        purse.open_tool(call, "search")
        purse.close_tool(call, "search")

    return once


def microseconds(once: Callable[[], None]) -> float:
    """The best of several repetitions, after a warm-up."""
    timeit.timeit(once, number=ROUNDS)
    return (
        min(timeit.repeat(once, timer=process_time, number=ROUNDS, repeat=REPEATS)) / ROUNDS * 1e6
    )


def contended(once: Callable[[], None], threads: int = 16) -> float:
    """Microseconds of CPU, all threads, per hold and settle while threads compete."""

    def work(_: int) -> None:
        for _ in range(ROUNDS):
            once()

    with ThreadPoolExecutor(threads) as pool:

        def together() -> None:
            list(pool.map(work, range(threads)))

        return (
            min(timeit.repeat(together, timer=process_time, number=1, repeat=3))
            / (threads * ROUNDS)
            * 1e6
        )


SUPERSTEPS = 300
TURNS = 9
WHOLE = Budget(usd=10**6, tokens=10**12, model_calls=10**9, tool_calls=10**9, seconds=10**6)
PRICES = {"input": "1", "output": "2"}


def loop(asks: bool) -> Any:
    """A node that goes round and round, with a model call each time or without."""
    usage = {"input_tokens": 40, "output_tokens": 8, "total_tokens": 48}

    words = "red fox blue lake old tree new road cold rain warm wind long day dark sea".split()
    chance = random.Random(7)

    def answers() -> Any:
        while True:
            text = " ".join(chance.choices(words, k=8))
            yield AIMessage(text, usage_metadata=usage)  # type: ignore[arg-type]

    model = GenericFakeChatModel(messages=answers())
    count = 0

    def node(state: MessagesState) -> dict[str, Any]:
        nonlocal count
        count += 1
        if asks:
            model.invoke(f"question {count}")
        return {}

    graph = StateGraph(MessagesState)
    graph.add_node("node", node)
    graph.add_edge(START, "node")
    graph.add_conditional_edges("node", lambda state: END if count % SUPERSTEPS == 0 else "node")
    return graph.compile()


def in_graphs(asks: bool) -> dict[str, object]:
    """Microseconds that a guard, and a budget in it, add to each superstep."""
    graphs = [
        loop(asks),
        shearpin.guard(loop(asks)),
        shearpin.guard(loop(asks), budget=WHOLE, unknown_price=PRICES),
    ]
    config = {"recursion_limit": SUPERSTEPS + 10}
    runs = [lambda graph=graph: graph.invoke({"messages": []}, config) for graph in graphs]
    for run in runs:
        run()
    assert all(graph.report().outcome == "completed" for graph in graphs[1:])
    turns = [[cpu_seconds(run) for run in runs] for _ in range(TURNS)]
    micro = 1e6 / SUPERSTEPS
    return {
        "what": f"superstep {'with' if asks else 'without'} a model call",
        "plain_us": round(median([turn[0] for turn in turns]) * micro, 1),
        "guard_adds_us": round(median([turn[1] - turn[0] for turn in turns]) * micro, 1),
        "budget_adds_us": round(median([turn[2] - turn[1] for turn in turns]) * micro, 1),
    }


def main() -> None:
    rows: list[dict[str, object]] = []
    for scopes in (1, 3):
        alone = microseconds(ledger_alone(scopes))
        rows += [
            {"what": "ledger: hold + settle", "scopes": scopes, "us": round(alone, 2)},
            {
                "what": "ledger: hold + settle, 16 threads",
                "scopes": scopes,
                "us": round(contended(ledger_alone(scopes)), 2),
            },
            {
                "what": "model call: estimate, hold, settle, learn, forecast data",
                "scopes": scopes,
                "us": round(microseconds(whole_purse(scopes)), 2),
            },
            {
                "what": "tool call: hold + settle",
                "scopes": scopes,
                "us": round(microseconds(tool_call(scopes)), 2),
            },
        ]
    print(table(["what", "scopes", "us"], [[str(v) for v in row.values()] for row in rows]))
    worst = max(
        float(str(r["us"])) for r in rows if str(r["what"]).startswith("ledger: hold + settle")
    )
    print(f"\nhold + settle at worst {worst} us, target {TARGET} us\n")
    if "--ledger" in sys.argv:
        return
    graphs = [in_graphs(False), in_graphs(True)]
    print(table(list(graphs[0]), [[str(v) for v in row.values()] for row in graphs]))
    save("budget", rows + graphs)


if __name__ == "__main__":
    main()

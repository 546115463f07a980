"""What holding and settling costs, in microseconds: the ledger alone, and the purse around it.

    python -m benchmarks.budget

Target: hold and settle together at most 10 us in memory, for one scope and for three nested ones,
alone and with sixteen threads at it. CPU time, the best of nine repetitions, because other work on
the machine only ever adds.
"""

from __future__ import annotations

import timeit
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from time import process_time

from benchmarks.measuring import save, table
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
    save("budget", rows)
    print(table(["what", "scopes", "us"], [[str(v) for v in row.values()] for row in rows]))
    worst = max(
        float(str(r["us"])) for r in rows if str(r["what"]).startswith("ledger: hold + settle")
    )
    print(f"\nhold + settle at worst {worst} us, target {TARGET} us")


if __name__ == "__main__":
    main()

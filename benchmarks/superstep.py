"""CPU per superstep, guarded over plain, of a two-node loop.

    python -m benchmarks.superstep            a few minutes
    python -m benchmarks.superstep --full     adds 100,000 steps with savers; about half an hour

The plain and the guarded graph run alternately in one process. The number that counts is *added*:
the median over pairs of (guarded - plain) / supersteps, in microseconds. Short runs are repeated
until each measurement covers at least 2,000 supersteps, with a new thread for every run; what a run
costs once is therefore in the number at 10 steps.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, ExitStack, contextmanager
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypedDict

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import END, START, StateGraph, add_messages

import shearpin
from benchmarks.measuring import Pair, interleaved, median, save, table


class State(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]
    count: int
    limit: int


class Case(NamedTuple):
    """One line of the results."""

    mode: str
    saver: str
    steps: int
    messages: int


def work(state: State) -> dict[str, int]:
    return {"count": state["count"] + 1}


async def awork(state: State) -> dict[str, int]:
    return {"count": state["count"] + 1}


def build(asynchronous: bool) -> StateGraph[State]:
    """Two nodes that take turns until `limit` supersteps are done."""
    builder = StateGraph(State)
    node = awork if asynchronous else work
    builder.add_node("left", node)
    builder.add_node("right", node)
    builder.add_edge(START, "left")
    for here, there in (("left", "right"), ("right", "left")):
        builder.add_conditional_edges(
            here,
            lambda state, there=there: there if state["count"] < state["limit"] else END,
            [there, END],
        )
    return builder


def given(case: Case) -> dict[str, object]:
    """The input of a run."""
    kinds = itertools.cycle((HumanMessage, AIMessage))
    history = [next(kinds)(f"message {n}", id=str(n)) for n in range(case.messages)]
    return {"messages": history, "count": 0, "limit": case.steps}


def repeats(case: Case) -> int:
    """Runs in one measurement, so that it covers 2,000 supersteps."""
    return max(1, 2_000 // case.steps)


def configs(case: Case, threads: Iterator[int]) -> list[dict[str, Any]]:
    """One config a run, each with its own thread."""
    limit = {"recursion_limit": case.steps + 10}
    return [
        {**limit, "configurable": {"thread_id": f"t{next(threads)}"}} for _ in range(repeats(case))
    ]


def sync_pairs(case: Case, pairs: int, folder: Path) -> list[Pair]:
    """Measure with `invoke`."""
    threads = itertools.count()
    inputs = given(case)

    def runner(wrap: Callable[[Any], Any]) -> Callable[[], None]:
        def run() -> None:
            with sync_saver(case, folder / f"{next(threads)}.db") as saver:
                graph = wrap(build(False).compile(checkpointer=saver))
                for config in configs(case, threads):
                    graph.invoke(inputs, config)

        return run

    return warmed(runner, pairs)


def async_pairs(case: Case, pairs: int, folder: Path) -> list[Pair]:
    """Measure with `ainvoke`."""
    threads = itertools.count()
    inputs = given(case)

    def runner(wrap: Callable[[Any], Any]) -> Callable[[], None]:
        async def run() -> None:
            async with AsyncExitStack() as stack:
                saver: Any = None
                if case.saver == "memory":
                    saver = InMemorySaver()
                elif case.saver == "sqlite":
                    path = str(folder / f"{next(threads)}.db")
                    saver = await stack.enter_async_context(AsyncSqliteSaver.from_conn_string(path))
                graph = wrap(build(True).compile(checkpointer=saver))
                for config in configs(case, threads):
                    await graph.ainvoke(inputs, config)

        return lambda: asyncio.run(run())

    return warmed(runner, pairs)


def warmed(runner: Callable[[Callable[[Any], Any]], Callable[[], None]], pairs: int) -> list[Pair]:
    """One run each that does not count, then the pairs."""
    plain, guarded = runner(lambda graph: graph), runner(shearpin.guard)
    if pairs > 3:
        plain()
        guarded()
    return interleaved(plain, guarded, pairs)


@contextmanager
def sync_saver(case: Case, path: Path) -> Iterator[Any]:
    """The checkpointer of the case, empty."""
    with ExitStack() as stack:
        if case.saver == "memory":
            yield InMemorySaver()
        elif case.saver == "sqlite":
            yield stack.enter_context(SqliteSaver.from_conn_string(str(path)))
        else:
            yield None


def cases(full: bool) -> list[Case]:
    """What is measured; long runs with a saver take minutes each and only belong to `--full`."""
    found: list[Case] = []
    for mode, saver in itertools.product(("sync", "async"), ("none", "memory", "sqlite")):
        for steps, messages in itertools.product((10, 1_000, 100_000), (10, 2_000)):
            long = steps == 100_000 and saver != "none"
            slow = saver == "sqlite" and messages == 2_000 and steps > 10
            if not slow and (full or not long):
                found.append(Case(mode, saver, steps, messages))
    return found


def measure(case: Case, pairs: int) -> dict[str, object]:
    """One line of the results."""
    if case.steps == 100_000:
        pairs = 3
    with tempfile.TemporaryDirectory() as folder:
        found = (sync_pairs if case.mode == "sync" else async_pairs)(case, pairs, Path(folder))
    supersteps = case.steps * repeats(case)
    micro = 1e6 / supersteps
    added = [(pair.guarded - pair.plain) * micro for pair in found]
    return {
        **case._asdict(),
        "pairs": len(found),
        "plain_us": round(median([pair.plain for pair in found]) * micro, 2),
        "guarded_us": round(median([pair.guarded for pair in found]) * micro, 2),
        "added_us": round(median(added), 2),
        "added_us_lowest": round(min(added), 2),
        "added_us_highest": round(max(added), 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="add 100,000 steps with savers")
    parser.add_argument("--pairs", type=int, default=15, help="measurements of each case")
    parser.add_argument("--only", default="", help="mode, saver, steps, messages: a part of a line")
    options = parser.parse_args()
    rows: list[dict[str, object]] = []
    for case in cases(options.full):
        if options.only in " ".join(map(str, case)):
            rows.append(measure(case, options.pairs))
            print(rows[-1], flush=True)
            if not options.only:
                save("superstep", rows)
    header = ["mode", "saver", "steps", "messages", "plain us", "guarded us", "added us", "range"]
    body = [
        [
            *(str(row[key]) for key in ("mode", "saver", "steps", "messages")),
            *(f"{row[key]:.1f}" for key in ("plain_us", "guarded_us", "added_us")),
            f"{row['added_us_lowest']:.1f} to {row['added_us_highest']:.1f}",
        ]
        for row in rows
    ]
    print(table(header, body))


if __name__ == "__main__":
    main()

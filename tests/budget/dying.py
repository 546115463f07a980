"""An agent that makes three calls in each step, and dies again and again: what does it pay for?

    python -m tests.budget.dying FOLDER SAVE_EVERY sync|async

Each process makes two calls and is killed in the middle of its third; the next one goes on. Prints
how many calls were made in all, and what the run ended with. The provider's own count is a file.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from langchain_core.messages import BaseMessage
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import START, MessagesState, StateGraph

import shearpin
from tests.budget.paying import HELLO, Paid

CAP = 9
CALLS_IN_A_LIFE = 3
MOST_LIVES = 8
CONFIG: Any = {"configurable": {"thread_id": "t"}, "recursion_limit": 100}


def build(saver: Any, provider: Path, save_every: Any) -> Any:
    calls = 0

    def script(messages: Sequence[BaseMessage], number: int) -> str:
        nonlocal calls
        calls += 1
        with provider.open("a") as file:
            file.write("x")
        if calls == CALLS_IN_A_LIFE:
            os._exit(9)
        return "a thought"

    model = Paid(script)

    def work(state: MessagesState) -> dict[str, Any]:
        return {"messages": [model.invoke("one two three") for _ in range(3)]}

    async def awork(state: MessagesState) -> dict[str, Any]:
        return {"messages": [await model.ainvoke("one two three") for _ in range(3)]}

    graph = StateGraph(MessagesState)
    graph.add_node("work", awork if isinstance(saver, AsyncSqliteSaver) else work)
    graph.add_edge(START, "work")
    graph.add_edge("work", "work")
    return shearpin.guard(
        graph.compile(checkpointer=saver),
        budget=f"{CAP} calls",
        save_every=save_every,
        detectors=(),
    )


def live(database: Path, provider: Path, save_every: Any, given: Any) -> Any:
    with SqliteSaver.from_conn_string(str(database)) as saver:
        app = build(saver, provider, save_every)
        app.invoke(given, CONFIG, durability="sync")
        report = app.report(CONFIG)
    return [report.reason, report.budget.scopes[0].spent.get("model_calls"), list(report.faults)]


async def alive(database: Path, provider: Path, save_every: Any, given: Any) -> Any:
    async with AsyncSqliteSaver.from_conn_string(str(database)) as saver:
        app = build(saver, provider, save_every)
        await app.ainvoke(given, CONFIG, durability="sync")
        report = app.report(CONFIG)
    return [report.reason, report.budget.scopes[0].spent.get("model_calls"), list(report.faults)]


def forked(database: Path, provider: Path, save_every: Any, given: Any, how: str) -> Any:
    """What a life has come to; None where it was killed."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            if how == "async":
                told = asyncio.run(alive(database, provider, save_every, given))
            else:
                told = live(database, provider, save_every, given)
            with os.fdopen(writing, "w") as pipe:
                json.dump(told, pipe)
            code = 0
        finally:
            os._exit(code)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        text = pipe.read()
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status in (0, 9), status
    return json.loads(text) if text else None


def main(folder: Path, save_every: Any, how: str) -> None:
    database, provider = folder / "state.db", folder / "provider"
    given: Any = HELLO
    lives, told = 0, None
    while told is None and lives < MOST_LIVES:
        told = forked(database, provider, save_every, given, how)
        given, lives = None, lives + 1
    json.dump({"calls": len(provider.read_text()), "told": told, "lives": lives}, sys.stdout)


if __name__ == "__main__":
    main(Path(sys.argv[1]), "call" if sys.argv[2] == "call" else int(sys.argv[2]), sys.argv[3])

"""A run of 30 steps that is killed after any of them, and resumed in a process of its own.

    python -m tests.adapters.killing FOLDER SAVE_EVERY sync|async STRIDE auto|store

Prints a JSON object: what became of the run that was left alone, and of each that was killed. Every
run happens in a fork of this process, which has touched no guard and no database before.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ToolCall
from langchain_core.tools import tool
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

import shearpin
from shearpin.testing import StrictProvider

STEPS = 30
HONEST = 8
CONFIG: Any = {"configurable": {"thread_id": "t"}, "recursion_limit": 100}
HELLO = {"messages": [("user", "where is it?")]}


@tool
def look(place: str) -> str:
    """Look at a place."""
    return f"{place}: the drawer is locked"


def script(messages: Sequence[BaseMessage], call: int) -> AIMessage:
    """Honest work first, then the same call for ever; tells nothing by the number of the call."""
    rounds = sum(isinstance(message, AIMessage) for message in messages)
    place = f"room {rounds}" if rounds < HONEST else "desk"
    asked = ToolCall(name="look", args={"place": place}, id=f"c{rounds}", type="tool_call")
    return AIMessage("", tool_calls=[asked], id=f"ai{rounds}")


class Killer:
    """Counts the nodes that were entered, and ends the process where it is told to."""

    def __init__(self, limit: int | None, late: bool) -> None:
        self.limit, self.late, self.entered = limit, late, 0

    def enters(self) -> None:
        if self.limit is not None and not self.late and self.entered >= self.limit:
            os._exit(9)
        self.entered += 1

    def leaves(self) -> None:
        if self.limit is not None and self.late and self.entered > self.limit:
            os._exit(9)


def build(saver: Any, killer: Killer, save_every: int, state: str) -> Any:
    model = StrictProvider(script)
    tools = ToolNode([look])
    builder: StateGraph[Any] = StateGraph(MessagesState)

    def agent(state: MessagesState) -> dict[str, Any]:
        killer.enters()
        answer = model.invoke(state["messages"])
        killer.leaves()
        return {"messages": [answer]}

    builder.add_node("agent", agent)
    builder.add_node("tools", tools)
    builder.add_node("note", lambda state: killer.enters())
    builder.add_edge(START, "agent")
    builder.add_conditional_edges("agent", tools_condition)
    builder.add_edge("tools", "note")
    builder.add_edge("note", "agent")
    return shearpin.guard(builder.compile(checkpointer=saver), save_every=save_every, state=state)


def told(app: Any, state: Any) -> dict[str, Any]:
    report = app.report(CONFIG)
    return {
        "outcome": report.outcome,
        "reason": report.reason,
        "spend": report.to_json()["spend"],
        "messages": [
            [m.type, str(m.content), [c["args"] for c in getattr(m, "tool_calls", [])]]
            for m in state.values["messages"]
        ],
    }


def drive(path: Path, given: Any, killer: Killer, save_every: int, state: str) -> dict[str, Any]:
    with SqliteSaver.from_conn_string(str(path)) as saver:
        app = build(saver, killer, save_every, state)
        app.invoke(given, CONFIG, durability="sync")
        return told(app, app.get_state(CONFIG))


async def adrive(
    path: Path, given: Any, killer: Killer, save_every: int, state: str
) -> dict[str, Any]:
    async with AsyncSqliteSaver.from_conn_string(str(path)) as saver:
        app = build(saver, killer, save_every, state)
        await app.ainvoke(given, CONFIG, durability="sync")
        return told(app, await app.aget_state(CONFIG))


def forked(path: Path, given: Any, killer: Killer, save_every: int, how: str, place: str) -> Any:
    """The outcome of a run in a process of its own; None where it was killed."""
    state = "auto" if place == "auto" else f"sqlite:///{path}.sessions"
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            if how == "async":
                result = asyncio.run(adrive(path, given, killer, save_every, state))
            else:
                result = drive(path, given, killer, save_every, state)
            with os.fdopen(writing, "w") as pipe:
                json.dump(result, pipe)
            code = 0
        finally:
            os._exit(code)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        text = pipe.read()
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status in (0, 9), status
    return json.loads(text) if text else None


def main(folder: Path, save_every: int, how: str, stride: int, place: str) -> None:
    whole = forked(folder / "whole.db", HELLO, Killer(None, False), save_every, how, place)
    others: list[Any] = []
    for limit in range(1, STEPS, stride):
        late = limit % 4 == 1  # in the middle of a model's node, after the model was called
        path = folder / f"{limit}.db"
        first = forked(path, HELLO, Killer(limit, late), save_every, how, place)
        if first is None:
            last = forked(path, None, Killer(None, False), save_every, how, place)
            others.append([limit, late, last])
    json.dump({"whole": whole, "killed": others}, sys.stdout)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3], int(sys.argv[4]), sys.argv[5])

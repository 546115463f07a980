"""An agent that sends one mail, killed at a given moment, and resumed in a process of its own.

    python -m tests.boundary.tool_kill FOLDER

It is killed `before` the mail, `after` it and before its record is finished, or `later`, when the
tool has answered and the checkpoint is not written yet. Prints for each, in threads and in event
loops, how many mails were sent and what the agent was told. Each run happens in a fork.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from langchain_core.tools import tool
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

import shearpin
from shearpin.boundary import Boundary, Effects, ToolPolicy
from shearpin.boundary.effects import EffectRecords
from tests.boundary.tool_agents import HELLO, THREAD, script, tool_node


def agent(folder: Path, when: str | None, saver: Any) -> Any:
    @tool
    def mail(query: str) -> str:
        """Send a mail."""
        if when == "before":
            os._exit(9)
        with (folder / "sent").open("a") as sent:
            sent.write(f"{query}\n")
        if when == "after":
            os._exit(9)
        return f"sent to {query}"

    finish = EffectRecords.finish
    if when == "later":

        def finished(*args: Any, **more: Any) -> None:
            finish(*args, **more)
            os._exit(9)

        EffectRecords.finish = finished  # type: ignore[method-assign]
    graph = tool_node([mail], script([("mail", {"query": "ann"})]), saver)
    policy = ToolPolicy(effect=Effects(lease_seconds=0.001))
    store = f"sqlite:///{folder}/effects.db"
    return shearpin.guard(graph, boundary=Boundary(tools={"mail": policy}, store=store))


def carried_out(folder: Path, when: str | None, how: str, given: Any) -> Any:
    path = str(folder / "threads.db")
    if how == "sync":
        with SqliteSaver.from_conn_string(path) as saver:
            return agent(folder, when, saver).invoke(given, THREAD, durability="sync")

    async def main() -> Any:
        async with AsyncSqliteSaver.from_conn_string(path) as saver:
            return await agent(folder, when, saver).ainvoke(given, THREAD, durability="sync")

    return asyncio.run(main())


def in_a_fork(act: Callable[[], object], out: Path) -> int:
    """The exit code of a fork that does this and writes down what came of it."""
    child = os.fork()
    if child == 0:
        try:
            out.write_text(json.dumps(act()))
            os._exit(0)
        except BaseException as error:
            out.write_text(json.dumps(repr(error)))
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def outcome(folder: Path, when: str, how: str) -> dict[str, Any]:
    folder.mkdir()
    out = folder / "out.json"
    killed = in_a_fork(lambda: str(carried_out(folder, when, how, HELLO)), out)
    assert killed == 9, out.read_text()

    def resumed() -> list[str]:
        found = carried_out(folder, None, how, None)["messages"]
        return [str(message.content) for message in found if message.type == "tool"]

    assert in_a_fork(resumed, out) == 0, out.read_text()
    sent = folder / "sent"
    count = len(sent.read_text().splitlines()) if sent.exists() else 0
    return {"sent": count, "told": json.loads(out.read_text())}


def main() -> None:
    cases = [(how, when) for how in ("sync", "async") for when in ("before", "after", "later")]
    found = {
        f"{how} {when}": outcome(Path(sys.argv[1]) / f"{how}-{when}", when, how)
        for how, when in cases
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main()

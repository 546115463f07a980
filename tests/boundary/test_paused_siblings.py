"""A branch ends the run beside others that wait for people: the end holds when these answer."""

from __future__ import annotations

import operator
import threading
from typing import Annotated, Any

import pytest
from langchain_core.messages import AnyMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Command, Send, interrupt
from typing_extensions import TypedDict

import shearpin

THREAD: dict[str, Any] = {"configurable": {"thread_id": "t1"}}
SECONDS = 10  # a branch that is never entered would be waited for, for ever
HOW = pytest.mark.parametrize("how", ["invoke", "ainvoke"])


class Shared(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]
    done: Annotated[list[str], operator.add]


def build(saver: InMemorySaver, failing: bool = True) -> Any:
    waiting = {name: threading.Event() for name in ("a", "b")}

    def work(given: Any) -> dict[str, Any]:
        if given["branch"] == "broken":
            assert all(event.wait(SECONDS) for event in waiting.values())
            if failing:
                raise ValueError("x")
            return {"done": ["mended"]}
        waiting[given["branch"]].set()
        return {"done": [f"{given['branch']}: {interrupt(given['branch'])}"]}

    builder = StateGraph(Shared)
    builder.add_node("work", work)
    builder.add_node("close", lambda _: {"done": ["closed"]})
    branches = [Send("work", {"branch": name}) for name in ("a", "broken", "b")]
    builder.add_conditional_edges(START, lambda _: branches, ["work"])
    builder.add_edge("work", "close")
    return shearpin.guard(builder.compile(checkpointer=saver), boundary=True)


async def go(app: Any, how: str, given: Any) -> Any:
    if how == "invoke":
        return app.invoke(given, THREAD)
    return await app.ainvoke(given, THREAD)


def ask(text: str) -> dict[str, Any]:
    return {"messages": [HumanMessage(text)], "done": []}


@HOW
@pytest.mark.parametrize("restarted", [False, True])
async def test_the_end_holds_when_people_answer(restarted: bool, how: str) -> None:
    saver = InMemorySaver()
    app = build(saver)
    await go(app, how, ask("go"))
    assert app.report(THREAD).outcome == "stopped"
    pauses = app.get_state(THREAD).interrupts
    assert len(pauses) == 2

    if restarted:
        app = build(saver)
    answers = {pause.id: "yes" for pause in pauses}
    result = await go(app, how, Command(resume=answers))

    assert result["done"] == []
    assert app.get_state(THREAD).next == ()
    report = app.report(THREAD)
    assert report.outcome == "stopped"
    assert report.reason.startswith("failures:")


@HOW
async def test_a_new_message_starts_afresh(how: str) -> None:
    saver = InMemorySaver()
    await go(build(saver), how, ask("go"))
    app = build(saver, failing=False)

    await go(app, how, ask("again"))
    pauses = app.get_state(THREAD).interrupts
    result = await go(app, how, Command(resume={pause.id: "yes" for pause in pauses}))

    assert sorted(result["done"]) == ["a: yes", "b: yes", "closed", "mended"]
    assert app.report(THREAD).outcome == "completed"

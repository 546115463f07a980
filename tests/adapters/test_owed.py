"""A nudge that has not reached its agent yet survives a pause and a kill, without any text."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import Command, interrupt

import shearpin
from shearpin.adapters.langgraph.state import CHANNEL
from shearpin.adapters.owed import Owed
from shearpin.core.settings import Settings
from shearpin.findings import Finding, Severity
from shearpin.testing import StrictProvider, asks_for
from shearpin.verdicts import Nudge
from tests.adapters.builds import HELLO, THREAD, assert_valid, look, run, saver

SECRET = "sesame-4711"


@tool
def unlock(code: str) -> str:
    """Unlock the drawer."""
    return f"the code {code} is wrong"


def heeding(messages: Sequence[BaseMessage], call: int) -> AIMessage | str:
    """Tries the same code until it is told that this leads nowhere."""
    if any("got the same result" in str(m.content) for m in messages if m.type == "human"):
        return "The code is wrong."
    return asks_for(("unlock", {"code": SECRET}))


def copy_of(kept: InMemorySaver) -> InMemorySaver:
    """What a database still has after the process that wrote to it is gone."""
    twin = InMemorySaver()
    for name in ("storage", "writes", "blobs"):
        held, other = getattr(kept, name), getattr(twin, name)
        for key, value in held.items():
            other[key] = copy.copy(value) if name != "storage" else copy.deepcopy(dict(value))
    return twin


def graph_of(model: StrictProvider, kept: InMemorySaver, died: list[InMemorySaver]) -> Any:
    """A loop; each time before its model is asked, what is saved by then is copied."""

    def thinks(state: MessagesState) -> dict[str, Any]:
        died.append(copy_of(kept))
        return {"messages": [model.invoke(state["messages"])]}

    builder: StateGraph[Any] = StateGraph(MessagesState)
    builder.add_node("agent", thinks)
    builder.add_node("tools", ToolNode([unlock]))
    builder.add_edge(START, "agent")
    builder.add_conditional_edges("agent", tools_condition)
    builder.add_edge("tools", "agent")
    return builder.compile(checkpointer=kept)


@pytest.mark.parametrize("how", ["invoke", "ainvoke", "stream", "astream"])
async def test_a_kill_before_the_next_request_does_not_lose_it(how: str) -> None:
    kept, died = saver(), list[InMemorySaver]()
    model = StrictProvider(heeding)
    whole: Any = shearpin.guard(graph_of(model, kept, died), save_every=1)
    await run(whole, how)
    assert (model.calls, whole.report(THREAD).outcome) == (4, "completed")
    for after in range(1, 4):
        again = StrictProvider(heeding)
        app: Any = shearpin.guard(graph_of(again, died[after], []), save_every=1)
        if how in ("invoke", "stream"):
            result = app.invoke(None, THREAD)
        else:
            result = await app.ainvoke(None, THREAD)
        assert result["messages"][-1].content == "The code is wrong."
        assert again.calls == 4 - after, "told at the same point as without the kill"
        assert_valid(result["messages"])
        told = [str(m.content) for m in again.requests[-1] if m.type == "human"]
        assert told[-1] == str(model.requests[-1][-1].content), "in the same words"
        report = app.report(THREAD)
        assert report.faults == ()
        assert [(v.verdict, v.acted) for v in report.verdicts] == [("nudge", True)]


def test_without_saving_in_mid_run_it_is_found_again_from_the_start() -> None:
    """The default, as for all that a killed run had counted."""
    kept, died = saver(), list[InMemorySaver]()
    shearpin.guard(graph_of(StrictProvider(heeding), kept, died)).invoke(HELLO, THREAD)
    again = StrictProvider(heeding)
    app: Any = shearpin.guard(graph_of(again, died[3], []))
    app.invoke(None, THREAD)
    assert again.calls > 1


def test_what_is_saved_of_it_has_no_text() -> None:
    kept, died = saver(), list[InMemorySaver]()
    app: Any = shearpin.guard(graph_of(StrictProvider(heeding), kept, died), save_every=1)
    app.invoke(HELLO, THREAD)
    texts = [
        str(value)
        for writes in died[3].writes.values()
        for _, channel, value, _ in writes.values()
        if channel == CHANNEL
    ]
    assert any('"owed"' in text for text in texts)
    assert not any(SECRET in text or "wrong" in text for text in texts)


@pytest.mark.parametrize("fresh", [False, True])
@pytest.mark.parametrize("how", ["invoke", "ainvoke"])
async def test_a_pause_does_not_lose_it(how: str, fresh: bool) -> None:
    """A person is asked beside the loop's third answer, before the next request."""

    @tool
    def poke(thing: str) -> str:
        """Poke, if a person agrees."""
        return str(interrupt("may I?"))

    def script(messages: Sequence[BaseMessage], call: int) -> AIMessage | str:
        told = [str(m.content) for m in messages if m.type == "human"]
        if "got the same result" in told[-1]:
            return "The drawer is locked."
        rounds = sum(message.type == "ai" for message in messages)
        if rounds == 2:
            return asks_for(("look", {"place": "desk"}), ("poke", {"thing": "bear"}))
        return asks_for(("look", {"place": "desk"}))

    kept = saver()

    def build() -> Any:
        model = StrictProvider(script)
        return model, shearpin.guard(create_agent(model, [look, poke], checkpointer=kept))

    first, app = build()
    await run(app, how)
    model, app = build() if fresh else (first, app)
    assert app.get_state(THREAD).next
    await run(app, how, Command(resume="yes"))
    messages = app.get_state(THREAD).values["messages"]
    assert messages[-1].content == "The drawer is locked."
    assert model.calls == (1 if fresh else 4)
    assert_valid(messages)


def test_a_new_turn_cancels_it() -> None:
    kept, died = saver(), list[InMemorySaver]()
    shearpin.guard(graph_of(StrictProvider(heeding), kept, died), save_every=1).invoke(
        HELLO, THREAD
    )
    again = StrictProvider(lambda messages, call: "All is well.")
    app: Any = shearpin.guard(graph_of(again, died[3], []), save_every=1)
    app.invoke({"messages": [("user", "and now?")]}, THREAD)
    assert not any("same result" in str(m.content) for m in again.requests[0])
    assert app.report(THREAD).verdicts == ()


def finding(number: int, family: str = "repeat") -> Finding:
    return Finding(
        family, family, f"{family}:{number}", Severity.NUDGE, 3, 3, 1, number, "main", "look"
    )


def test_what_is_owed_is_bounded_and_comes_back() -> None:
    owed, settings = Owed(), Settings()
    for number in range(10):
        owed.add(Nudge(finding(number), "words"), settings, ["agent"])
    owed.add(Nudge(finding(99, "budget"), "80 % are used"), settings, ["agent"])
    assert [due.finding.step for due in owed.of()] == [6, 7, 8, 9]
    again = Owed()
    again.load(owed.dump())
    assert again.dump() == owed.dump()
    again.paid("another")
    assert len(again.of()) == 4
    again.paid("main")
    assert (again.dump(), bool(again)) == ([], False)
    again.load(None)
    with pytest.raises((TypeError, ValueError)):
        again.load([["damaged"]])

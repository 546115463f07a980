"""A history that providers would refuse is mended before a model sees it (P3)."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain.agents import create_agent
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolCall,
    ToolMessage,
)
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import tools_condition

import shearpin
from shearpin.adapters.repair import Histories, mended
from shearpin.langchain import GuardMiddleware
from shearpin.testing import ProviderRejectedError, StrictProvider, asks_for
from shearpin.testing.provider import complaints
from tests.adapters.builds import (
    HELLO,
    THREAD,
    WAYS,
    agent,
    assert_valid,
    look,
    polite,
    react,
    react_builder,
    run,
    saver,
)


def asking(*ids: str, text: str = "") -> AIMessage:
    calls = [ToolCall(name="look", args={}, id=identity, type="tool_call") for identity in ids]
    return AIMessage(text, tool_calls=calls, id="-".join(("ai", *ids)))


def told(identity: str, text: str = "ok") -> ToolMessage:
    return ToolMessage(text, tool_call_id=identity, id=f"tool-{identity}-{text}")


def user(text: str = "well?") -> HumanMessage:
    return HumanMessage(text, id=f"user-{text}")


BROKEN: dict[str, list[BaseMessage]] = {
    "a call without an answer": [user("a"), asking("1"), user()],
    "one of two answered": [user("a"), asking("1", "2"), told("2"), user()],
    "an answer without a call": [user("a"), told("9"), AIMessage("x"), user()],
    "answered twice": [user("a"), asking("1"), told("1"), told("1", "b"), AIMessage("x"), user()],
    "an answer after the user": [user("a"), asking("1"), user("b"), told("1"), user()],
    "side by side": [user("a"), asking("1"), asking("2"), told("1"), told("2"), user()],
    "cut in front": [told("1"), AIMessage("x", id="x"), user()],
    "two turns broken": [user("a"), asking("1"), user("b"), asking("2"), user()],
    "an id used again": [
        user("a"), asking("1"), told("1"), user("b"), asking("1", text="b"), user(),
    ],
}  # fmt: skip


@pytest.mark.parametrize("messages", BROKEN.values(), ids=BROKEN)
def test_broken_histories_are_mended(messages: list[BaseMessage]) -> None:
    assert list(complaints(messages, "openai"))
    assert Histories().is_broken("", messages, asks=False)
    found = mended(messages, asks=False)
    assert found is not None
    assert list(complaints(found.messages, "openai")) == []
    assert found.answers or found.removed or found.moved
    rest = [m for m in found.messages if not isinstance(m, ToolMessage)]
    assert rest == [m for m in messages if not isinstance(m, ToolMessage)]
    assert mended(found.messages, asks=False) is None
    assert not Histories().is_broken("", found.messages, asks=False)
    again = mended(messages, asks=False)
    assert again is not None
    assert [m.id for m in again.messages] == [m.id for m in found.messages]


@pytest.mark.parametrize(
    "messages",
    [
        [user(), asking("1")],
        [user(), asking("1", "2"), told("2")],
        [user(), asking("1"), asking("2"), told("2")],
        [user(), asking("1"), asking("2"), told("2"), told("1")],
        [user(), asking("1"), told("1"), AIMessage("x"), told("7")],
    ],
)
def test_answers_that_may_still_come_are_waited_for(messages: list[BaseMessage]) -> None:
    """Agents that work side by side write into one history; only a user's word settles it."""
    assert not Histories().is_broken("", messages, asks=False)
    assert mended(messages, asks=False) is None


_ids = st.sampled_from("1234")
_message = st.one_of(
    st.builds(lambda ids: asking(*ids), st.lists(_ids, max_size=3, unique=True)),
    st.builds(told, _ids),
    st.builds(user),
    st.just(SystemMessage("s")),
)


@given(st.lists(_message, max_size=12))
def test_whatever_the_history_the_model_can_be_asked(messages: list[BaseMessage]) -> None:
    found = mended(messages, asks=True, over=True)
    fixed = messages if found is None else found.messages
    assert not [c for c in complaints(fixed, "openai") if "tool" in c]
    assert mended(fixed, asks=True, over=True) is None
    if not list(complaints(messages, "openai")):
        assert found is None


@given(st.lists(_message, max_size=12))
def test_the_check_and_the_mending_agree(messages: list[BaseMessage]) -> None:
    for asks in (False, True):
        if mended(messages, asks=asks) is None:
            assert not Histories().is_broken("", messages, asks=asks)


@given(st.lists(_message, max_size=12), st.booleans())
def test_looking_at_the_tail_finds_what_a_whole_look_finds(
    messages: list[BaseMessage], asks: bool
) -> None:
    known = Histories()
    for end in range(1, len(messages) + 1):
        part = messages[:end]
        found = known.is_broken("", part, asks=asks)
        assert found == Histories().is_broken("", part, asks=asks)
        if found:
            break


class Counted(list[Any]):
    """Counts how often its items are read."""

    reads = 0

    def __getitem__(self, index: Any) -> Any:
        self.reads += 1
        return super().__getitem__(index)


def test_a_long_history_is_read_once() -> None:
    history = Counted([user("start")])
    known = Histories()
    for number in range(300):
        history.extend([asking(str(number)), told(str(number))])
        history.reads = 0
        assert not known.is_broken("", history, asks=True)
        assert history.reads < 12


def crashed(model: StrictProvider, build: Any, checkpointer: Any) -> Any:
    """A thread whose last turn died in the middle of a tool call."""
    app = build(model, checkpointer)
    history: list[BaseMessage] = [user("a"), asking("lost", "kept"), told("kept")]
    app.update_state(THREAD, {"messages": history}, as_node=list(app.nodes)[1])
    return app


@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize("build", [react, agent], ids=["react", "create_agent"])
async def test_the_turn_after_a_crash(build: Any, how: str) -> None:
    model = polite()
    app = shearpin.guard(crashed(model, build, saver()))
    await run(app, how)
    messages = app.get_state(THREAD).values["messages"]
    assert messages[-1].content == "It is not there."
    assert [m.id for m in messages[:3]] == ["user-a", "ai-lost-kept", "tool-kept-ok"]
    assert sum(isinstance(m, ToolMessage) for m in messages) == 3, "nothing lent was saved"
    (note,) = app.report(THREAD).notes
    assert (note.rule, note.evidence["unanswered"], note.evidence["repair"]) == (
        "broken_history", 1, "lent",
    )  # fmt: skip
    lost = [m for m in model.requests[0] if isinstance(m, ToolMessage)]
    assert [m.tool_call_id for m in lost] == ["kept", "lost"]


async def test_without_repair_the_provider_refuses() -> None:
    for options in ({"repair": "off"}, {"mode": "observe"}):
        app = shearpin.guard(crashed(polite(), react, saver()), **options)
        with pytest.raises(ProviderRejectedError):
            app.invoke(HELLO, THREAD)
        assert app.report(THREAD).notes[0].evidence["repair"] == "left"


@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize("build", [react, agent], ids=["react", "create_agent"])
async def test_saved_for_good(build: Any, how: str) -> None:
    model = polite()
    checkpointer = saver()
    app = shearpin.guard(crashed(model, build, checkpointer), repair="save")
    before = len(list(checkpointer.list(THREAD)))
    await run(app, how)
    messages = app.get_state(THREAD).values["messages"]
    assert_valid(messages)
    assert [m.id for m in messages[:3]] == ["user-a", "ai-lost-kept", "tool-kept-ok"]
    assert app.report(THREAD).notes[0].evidence["repair"] == "saved"
    added = len(list(checkpointer.list(THREAD))) - before
    plain = saver()
    other = build(polite(), plain)
    await run(other, how)
    assert added == len(list(plain.list(THREAD)))
    plainly = shearpin.guard(build(polite(), checkpointer), repair="save")
    await run(plainly, how)
    assert plainly.report(THREAD).notes == ()


def test_a_tool_node_that_answers_one_of_three() -> None:
    """In the middle of a turn: calls right before the model is asked are lost as well."""
    model = StrictProvider(
        [asks_for(*(("look", {"place": p}) for p in "abc")), "done"], flavour="openai"
    )

    def lazy(state: MessagesState) -> dict[str, Any]:
        call: Any = state["messages"][-1]
        return {"messages": [ToolMessage("found", tool_call_id=call.tool_calls[0]["id"])]}

    builder: StateGraph[Any] = StateGraph(MessagesState)
    builder.add_node("agent", lambda s: {"messages": [model.invoke(s["messages"])]})
    builder.add_node("tools", lazy)
    builder.add_edge(START, "agent")
    builder.add_conditional_edges("agent", tools_condition)
    builder.add_edge("tools", "agent")
    app = shearpin.guard(builder.compile(checkpointer=saver()))
    assert app.invoke(HELLO, THREAD)["messages"][-1].content == "done"
    assert app.report(THREAD).notes[0].evidence["unanswered"] == 2


@pytest.mark.parametrize("how", ["invoke", "ainvoke"])
async def test_the_middleware_mends(how: str) -> None:
    model = polite()
    middleware = GuardMiddleware()
    app = create_agent(model, [look], middleware=[middleware], checkpointer=saver())
    app.update_state(THREAD, {"messages": [user("a"), asking("lost")]}, as_node="model")
    await run(app, how)
    messages = app.get_state(THREAD).values["messages"]
    assert messages[-1].content == "It is not there."
    assert "lost" not in [m.tool_call_id for m in messages if isinstance(m, ToolMessage)]
    assert middleware.report("t1").notes[0].evidence["unanswered"] == 1


def test_it_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    app = shearpin.guard(crashed(polite(4), react, saver()))
    with caplog.at_level(logging.WARNING, "shearpin"):
        app.invoke(HELLO, THREAD)
    said = [r.message for r in caplog.records if "would be refused" in r.message]
    assert len(said) == 1 and "1 calls without an answer" in said[0]


def test_a_valid_history_is_handed_on_as_it_is() -> None:
    seen: list[Any] = []
    model = polite(3)
    builder = react_builder(model)
    builder.nodes["agent"].runnable.func  # noqa: B018 - the shape that is replaced below
    plain = builder.nodes["agent"].runnable.func

    def spy(state: Any) -> Any:
        seen.append(state)
        return plain(state)

    builder.nodes["agent"].runnable.func = spy
    app = shearpin.guard(builder.compile(checkpointer=saver()))
    app.invoke(HELLO, THREAD)
    app.invoke(HELLO, THREAD)
    assert app.report(THREAD).notes == ()
    assert all(m.id for state in seen for m in state["messages"])
    held = app.get_state(THREAD).values["messages"]
    ids = [m.id for m in held]
    for state in seen:
        assert [m.id for m in state["messages"]] == ids[: len(state["messages"])]


# -- ids that models use again ------------------------------------------------------------------


def same_id(messages: Sequence[BaseMessage], call: int) -> AIMessage:
    asked = ToolCall(name="look", args={"place": "desk"}, id="c1", type="tool_call")
    return AIMessage("", tool_calls=[asked])


def test_blocked_answers_do_not_replace_one_another() -> None:
    model = StrictProvider(same_id, flavour="openai")
    app = shearpin.guard(react(model, saver()))
    messages = app.invoke(HELLO, THREAD)["messages"]
    assert "shearpin" in messages[-1].response_metadata
    assert list(complaints([*messages, user()], "openai")) == []
    blocked = [m for m in messages if isinstance(m, ToolMessage) and m.status == "error"]
    assert len(blocked) >= 2
    assert len({m.id for m in blocked}) == len(blocked)
    assert app.report(THREAD).notes == ()


async def test_the_same_with_create_agent() -> None:
    model = StrictProvider(same_id, flavour="openai")
    app: Any = shearpin.guard(create_agent(model, [look], checkpointer=saver()))
    messages = (await app.ainvoke(HELLO, THREAD))["messages"]
    assert "shearpin" in messages[-1].response_metadata
    assert list(complaints([*messages, user()], "openai")) == []

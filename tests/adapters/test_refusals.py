"""A person's no is asked for once: not again in this turn, whatever the model proposes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Command, Send, interrupt

import shearpin
from shearpin.adapters.people import People, is_refusal
from shearpin.testing import StrictProvider, asks_for
from tests.adapters.builds import HELLO, THREAD, assert_valid, look, react_builder, runaway, saver

NO: Any = Command(resume={"decisions": [{"type": "reject", "message": "no"}]})


@tool
def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


def reviewed(model: StrictProvider, checkpointer: Any, **options: Any) -> Any:
    hook = HumanInTheLoopMiddleware(interrupt_on={"look": True, "pay": True})
    graph = create_agent(model, [look, pay], middleware=[hook], checkpointer=checkpointer)
    return shearpin.guard(graph, **options)


async def drive(app: Any, given: Any, how: str) -> Any:
    return app.invoke(given, THREAD) if how == "invoke" else await app.ainvoke(given, THREAD)


@pytest.mark.parametrize("how", ["invoke", "ainvoke"])
async def test_a_no_is_not_asked_again(how: str) -> None:
    model = runaway()
    app = reviewed(model, saver())
    result = await drive(app, HELLO, how)
    assert "__interrupt__" in result
    result = await drive(app, NO, how)
    assert "__interrupt__" not in result
    assert app.get_state(THREAD).next == ()
    assert model.calls == 3, "answered the first time, stopped the second time"
    messages = result["messages"]
    assert messages[-1].response_metadata["shearpin"]["reason"] == "loop:rejection"
    said = [m.content for m in messages if isinstance(m, ToolMessage)]
    assert said[0] == "no" or "reason: no" in said[0], "LangChain 1.0 gives the bare words"
    assert "a person has refused" in said[1]
    assert_valid(messages)
    report = app.report(THREAD)
    assert (report.outcome, report.reason) == ("stopped", "loop:rejection")
    assert [v.verdict for v in report.verdicts if v.finding == "rejection"] == ["block", "halt"]


def test_another_process_remembers(tmp_path: Path) -> None:
    with SqliteSaver.from_conn_string(str(tmp_path / "threads.db")) as checkpointer:
        reviewed(runaway(), checkpointer).invoke(HELLO, THREAD)
    with SqliteSaver.from_conn_string(str(tmp_path / "threads.db")) as checkpointer:
        model = runaway()
        result = reviewed(model, checkpointer).invoke(NO, THREAD)
        assert "__interrupt__" not in result
        assert model.calls == 2


def test_other_calls_of_the_same_message_are_still_asked_about() -> None:
    def script(messages: Sequence[BaseMessage], call: int) -> AIMessage | str:
        if call == 1:
            return asks_for(("pay", {"amount": 1}))
        if call == 2:
            return asks_for(("pay", {"amount": 1}), ("look", {"place": "desk"}))
        return "done"

    model = StrictProvider(script)
    app = reviewed(model, saver())
    app.invoke(HELLO, THREAD)
    result = app.invoke(NO, THREAD)
    (asked,) = result["__interrupt__"]
    assert [a["name"] for a in asked.value["action_requests"]] == ["look"]
    result = app.invoke(Command(resume={"decisions": [{"type": "approve"}]}), THREAD)
    messages = result["messages"]
    assert messages[-1].content == "done"
    calls = [c["name"] for m in messages if isinstance(m, AIMessage) for c in m.tool_calls]
    assert calls == ["pay", "pay", "look"]
    answers = {m.name: m.content for m in messages if isinstance(m, ToolMessage)}
    assert "locked" in answers["look"] and "a person has refused" in answers["pay"]
    assert_valid(messages)
    blocks = [v for v in app.report(THREAD).verdicts if v.finding == "rejection"]
    assert blocks == [], "it was given in the run before the second pause"


def test_one_no_among_two_decisions() -> None:
    def script(messages: Sequence[BaseMessage], call: int) -> AIMessage | str:
        if call <= 2:
            return asks_for(("pay", {"amount": 1}), ("pay", {"amount": 2}))
        return "done"

    app = reviewed(StrictProvider(script), saver())
    app.invoke(HELLO, THREAD)
    decisions = [{"type": "approve"}, {"type": "reject", "message": "not that"}]
    result = app.invoke(Command(resume={"decisions": decisions}), THREAD)
    (asked,) = result["__interrupt__"]
    assert [a["args"] for a in asked.value["action_requests"]] == [{"amount": 1}]


def test_a_new_turn_asks_anew() -> None:
    model = StrictProvider(
        lambda messages, call: "as you wish" if call == 2 else asks_for(("pay", {"amount": 1}))
    )
    app = reviewed(model, saver())
    app.invoke(HELLO, THREAD)
    app.invoke(NO, THREAD)
    result = app.invoke({"messages": [("user", "go ahead now")]}, THREAD)
    assert "__interrupt__" in result


def test_observing_asks_again() -> None:
    model = runaway()
    app = reviewed(model, saver(), mode="observe")
    app.invoke(HELLO, THREAD)
    result = app.invoke(NO, THREAD)
    assert "__interrupt__" in result
    assert [v.acted for v in app.report(THREAD).verdicts if v.finding == "rejection"] == [False]


@tool
def transfer(amount: int) -> str:
    """Transfer money, if a person agrees."""
    said = interrupt({"question": f"transfer {amount}?"})
    return "done" if said in ("yes", True) else "the user said no"


@pytest.mark.parametrize("answer", ["no", False, {"approved": False}, {"type": "reject"}])
def test_a_tool_that_asks(answer: Any) -> None:
    model = StrictProvider(lambda messages, call: asks_for(("transfer", {"amount": 5})))
    app = shearpin.guard(react_builder(model, [transfer]).compile(checkpointer=saver()))
    assert "__interrupt__" in app.invoke(HELLO, THREAD)
    result = app.invoke(Command(resume=answer), THREAD)
    assert "__interrupt__" not in result
    assert model.calls == 3
    assert app.report(THREAD).reason == "loop:rejection"
    assert_valid(result["messages"])


def transfers(*amounts: int) -> AIMessage:
    return asks_for(*(("transfer", {"amount": amount}) for amount in amounts))


def answers(app: Any, **said: Any) -> Command[Any]:
    """One map of answers, by the amount that each pause is about."""
    pauses = [pause for task in app.get_state(THREAD).tasks for pause in task.interrupts]
    by_amount = {p.value["question"].removeprefix("transfer ")[:-1]: p.id for p in pauses}
    return Command(resume={by_amount[name[1:]]: what for name, what in said.items()})


@pytest.mark.parametrize("how", ["invoke", "ainvoke"])
async def test_each_of_several_answers_in_one_map_is_taken_for_its_own_call(how: str) -> None:
    def script(messages: Sequence[BaseMessage], call: int) -> AIMessage | str:
        return transfers(5, 6) if call <= 2 else "done"

    model = StrictProvider(script)
    graph = create_agent(model, [transfer], checkpointer=saver())
    app: Any = shearpin.guard(graph)
    await drive(app, HELLO, how)
    result = await drive(app, answers(app, _5="no", _6="yes"), how)
    (asked,) = result["__interrupt__"]
    assert asked.value == {"question": "transfer 6?"}, "5 was refused, 6 was not"
    result = await drive(app, Command(resume={asked.id: "yes"}), how)
    said = [m.content for m in result["messages"] if isinstance(m, ToolMessage)]
    assert said[:2] == ["the user said no", "done"]
    assert "a person has refused" in said[2] and said[3] == "done"
    assert result["messages"][-1].content == "done"
    assert_valid(result["messages"])


def test_answers_that_come_one_by_one() -> None:
    """The map names one of two pauses; the other one goes on waiting."""

    def script(messages: Sequence[BaseMessage], call: int) -> AIMessage | str:
        return transfers(5, 6) if call <= 2 else "done"

    app: Any = shearpin.guard(
        create_agent(StrictProvider(script), [transfer], checkpointer=saver())
    )
    app.invoke(HELLO, THREAD)
    app.invoke(answers(app, _6="no"), THREAD)
    app.invoke(answers(app, _5="yes"), THREAD)
    waiting = [pause.value for task in app.get_state(THREAD).tasks for pause in task.interrupts]
    assert waiting == [{"question": "transfer 5?"}]


def test_a_map_of_answers_is_understood_by_another_process(tmp_path: Path) -> None:
    def script(messages: Sequence[BaseMessage], call: int) -> AIMessage:
        return transfers(5, 6)

    with SqliteSaver.from_conn_string(str(tmp_path / "threads.db")) as kept:
        app: Any = shearpin.guard(
            create_agent(StrictProvider(script), [transfer], checkpointer=kept)
        )
        app.invoke(HELLO, THREAD)
        said = answers(app, _5="no", _6="no")
    with SqliteSaver.from_conn_string(str(tmp_path / "threads.db")) as kept:
        model = StrictProvider(script)
        app = shearpin.guard(create_agent(model, [transfer], checkpointer=kept))
        result = app.invoke(said, THREAD)
        assert "__interrupt__" not in result
        assert app.report(THREAD).reason == "loop:rejection"
        assert model.calls == 2
        assert_valid(result["messages"])


def test_a_map_of_answers_to_people_in_the_loop_of_two_branches() -> None:
    """Each branch has a middleware that asks; one person says yes, the other one no."""

    def script(messages: Sequence[BaseMessage], call: int) -> AIMessage | str:
        amount = 1 if "one" in str(messages[0].content) else 2
        answered = sum(message.type == "tool" for message in messages)
        return "done" if answered > 1 else asks_for(("pay", {"amount": amount}))

    hook = HumanInTheLoopMiddleware(interrupt_on={"pay": True})
    worker = create_agent(StrictProvider(script), [pay], middleware=[hook], name="worker")
    builder: StateGraph[Any] = StateGraph(MessagesState)
    builder.add_node("worker", worker)
    both = [Send("worker", {"messages": [HumanMessage(name)]}) for name in ("one", "two")]
    builder.add_conditional_edges(START, lambda state: both, ["worker"])
    app: Any = shearpin.guard(builder.compile(checkpointer=saver()))
    app.invoke(HELLO, THREAD)
    pauses = [pause for task in app.get_state(THREAD).tasks for pause in task.interrupts]
    amounts = {p.value["action_requests"][0]["args"]["amount"]: p.id for p in pauses}
    no, yes = [{"decisions": [{"type": kind}]} for kind in ("reject", "approve")]
    result = app.invoke(Command(resume={amounts[1]: no, amounts[2]: yes}), THREAD)
    (asked,) = result["__interrupt__"]
    assert asked.value["action_requests"][0]["args"] == {"amount": 2}, "1 was refused"


def test_a_tool_that_is_allowed_asks_each_time() -> None:
    model = StrictProvider(lambda messages, call: asks_for(("transfer", {"amount": 5})))
    app = shearpin.guard(react_builder(model, [transfer]).compile(checkpointer=saver()))
    app.invoke(HELLO, THREAD)
    assert "__interrupt__" in app.invoke(Command(resume="yes"), THREAD)


def test_a_review_node_of_ones_own() -> None:
    model = runaway()

    def review(state: MessagesState) -> Command[Any]:
        call: Any = state["messages"][-1]
        call = call.tool_calls[0]
        if interrupt({"run": call["name"]}) == "yes":
            return Command(goto=END)
        refused = ToolMessage("The user does not want this.", tool_call_id=call["id"])
        return Command(goto="agent", update={"messages": [refused]})

    builder: StateGraph[Any] = StateGraph(MessagesState)
    builder.add_node("agent", lambda s: {"messages": [model.invoke(s["messages"])]})
    builder.add_node("review", review, destinations=("agent", END))
    builder.add_edge(START, "agent")
    builder.add_edge("agent", "review")
    app = shearpin.guard(builder.compile(checkpointer=saver()))
    app.invoke(HELLO, THREAD)
    result = app.invoke(Command(resume="no"), THREAD)
    assert "__interrupt__" not in result
    assert model.calls == 3
    assert app.report(THREAD).reason == "loop:rejection"
    assert_valid(app.get_state(THREAD).values["messages"])


@pytest.mark.parametrize(
    ("answer", "refused"),
    [
        ("no", True), (" No. ", True), ("REJECT", True), ("拒绝", True), (False, True),
        ({"approved": False}, True), ({"type": "reject", "message": "x"}, True),
        ([{"type": "ignore"}], False), ([{"type": "reject"}], True),
        ({"decisions": [{"type": "reject"}, {"type": "approve"}]}, False),
        ("yes", False), ("not now, but later", False), (True, False), (None, False),
        ({"type": "edit", "args": {}}, False), ({"note": "no"}, False), ([], False), (0, False),
    ],
)  # fmt: skip
def test_what_is_a_no(answer: Any, refused: bool) -> None:
    assert is_refusal(answer) is refused


def test_what_is_kept_is_bounded_and_comes_back() -> None:
    people = People()
    for number in range(100):
        people.ask(f"task {number}", [f"pause {number}", "other"])
        people.refuse(f"call {number}", f"node {number}")
    people.propose("call 99", "task 1")
    again = People()
    again.load(people.dump())
    assert again.dump() == people.dump()
    assert (again.refused("call 99"), again.refused("call 0")) == (True, False)
    assert again.propose("call 99", "task 1") == (1, False)
    assert again.propose("call 99", "task 2") == (2, True)
    assert again.answer_to("task 99", {"pause 98": "no", "pause 99": "yes"}) == "yes"
    assert again.answer_to("task 99", {"pause 98": "no"}) is None
    again.load([[], [7, 8], []])
    assert again.dump() == [[], [[7], [8]], []], "as it was kept before pauses had ids"
    again.clear()
    assert again.dump() == []
    again.load({"damaged": 1})

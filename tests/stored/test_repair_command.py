"""`shearpin repair` on real databases: what is broken works again, and nothing else is touched."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypedDict

import pytest
from click.testing import CliRunner, Result
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    RemoveMessage,
    ToolCall,
    ToolMessage,
)
from langgraph.graph import START, MessagesState, StateGraph, add_messages
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import Command, interrupt

from shearpin.cli import main
from shearpin.testing import ProviderRejectedError, StrictProvider, asks_for
from shearpin.testing.provider import complaints


def thread(name: str) -> Any:
    return {"configurable": {"thread_id": name}}


def repair(place: Any, *options: str) -> Result:
    return CliRunner().invoke(main, ["repair", place.url, *options], catch_exceptions=False)


def listed(result: Result) -> dict[str, Any]:
    """What was printed with --json, by thread and namespace."""
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    return {row["thread"] + row["namespace"]: row for row in rows}


def asks(*ids: str, tool: str = "pay") -> AIMessage:
    calls = [ToolCall(name=tool, args={"n": i}, id=i, type="tool_call") for i in ids]
    return AIMessage("", tool_calls=calls)


def answers(id: str) -> ToolMessage:
    return ToolMessage(f"done {id}", tool_call_id=id)


def pay(n: str) -> str:
    """Pay."""
    if n == "bad":
        raise ValueError("the bank is closed")
    return f"paid {n}"


def chat(saver: Any, model: StrictProvider, tools: Sequence[Any] = (pay,)) -> Any:
    builder: StateGraph[Any] = StateGraph(MessagesState)
    builder.add_node("agent", lambda state: {"messages": [model.invoke(state["messages"])]})
    builder.add_node("tools", ToolNode(list(tools), handle_tool_errors=False))
    builder.add_edge(START, "agent")
    builder.add_conditional_edges("agent", tools_condition)
    builder.add_edge("tools", "agent")
    return builder.compile(checkpointer=saver)


def fresh(history: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Messages of their own: LangGraph gives them ids."""
    return [message.model_copy(update={"id": None}) for message in history]


def says(text: str = "fine") -> StrictProvider:
    return StrictProvider(lambda messages, call: text)


HELLO = HumanMessage("hello")
WELL = HumanMessage("well?")
BROKEN: dict[str, tuple[list[BaseMessage], dict[str, Any]]] = {
    "unanswered": ([HELLO, asks("a", "b"), answers("a"), WELL], {"unanswered": 1}),
    "several": ([HELLO, asks("a"), WELL, asks("b"), HELLO], {"unanswered": 2}),
    "orphan": ([HELLO, answers("x"), AIMessage("hm"), WELL], {"orphans": 1}),
    "answered twice": ([HELLO, asks("a"), answers("a"), answers("a"), WELL], {"orphans": 1}),
    "misplaced": ([HELLO, asks("a"), WELL, answers("a")], {"misplaced": 1}),
    "spoken since": ([HELLO, asks("a"), AIMessage("never mind")], {"unanswered": 1}),
    "all": (
        [HELLO, asks("a", "b"), WELL, answers("b"), answers("x")],
        {"unanswered": 1, "orphans": 1, "misplaced": 1},
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_thread_works_again(place: Any, name: str) -> None:
    history, wrong = fresh(BROKEN[name][0]), BROKEN[name][1]
    with place.saver() as saver:
        graph = chat(saver, says())
        graph.update_state(thread("t"), {"messages": history}, as_node="agent")
        # Its last step is over: nothing is waited for.
        graph.update_state(thread("t"), None, as_node="__end__")
        with pytest.raises(ProviderRejectedError):
            graph.invoke({"messages": [HELLO]}, {**thread("t"), "recursion_limit": 5})
        saver.delete_thread("t")
        graph.update_state(thread("t"), {"messages": history}, as_node="agent")
        graph.update_state(thread("t"), None, as_node="__end__")
        before = graph.get_state(thread("t"))
        looked = repair(place, "--dry-run", "--json")
        assert looked.exit_code == 1
        assert graph.get_state(thread("t")).config == before.config
        row = listed(looked)["t"]
        counts = {key: row[key] for key in ("orphans", "misplaced")}
        counts["unanswered"] = len(row["unanswered"])
        assert counts == {"unanswered": 0, "orphans": 0, "misplaced": 0} | wrong
        assert row["outcome"] == "broken"

        result = repair(place)
        assert (result.exit_code, "1 mended" in result.stderr) == (0, True)
        after = graph.get_state(thread("t"))
        assert after.next == ()
        assert list(complaints(after.values["messages"])) == []
        result = graph.invoke({"messages": [HELLO]}, thread("t"))
        assert result["messages"][-1].content == "fine"


def test_a_second_run_finds_nothing_to_do(place: Any) -> None:
    with place.saver() as saver:
        graph = chat(saver, says())
        for number, (history, _) in enumerate(BROKEN.values()):
            graph.update_state(thread(f"t{number}"), {"messages": fresh(history)}, as_node="agent")
            graph.update_state(thread(f"t{number}"), None, as_node="__end__")
    assert repair(place).exit_code == 0
    before = place.rows()
    again = repair(place)
    assert again.exit_code == 0
    assert f"{len(BROKEN)} conversations" in again.stderr
    assert "none broken" in again.stderr
    assert again.stdout == ""
    assert place.rows() == before


@dataclass
class Cart:
    """A class that no other process knows."""

    items: list[str]


class Shop(TypedDict):
    messages: Annotated[list[Any], add_messages]
    cart: Any
    notes: list[Any]


def shop(saver: Any) -> Any:
    builder: StateGraph[Any] = StateGraph(Shop)
    builder.add_node("agent", lambda state: {"messages": [says().invoke(state["messages"])]})
    builder.add_edge(START, "agent")
    return builder.compile(checkpointer=saver)


def test_nothing_else_is_touched(place: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    config = {**thread("t"), "metadata": {"tenant": "acme", "tier": 3}}
    with place.saver() as saver:
        graph = shop(saver)
        graph.update_state(
            config,
            {
                "messages": [HELLO, asks("a"), WELL],
                "cart": Cart(["apple"]),
                "notes": [1.5, {"k": (1, 2)}],
            },
            as_node="agent",
        )
        graph.update_state(thread("sound"), {"messages": [HELLO, AIMessage("hi")]}, as_node="agent")
        before, values = place.rows(), graph.get_state(config)
    # In the process that repairs the class is gone, as it would be on the command line.
    monkeypatch.delattr(f"{__name__}.Cart", raising=False)
    assert repair(place, "--thread", "t").exit_code == 0
    monkeypatch.undo()
    after = place.rows()
    for table, rows in before.items():
        kept = [row for row in after[table] if row in rows]
        assert len(kept) == len(rows), f"{table}: a row was changed"
    assert len(after["checkpoints"]) == len(before["checkpoints"]) + 1
    if "checkpoint_blobs" in after:
        assert len(after["checkpoint_blobs"]) == len(before["checkpoint_blobs"]) + 1
    with place.saver() as saver:
        graph = shop(saver)
        now = graph.get_state(config)
        assert now.values["cart"] == values.values["cart"]
        assert now.values["notes"] == values.values["notes"]
        assert [m.id for m in now.values["messages"] if m.type != "tool"] == [
            m.id for m in values.values["messages"]
        ]
        assert now.next == values.next
        assert now.parent_config == values.config
        kept = {key: value for key, value in values.metadata.items() if key != "step"}
        assert now.metadata == {**kept, "source": "update", "step": values.metadata["step"] + 1}
        assert len(list(graph.get_state_history(config))) == 2


def test_a_failed_step_keeps_what_was_answered(place: Any) -> None:
    from langchain.agents import create_agent

    paid: list[str] = []

    def pay_twice(n: str) -> str:
        """Pay."""
        if n == "b":
            raise ValueError("the bank is closed")
        paid.append(n)
        return f"paid {n}"

    model = StrictProvider(
        lambda messages, call: (
            asks_for(*(("pay_twice", {"n": n}) for n in "abc"))
            if isinstance(messages[-1], HumanMessage) and messages[-1].content == "hello"
            else "fine"
        )
    )
    with place.saver() as saver:
        agent = create_agent(model, [pay_twice], checkpointer=saver)
        with pytest.raises(ValueError, match="the bank is closed"):
            agent.invoke({"messages": [HELLO]}, thread("t"))
        result = repair(place, "--json")
        row = listed(result)["t"]
        assert (result.exit_code, row["standing"], row["outcome"]) == (0, "failed", "mended")
        calls = agent.get_state(thread("t")).values["messages"][1].tool_calls
        recovered = [it["id"] for it in row["recovered"]]
        assert recovered == [it["id"] for it in calls if it["args"]["n"] in paid]
        state = agent.get_state(thread("t"))
        texts = [m.text for m in state.values["messages"][2:]]
        assert len(texts) == 3
        assert [text for text in texts if text.startswith("paid")] == [
            f"paid {n}" for n in sorted(paid)
        ]
        assert "No answer was recorded" in "".join(texts)
        assert state.next == ()
        before = list(paid)
        agent.invoke(None, thread("t"))
        assert paid == before  # nothing is carried out again
        assert agent.invoke({"messages": [WELL]}, thread("t"))["messages"][-1].text == "fine"


@pytest.mark.parametrize("refused", [1, 3])
def test_answers_of_a_failed_step_are_brought_in_after_the_user_tried_again(
    place: Any, refused: int
) -> None:
    from langchain.agents import create_agent

    def look(n: str) -> str:
        """Look."""
        if n == "b":
            raise ValueError("the bank is closed, password=hunter22")
        return f"saw {n}"

    model = StrictProvider(
        lambda messages, call: (
            asks_for(*(("look", {"n": n}) for n in "abc")) if len(messages) == 1 else "fine"
        )
    )
    with place.saver() as saver:
        agent = create_agent(model, [look], checkpointer=saver)
        with pytest.raises(ValueError, match="the bank is closed"):
            agent.invoke({"messages": [HELLO]}, {**thread("t"), "max_concurrency": 1})
        stored = {
            message.tool_call_id
            for it in saver.list(thread("t"))
            for _, channel, value in it.pending_writes or ()
            if channel == "messages"
            for message in value
            if isinstance(message, ToolMessage)
        }
        assert stored  # one after another: a has answered before b fails
        for _ in range(refused):
            with pytest.raises(ProviderRejectedError):
                agent.invoke({"messages": [WELL]}, thread("t"))
        row = listed(repair(place, "--json"))["t"]
        assert row["outcome"] == "mended"
        assert {it["id"] for it in row["recovered"]} == stored
        assert len(row["unanswered"]) == 3 - len(stored)
        state = agent.get_state(thread("t")).values["messages"]
        asked = {call["id"]: call["args"]["n"] for call in state[1].tool_calls}
        said = {asked[it.tool_call_id]: it.text for it in state if isinstance(it, ToolMessage)}
        for call, n in asked.items():
            assert (said[n] == f"saw {n}") is (call in stored)
        assert "ValueError('the bank is closed" in said["b"]
        assert "hunter22" not in said["b"]
        assert "may or may not" in said["b"]
        assert agent.invoke({"messages": [WELL]}, thread("t"))["messages"][-1].text == "fine"
    assert listed(repair(place, "--json"))["t"]["outcome"] == "sound"


def test_answers_of_another_message_with_the_same_ids_are_not_brought_in(place: Any) -> None:
    with place.saver() as saver:
        model = StrictProvider(lambda messages, call: asks("a", "bad"))
        graph = chat(saver, model)
        with pytest.raises(ValueError, match="closed"):
            graph.invoke({"messages": [HELLO]}, thread("t"))
        first = graph.get_state(thread("t")).values["messages"]
        gone = [RemoveMessage(id=message.id) for message in first]
        other = [HELLO.model_copy(), asks("bad"), WELL.model_copy(), AIMessage("hm")]
        graph.update_state(thread("t"), {"messages": [*gone, *fresh(other)]}, as_node="agent")
        row = listed(repair(place, "--json"))["t"]
        assert (row["recovered"], len(row["unanswered"])) == ([], 1)
        text = graph.get_state(thread("t")).values["messages"][2].text
        assert text.startswith("No answer was recorded: the run ended")


def test_a_tool_node_that_failed(place: Any) -> None:
    model = StrictProvider(
        lambda messages, call: asks("ok", "bad", "ok2") if len(messages) == 1 else "fine"
    )
    with place.saver() as saver:
        graph = chat(saver, model)
        with pytest.raises(ValueError, match="the bank is closed"):
            graph.invoke({"messages": [HELLO]}, thread("t"))
        assert graph.get_state(thread("t")).next == ("tools",)
        result = repair(place, "--json")
        assert len(listed(result)["t"]["unanswered"]) == 3
        assert graph.get_state(thread("t")).next == ()
        assert graph.invoke({"messages": [WELL]}, thread("t"))["messages"][-1].text == "fine"


def test_a_model_that_was_refused_its_history_is_asked_again(place: Any) -> None:
    with place.saver() as saver:
        graph = chat(saver, says())
        history = [HELLO, asks("a")]
        graph.update_state(thread("t"), {"messages": history}, as_node="__start__")
        with pytest.raises(ProviderRejectedError):
            graph.invoke({"messages": [WELL]}, thread("t"))
        assert graph.get_state(thread("t")).next == ("agent",)
        assert repair(place).exit_code == 0
        assert graph.get_state(thread("t")).next == ("agent",)
        assert graph.invoke(None, thread("t"))["messages"][-1].text == "fine"


def test_a_person_who_is_asked_is_waited_for(place: Any) -> None:
    def confirm(n: str) -> str:
        """Ask first."""
        return f"{n}: {interrupt('sure?')}"

    model = StrictProvider(
        lambda messages, call: asks("a", tool="confirm") if len(messages) == 1 else "fine"
    )
    with place.saver() as saver:
        graph = chat(saver, model, [confirm])
        graph.invoke({"messages": [HELLO]}, thread("t"))
        before = place.rows()
        for options in ([], ["--give-up"]):
            result = repair(place, "--json", *options)
            row = listed(result)["t"]
            assert (result.exit_code, row["outcome"], row["standing"]) == (0, "waiting", "paused")
            assert row["waiting"] == [{"tool": "confirm", "id": "a"}]
            assert "waits for a person" in row["reason"]
        assert place.rows() == before
        shown = repair(place, "--thread", "t")
        assert "waits for a person" in " ".join(shown.stdout.split())
        done = graph.invoke(Command(resume="yes"), thread("t"))
        assert [m.text for m in done["messages"][-2:]] == ["a: yes", "fine"]


def test_a_paused_thread_that_was_broken_before_is_left_with_the_reason(place: Any) -> None:
    def confirm(n: str) -> str:
        """Ask first."""
        return f"{n}: {interrupt('sure?')}"

    def script(messages: Any) -> Any:
        return asks("c", tool="confirm")

    builder: StateGraph[Any] = StateGraph(MessagesState)
    builder.add_node("agent", lambda state: {"messages": [script(state)]})
    builder.add_node("tools", ToolNode([confirm]))
    builder.add_edge(START, "agent")
    builder.add_edge("agent", "tools")
    with place.saver() as saver:
        graph = builder.compile(checkpointer=saver)
        graph.invoke({"messages": [HELLO, asks("a"), WELL]}, thread("t"))
        before = place.rows()
        result = repair(place, "--json")
        row = listed(result)["t"]
        assert (result.exit_code, row["outcome"]) == (1, "left")
        assert row["unanswered"] == [{"tool": "pay", "id": "a"}]
        assert "answer it, then run this again" in row["reason"]
        assert place.rows() == before
        graph.invoke(Command(resume="yes"), thread("t"))
    assert repair(place).exit_code == 0


@pytest.mark.parametrize("give_up", [False, True])
def test_a_run_that_never_ended_is_left_unless_it_is_given_up(place: Any, give_up: bool) -> None:
    """A pause before a node looks like a process that was killed there."""
    model = StrictProvider(lambda messages, call: asks("a") if len(messages) == 1 else "fine")
    with place.saver() as saver:
        graph = chat(saver, model)
        graph.invoke({"messages": [HELLO]}, thread("t"), interrupt_before=["tools"])
        before = place.rows()
        result = repair(place, "--json", *(["--give-up"] if give_up else []))
        row = listed(result)["t"]
        assert (result.exit_code, row["standing"]) == (0, "unfinished")
        if give_up:
            assert row["outcome"] == "mended"
            assert graph.get_state(thread("t")).next == ()
            after = graph.invoke({"messages": [WELL]}, thread("t"))
            assert "No answer was recorded" in after["messages"][2].text
        else:
            assert (row["outcome"], "--give-up" in row["reason"]) == ("waiting", True)
            assert place.rows() == before
            after = graph.invoke(None, thread("t"))
            assert after["messages"][2].text == "paid a"
        assert after["messages"][-1].text == "fine"


def test_a_client_that_answers_calls_itself_is_waited_for(place: Any) -> None:
    builder: StateGraph[Any] = StateGraph(MessagesState)
    model = StrictProvider(lambda messages, call: asks("a") if len(messages) == 1 else "fine")
    builder.add_node("agent", lambda state: {"messages": [model.invoke(state["messages"])]})
    builder.add_edge(START, "agent")
    with place.saver() as saver:
        graph = builder.compile(checkpointer=saver)
        graph.invoke({"messages": [HELLO]}, thread("t"))
        result = repair(place, "--json")
        row = listed(result)["t"]
        assert (result.exit_code, row["outcome"], row["standing"]) == (0, "waiting", "ended")
        assert "a client may still answer" in row["reason"]
        done = graph.invoke({"messages": [answers("a")]}, thread("t"))
        assert done["messages"][-1].text == "fine"


def test_branches_that_have_finished_are_not_run_again(place: Any) -> None:
    ran: list[str] = []

    def charge(state: Any) -> dict[str, Any]:
        ran.append("charge")
        return {"messages": [AIMessage("charged")]}

    builder: StateGraph[Any] = StateGraph(MessagesState)
    builder.add_node("agent", lambda state: {"messages": [says().invoke(state["messages"])]})
    builder.add_node("charge", charge)
    builder.add_edge(START, "agent")
    builder.add_edge(START, "charge")
    with place.saver() as saver:
        graph = builder.compile(checkpointer=saver)
        graph.update_state(thread("t"), {"messages": [HELLO, asks("a"), WELL]}, as_node="agent")
        with pytest.raises(ProviderRejectedError):
            graph.invoke({"messages": [HELLO]}, thread("t"))
        if ran != ["charge"]:
            pytest.skip("this LangGraph saves nothing of a step that failed")
        before = place.rows()
        result = repair(place, "--json")
        assert result.exit_code == 1
        assert "other branches of its last step" in listed(result)["t"]["reason"]
        assert place.rows() == before


def test_subgraphs_with_a_memory_of_their_own_are_looked_at(place: Any) -> None:
    inner: StateGraph[Any] = StateGraph(MessagesState)
    inner.add_node("talk", lambda state: {"messages": [AIMessage("inside")]})
    inner.add_edge(START, "talk")
    team = inner.compile(checkpointer=True)
    once = inner.compile()

    builder: StateGraph[Any] = StateGraph(MessagesState)
    builder.add_node("team", team)
    builder.add_node("once", once)
    builder.add_edge(START, "team")
    builder.add_edge("team", "once")
    broken: list[Any] = [HELLO, asks("deep"), WELL]
    with place.saver() as saver:
        graph = builder.compile(checkpointer=saver)
        graph.invoke({"messages": broken}, thread("t"))
        result = repair(place, "--json")
        rows = listed(result)
        assert result.exit_code == 0
        assert {name: row["outcome"] for name, row in rows.items()} == {
            "t": "mended",
            "tteam": "mended",
        }
        inside = saver.get_tuple({"configurable": {"thread_id": "t", "checkpoint_ns": "team"}})
        held = inside.checkpoint["channel_values"]["messages"]
        assert list(complaints(held)) == []
        graph.invoke({"messages": [HELLO]}, thread("t"))
        assert list(complaints(graph.get_state(thread("t")).values["messages"])) == []


class Two(TypedDict):
    main: Annotated[list[Any], add_messages]
    side: Annotated[list[Any], add_messages]


def test_the_key_is_looked_for_or_named(place: Any) -> None:
    builder: StateGraph[Any] = StateGraph(Two)
    builder.add_node("node", lambda state: {})
    builder.add_edge(START, "node")
    broken = [HELLO, asks("a"), WELL]
    with place.saver() as saver:
        graph = builder.compile(checkpointer=saver)
        graph.update_state(thread("one"), {"side": broken}, as_node="node")
        graph.update_state(thread("two"), {"side": broken, "main": broken}, as_node="node")
        rows = listed(repair(place, "--json", "--dry-run"))
        assert (rows["one"]["key"], rows["one"]["outcome"]) == ("side", "broken")
        assert rows["two"]["outcome"] == "left"
        assert "main, side" in rows["two"]["reason"] or "side, main" in rows["two"]["reason"]
        rows = listed(repair(place, "--json", "--messages-key", "main"))
        assert (rows["two"]["key"], rows["two"]["outcome"]) == ("main", "mended")
        state = graph.get_state(thread("two")).values
        assert (len(state["main"]), len(state["side"])) == (4, 3)
    wrong = repair(place, "--messages-key", "mesages")
    assert wrong.exit_code == 2
    assert "no thread has the key 'mesages'" in wrong.stderr


def test_made_up_answers_in_chinese(place: Any) -> None:
    with place.saver() as saver:
        graph = chat(saver, says())
        graph.update_state(thread("t"), {"messages": [HELLO, asks("a"), WELL]}, as_node="agent")
        graph.update_state(thread("t"), None, as_node="__end__")
        assert repair(place, "--language", "zh").exit_code == 0
        assert "没有记录到结果" in graph.get_state(thread("t")).values["messages"][2].text


def test_an_unknown_thread_is_named(place: Any) -> None:
    with place.saver() as saver:
        graph = chat(saver, says())
        graph.update_state(thread("t"), {"messages": [HELLO]}, as_node="agent")
    result = repair(place, "--thread", "T")
    assert result.exit_code == 2
    assert "there is no thread 'T'" in result.stderr


def test_an_empty_checkpointer_has_nothing_broken(place: Any) -> None:
    with place.saver():
        pass
    result = repair(place)
    assert (result.exit_code, result.stderr.startswith("0 conversations")) == (0, True)


def test_many_threads(place: Any) -> None:
    with place.saver() as saver:
        graph = chat(saver, says())
        for number in range(60):
            history = [HELLO, asks("a"), WELL] if number % 3 == 0 else [HELLO, AIMessage("hi")]
            graph.update_state(thread(f"t{number:02}"), {"messages": history}, as_node="__start__")
            graph.update_state(thread(f"t{number:02}"), None, as_node="__end__")
    shown = repair(place, "--dry-run")
    assert (shown.exit_code, "20 to be mended" in shown.stderr) == (1, True)
    done = repair(place)
    assert (done.exit_code, "60 conversations" in done.stderr) == (0, True)
    assert "20 mended" in done.stderr

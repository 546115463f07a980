"""`GuardMiddleware` alone, without a guarded graph: rollback, pauses, refusals, agents in tools."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware, ToolCallLimitMiddleware
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.types import Command, interrupt

from shearpin import ConfigError
from shearpin.adapters.lastwords import with_calls
from shearpin.langchain import GuardMiddleware
from shearpin.testing import StrictProvider, asks_for
from tests.adapters.builds import HELLO, MOST_CALLS, THREAD, assert_valid, look, run, runaway, saver
from tests.adapters.interventions import HEEDS, NEXT, stubborn

NO: Any = Command(resume={"decisions": [{"type": "reject", "message": "no"}]})
YES: Any = Command(resume={"decisions": [{"type": "approve"}]})


@tool
def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


def reviewed(model: StrictProvider, **options: Any) -> tuple[GuardMiddleware, Any]:
    guarding = GuardMiddleware(**options)
    hook = HumanInTheLoopMiddleware(interrupt_on={"look": True, "pay": True})
    app = create_agent(model, [look, pay], middleware=[guarding, hook], checkpointer=saver())
    return guarding, app


async def drive(app: Any, given: Any, how: str) -> Any:
    return app.invoke(given, THREAD) if how == "invoke" else await app.ainvoke(given, THREAD)


def history(app: Any) -> list[Any]:
    return list(app.get_state(THREAD).values["messages"])


# -- what people have refused ----------------------------------------------------------------------


@pytest.mark.parametrize("how", ["invoke", "ainvoke"])
async def test_a_no_is_not_asked_again(how: str) -> None:
    model = runaway()
    guarding, app = reviewed(model)
    assert "__interrupt__" in await drive(app, HELLO, how)
    result = await drive(app, NO, how)
    assert "__interrupt__" not in result
    assert app.get_state(THREAD).next == ()
    assert model.calls == 3, "answered the first time, stopped the second time"
    messages = result["messages"]
    assert messages[-1].response_metadata["shearpin"]["reason"] == "loop:rejection"
    assert_valid(messages)
    report = guarding.report("t1")
    assert report.faults == ()
    assert [v.verdict for v in report.verdicts if v.finding == "rejection"] == ["block", "halt"]
    await drive(app, NEXT, how)
    assert "__interrupt__" in await drive(app, NEXT, how), "a new turn asks anew"


@pytest.mark.parametrize("how", ["invoke", "ainvoke"])
async def test_a_model_that_heeds_goes_on(how: str) -> None:
    def script(messages: Sequence[BaseMessage], call: int) -> AIMessage | str:
        texts = [str(message.content) for message in messages]
        if any("a person has refused" in text for text in texts):
            return "I cannot look there."
        return asks_for(("look", {"place": "desk"}))

    model = StrictProvider(script)
    _, app = reviewed(model)
    await drive(app, HELLO, how)
    messages = (await drive(app, NO, how))["messages"]
    assert [m.type for m in messages] == ["human", "ai", "tool", "ai", "tool", "ai"]
    assert "a person has refused" in messages[4].content
    assert messages[-1].content == "I cannot look there."
    assert model.calls == 3
    assert_valid(messages)


@pytest.mark.parametrize("how", ["invoke", "ainvoke"])
async def test_other_calls_of_the_same_message_are_still_asked_about(how: str) -> None:
    def script(messages: Sequence[BaseMessage], call: int) -> AIMessage | str:
        if call == 1:
            return asks_for(("pay", {"amount": 1}))
        if call == 2:
            return asks_for(("pay", {"amount": 1}), ("look", {"place": "desk"}), text="Again.")
        return "done"

    guarding, app = reviewed(StrictProvider(script))
    await drive(app, HELLO, how)
    (asked,) = (await drive(app, NO, how))["__interrupt__"]
    assert [a["name"] for a in asked.value["action_requests"]] == ["look"]
    messages = (await drive(app, YES, how))["messages"]
    assert messages[-1].content == "done"
    answers = {m.name: m.content for m in messages if isinstance(m, ToolMessage)}
    assert "locked" in answers["look"] and "a person has refused" in answers["pay"]
    assert [m.content for m in messages if isinstance(m, AIMessage)] == ["", "Again.", "", "done"]
    assert_valid(messages)
    assert guarding.report("t1").faults == ()


def test_one_no_among_two_decisions() -> None:
    def script(messages: Sequence[BaseMessage], call: int) -> AIMessage | str:
        if call <= 2:
            return asks_for(("pay", {"amount": 1}), ("pay", {"amount": 2}))
        return "done"

    _, app = reviewed(StrictProvider(script))
    app.invoke(HELLO, THREAD)
    decisions = [{"type": "approve"}, {"type": "reject", "message": "not that"}]
    (asked,) = app.invoke(Command(resume={"decisions": decisions}), THREAD)["__interrupt__"]
    assert [a["args"] for a in asked.value["action_requests"]] == [{"amount": 1}]


def test_another_middleware_knows_of_the_no_in_the_step_before() -> None:
    """As after a restart: what was said is still with the checkpoint."""
    kept = saver()
    hook = HumanInTheLoopMiddleware(interrupt_on={"look": True})

    def app_of(model: StrictProvider) -> Any:
        return create_agent(model, [look], middleware=[GuardMiddleware(), hook], checkpointer=kept)

    app_of(runaway()).invoke(HELLO, THREAD)
    model = runaway()
    assert "__interrupt__" not in app_of(model).invoke(NO, THREAD, durability="sync")
    assert model.calls == 2


def test_observing_asks_again() -> None:
    _, app = reviewed(runaway(), mode="observe")
    app.invoke(HELLO, THREAD)
    assert "__interrupt__" in app.invoke(NO, THREAD)


def test_an_answer_that_another_middleware_made_up_is_no_persons_no() -> None:
    """A limit of calls answers with an error as well, and nobody was asked."""
    guarding = GuardMiddleware()
    limit = ToolCallLimitMiddleware(run_limit=1)
    model = StrictProvider(
        lambda messages, call: "done" if call > 3 else asks_for(("pay", {"amount": 1}))
    )
    app: Any = create_agent(model, [pay], middleware=[guarding, limit], checkpointer=saver())
    app.invoke(HELLO, THREAD)
    assert not any("a person has refused" in str(m.content) for m in history(app))


@tool
def transfer(amount: int) -> str:
    """Transfer money, if a person agrees."""
    said = interrupt({"question": f"transfer {amount}?"})
    return "done" if said == "yes" else "the user said no"


@pytest.mark.parametrize("how", ["invoke", "ainvoke"])
async def test_a_tool_that_asks(how: str) -> None:
    model = StrictProvider(lambda messages, call: asks_for(("transfer", {"amount": 5})))
    app: Any = create_agent(model, [transfer], middleware=[GuardMiddleware()], checkpointer=saver())
    await drive(app, HELLO, how)
    result = await drive(app, Command(resume="no"), how)
    assert "__interrupt__" not in result
    assert result["messages"][-1].response_metadata["shearpin"]["reason"] == "loop:rejection"
    assert model.calls == 3
    assert_valid(result["messages"])


def test_a_tool_that_is_allowed_asks_each_time() -> None:
    model = StrictProvider(lambda messages, call: asks_for(("transfer", {"amount": 5})))
    app: Any = create_agent(model, [transfer], middleware=[GuardMiddleware()], checkpointer=saver())
    app.invoke(HELLO, THREAD)
    assert "__interrupt__" in app.invoke(Command(resume="yes"), THREAD)


def test_a_message_is_split_with_all_that_names_its_calls() -> None:
    blocks: list[Any] = [
        {"type": "text", "text": "Both."},
        {"type": "tool_use", "id": "a", "name": "pay", "input": {}},
        {"type": "function_call", "call_id": "b", "id": "fc_1", "name": "pay", "arguments": "{}"},
    ]
    both = asks_for(("pay", {}), ("pay", {}))
    calls = [{**call, "id": name} for call, name in zip(both.tool_calls, "ab", strict=True)]
    raw = {"tool_calls": [{"id": "a"}, {"id": "b"}], "other": 1}
    message = AIMessage(blocks, tool_calls=calls, additional_kwargs=raw)
    first, rest = with_calls(message, {"a"}), with_calls(message, {"b"}, text=False)
    assert first.content == blocks[:2] and rest.content == blocks[2:]
    assert [call["id"] for call in first.tool_calls] == ["a"]
    assert first.additional_kwargs == {"tool_calls": [{"id": "a"}], "other": 1}
    assert [call["id"] for call in rest.tool_calls] == ["b"]


# -- rollback --------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["invoke", "ainvoke", "stream", "astream"])
@pytest.mark.parametrize("kept", [True, False])
async def test_the_conversation_goes_back(how: str, kept: bool) -> None:
    def script(messages: Sequence[BaseMessage], call: int) -> AIMessage | str:
        if any("have been undone" in str(m.content) for m in messages if m.type == "human"):
            return "The drawer is locked."
        return asks_for(("look", {"place": "hall" if call == 1 else "desk"}))

    model, guarding = StrictProvider(script), GuardMiddleware(on_loop="rollback")
    app: Any = create_agent(
        model, [look], middleware=[guarding], checkpointer=saver() if kept else None
    )
    result = await run(app, how)
    messages = history(app) if kept else result["messages"]
    if kept or how in ("invoke", "ainvoke", "stream"):
        assert [m.type for m in messages] == ["human", "ai", "tool", "human", "ai"]
        assert messages[1].tool_calls[0]["args"] == {"place": "hall"}, "what came before stays"
        assert messages[-1].content == "The drawer is locked."
        assert_valid(messages)
    report = guarding.report("t1")
    assert (report.faults, report.outcome) == ((), "completed")
    assert ("rollback", True) in {(v.verdict, v.acted) for v in report.verdicts}
    assert model.calls <= MOST_CALLS
    await run(app, how, NEXT)
    assert app.get_state(THREAD).next == () if kept else True


def test_a_loop_that_comes_again_after_a_rollback_ends_the_run() -> None:
    model, guarding = runaway(), GuardMiddleware(on_loop="rollback")
    app: Any = create_agent(model, [look], middleware=[guarding], checkpointer=saver())
    app.invoke(HELLO, THREAD)
    assert history(app)[-1].response_metadata["shearpin"]["reason"] == "loop:repeat"
    assert guarding.report("t1").outcome == "stopped"
    assert_valid(history(app))


# -- the pause -------------------------------------------------------------------------------------


def pausing(model: StrictProvider) -> tuple[GuardMiddleware, Any]:
    guarding = GuardMiddleware(on_stop="pause")
    return guarding, create_agent(model, [look], middleware=[guarding], checkpointer=saver())


@pytest.mark.parametrize("how", ["invoke", "ainvoke"])
async def test_a_person_may_instruct(how: str) -> None:
    guarding, app = pausing(stubborn(HEEDS["pause"]))
    (asked,) = (await drive(app, HELLO, how))["__interrupt__"]
    payload = asked.value["shearpin"]
    assert (payload["event"], payload["reason"]) == ("paused", "loop:repeat")
    await drive(app, Command(resume={"instruction": "look elsewhere"}), how)
    messages = history(app)
    assert messages[-1].content == "The drawer is locked."
    assert [m.content for m in messages if isinstance(m, HumanMessage)][-1] == "look elsewhere"
    assert_valid(messages)
    assert guarding.report("t1").faults == ()


def test_to_continue_is_no_open_end() -> None:
    model = runaway()
    guarding, app = pausing(model)
    app.invoke(HELLO, THREAD)
    pauses = 0
    while app.get_state(THREAD).next:
        pauses += 1
        app.invoke(Command(resume="continue"), THREAD)
    assert 1 < pauses < 6
    assert model.calls < 2 * MOST_CALLS
    assert "shearpin" in history(app)[-1].response_metadata
    assert guarding.report("t1").outcome == "stopped"
    assert_valid(history(app))


@pytest.mark.parametrize("said", ["stop", "what?", {"instruction": ""}])
def test_any_other_answer_stops(said: Any) -> None:
    model = runaway()
    _, app = pausing(model)
    app.invoke(HELLO, THREAD)
    calls = model.calls
    app.invoke(Command(resume=said), THREAD)
    assert (model.calls, app.get_state(THREAD).next) == (calls, ())
    assert "shearpin" in history(app)[-1].response_metadata
    assert_valid(history(app))


# -- the rest --------------------------------------------------------------------------------------


def test_another_node_is_refused_when_it_is_built() -> None:
    with pytest.raises(ConfigError, match=r"give it to guard\(agent, \.\.\.\)"):
        GuardMiddleware(on_loop="node:planner")


@pytest.mark.parametrize("what", ["nudge", "block"])
@pytest.mark.parametrize("how", ["invoke", "ainvoke"])
async def test_an_agent_in_a_tool_is_guarded_as_well(what: str, how: str) -> None:
    inner = create_agent(stubborn(HEEDS[what]), [look], name="searcher")

    @tool
    def delegate(question: str) -> str:
        """Ask the searcher."""
        answer = inner.invoke({"messages": [("user", question)]})
        return str(answer["messages"][-1].content)

    def script(messages: Sequence[BaseMessage], call: int) -> AIMessage | str:
        if messages[-1].type == "tool":
            return str(messages[-1].content)
        return asks_for(("delegate", {"question": "where is it?"}))

    guarding = GuardMiddleware()
    app: Any = create_agent(
        StrictProvider(script), [delegate], middleware=[guarding], checkpointer=saver()
    )
    await drive(app, HELLO, how)
    assert history(app)[-1].content == "The drawer is locked."
    report = guarding.report("t1")
    assert report.faults == ()
    assert (what, True) in {(v.verdict, v.acted) for v in report.verdicts}

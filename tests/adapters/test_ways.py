"""The details of stops, pauses and ways out, of handlers, excluded nodes and the kill switch."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.graph.message import add_messages
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import Command, Send, interrupt
from typing_extensions import TypedDict

import shearpin
from shearpin.langchain import GuardMiddleware
from shearpin.switch import SWITCH
from shearpin.testing import StrictProvider, asks_for
from shearpin.verdicts import PROCEED, Block, Halt, Nudge, Verdict
from tests.adapters.builds import (
    HELLO,
    THREAD,
    agent,
    assert_valid,
    look,
    react,
    react_builder,
    run,
    runaway,
    saver,
)
from tests.adapters.interventions import HEEDS, stubborn


def last(app: Any) -> Any:
    return app.get_state(THREAD).values["messages"][-1]


# -- the stop as an event --------------------------------------------------------------------------


@pytest.mark.parametrize("build", [react, agent])
async def test_a_stop_is_an_event_of_the_custom_stream(build: Any) -> None:
    app = shearpin.guard(build(runaway(), saver()))
    events = [chunk async for chunk in app.astream(HELLO, THREAD, stream_mode="custom")]
    (event,) = [event["shearpin"] for event in events]
    assert event["event"] == "stopped"
    assert event["reason"] == "loop:repeat"
    assert event["thread"] == "t1"
    assert event["run"] == app.report(THREAD).info.run
    assert event["message"] == last(app).content
    assert last(app).response_metadata["shearpin"]["run"] == event["run"]


def test_a_run_that_is_not_stopped_has_no_event() -> None:
    app = shearpin.guard(react(stubborn(HEEDS["nudge"])))
    assert list(app.stream(HELLO, stream_mode="custom")) == []


# -- the last answer -------------------------------------------------------------------------------


@pytest.mark.parametrize("build", [react, agent])
def test_the_last_answer_is_streamed_like_any_other(build: Any) -> None:
    app = shearpin.guard(build(stubborn(HEEDS["wrap_up"]), saver()), on_stop="wrap_up")
    parts = [part for part, _ in app.stream(HELLO, THREAD, stream_mode="messages")]
    said = [part.content for part in parts if part.id == last(app).id]
    assert "".join(said).startswith("The drawer is locked.")


@pytest.mark.parametrize("answer", [RuntimeError("down"), "", asks_for(("look", {"place": "x"}))])
def test_without_a_last_answer_the_fixed_words_are_said(answer: Any) -> None:
    def script(messages: Sequence[BaseMessage], call: int) -> Any:
        if "no tool can be called" in str(messages[-1].content):
            return answer
        return asks_for(("look", {"place": "desk"}))

    app = shearpin.guard(react(StrictProvider(script), saver()), on_stop="wrap_up")
    app.invoke(HELLO, THREAD)
    assert str(last(app).content).startswith("This run was stopped")
    assert not last(app).tool_calls
    assert_valid(app.get_state(THREAD).values["messages"])
    faults = app.report(THREAD).faults
    assert bool(faults) == isinstance(answer, RuntimeError)


def in_one_node(model: StrictProvider) -> Any:
    """An agent whose whole loop is in one node, tools and all."""

    def alone(state: MessagesState) -> dict[str, Any]:
        news: list[Any] = []
        while True:
            answer = model.invoke([*state["messages"], *news])
            news.append(answer)
            if not answer.tool_calls:
                return {"messages": news}
            news.extend(look.invoke(call) for call in answer.tool_calls)

    builder: StateGraph[Any] = StateGraph(MessagesState)
    builder.add_node("alone", alone)
    builder.add_edge(START, "alone")
    return builder.compile(checkpointer=saver())


def test_what_the_model_said_is_kept_where_its_node_came_to_nothing() -> None:
    app = shearpin.guard(in_one_node(stubborn(HEEDS["wrap_up"])), on_stop="wrap_up")
    app.invoke(HELLO, THREAD)
    assert [m.content for m in app.get_state(THREAD).values["messages"]] == [
        "where is it?",
        "The drawer is locked.",
    ]
    assert last(app).response_metadata["shearpin"]["wrap_up"]
    assert app.report(THREAD).faults == ()


def test_a_loop_within_one_node_can_be_paused() -> None:
    app = shearpin.guard(in_one_node(stubborn(HEEDS["pause"])), on_stop="pause")
    app.invoke(HELLO, THREAD)
    assert app.get_state(THREAD).next == ("alone",)
    app.invoke(Command(resume={"instruction": "look elsewhere"}), THREAD)
    assert last(app).content == "The drawer is locked."
    assert_valid(app.get_state(THREAD).values["messages"])


@pytest.mark.parametrize("how", ["invoke", "ainvoke"])
async def test_branches_side_by_side_ask_one_question(how: str) -> None:
    model = runaway()
    builder: StateGraph[Any] = StateGraph(MessagesState)
    builder.add_node("worker", react_builder(model).compile())
    both = [Send("worker", {"messages": [HumanMessage(name)]}) for name in ("one", "two")]
    builder.add_conditional_edges(START, lambda state: both, ["worker"])
    app = shearpin.guard(builder.compile(checkpointer=saver()), on_stop="pause")
    await run(app, how)
    assert app.get_state(THREAD).next == ("worker", "worker")
    assert sum(len(task.interrupts) for task in app.get_state(THREAD).tasks) == 1
    await run(app, how, Command(resume="stop"))
    assert app.get_state(THREAD).next == ()
    assert app.report(THREAD).outcome == "stopped"
    assert_valid(app.get_state(THREAD).values["messages"])


def test_a_budget_that_is_used_up_pays_for_no_last_answer() -> None:
    model = stubborn(HEEDS["wrap_up"])
    app = shearpin.guard(react(model, saver()), on_stop="wrap_up", budget="3 calls")
    app.invoke(HELLO, THREAD)
    assert model.calls <= 3
    assert app.report(THREAD).reason == "budget:model_calls"
    assert app.report(THREAD).faults == ()


@pytest.mark.parametrize("guarded", [True, False])
@pytest.mark.parametrize("how", ["invoke", "ainvoke"])
async def test_a_middleware_takes_the_tools_out_of_the_last_request(
    guarded: bool, how: str
) -> None:
    offered: list[list[str]] = []

    class Watching(StrictProvider):
        def _check(self, messages: Sequence[BaseMessage]) -> None:
            super()._check(messages)

        def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
            offered.append([tool.name for tool in tools])
            return super().bind_tools(tools, **kwargs)

    source = stubborn(HEEDS["wrap_up"])
    model = Watching(source._script)
    middleware = GuardMiddleware(on_stop="wrap_up")
    app: Any = create_agent(model, [look], middleware=[middleware], checkpointer=saver())
    if guarded:
        app = shearpin.guard(app, on_stop="wrap_up")
    await run(app, how)
    assert last(app).content == "The drawer is locked."
    assert not last(app).tool_calls
    assert len(offered) == model.calls - 1, "the last request has no tools at all"
    assert_valid(app.get_state(THREAD).values["messages"])


@pytest.mark.parametrize("guarded", [True, False])
def test_a_middleware_takes_a_tool_away(guarded: bool) -> None:
    offered: list[int] = []

    class Watching(StrictProvider):
        def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
            offered.append(len(tools))
            return super().bind_tools(tools, **kwargs)

    model = Watching(lambda messages, call: asks_for(("look", {"place": "desk"})))
    middleware = GuardMiddleware(on_loop="without_tool")
    app: Any = create_agent(model, [look], middleware=[middleware], checkpointer=saver())
    app = shearpin.guard(app, on_loop="without_tool") if guarded else app
    app.invoke(HELLO, THREAD)
    assert model.calls > len(offered) > 3
    report = app.report(THREAD) if guarded else middleware.report("t1")
    assert (report.outcome, report.faults) == ("stopped", ())


# -- the pause -------------------------------------------------------------------------------------


def test_a_pause_needs_a_checkpointer() -> None:
    with pytest.raises(shearpin.ConfigError, match="checkpointer"):
        shearpin.guard(react(runaway()), on_stop="pause")


@pytest.mark.parametrize("build", [react, agent])
def test_to_continue_is_no_open_end(build: Any) -> None:
    model = runaway()
    app = shearpin.guard(build(model, saver()), on_stop="pause")
    app.invoke(HELLO, THREAD)
    calls = [model.calls]
    while app.get_state(THREAD).next:
        app.invoke(Command(resume="continue"), THREAD)
        calls.append(model.calls)
    # one round more each time: one that only repeats the loop uses two of the allowance
    assert [after - before for before, after in pairwise(calls)] == [1, 1, 1, 0]
    assert app.report(THREAD).outcome == "stopped"
    assert "shearpin" in last(app).response_metadata
    assert_valid(app.get_state(THREAD).values["messages"])


@pytest.mark.parametrize("said", ["stop", "what?", 7, {"instruction": ""}])
def test_any_other_answer_stops(said: Any) -> None:
    model = runaway()
    app = shearpin.guard(react(model, saver()), on_stop="pause")
    app.invoke(HELLO, THREAD)
    calls = model.calls
    app.invoke(Command(resume=said), THREAD)
    assert model.calls == calls
    assert app.get_state(THREAD).next == ()
    assert "shearpin" in last(app).response_metadata


def test_a_pause_is_resumed_by_another_process() -> None:
    """Another guard on another copy of the graph knows no more than what the saver kept."""
    kept = saver()
    shearpin.guard(react(runaway(), kept), on_stop="pause").invoke(HELLO, THREAD)
    app = shearpin.guard(react(stubborn(HEEDS["pause"]), kept), on_stop="pause")
    app.invoke(Command(resume={"instruction": "look elsewhere"}), THREAD)
    assert last(app).content == "The drawer is locked."
    assert app.report(THREAD).outcome == "completed"


def test_a_user_who_does_not_answer_but_goes_on_has_a_new_turn() -> None:
    app = shearpin.guard(react(stubborn(HEEDS["pause"]), saver()), on_stop="pause")
    app.invoke(HELLO, THREAD)
    app.invoke({"messages": [("user", "look elsewhere")]}, THREAD)
    assert last(app).content == "The drawer is locked."
    assert_valid(app.get_state(THREAD).values["messages"])


def test_the_pauses_of_a_node_are_not_mixed_up_with_ours() -> None:
    def script(messages: Sequence[BaseMessage], call: int) -> Any:
        heard = any("yes" in str(m.content) for m in messages if m.type == "human")
        return "The drawer is locked." if heard else asks_for(("look", {"place": "desk"}))

    model = StrictProvider(script)

    def thinks(state: MessagesState) -> dict[str, Any]:
        rounds = sum(isinstance(message, AIMessage) for message in state["messages"])
        news = []
        if rounds >= 6:
            news = [HumanMessage(str(interrupt("may I?")))]
        return {"messages": [*news, model.invoke([*state["messages"], *news])]}

    builder: StateGraph[Any] = StateGraph(MessagesState)
    builder.add_node("agent", thinks)
    builder.add_node("tools", ToolNode([look]))
    builder.add_edge(START, "agent")
    builder.add_conditional_edges("agent", tools_condition)
    builder.add_edge("tools", "agent")
    app = shearpin.guard(builder.compile(checkpointer=saver()), on_stop="pause")
    app.invoke(HELLO, THREAD)
    asked = app.invoke(Command(resume="continue"), THREAD)["__interrupt__"]
    assert [pause.value for pause in asked] == ["may I?"]
    app.invoke(Command(resume="yes"), THREAD)
    assert last(app).content == "The drawer is locked."


# -- ways out --------------------------------------------------------------------------------------


class Notes(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]
    log: Annotated[list[str], operator.add]
    last: str


def taking_notes(model: StrictProvider, kept: Any) -> Any:
    builder: StateGraph[Any] = StateGraph(Notes)

    def thinks(state: Notes) -> dict[str, Any]:
        answer = model.invoke(state["messages"])
        return {"messages": [answer], "log": [f"step {len(state['log'])}"], "last": answer.id or ""}

    builder.add_node("agent", thinks)
    builder.add_node("tools", ToolNode([look]))
    builder.add_node("help", lambda state: {"messages": [AIMessage("Let me help.")]})
    builder.add_edge(START, "agent")
    builder.add_conditional_edges("agent", tools_condition)
    builder.add_edge("tools", "agent")
    return builder.compile(checkpointer=kept)


@pytest.mark.parametrize("kept", [True, False])
def test_the_whole_state_goes_back(kept: bool) -> None:
    model = stubborn(HEEDS["rollback"])
    app = shearpin.guard(taking_notes(model, saver() if kept else None), on_loop="rollback")
    values = app.invoke({**HELLO, "log": ["asked"], "last": "-"}, THREAD)
    texts = [message.type for message in values["messages"]]
    assert texts == ["human", "human", "ai"]
    assert values["log"] == ["asked", "step 1"]
    report = app.report(THREAD)
    assert report.spend.model_calls == model.calls > 5, "what was spent does not go back"
    assert "rollback" in [verdict.verdict for verdict in report.verdicts]


@pytest.mark.parametrize("how", ["invoke", "ainvoke", "stream", "astream"])
async def test_a_loop_goes_on_at_another_node(how: str) -> None:
    app = shearpin.guard(taking_notes(runaway(), saver()), on_loop="node:help")
    await run(app, how, {**HELLO, "log": [], "last": "-"})
    assert last(app).content == "Let me help."
    assert app.report(THREAD).outcome == "completed"
    assert_valid(app.get_state(THREAD).values["messages"])


def test_the_other_node_has_to_be_there() -> None:
    with pytest.raises(shearpin.ConfigError, match="did you mean 'node:tools'"):
        shearpin.guard(react(runaway()), on_loop="node:tool")


# -- handlers --------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["invoke", "ainvoke"])
@pytest.mark.parametrize("waits", [True, False])
async def test_a_handler_is_told_of_each_verdict_once(waits: bool, how: str) -> None:
    told: list[tuple[str, str | None]] = []

    def hears(verdict: Verdict, occasion: Any) -> None:
        told.append((type(verdict).__name__, occasion.thread))

    async def listens(verdict: Verdict, occasion: Any) -> None:
        hears(verdict, occasion)

    if waits and how == "invoke":
        pytest.skip("a test that is a coroutine has a loop, in which this would run later")
    app = shearpin.guard(react(runaway(), saver()), on_verdict=listens if waits else hears)
    await run(app, how)
    assert [name for name, _ in told].count("Halt") == 1
    assert {thread for _, thread in told} == {"t1"}
    acted = [verdict.verdict for verdict in app.report(THREAD).verdicts if verdict.acted]
    assert sorted(name.lower() for name, _ in told) == sorted(acted)


def test_a_coroutine_function_is_run_where_there_is_no_loop() -> None:
    told: list[Verdict] = []

    async def listens(verdict: Verdict, occasion: Any) -> None:
        told.append(verdict)

    shearpin.guard(react(runaway(), saver()), on_verdict=listens).invoke(HELLO, THREAD)
    assert any(isinstance(verdict, Halt) for verdict in told)


@pytest.mark.parametrize("how", ["invoke", "ainvoke"])
async def test_a_handler_that_fails_changes_nothing(how: str) -> None:
    def fails(verdict: Verdict, occasion: Any) -> Verdict:
        raise RuntimeError("no line to the pager")

    app = shearpin.guard(react(runaway(), saver()), on_verdict=fails)
    await run(app, how)
    report = app.report(THREAD)
    assert report.outcome == "stopped"
    assert any("no line to the pager" in fault for fault in report.faults)


def test_a_handler_that_talks_nonsense_changes_nothing() -> None:
    app = shearpin.guard(react(runaway(), saver()), on_verdict=lambda verdict, occasion: "ok")
    app.invoke(HELLO, THREAD)
    assert app.report(THREAD).outcome == "stopped"
    assert any("must return None" in fault for fault in app.report(THREAD).faults)


def test_a_handler_may_say_it_in_other_words() -> None:
    def rephrases(verdict: Verdict, occasion: Any) -> Verdict | None:
        if isinstance(verdict, Nudge):
            return Nudge(verdict.finding, "Please look elsewhere.")
        return None

    app = shearpin.guard(react(stubborn(HEEDS["pause"]), saver()), on_verdict=rephrases)
    app.invoke(HELLO, THREAD)
    assert last(app).content == "The drawer is locked."
    first, second = app.report(THREAD).verdicts[:2]
    assert {(first.acted, first.message != second.message), (second.acted, True)} == {
        (False, True),
        (True, True),
    }


def test_a_handler_may_stop_at_once() -> None:
    def stops(verdict: Verdict, occasion: Any) -> Verdict:
        return Halt("loop:impatient", "Enough.", getattr(verdict, "finding", None))

    model = runaway()
    app = shearpin.guard(react(model, saver()), on_verdict=stops)
    app.invoke(HELLO, THREAD)
    assert (model.calls, last(app).content) == (3, "Enough.")
    assert app.report(THREAD).reason == "loop:impatient"


def test_a_handler_may_let_a_run_go_on_but_not_for_ever() -> None:
    def lets(verdict: Verdict, occasion: Any) -> Verdict:
        return PROCEED

    model = runaway()
    app = shearpin.guard(react(model, saver()), on_verdict=lets)
    app.invoke(HELLO, THREAD)
    assert 8 < model.calls < 20
    assert app.report(THREAD).outcome == "stopped"


def test_a_cap_stays_a_cap() -> None:
    model = stubborn(None)
    told: list[Verdict] = []

    def vetoes(verdict: Verdict, occasion: Any) -> Verdict:
        told.append(verdict)
        return PROCEED

    app = shearpin.guard(react(model, saver()), budget="2 calls", on_verdict=vetoes)
    app.invoke(HELLO, THREAD)
    assert model.calls == 2
    assert [verdict.reason for verdict in told if isinstance(verdict, Halt)] == [
        "budget:model_calls"
    ]


def test_a_handler_has_to_be_a_function() -> None:
    with pytest.raises(shearpin.ConfigError, match="on_verdict"):
        shearpin.Guard(on_verdict="log")  # type: ignore[arg-type]


# -- modes, excluded nodes, the kill switch --------------------------------------------------------


def counted(most: int) -> StrictProvider:
    """Asks for the same for so many calls, and then answers."""
    return StrictProvider(
        lambda messages, call: "Enough." if call > most else asks_for(("look", {"place": "desk"}))
    )


@pytest.mark.parametrize(
    "options",
    [
        {"modes": {"node:agent": "observe", "node:tools": "observe"}},
        {"modes": {"tool:look": "observe", "node:*": "observe"}},
        {"exclude": ("agent", "tools")},
    ],
)
def test_a_node_that_is_only_watched_or_left_alone_runs_as_it_would(options: Any) -> None:
    plain = react(counted(15), saver()).invoke(HELLO, THREAD)
    app = shearpin.guard(react(counted(15), saver()), **options)
    given = app.invoke(HELLO, THREAD)
    assert [m.content for m in given["messages"]] == [m.content for m in plain["messages"]]
    report = app.report(THREAD)
    assert (report.outcome, report.faults) == ("completed", ())
    assert not any(verdict.acted for verdict in report.verdicts)
    assert bool(report.verdicts) == ("modes" in options)


def test_an_excluded_subgraph_is_left_alone_and_the_rest_is_not() -> None:
    builder: StateGraph[Any] = StateGraph(MessagesState)
    builder.add_node("free", react_builder(counted(15)).compile())
    builder.add_node("team", react_builder(runaway()).compile())
    builder.add_edge(START, "free")
    builder.add_edge("free", "team")
    app = shearpin.guard(builder.compile(checkpointer=saver()), exclude=("free",))
    messages = app.invoke(HELLO, THREAD)["messages"]
    assert sum(message.content == "Enough." for message in messages) == 1
    assert app.report(THREAD).outcome == "stopped"
    assert {verdict.agent for verdict in app.report(THREAD).verdicts} == {"team"}


@pytest.fixture
def switched() -> Any:
    yield SWITCH
    shearpin.enable()
    SWITCH.look()


@pytest.mark.parametrize("build", [react, agent])
def test_while_guards_are_off_nothing_is_done(build: Any, switched: Any) -> None:
    app = shearpin.guard(build(counted(15), saver()), budget="3 calls")
    shearpin.disable()
    app.invoke(HELLO, THREAD)
    assert last(app).content == "Enough."
    assert app.report(THREAD).verdicts == ()
    shearpin.enable()
    app.invoke(HELLO, THREAD)
    assert app.report(THREAD).outcome == "completed"


def test_guards_can_be_switched_off_in_the_middle_of_a_run(switched: Any) -> None:
    def script(messages: Sequence[BaseMessage], call: int) -> Any:
        if call == 6:
            shearpin.disable()
        return "Enough." if call > 20 else asks_for(("look", {"place": "desk"}))

    app = shearpin.guard(react(StrictProvider(script), saver()), budget="8 calls")
    app.invoke(HELLO, THREAD)
    assert last(app).content == "Enough."
    assert app.report(THREAD).outcome == "completed"


def test_a_file_switches_guards_off(
    switched: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "off"
    monkeypatch.setenv("SHEARPIN_DISABLED_FILE", str(path))
    app = shearpin.guard(react(counted(15), saver()))
    path.touch()
    app.invoke(HELLO, THREAD)
    assert last(app).content == "Enough."
    path.unlink()
    again = shearpin.guard(react(counted(15), saver()))
    again.invoke(HELLO, THREAD)
    assert again.report(THREAD).outcome == "stopped"


# -- files -----------------------------------------------------------------------------------------


def test_all_that_is_data_can_be_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "guard.toml"
    path.write_text(
        'on_stop = "wrap_up"\non_loop = "rollback"\nexclude = ["telemetry_*"]\n'
        '[modes]\n"tool:charge" = "warn"\n[messages]\n"nudge.repeat" = "Again {tool}?"\n'
    )
    guard = shearpin.Guard.from_file(path)
    assert (guard.on_stop, guard.on_loop, guard.exclude) == (
        "wrap_up",
        "rollback",
        ("telemetry_*",),
    )
    assert guard.modes == {"tool:charge": "warn"}
    assert guard.messages == {"nudge.repeat": "Again {tool}?"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[messages]\nnudge.repeat = 'x'\n", "quote a key"),
        ("[modes]\n'tool:x' = 3\n", "must be a text"),
        ("exclude = 'x'\n", "list of texts"),
        ("on_stop = 'wrapup'\n", "wrap_up"),
    ],
)
def test_a_wrong_file_says_so(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "guard.toml"
    path.write_text(text)
    with pytest.raises(shearpin.ConfigError, match=said):
        shearpin.Guard.from_file(path)


def test_a_block_may_be_vetoed() -> None:
    ran: list[str] = []

    def vetoes(verdict: Verdict, occasion: Any) -> Verdict | None:
        ran.append(type(verdict).__name__)
        return PROCEED if isinstance(verdict, Block) else None

    app = shearpin.guard(react(runaway(), saver()), on_verdict=vetoes)
    app.invoke(HELLO, THREAD)
    texts = [str(message.content) for message in app.get_state(THREAD).values["messages"]]
    assert "Block" in ran
    assert not any(text.startswith("Not run: this call") for text in texts)

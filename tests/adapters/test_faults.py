"""The guard never hurts the guarded (P7): a fault in any seam is contained and reported."""

from __future__ import annotations

from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver

import shearpin
from shearpin.adapters import calls, toolcalls
from shearpin.adapters.judge import Judge
from shearpin.adapters.langgraph import nodes, supervisor
from shearpin.adapters.langgraph import state as states
from shearpin.adapters.numbering import Numbers
from shearpin.adapters.run import Run
from shearpin.core.session import Session
from tests.adapters.builds import HELLO, THREAD, agent, polite, react, run, saver


class BrokenError(RuntimeError):
    """What breaks in these tests."""


def breaks(*args: Any, **kwargs: Any) -> Any:
    raise BrokenError("broken on purpose")


SEAMS: list[tuple[Any, str]] = [
    (Session, "before"),
    (Session, "after"),
    (Session, "dump"),
    (Session, "drain"),
    (calls, "requests_of"),
    (calls, "outcome_of"),
    (nodes, "delta_of"),
    (nodes, "NodeEntered"),
    (nodes, "NodeLeft"),
    (toolcalls, "ToolCalled"),
    (toolcalls, "ToolReturned"),
    (toolcalls, "message_in"),
    (Numbers, "model_call"),
    (Numbers, "tool_call"),
    (Numbers, "forget"),
    (Run, "shrank"),
    (supervisor, "Voyage"),
    (states, "save"),
    (states, "asave"),
    (InMemorySaver, "put_writes_of_ours"),
]


def break_own_writes(patch: pytest.MonkeyPatch) -> None:
    """Only the guard's own write to the checkpointer fails."""
    plain = InMemorySaver.put_writes

    def put_writes(self: Any, config: Any, writes: Any, task_id: str, task_path: str = "") -> None:
        if any(channel.startswith("__shearpin") for channel, _ in writes):
            raise BrokenError("disk full")
        plain(self, config, writes, task_id, task_path)

    patch.setattr(InMemorySaver, "put_writes", put_writes)


@pytest.mark.parametrize("how", ["invoke", "ainvoke"])
@pytest.mark.parametrize("build", [react, agent])
@pytest.mark.parametrize(("owner", "name"), SEAMS, ids=[name for _, name in SEAMS])
async def test_a_fault_leaves_the_run_as_it_was(
    owner: Any, name: str, build: Any, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = [m.content for m in build(polite()).invoke(HELLO)["messages"]]
    app = shearpin.guard(build(polite(), saver()))
    with monkeypatch.context() as patch:
        if name == "put_writes_of_ours":
            break_own_writes(patch)
        else:
            patch.setattr(owner, name, breaks)
        result = await run(app, how)
    assert [m.content for m in result["messages"]] == expected
    if name == "Voyage" or name == ("save" if how == "ainvoke" else "asave"):
        return
    report = app.report(THREAD)
    if name == "drain":
        return
    assert any("roken" in fault or "disk full" in fault for fault in report.faults), report.faults


def test_a_session_that_cannot_take_notes_is_survived(monkeypatch: pytest.MonkeyPatch) -> None:
    app = shearpin.guard(react(polite(), saver()))
    with monkeypatch.context() as patch:
        patch.setattr(Session, "after", breaks)
        patch.setattr(Session, "fault", breaks)
        app.invoke(HELLO, THREAD)
    assert any("broken on purpose" in fault for fault in app.report(THREAD).faults)


def test_a_checkpointer_that_cannot_be_read_does_not_stop_the_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = shearpin.guard(react(polite(), saver()))
    monkeypatch.setattr(states, "_newest", breaks)
    assert app.invoke(HELLO, THREAD)["messages"][-1].content == "It is not there."


def test_errors_of_the_graph_are_the_graphs() -> None:
    from langgraph.graph import START, MessagesState, StateGraph

    def fails(state: Any) -> None:
        raise LookupError("mine")

    builder: StateGraph[Any] = StateGraph(MessagesState)
    builder.add_node("fails", fails)
    builder.add_edge(START, "fails")
    app = shearpin.guard(builder.compile(checkpointer=saver()))
    with pytest.raises(LookupError, match="mine"):
        app.invoke(HELLO, THREAD)
    assert app.report(THREAD).outcome == "failed"


def test_a_judge_contains_what_the_core_raises() -> None:
    def question(session: Session) -> int:
        raise BrokenError

    judge = Judge(Session(shearpin.Guard().settings), lambda: 0.0)
    assert judge.ask(question, 7) == 7

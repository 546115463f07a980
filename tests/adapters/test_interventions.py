"""Every intervention on every kind of agent, however it is run.

What the caller gets, what is saved, what a strict provider says to all of it (it raises), and what
the next turn does. `interventions.IMPOSSIBLE` names the cells that cannot exist.
"""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.types import Command

import shearpin
from shearpin.testing import StrictProvider
from tests.adapters.builds import HELLO, MOST_CALLS, THREAD, assert_valid, run, saver
from tests.adapters.interventions import HEEDS, IMPOSSIBLE, KINDS, NEXT, strong, stubborn

HOW = ["invoke", "ainvoke", "stream", "astream"]
OPTIONS: dict[str, dict[str, Any]] = {
    "nudge": {},
    "block": {},
    "wrap_up": {"on_stop": "wrap_up"},
    "reroute": {"on_loop": "without_tool"},
    "model": {"on_loop": "model:strong"},
    "rollback": {"on_loop": "rollback"},
    "pause": {"on_stop": "pause"},
    "halt": {},
    "raise": {"on_stop": "raise"},
}
GIVES = {
    "nudge": "nudge",
    "block": "block",
    "reroute": "reroute",
    "model": "reroute",
    "rollback": "rollback",
}
HEEDED = "The drawer is locked."
CELLS = [
    (what, kind, how)
    for what in OPTIONS
    for kind in KINDS
    for how in HOW
    if (what, kind) not in IMPOSSIBLE
]


def built(what: str, kind: str) -> tuple[StrictProvider, Any]:
    flavour = "openai" if "deepagents" in kind else "any"
    model = stubborn(HEEDS[what], flavour)  # type: ignore[arg-type]
    try:
        app = KINDS[kind](model, saver())
    except ImportError as error:
        pytest.skip(str(error))
    others = {"models": {"strong": strong(flavour)}} if what == "model" else {}  # type: ignore[arg-type]
    return model, shearpin.guard(app, **OPTIONS[what], **others)


def messages_of(app: Any) -> list[Any]:
    values = app.get_state(THREAD).values
    return list(values["messages"]) if isinstance(values, dict) else []


def own_words(messages: list[Any]) -> list[Any]:
    return [m for m in messages if isinstance(m, AIMessage) and "shearpin" in m.response_metadata]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize(("what", "kind", "how"), CELLS)
async def test_the_table(what: str, kind: str, how: str) -> None:
    model, app = built(what, kind)
    await _first_turn(what, kind, app, how)
    report = app.report(THREAD)
    messages = messages_of(app)
    assert app.get_state(THREAD).next == ()
    assert report.faults == ()
    if kind != "functional":
        assert_valid(messages)
        assert sum(isinstance(m, HumanMessage) for m in messages) == _users(what, kind)
        _check_saved(what, kind, messages)
    if what in GIVES:
        assert report.outcome == "completed"
        assert (GIVES[what], True) in {(v.verdict, v.acted) for v in report.verdicts}
    elif what != "pause":
        assert (report.outcome, report.reason) == ("stopped", "loop:repeat")
    calls = model.calls
    assert calls <= MOST_CALLS + (kind == "send")
    await run(app, how, NEXT)
    assert app.report(THREAD).outcome == "completed"
    assert app.get_state(THREAD).next == ()
    if kind != "functional":
        assert messages_of(app)[-1].content in ("All is well.", "closed by the parent")
        assert_valid(messages_of(app))


async def _first_turn(what: str, kind: str, app: Any, how: str) -> None:
    if what == "raise":
        with pytest.raises(shearpin.LoopDetectedError) as caught:
            await run(app, how)
        assert caught.value.reason == "loop:repeat"
        return
    await run(app, how)
    if what == "pause":
        (asked,) = [i.value for t in app.get_state(THREAD).tasks for i in t.interrupts]
        assert asked["shearpin"]["reason"] == "loop:repeat"
        assert app.report(THREAD).outcome == "interrupted"
        # The prompt of a function is its own: an instruction cannot get into it.
        told = "stop" if kind == "functional" else {"instruction": "look elsewhere"}
        await run(app, how, Command(resume=told))


def _users(what: str, kind: str) -> int:
    """How many messages of the user's (and notes in their place) are saved.

    A branch gets the user's message before it has an id, so it is merged as another one; of a
    worker, the supervisor keeps the last message only, and so does who calls an agent as a tool.
    """
    if kind in ("supervisor", "agent in a tool", "deepagents task"):
        return 1
    return 1 + (what in ("pause", "rollback")) + 2 * (kind == "send")


def _check_saved(what: str, kind: str, messages: list[Any]) -> None:
    last = own_words(messages)
    if what in ("halt", "raise"):
        (word,) = last
        assert word.response_metadata["shearpin"]["reason"] == "loop:repeat"
        assert not word.tool_calls
        return
    texts = [str(message.content) for message in messages]
    assert sum(text == HEEDED for text in texts) == 1
    if what == "wrap_up":
        (word,) = last
        assert word.content == HEEDED
        assert not word.tool_calls
        assert word.response_metadata["shearpin"]["wrap_up"]
        assert not any("no tool can be called" in text for text in texts)
    else:
        assert last == []


@pytest.mark.parametrize(("what", "kind"), IMPOSSIBLE)
async def test_a_cell_that_cannot_exist_ends_the_run_instead(what: str, kind: str) -> None:
    if what == "model":
        with pytest.raises(shearpin.ConfigError, match="holds exactly one chat model"):
            built(what, kind)
        return
    _, app = built(what, kind)
    assert "drawer" not in str(await run(app, "invoke", HELLO))
    report = app.report(THREAD)
    assert (report.outcome, report.faults) == ("stopped", ())
    if what in GIVES and what != "reroute":
        assert (GIVES[what], True) not in {(v.verdict, v.acted) for v in report.verdicts}

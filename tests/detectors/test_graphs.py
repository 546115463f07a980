"""The further rules on real LangGraph graphs, guarded at default settings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.tools import BaseTool, tool
from langgraph.graph import END, START, MessagesState, StateGraph

import shearpin
from shearpin.testing import StrictProvider, asks_for
from tests.adapters.builds import react_builder
from tests.detectors.reaching import FILE, REMARKS

MESSAGES: dict[str, Any] = {"messages": [("user", "do it")]}
LINES = [f"src/part_{n}.py: a definition of its own kind, and of no other one" for n in range(6)]
Ask = Callable[[int], AIMessage]


@tool
def edit_file(path: str, new: str) -> str:
    """Write to a file."""
    return "edited"


@tool
def click(link: str) -> str:
    """Click a link; the page is drawn anew each time."""
    click.metadata = {"n": (click.metadata or {"n": 0})["n"] + 1}
    again = click.metadata["n"]
    words = "The page shows a form, two links and a long text about walking shoes. " * 3
    return f"{words} visit {again}{' now' if again % 2 else ''}"


@tool
def submit_flag(flag: str) -> str:
    """Try a flag."""
    return "That flag is incorrect. Try again."


@tool
def bash(command: str) -> str:
    """Run a command."""
    if command.startswith("git checkout"):
        return "Updated 1 path from the index"
    if command.startswith("sed"):
        return f"what {command} shows, line by line"
    if command.startswith("python"):
        return "  File a.py, line 3\nSyntaxError: invalid syntax"
    return f"{command}: 3 failed"


@tool
def grep(pattern: str) -> str:
    """Search."""
    bits = int(pattern[1:]) + 3
    return "\n".join(line for place, line in enumerate(LINES) if bits >> (place % 4) & 1)


@tool
def list_dir(path: str) -> str:
    """List."""
    return "\n".join(LINES)


def _litany(call: int) -> AIMessage:
    words = "I need to fix the indentation of the function."
    return asks_for(("edit_file", {"path": "a.py", "new": f"x = {call}"}), text=words)


def _undone(call: int) -> AIMessage:
    kind = call % 3
    if kind == 1:
        return asks_for(("edit_file", {"path": "a.py", "new": f"x = {call}"}))
    return asks_for(("bash", {"command": f"pytest -k c{call}" if kind else "git checkout a.py"}))


def _revisits(call: int) -> AIMessage:
    asked = [
        ("list_dir", {"path": "."}),
        ("grep", {"pattern": "p4"}),
        ("bash", {"command": "python a.py"}),
        ("list_dir", {"path": "."}),
        ("bash", {"command": "ls b"}),
        ("grep", {"pattern": "p4"}),
        ("bash", {"command": "python a.py"}),
    ]
    return asks_for(asked[(call - 1) % 7])


def _dead_end(call: int) -> AIMessage:
    if call == 1:
        return asks_for(("list_dir", {"path": "."}))
    return asks_for(("grep", {"pattern": f"p{call}"}))


def _backwards(call: int) -> AIMessage:
    top = 900 - 10 * call
    return asks_for(("bash", {"command": f"sed -n '{top},{top + 9}p' big.py"}))


CASES: dict[str, tuple[Ask, list[BaseTool]]] = {
    "litany": (_litany, [edit_file]),
    "insistence": (lambda call: asks_for(("click", {"link": "Forum"})), [click]),
    "rejected_guesses": (
        lambda call: asks_for(("submit_flag", {"flag": f"f{call}"})),
        [submit_flag],
    ),
    "undone": (_undone, [edit_file, bash]),
    "revisits": (_revisits, [bash, grep, list_dir]),
    "dead_end_drift": (_dead_end, [grep, list_dir]),
    "paging": (_backwards, [bash]),
}


@pytest.mark.parametrize("rule", sorted(CASES))
def test_a_rule_is_reached_through_a_graph(rule: str) -> None:
    ask, tools = CASES[rule]
    click.metadata = None

    def script(messages: Sequence[BaseMessage], call: int) -> AIMessage | str:
        return ask(call) if call <= 20 else "I give up."

    app = shearpin.guard(react_builder(StrictProvider(script), tools).compile())
    app.invoke(MESSAGES, {"recursion_limit": 100})
    assert rule in {verdict.rule for verdict in app.report().verdicts}
    assert not app.report().faults


def dialogue(programmer: Callable[[int], str]) -> Any:
    """Two model nodes that talk to each other, eight messages each."""
    turns = iter(range(100))

    def review(messages: Sequence[BaseMessage], call: int) -> str:
        return REMARKS[(call - 1) % 8]

    reviewer = StrictProvider(review)
    writer = StrictProvider(lambda messages, call: programmer(call))
    builder: StateGraph[Any] = StateGraph(MessagesState)
    user = ("user", "go on")
    builder.add_node("reviewer", lambda state: {"messages": [reviewer.invoke([user])]})
    builder.add_node("programmer", lambda state: {"messages": [writer.invoke([user])]})
    builder.add_edge(START, "reviewer")
    builder.add_edge("reviewer", "programmer")
    builder.add_conditional_edges(
        "programmer", lambda state: END if next(turns) >= 6 else "reviewer", ["reviewer", END]
    )
    return shearpin.guard(builder.compile())


def test_echo_is_reached_through_a_graph() -> None:
    app = dialogue(lambda call: FILE)
    app.invoke(MESSAGES)
    assert "echo" in {verdict.rule for verdict in app.report().verdicts}


def test_a_file_that_changes_is_left_alone_in_a_graph() -> None:
    app = dialogue(lambda call: f"{FILE}\n# {REMARKS[call % 8]}")
    app.invoke(MESSAGES)
    assert not app.report().verdicts


def test_edits_with_different_words_are_left_alone_in_a_graph() -> None:
    def script(messages: Sequence[BaseMessage], call: int) -> AIMessage | str:
        if call > 8:
            return "All done."
        asked = ("edit_file", {"path": f"{call}.py", "new": "x"})
        return asks_for(asked, text=REMARKS[call - 1])

    app = shearpin.guard(react_builder(StrictProvider(script), [edit_file]).compile())
    app.invoke(MESSAGES)
    assert not app.report().verdicts

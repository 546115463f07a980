"""Kinds of loops: what a confirmed loop most likely comes from, and what its author can do.

Contract: a kind is read off a verdict's finding, rule and evidence, and off what a recording shows
besides (`Signs`), by the table below; the first row that fits counts. It is a likely cause, not a
proof. The advice is for whoever runs the agent; what the agent is told stands in its messages.

*Source*: the causes named in 158 public reports of runaway agents, and 117 labelled runs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

__all__ = ["KINDS", "Kind", "Signs", "kind_of"]


class Kind(NamedTuple):
    """A kind of loop.

    Attributes:
        name: stable word, for counting.
        cause: what it most likely comes from, one sentence.
        advice: what to change in the agent or its tools.
    """

    name: str
    cause: str
    advice: str


class Signs(NamedTuple):
    """What a recording shows around a verdict and the verdict itself does not hold.

    Attributes:
        command: first word of the command that the repeated call carried.
        silent: the model wrote no text in any step of the loop.
        one_tool: it asked for the same tool in every step of the run, from the first one on.
        compacted: its history was summarised shortly before, or in the middle of the loop.
        tools_failing: different tools that failed in a row.
    """

    command: str | None = None
    silent: bool = False
    one_tool: bool = False
    compacted: bool = False
    tools_failing: int = 0


class _Case(NamedTuple):
    rule: str
    cause: str
    tool: str
    signs: Signs


_ROWS: Final[tuple[tuple[Kind, Callable[[_Case], bool]], ...]] = (
    (
        Kind(
            "context_lost",
            "The history was summarised, and with it went what had been found out or done.",
            "Let the summary keep open tasks, results and failed attempts, or put them where a "
            "summary does not reach (state, a notes tool).",
        ),
        lambda case: case.signs.compacted and case.rule not in ("velocity", "slow_leak"),
    ),
    (
        Kind(
            "outage",
            "A service fails by itself: rate limit, outage, network.",
            "Retry with growing waits outside of the model, and tell it plainly when a service is "
            "down.",
        ),
        lambda case: case.cause == "outage",
    ),
    (
        Kind(
            "broken_tool_layer",
            "Tools answer the same whatever they are asked, or all of them fail: what is below "
            "is broken.",
            "Check the tool server, its credentials and how results are passed on; let a tool fail "
            "loudly instead of answering with a constant.",
        ),
        lambda case: case.rule == "constant_result" or case.signs.tools_failing >= 3,
    ),
    (
        Kind(
            "waiting_without_waiting",
            "The agent asks again at once for something that takes time.",
            "Give it a tool that waits, or block inside the tool until there is news; declare "
            "pollers as ToolFacts(polling=True).",
        ),
        lambda case: case.cause == "waiting",
    ),
    (
        Kind(
            "verifier_never_satisfied",
            "A test, check or reviewer says the same each time, and what it wants is not done.",
            "Say in the check's output what is missing and where; bound the attempts in the graph "
            "and go on with the best one.",
        ),
        lambda case: case.rule in _ASKING and _verifies(case.tool, case.signs.command),
    ),
    (
        Kind(
            "forced_tool_choice",
            "The model has to call a tool in every step and so cannot give its answer.",
            'Leave tool_choice at "auto", or offer a tool that takes the final answer.',
        ),
        lambda case: case.cause == "answer_not_used" and case.signs.silent and case.signs.one_tool,
    ),
    (
        Kind(
            "empty_taken_for_failure",
            "An empty answer is taken for a failure, and the question is asked again.",
            'Let the tool say "no results for ..." and what was searched, not [] or nothing.',
        ),
        lambda case: case.cause == "empty_taken_for_failure",
    ),
    (
        Kind(
            "error_not_understood",
            "An error does not say what to change, so the same is tried again.",
            "Let the tool's error name the wrong argument, what is allowed, and an example.",
        ),
        lambda case: case.cause in ("error_not_understood", "unreadable_arguments"),
    ),
    (
        Kind(
            "wrong_tool_name",
            "The model asks for a tool that it was not given.",
            "Check that the prompt names only tools that are bound; add the missing one.",
        ),
        lambda case: case.cause == "unknown_name",
    ),
    (
        Kind(
            "guessing",
            "The model guesses values that it cannot know.",
            "Give it a way to list what is valid, or to say that something is missing.",
        ),
        lambda case: case.cause == "guessing",
    ),
    (
        Kind(
            "handoff_ping_pong",
            "Agents hand the task to each other and nobody does it.",
            "Give one agent the last word, pass on what was tried, and bound the hand-offs.",
        ),
        lambda case: case.cause == "handed_over",
    ),
    (
        Kind(
            "pseudo_progress",
            "Changes undo each other, or differ by next to nothing.",
            "Let the agent see its earlier attempts side by side, and test after each change.",
        ),
        lambda case: case.cause in ("pseudo_progress", "not_tested"),
    ),
    (
        Kind(
            "same_input",
            "The model sees the same input again: its last step was not appended.",
            "Check the node that writes messages, and the reducer of the messages channel.",
        ),
        lambda case: case.cause == "nothing_appended",
    ),
    (
        Kind(
            "resending",
            "The same long message is sent again, as if it had not arrived.",
            "Acknowledge messages between agents, and pass references instead of whole texts.",
        ),
        lambda case: case.cause == "resent",
    ),
    (
        Kind(
            "no_final_answer",
            "The model goes on talking, says the same or nothing, and does not finish.",
            "Say in the prompt how to finish; end the graph when a message has no tool calls.",
        ),
        lambda case: case.cause in ("says_the_same", "says_nothing", "all_said"),
    ),
    (
        Kind(
            "answer_not_used",
            "The model has the answer and asks again.",
            "Shorten results so that the answer is seen, and check that results reach the model.",
        ),
        lambda case: case.cause in ("answer_not_used", "asked_twice"),
    ),
    (
        Kind(
            "same_lap",
            "The same steps are gone through again and again, each time with the same results.",
            "Say in the prompt what ends the task; route on results in the graph, not on hope.",
        ),
        lambda case: case.cause == "same_sequence",
    ),
    (
        Kind(
            "searching_without_end",
            "The agent goes on looking where there is nothing new to be found.",
            "Offer a search instead of paging, and bound the steps of a search.",
        ),
        lambda case: case.cause in ("nothing_new", "walks_back"),
    ),
    (
        Kind(
            "context_grows",
            "Every step takes in far more text than the one before.",
            "Cut tool results, and summarise the history.",
        ),
        lambda case: case.cause == "context_grows",
    ),
)
KINDS: Final[Mapping[str, Kind]] = {kind.name: kind for kind, _ in _ROWS}
"""All kinds by name, in the order in which they are tried."""

_ASKING: Final = ("repeat", "insistence", "revisits", "error_streak", "cycle")
_VERIFIER: Final = re.compile(
    r"(?:^|[^a-z])(?:test|tests|pytest|tox|jest|unittest|lint|ruff|mypy|pyright|tsc|verify|verifier|"
    r"validate|validator|check|checker|review|reviewer|judge|grade|grader|critic|critique|evaluate|"
    r"compile|build|make|ctest|cargo_test)(?:$|[^a-z])|测试|校验|检查|审核|验证"
)
_JUST_SUMMARISED: Final = 12
_CAMEL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def kind_of(
    rule: str | None, evidence: Mapping[str, object], signs: Signs | None = None
) -> Kind | None:
    """The kind of loop that a verdict tells of; None where it is about something else.

    Args:
        rule: that fired.
        evidence: of the verdict; its `cause` and `tool` decide most.
        signs: what a recording shows besides.

    Example:
        >>> kind_of("repeat", {"cause": "answer_not_used", "tool": "run_tests"}).name
        'verifier_never_satisfied'
    """
    cause, tool = evidence.get("cause"), evidence.get("tool")
    if rule is None or not isinstance(cause, str):
        return None
    since = evidence.get("steps_since_compaction")
    known = signs or Signs()
    if isinstance(since, int) and since <= _JUST_SUMMARISED:
        known = known._replace(compacted=True)
    case = _Case(rule, cause, tool if isinstance(tool, str) else "", known)
    return next((kind for kind, fits in _ROWS if fits(case)), None)


def _verifies(tool: str, command: str | None) -> bool:
    names = [_CAMEL.sub("_", tool).lower(), (command or "").rpartition("/")[2].lower()]
    return any(_VERIFIER.search(name) is not None for name in names)

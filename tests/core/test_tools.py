"""What is known of tools, and the keys of their calls."""

from __future__ import annotations

import pytest

from shearpin.core.normal import LONGEST_NAME, call_key, identity, result_key, short_name
from shearpin.core.tools import IGNORED_ARGUMENTS, ToolFacts, command_word, effect_of
from shearpin.errors import ConfigError


@pytest.mark.parametrize(
    ("tool", "effect"),
    [
        ("read_file", "read"),
        ("getUserProfile", "read"),
        ("list-issues", "read"),
        ("write_file", "write"),
        ("create_issue", "write"),
        ("sendEmail", "write"),
        ("wait_for_it", "wait"),
        ("think", "think"),
        ("transfer_to_billing", "handoff"),
        ("run_tests", "run"),
        ("frobnicate", "run"),
        ("查询天气", "read"),
        ("发送邮件", "write"),
        ("", "run"),
    ],
)
def test_the_verb_in_a_name(tool: str, effect: str) -> None:
    assert effect_of(tool, {}, None) == effect


@pytest.mark.parametrize(
    ("command", "effect"),
    [
        ("ls -la", "read"),
        ("cat a.txt | grep x", "read"),
        ("git status && git diff", "read"),
        ("git commit -m x", "write"),
        ("rm -rf build", "write"),
        ("echo hi > out.txt", "write"),
        ("ls 2>/dev/null", "read"),
        ("sed -n 1,5p f", "read"),
        ("sed -i s/a/b/ f", "write"),
        ("pytest -q", "run"),
        ("sleep 5", "wait"),
        ("X=1 cat f", "read"),
        ("", "read"),
        ("a" * 5000, "run"),
    ],
)
def test_what_a_command_does(command: str, effect: str) -> None:
    assert effect_of("bash", {"command": command}, None) == effect


def test_declared_facts_come_before_names() -> None:
    assert effect_of("write_file", {}, ToolFacts(read_only=True)) == "read"
    assert effect_of("read_file", {}, ToolFacts(destructive=True)) == "write"
    assert effect_of("read_file", {}, ToolFacts(read_only=False, polling=True)) == "wait"


def test_mcp_annotations() -> None:
    facts = ToolFacts.from_annotations(
        {"readOnlyHint": True, "destructiveHint": True, "idempotentHint": True, "title": "x"}
    )
    assert facts == ToolFacts(read_only=True, idempotent=True)
    assert ToolFacts.from_annotations({"readOnlyHint": "yes"}) == ToolFacts()
    assert ToolFacts.from_annotations({"destructiveHint": True}).destructive is True


def test_contradictions_are_refused() -> None:
    with pytest.raises(ConfigError, match="read_only and destructive"):
        ToolFacts(read_only=True, destructive=True)
    with pytest.raises(ConfigError, match=r"ToolFacts\.key"):
        ToolFacts(key="path")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("args", "word"),
    [
        ({"command": "sudo FOO=1 pytest -q"}, "pytest"),
        ({"cmd": "ls"}, "ls"),
        ({"command": ""}, ""),
        ({"path": "x"}, None),
        ("not json", None),
        ({"command": "x" * 500}, "x" * 40),
    ],
)
def test_the_first_word_of_a_command(args: dict[str, object] | str, word: str | None) -> None:
    assert command_word(args) == word


def key(args: dict[str, object] | str, facts: ToolFacts | None = None, tool: str = "t") -> str:
    return call_key(tool, args, facts, IGNORED_ARGUMENTS)


def test_calls_are_told_apart_by_tool_and_arguments() -> None:
    assert key({"a": 1, "b": 2}) == key({"b": 2.0, "a": 1})
    assert key({"a": 1}) != key({"a": 2})
    assert key({"a": 1}) != key({"a": 1}, tool="u")
    assert key("{broken") != key("{broke")


def test_commentary_is_no_part_of_a_call() -> None:
    assert key({"path": "x", "reason": "one"}) == key({"path": "x", "reason": "two"})
    assert key({"command": "ls", "description": "a"}) == key({"command": "ls", "description": "b"})
    # without a payload a description is what the call is about
    assert key({"description": "a"}) != key({"description": "b"})


def test_facts_say_what_identifies_a_call() -> None:
    by_path = ToolFacts(key=("path",))
    assert key({"path": "x", "n": 1}, by_path) == key({"path": "x", "n": 2}, by_path)
    by_function = ToolFacts(key=lambda args: str(args["path"]).lower())
    assert key({"path": "X"}, by_function) == key({"path": "x"}, by_function)
    ignoring = ToolFacts(ignore=("nonce",))
    assert key({"path": "x", "nonce": 1}, ignoring) == key({"path": "x", "nonce": 2}, ignoring)


def test_identity_leaves_plain_arguments_alone() -> None:
    args = {"path": "x"}
    assert identity(args, None, IGNORED_ARGUMENTS) is args


def test_results_are_told_apart_without_what_is_volatile() -> None:
    assert result_key("ok in 0.1s") == result_key("ok in 9.7s")
    assert result_key("3 of 14") != result_key("4 of 14")


def test_names_are_bounded_and_still_told_apart() -> None:
    deep = "agent/" * 30
    assert short_name("main") == "main"
    assert short_name("x" * LONGEST_NAME) == "x" * LONGEST_NAME
    assert len(short_name(deep)) == LONGEST_NAME
    assert short_name(short_name(deep)) == short_name(deep)
    assert short_name(deep + "a") != short_name(deep + "b")

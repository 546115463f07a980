"""Reading from a result how a call ended."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shearpin.core.outcomes import outcome_of, result_text
from shearpin.events import CallStatus


@pytest.mark.parametrize("status", ["unknown_tool", "bad_args", "blocked"])
def test_a_specific_word_of_the_host_decides(status: CallStatus) -> None:
    assert outcome_of("all fine", status) == status
    assert outcome_of("", status) == status


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("", "empty"),
        ("[]", "empty"),
        ("{}", "empty"),
        ("null", "empty"),
        ("None", "empty"),
        ("No results found.", "empty"),
        ("0 results", "empty"),
        ("no matches", "empty"),
        ("没有找到", "empty"),
        ("exit code: 0\n(no output)", "empty"),
        ("12 results", "ok"),
        ("The file was written.", "ok"),
        ("all tests passed", "ok"),
        ("Error: no such file or directory: x", "error"),
        ("Traceback (most recent call last):\n  File ...", "error"),
        ("ValueError: bad", "error"),
        ("permission denied", "error"),
        ("bash: foo: command not found", "error"),
        ("exit code 1\nstuff", "error"),
        ("<returncode>0</returncode>\n<output>\nError processing line 1 of a.pth", "ok"),
        ("grep: invalid option -- '-'\nUsage: grep [OPTION]... PATTERNS [FILE]...", "error"),
        ("find: paths must precede expression: `a.txt'\nfind: possible unquoted", "error"),
        ("cut: you must specify a list of bytes\nTry 'cut --help' for more information.", "error"),
        ("/bin/bash: line 1: cd: too many arguments\n", "error"),
        ("mkdir: cannot create directory ‘a’: File exists\n", "error"),
        ("tar: Removing leading `/' from member names\na.txt\n", "ok"),
        ("artist: Unknown\nalbum: Missing\nyear: 2021", "ok"),
        ("title: Bad Blood", "ok"),
        ("name: cannot be empty", "error"),
        ("Command timed out", "error"),
        ("Malformed command", "error"),
        ("No code was found. Your response should be a SQL command.", "error"),
        ("URL: https://a.example/x\nRootWebArea '404 Not Found', focused", "error"),
        ("the 404 pages of the book are bound", "ok"),
        ("错误：文件不存在", "error"),
        ("Error: 429 Too Many Requests", "transient"),
        ("Error: service unavailable, try again later", "transient"),
        ("Error: unknown tool foo", "unknown_tool"),
        ("foo is not a valid tool, try one of [a, b].", "unknown_tool"),
    ],
)
def test_without_status_the_text_tells(text: str, outcome: str) -> None:
    assert outcome_of(text, "success") == outcome


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("", "error"),
        ("boom", "error"),
        ("503 service unavailable", "transient"),
        ("connection reset by peer", "transient"),
        ("not valid JSON: expected a comma", "bad_args"),
        ("Error invoking tool 'x' with kwargs {}", "bad_args"),
        ("zzz is not a valid tool", "unknown_tool"),
    ],
)
def test_a_reported_error_is_told_apart_by_its_text(text: str, outcome: str) -> None:
    assert outcome_of(text, "error") == outcome


def test_a_long_document_that_mentions_errors_is_not_one() -> None:
    text = "Chapter one. " * 40 + " error: this is how errors are handled. " + "And so on. " * 40
    assert outcome_of(text, "success") == "ok"


@given(st.text(max_size=500), st.sampled_from(["success", "error"]))
def test_every_text_has_an_outcome(text: str, status: CallStatus) -> None:
    assert outcome_of(text, status) in {
        "ok",
        "empty",
        "error",
        "transient",
        "unknown_tool",
        "bad_args",
        "blocked",
    }


def test_results_as_text() -> None:
    assert result_text("as it is") == "as it is"
    assert result_text(None) == ""
    assert result_text({"b": 1, "a": 2.0}) == result_text({"a": 2, "b": 1})
    assert result_text([{"type": "text", "text": "x"}]) != ""


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("503 service unavailable", "transient"),
        ("HTTP/1.1 429 Too Many Requests", "transient"),
        ("connection reset by peer", "transient"),
        ("502 Bad Gateway", "transient"),
        ("503", "ok"),
        ("504 rows copied", "ok"),
        ("503 of 900 done", "ok"),
        ("customer 503 found", "ok"),
        ("429, 430, 431", "ok"),
    ],
)
def test_passing_trouble_is_seen_without_a_status(text: str, outcome: str) -> None:
    assert outcome_of(text, "success") == outcome

"""What the model reads of a tool's result, and what is kept of it."""

from __future__ import annotations

import copy
import json
import pickle

import pytest

from shearpin.boundary import ErrorCategory, ToolResult
from shearpin.boundary.results import ResultArtifact
from shearpin.boundary.wording import seconds_words

FAILED = ToolResult(
    False,
    ErrorCategory.RETRYABLE,
    "search",
    error_type="rate_limit",
    retry_after_seconds=30.0,
    attempts=3,
    elapsed=4.2,
    error=ValueError("sk-aaaaaaaaaaaaaaaa"),
)


def failed(kind: str, category: ErrorCategory, **more: object) -> ToolResult:
    return ToolResult(False, category, "refund", error_type=kind, **more)  # type: ignore[arg-type]


def test_a_failure_says_what_how_often_and_what_to_do_now() -> None:
    assert FAILED.text() == (
        "search failed (rate limit, tried 3 times in 4 s). The service asks to wait 30 s. "
        "Do something else first, or answer without it."
    )
    assert FAILED.text("zh") == (
        "search 失败（请求过于频繁，4 秒内试了 3 次）。"
        "对方要求等待 30 秒。请先做别的，或者不用它直接回答。"
    )


def test_an_unknown_outcome_is_to_be_verified_first() -> None:
    result = failed("timeout", ErrorCategory.RETRYABLE, outcome_unknown=True)
    assert result.text() == (
        "refund failed (timeout). No clear answer came back, so it may or may not have happened. "
        "Verify with a read before trying again; do not repeat it blindly."
    )
    assert "可能已经生效" in result.text("zh")


@pytest.mark.parametrize(
    ("kind", "category", "advice"),
    [
        ("network", ErrorCategory.RETRYABLE, "try again later"),
        ("quota", ErrorCategory.DEGRADABLE, "quota is used up"),
        ("bad_output", ErrorCategory.DEGRADABLE, "will not work now"),
        ("tool_error", ErrorCategory.FATAL, "will not help"),
        ("authentication", ErrorCategory.FATAL, "No call to it will work"),
        ("invalid_arguments", ErrorCategory.DEGRADABLE, "Correct the arguments"),
        ("in_progress", ErrorCategory.RETRYABLE, "under way already"),
        ("too_many", ErrorCategory.DEGRADABLE, "as often as is allowed"),
        ("outcome_unknown", ErrorCategory.DEGRADABLE, "Verify with a read"),
        ("store", ErrorCategory.RETRYABLE, "cannot be looked up"),
        ("something_new", ErrorCategory.DEGRADABLE, "something new"),
    ],
)
def test_each_kind_of_failure_has_advice_of_its_own(
    kind: str, category: ErrorCategory, advice: str
) -> None:
    result = failed(kind, category)
    assert advice in result.text()
    assert "refund" in result.text("zh")
    assert result.text("zh") != result.text()


def test_nothing_is_told_of_the_details_of_credentials() -> None:
    detail = "account 4711 of ops@example.org has no access with key AB12"
    for kind in ("authentication", "permission"):
        for language in ("en", "zh"):
            text = failed(kind, ErrorCategory.FATAL, error_detail=detail).text(language)  # type: ignore[arg-type]
            assert "4711" not in text
            assert "ops@" not in text


@pytest.mark.parametrize("kind", ["invalid_arguments", "validation", "tool_error", "programming"])
def test_an_error_of_an_effects_own_is_called_neither_silence_nor_wrong_arguments(
    kind: str,
) -> None:
    result = failed(kind, ErrorCategory.DEGRADABLE, error_detail="odd", outcome_unknown=True)
    assert result.text() == (
        "refund failed (error): odd. It had begun by then, so it may or may not have happened. "
        "Verify with a read before trying again; do not repeat it blindly."
    )
    assert result.text("zh").startswith("refund 失败（出错）：odd。当时它已经开始")


def test_a_detail_stays_one_short_line() -> None:
    detail = "no such order:\n  Traceback\n" + "x" * 5000
    text = failed("tool_error", ErrorCategory.FATAL, error_detail=detail).text()
    assert "\n" not in text
    assert len(text) < 600


def test_a_substitute_says_what_it_is_and_how_old() -> None:
    result = ToolResult(
        True,
        ErrorCategory.RETRYABLE,
        "search",
        {"hits": 3},
        "timeout",
        degraded="cached",
        age_seconds=40.0,
    )
    assert (
        result.text()
        == '[search is down (timeout); this is its answer from 40 s ago.]\n{"hits": 3}'
    )
    assert result.text("zh").startswith("[search 不可用（超时）；这是 40 秒前的结果。]")
    other = ToolResult(True, None, "search", "x", degraded="tool:backup")
    assert other.text() == "[search is down; backup has answered in its place.]\nx"
    fixed = ToolResult(True, None, "search", "x", degraded="static")
    assert "fixed answer" in fixed.text()
    earlier = ToolResult(True, None, "send", "sent", degraded="earlier", age_seconds=7200.0)
    assert "done this already, 2 h ago" in earlier.text()


def test_a_good_result_is_what_the_tool_gave() -> None:
    assert ToolResult(True, None, "t", "plain").text() == "plain"
    assert ToolResult(True, None, "t", {"a": "é"}).text() == '{"a": "é"}'
    loop: list[object] = []
    loop.append(loop)
    assert ToolResult(True, None, "t", loop).text()  # what has no JSON is named, not raised


def test_json_goes_there_and_back_without_the_exception() -> None:
    data = json.loads(json.dumps(FAILED.to_json()))
    assert "sk-aaaaaaaaaaaaaaaa" not in json.dumps(data)
    assert ToolResult.from_json(data) == FAILED
    assert ToolResult.from_json(data).error is None
    for wrong in ({}, {**data, "category": "odd"}):
        with pytest.raises(ValueError, match="no result of a tool"):
            ToolResult.from_json(wrong)


def test_an_artifact_has_the_exception_until_it_is_saved() -> None:
    artifact = ResultArtifact(FAILED)
    assert ToolResult.from_json(artifact) is FAILED
    assert artifact == FAILED.to_json()
    for saved in (pickle.loads(pickle.dumps(artifact)), copy.deepcopy(artifact)):
        assert type(saved) is dict
        assert ToolResult.from_json(saved) == FAILED


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0, "0 s"), (0.2, "1 s"), (59.6, "60 s"), (180, "3 min"), (7200, "2 h"), (172_800, "2 days")],
)
def test_times_have_one_number_and_one_unit(seconds: float, words: str) -> None:
    assert seconds_words(seconds) == words

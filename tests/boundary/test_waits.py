"""How long the other side asked to wait, in every form that it is told in."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from shearpin.boundary import classify, waits

pytest.importorskip("hypothesis", reason="hypothesis is not installed")
from hypothesis import given
from hypothesis import strategies as st

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
EPOCH = int(NOW.timestamp())


@pytest.fixture(autouse=True)
def noon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waits, "wall_time", lambda: NOW.isoformat())


class RefusedError(Exception):
    def __init__(self, headers: object, status: int = 429) -> None:
        super().__init__("no")
        self.response = SimpleNamespace(status_code=status, headers=headers)


def wait(**headers: Any) -> float | None:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return classify(RefusedError(named)).retry_after


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("7", 7.0),
        (" 7 ", 7.0),
        ("0", 0.0),
        ("1.5", 1.5),
        ("2s", 2.0),
        ("300ms", 0.3),
        (7, 7.0),
        (b"7", 7.0),
        ("Fri, 02 Jan 2026 03:05:05 GMT", 60.0),
        ("Friday, 02-Jan-26 03:05:05 GMT", 60.0),
        ("Fri, 02 Jan 2026 05:05:05 +0200", 60.0),
        ("Fri, 02 Jan 2026 03:05:05 -0000", 60.0),
        ("2026-01-02T03:05:05Z", 60.0),
        ("2026-01-02T03:05:05", 60.0),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0.0),
        ("99999999", 7 * 86_400.0),
        ("-5", None),
        ("soon", None),
        ("", None),
        ("NaN", None),
        ("inf", None),
        ("1e3", None),
        ("7 apples", None),
        ("٧", None),
        ("Fri, 99 Jan 2026 03:05:05 GMT", None),
        ("9" * 500, None),
        (None, None),
    ],
)
def test_retry_after(value: object, seconds: float | None) -> None:
    assert wait(retry_after=value) == seconds


def test_the_dates_of_an_answer_are_compared_with_each_other() -> None:
    clock_is_off = {"Date": "Fri, 02 Jan 2026 01:00:00 GMT"}
    asked = {"Retry-After": "Fri, 02 Jan 2026 01:00:09 GMT", **clock_is_off}
    assert classify(RefusedError(asked)).retry_after == 9.0


def test_milliseconds_come_first() -> None:
    assert wait(retry_after_ms="1500", retry_after="2") == 1.5
    assert wait(retry_after_ms="soon", retry_after="2") == 2.0


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"x-ratelimit-reset-requests": "6m0s"}, 360.0),
        ({"x-ratelimit-reset-tokens": "1.2s"}, 1.2),
        ({"x-ratelimit-reset-tokens": "6ms"}, 0.006),
        ({"x-ratelimit-reset-requests": "1h2m3s"}, 3723.0),
        ({"x-ratelimit-reset": str(EPOCH + 30)}, 30.0),
        ({"x-ratelimit-reset": str((EPOCH + 30) * 1000)}, 30.0),
        ({"x-ratelimit-reset": str(EPOCH - 30)}, 0.0),
        ({"x-ratelimit-reset": "45"}, 45.0),
        ({"ratelimit-reset": "45"}, 45.0),
        ({"ratelimit": '"default";r=0;t=12'}, 12.0),
        ({"ratelimit": "limit=10, remaining=0, reset=12"}, 12.0),
        ({"anthropic-ratelimit-requests-reset": "2026-01-02T03:04:35Z"}, 30.0),
        ({"anthropic-ratelimit-tokens-reset": "garbage"}, None),
        ({"x-ratelimit-reset-requests": "6m0x"}, None),
        ({"x-ratelimit-remaining": "0"}, None),
        ({"RETRY-AFTER": "3", "x-ratelimit-reset": "45"}, 3.0),
    ],
)
def test_resets_of_a_rate_limit(headers: dict[str, str], seconds: float | None) -> None:
    assert classify(RefusedError(headers)).retry_after == seconds
    if "RETRY-AFTER" not in headers:
        assert classify(RefusedError(headers, 503)).retry_after is None, "no limit was hit"


def test_the_limit_that_is_used_up_counts() -> None:
    headers = {
        "x-ratelimit-remaining-requests": "0",
        "x-ratelimit-reset-requests": "2s",
        "x-ratelimit-remaining-tokens": "8000",
        "x-ratelimit-reset-tokens": "6m0s",
    }
    assert classify(RefusedError(headers)).retry_after == 2.0
    headers["x-ratelimit-remaining-tokens"] = "0"
    assert classify(RefusedError(headers)).retry_after == 360.0
    del headers["x-ratelimit-remaining-tokens"], headers["x-ratelimit-remaining-requests"]
    assert classify(RefusedError(headers)).retry_after == 360.0


@pytest.mark.parametrize(
    "headers", [[("Retry-After", "3")], {b"retry-after": b"3"}, None, 7, "x", [1]]
)
def test_headers_may_be_kept_in_any_way(headers: object) -> None:
    found = classify(RefusedError(headers))
    assert found.error_type == "rate_limit"
    assert found.retry_after in (3.0, None)
    assert (found.retry_after == 3.0) == (isinstance(headers, (list, dict)) and headers != [1])


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (3, 3.0),
        (2.5, 2.5),
        (timedelta(seconds=4), 4.0),
        (-1, None),
        (float("nan"), None),
        (True, None),
    ],
)
def test_an_attribute_of_the_exception(value: object, seconds: float | None) -> None:
    error = RefusedError({})
    error.retry_after = value  # type: ignore[attr-defined]
    assert classify(error).retry_after == seconds


@given(st.text(max_size=60))
def test_no_text_is_too_strange(value: str) -> None:
    for name in ("retry-after", "retry-after-ms", "x-ratelimit-reset", "x-ratelimit-reset-tokens"):
        seconds = classify(RefusedError({name: value, "date": value})).retry_after
        assert seconds is None or 0.0 <= seconds <= 7 * 86_400


@given(st.floats(), st.integers())
def test_no_number_is_too_strange(number: float, whole: int) -> None:
    for value in (number, whole):
        seconds = classify(RefusedError({"retry-after": str(value)})).retry_after
        assert seconds is None or 0.0 <= seconds <= 7 * 86_400
        error = RefusedError({})
        error.retry_after = value  # type: ignore[attr-defined]
        seconds = classify(error).retry_after
        assert seconds is None or 0.0 <= seconds <= 7 * 86_400

"""How exceptions are classified: what decides in a chain, rules, control flow, and hostile ones."""

from __future__ import annotations

import asyncio
import pickle
import subprocess
import sys
from concurrent.futures.process import _ExceptionWithTraceback  # type: ignore[attr-defined]
from typing import Any

import pytest

from shearpin.boundary import Classification, ErrorCategory, classify
from shearpin.boundary.classification import is_control
from shearpin.errors import BudgetExceededError

FATAL, DEGRADABLE = ErrorCategory.FATAL, ErrorCategory.DEGRADABLE
RETRYABLE, CONTROL = ErrorCategory.RETRYABLE, ErrorCategory.CONTROL


class StatusError(Exception):
    def __init__(self, status_code: object, headers: object = None, message: str = "no") -> None:
        super().__init__(message)
        self.status_code = status_code
        self.headers = headers


class SearchFailedError(Exception):
    """A tool's own."""


def raised(inner: BaseException, outer: BaseException, link: str) -> BaseException:
    """An exception raised while another one is handled: with `from`, without, or `from None`."""
    try:
        try:
            raise inner
        except BaseException as error:
            if link == "cause":
                raise outer from error
            if link == "suppressed":
                raise outer from None
            raise outer  # noqa: B904 - the context is what is meant
    except BaseException as error:
        return error


def summary(error: BaseException, *rules: Any) -> str:
    found = classify(error, rules)
    return f"{found.category} {found.error_type}" + (" safe" if found.safe_to_retry else "")


REFUSED = ConnectionRefusedError(111, "Connection refused")


# -- what decides in a chain ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("inner", "outer", "expected"),
    [
        (StatusError(429), RuntimeError("failed"), "retryable rate_limit safe"),
        (StatusError(429), Exception("failed"), "retryable rate_limit safe"),
        (StatusError(429), ValueError("failed"), "retryable rate_limit safe"),
        (StatusError(429), SearchFailedError("failed"), "retryable rate_limit safe"),
        (StatusError(401), ValueError("failed"), "fatal authentication"),
        (StatusError(401), StatusError(503), "retryable overloaded"),
        (StatusError(429), AttributeError("'X' has no 'y'"), "fatal programming"),
        (StatusError(429), KeyError("y"), "fatal programming"),
        (KeyError("city"), ValueError("no such city"), "degradable invalid_arguments"),
        (KeyError("city"), SearchFailedError("no such city"), "degradable unknown"),
        (TypeError("no"), RuntimeError("failed"), "fatal programming"),
        (TypeError("no"), Exception("failed"), "fatal programming"),
        (REFUSED, TimeoutError("late"), "retryable network safe"),
        (ValueError("no"), RuntimeError("failed"), "degradable invalid_arguments"),
    ],
)
def test_the_one_that_says_most_decides(
    inner: BaseException, outer: BaseException, expected: str
) -> None:
    assert summary(raised(inner, outer, "cause")) == expected


def test_a_suppressed_context_does_not_count_and_another_does() -> None:
    pairs = [(SearchFailedError("no"), link) for link in ("context", "suppressed")]
    found = [summary(raised(StatusError(429), outer, link)) for outer, link in pairs]
    assert found == ["retryable rate_limit safe", "degradable unknown"]


def test_an_earlier_failure_to_connect_makes_a_later_timeout_no_safer() -> None:
    httpx = pytest.importorskip("httpx")
    late = raised(httpx.ConnectError("no"), httpx.ReadTimeout("late"), "context")
    assert summary(late) == "retryable timeout"
    assert summary(raised(REFUSED, TimeoutError("late"), "context")) == "retryable timeout"


def test_why_there_was_no_connection_does_not_make_it_one() -> None:
    httpx = pytest.importorskip("httpx")
    reset = ConnectionResetError(104, "Connection reset by peer")
    assert summary(raised(reset, httpx.ConnectError("no"), "cause")) == "retryable network safe"
    assert summary(raised(reset, httpx.ReadError("no"), "cause")) == "retryable network"


def test_the_root_is_at_the_end_of_the_causes() -> None:
    limit = StatusError(429)
    outer = raised(raised(limit, ValueError("one"), "cause"), RuntimeError("two"), "cause")
    found = classify(outer)
    assert found.root is limit
    bottom = raised(REFUSED, StatusError(503), "cause")
    assert classify(bottom).root is REFUSED
    mistake = raised(limit, AttributeError("no"), "context")
    assert classify(mistake).root is mistake


def test_of_a_group_the_gravest_counts_and_all_have_to_be_safe() -> None:
    safe, unsafe, later = StatusError(429), StatusError(500), StatusError(503, {"retry-after": "9"})
    assert summary(ExceptionGroup("g", [safe, safe])) == "retryable rate_limit safe"
    found = classify(ExceptionGroup("g", [safe, ExceptionGroup("h", [unsafe, later])]))
    assert (found.category, found.safe_to_retry, found.retry_after) == (RETRYABLE, False, 9)
    assert summary(ExceptionGroup("g", [safe, ValueError("no")])) == "degradable invalid_arguments"
    assert (
        summary(ExceptionGroup("g", [ValueError("no"), StatusError(401)])) == "fatal authentication"
    )
    wrapped = raised(ExceptionGroup("g", [safe]), RuntimeError("failed"), "cause")
    assert summary(wrapped) == "retryable rate_limit safe"


def test_a_task_group_tells_of_its_task() -> None:
    async def work() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(fail())

    async def fail() -> None:
        raise StatusError(429)

    with pytest.raises(ExceptionGroup) as caught:
        asyncio.run(work())
    assert summary(caught.value) == "retryable rate_limit safe"


def test_a_failure_in_a_process_pool_is_the_failure_itself() -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        assert 1 / 0
    carried = _ExceptionWithTraceback(caught.value, caught.value.__traceback__)
    error = pickle.loads(pickle.dumps(carried))  # as a pool sends it
    assert type(error.__cause__).__name__ == "_RemoteTraceback"
    found = classify(error)
    assert found.root is error
    assert found.message == "division by zero"


def test_what_a_wrapper_asks_to_wait_is_not_lost() -> None:
    outer = raised(StatusError(429, {"Retry-After": "7"}), SearchFailedError("failed"), "cause")
    assert classify(outer).retry_after == 7


def test_a_fatal_failure_asks_for_no_wait() -> None:
    assert classify(StatusError(401, {"Retry-After": "7"})).retry_after is None


# -- control flow -----------------------------------------------------------------------------


def test_what_is_no_exception_is_control_flow() -> None:
    class Cancelled(BaseException):
        """As of another event loop's."""

    for error in (Cancelled(), asyncio.CancelledError(), KeyboardInterrupt(), SystemExit(2)):
        assert is_control(error)
        assert classify(error).category is CONTROL
        assert classify(error, [lambda _: "fatal"]).category is CONTROL, "rules are not asked"


def test_a_group_with_control_flow_in_it_is_control_flow() -> None:
    interrupt = pytest.importorskip("langgraph.errors").GraphInterrupt(())
    deep = ExceptionGroup("g", [ValueError("no"), ExceptionGroup("h", [interrupt])])
    assert is_control(deep)
    assert classify(deep).category is CONTROL
    assert is_control(BaseExceptionGroup("g", [ValueError("no"), KeyboardInterrupt()]))
    assert not is_control(BaseExceptionGroup("g", [ValueError("no")]))


def test_a_timeout_is_no_cancellation_although_it_came_from_one() -> None:
    async def late() -> None:
        async with asyncio.timeout(0):
            await asyncio.Event().wait()

    with pytest.raises(TimeoutError) as caught:
        asyncio.run(late())
    assert summary(caught.value) == "retryable timeout"
    assert classify(caught.value).root is caught.value


def test_stops_of_a_guard_count_wherever_they_are() -> None:
    signals = pytest.importorskip("shearpin.adapters.signals")
    from shearpin.verdicts import Halt

    halt = Halt(reason="loop:repeat", message="stopped")
    for stop in (signals.Stop(halt), signals.PausingStop(halt), signals.HardStop(halt)):
        for link in ("cause", "context"):
            outer = raised(stop, RuntimeError("tool failed"), link)
            assert classify(outer).category is CONTROL
    swallowed = raised(BudgetExceededError("of a sub-agent"), ValueError("no"), "context")
    assert summary(swallowed) == "degradable invalid_arguments"


def test_an_interrupt_that_a_retry_layer_carries_stays_one() -> None:
    tenacity = pytest.importorskip("tenacity")
    interrupt = pytest.importorskip("langgraph.errors").GraphInterrupt(())

    @tenacity.retry(stop=tenacity.stop_after_attempt(2))
    def asks() -> None:
        raise interrupt

    with pytest.raises(tenacity.RetryError) as caught:
        asks()
    assert classify(caught.value).category is CONTROL


def test_a_resume_that_does_not_fit_is_control_flow() -> None:
    errors = pytest.importorskip("langgraph.errors")
    mark = getattr(errors, "_mark_invalid_resume", None)
    if mark is None:
        pytest.skip("this langgraph does not check resume values")
    error = ValueError("not what was asked for")
    assert not is_control(error)
    mark(error)
    assert is_control(error)


# -- rules ------------------------------------------------------------------------------------


def test_rules_come_first_and_see_the_chain_from_outside_in() -> None:
    inner, outer = StatusError(403), RuntimeError("failed")
    error = raised(inner, outer, "cause")
    seen: list[BaseException] = []

    def watch(each: BaseException) -> None:
        seen.append(each)

    def forbidden(each: BaseException) -> ErrorCategory | None:
        return FATAL if getattr(each, "status_code", None) == 403 else None

    found = classify(error, [watch, forbidden])
    assert seen == [outer, inner]
    assert (found.category, found.error_type, found.root) == (FATAL, "permission", inner)


def test_a_rule_may_say_everything_or_nothing() -> None:
    error = ValueError("no")
    mine = Classification(RETRYABLE, "mine", 3.0, True, error, "again")
    assert classify(error, [lambda _: None, lambda _: mine, lambda _: FATAL]) is mine
    assert summary(error, lambda _: "retryable") == "retryable invalid_arguments"
    assert summary(error, lambda _: None) == "degradable invalid_arguments"


@pytest.mark.parametrize("junk", [42, "nonsense", object(), True])
def test_what_a_rule_cannot_mean_is_passed_over(junk: object) -> None:
    assert summary(ValueError("no"), lambda _: junk) == "degradable invalid_arguments"


def test_a_rule_that_fails_is_passed_over_and_told_of() -> None:
    def broken(error: BaseException) -> None:
        raise OSError("rule is broken")

    faults: list[Exception] = []
    found = classify(ValueError("no"), [broken, lambda _: RETRYABLE], on_fault=faults.append)
    assert found.category is RETRYABLE
    assert [str(fault) for fault in faults] == ["rule is broken"]


def test_members_of_a_group_are_put_to_the_rules() -> None:
    def mine(error: BaseException) -> str | None:
        return "fatal" if isinstance(error, SearchFailedError) else None

    group = ExceptionGroup("g", [StatusError(429), SearchFailedError("no")])
    assert classify(group, [mine]).category is FATAL


# -- hostile exceptions -----------------------------------------------------------------------


class HostileError(Exception):
    def __getattribute__(self, name: str) -> Any:
        if name == "__class__":
            return super().__getattribute__(name)
        raise RuntimeError(f"no {name}")

    def __str__(self) -> str:
        raise RuntimeError("no words")

    __repr__ = __str__


class PropertyError(Exception):
    @property
    def status_code(self) -> int:
        raise KeyError("no")

    @property
    def response(self) -> object:
        raise RecursionError("no")

    @property
    def __cause__(self) -> BaseException:  # type: ignore[override]
        raise TypeError("no")


class Liar(type):
    @property
    def __mro__(cls) -> Any:
        raise RuntimeError("no")

    @property
    def __name__(cls) -> Any:
        raise RuntimeError("no")


class LiedAboutError(Exception, metaclass=Liar):
    pass


class HomelessError(Exception):
    pass


HomelessError.__module__ = None  # type: ignore[assignment]


@pytest.mark.parametrize(
    "make",
    [HostileError, PropertyError, LiedAboutError, HomelessError],
    ids=["attributes", "properties", "metaclass", "module"],
)
def test_attributes_that_fail_hide_nothing_and_raise_nothing(make: Any) -> None:
    found = classify(make("no"))
    assert found.category is DEGRADABLE
    assert found.message
    found = classify(ExceptionGroup("g", [make("no"), StatusError(401)]))
    assert found.category is FATAL


@pytest.mark.parametrize(
    "status",
    [True, None, 429.0, "４２９", b"429", [429], 10**400, -1, "1e3", "429 widgets", 0, 200],
)
def test_what_is_no_status_of_a_failure(status: object) -> None:
    assert summary(StatusError(status)) == "degradable unknown"


def test_a_status_may_be_text() -> None:
    assert summary(StatusError(" 429 ")) == "retryable rate_limit safe"


def test_names_count_where_they_come_from() -> None:
    mine = type("RateLimitError", (Exception,), {"__module__": "app.openai_tools"})
    assert summary(mine("no")) == "degradable unknown"
    longer = type("RateLimitError", (Exception,), {"__module__": "openaix"})
    assert summary(longer("no")) == "degradable unknown"


def test_cycles_and_endless_chains_end() -> None:
    one, two = RuntimeError("one"), RuntimeError("two")
    one.__cause__, two.__cause__ = two, one
    assert summary(one) == "degradable unknown"
    one.__cause__ = one
    assert summary(one) == "degradable unknown"
    ring = RuntimeError("ring")
    ring.__cause__ = group = ExceptionGroup("g", [ring])
    assert summary(ring) == summary(group) == "degradable unknown"
    error: BaseException = REFUSED
    for number in range(10_000):
        outer = RuntimeError(str(number))
        outer.__cause__ = error
        error = outer
    assert summary(error) == "degradable unknown"
    while error.__cause__ is not None:  # so that the chain is not taken apart recursively
        error.__cause__, error = None, error.__cause__


def test_long_chains_and_deep_groups_are_followed() -> None:
    error: Exception = REFUSED
    for number in range(40):
        outer = RuntimeError(str(number))
        outer.__cause__ = error
        error = outer
    assert summary(error) == "retryable network safe"
    deep: Exception = TimeoutError("late")
    for number in range(300):
        deep = ExceptionGroup(str(number), [deep])
    assert summary(deep) == "retryable timeout"
    wide = ExceptionGroup("wide", [TimeoutError("late") for _ in range(5_000)])
    assert summary(wide) == "retryable timeout"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("customer id 14290", "degradable unknown"),
        ("I read 429 pages; too many requests", "degradable unknown"),
        ("order 503 Service Unavailable", "degradable unknown"),
        ("HTTP 5000", "degradable unknown"),
        ("status code 500.5", "degradable unknown"),
        ("error code 404 in column 3", "degradable unknown"),
        ("503 servers were upgraded", "degradable unknown"),
        ("请求过于频繁，请稍后再试 429", "degradable unknown"),
        ("Le serveur a répondu 503", "degradable unknown"),
        ("429", "degradable unknown"),
        ("rate limit exceeded", "degradable unknown"),
        ("insufficient_quota", "degradable unknown"),
        ("429 Too Many Requests", "retryable rate_limit"),
        ("429 Client Error: Too Many Requests for url: x", "retryable rate_limit"),
        ("HTTP 429", "retryable rate_limit"),
        ("HTTP/1.1 502 Bad Gateway", "retryable server_error"),
        ("Error code: 529 - {'type': 'error'}", "retryable overloaded"),
        ("Error: 500 Internal Server Error", "retryable server_error"),
        ("status code: 401", "fatal authentication"),
        ("404 Not Found", "degradable not_found"),
    ],
)
def test_words_count_only_where_a_line_of_http_begins_them(text: str, expected: str) -> None:
    assert summary(Exception(text)) == expected
    assert summary(SearchFailedError(text)) == "degradable unknown", "a class of its own is no text"
    assert summary(ValueError(text)) == "degradable invalid_arguments"


class CodedError(Exception):
    def __init__(self, code: object, **more: object) -> None:
        super().__init__("no")
        self.code = code
        self.__dict__.update(more)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (CodedError("rate_limit_exceeded"), "retryable rate_limit"),
        (CodedError("insufficient_quota"), "degradable quota"),
        (CodedError("invalid_api_key"), "fatal authentication"),
        (CodedError("rate_limit_exceeded", status_code=503), "retryable overloaded"),
        (CodedError("out_of_stock"), "degradable unknown"),
        (CodedError(None, status_code="429 Too Many Requests"), "retryable rate_limit"),
        (CodedError(None, status_code="503 Service Unavailable"), "retryable overloaded"),
        (CodedError(None, status="404 shirts"), "degradable unknown"),
    ],
)
def test_codes_and_statuses_of_unknown_classes_are_read(error: Exception, expected: str) -> None:
    assert summary(error).startswith(expected)


# -- what is told -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("https://user:pw@host/x?api_key=abcdef123 failed", "https://•••@host/x?••• failed"),
        ("postgresql://u:p/w@x@db:5432/d timed out", "postgresql://•••@db:5432/d timed out"),
        ("redis://:pass@host:6379/0", "redis://•••@host:6379/0"),
        ("Incorrect API key provided: sk-proj-abc***xyz.", "Incorrect API key provided: •••."),
        ("X-Api-Key: 12345678abcdef", "X-Api-Key: •••"),
        ("aws_secret_access_key=AbCdEf123456", "aws_secret_access_key=•••"),
        ("{'password': 'hunter2', 'user': 'ann'}", "{'password': '•••', 'user': 'ann'}"),
        ("max_tokens=4096 is too much", "max_tokens=4096 is too much"),
        ("one\n  two\tthree", "one two three"),
        ('Traceback (most recent call last):\n  File "a"\nBoomError: boom', "BoomError: boom"),
    ],
)
def test_the_message_is_one_line_without_secrets(text: str, told: str) -> None:
    assert classify(SearchFailedError(text)).message == told


def test_the_message_is_short_and_never_empty() -> None:
    assert len(classify(SearchFailedError("x" * 10**6)).message) == 200
    assert classify(TimeoutError()).message == "TimeoutError"
    assert classify(KeyError("city")).message == "KeyError: 'city'"
    inner = TimeoutError()
    assert classify(raised(inner, RuntimeError("search took too long"), "cause")).message == (
        "search took too long"
    )


def test_a_classification_is_a_value() -> None:
    found = classify(StatusError(429))
    assert found == classify(found.root)
    again = pickle.loads(pickle.dumps(classify(ValueError("no"))))
    assert again.category is DEGRADABLE


def test_nothing_is_imported() -> None:
    code = (
        "import sys; from shearpin.boundary import classify; classify(ValueError('no'));"
        "print(sorted(m for m in sys.modules if m.split('.')[0] in "
        "('openai', 'httpx', 'langgraph', 'langchain_core', 'pydantic', 'botocore', 'requests')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"

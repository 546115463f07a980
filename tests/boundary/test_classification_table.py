"""Realistic exceptions of real SDKs, most of them raised through a real exchange on loopback."""

from __future__ import annotations

import asyncio
import json
import socket
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any, NamedTuple

import pydantic
import pytest

from shearpin.boundary import Classification, classify
from shearpin.errors import BudgetExceededError, LedgerError
from shearpin.testing import Fault
from tests.boundary.answering import Answering, answering
from tests.boundary.exchanges import (
    Raises,
    by_aiohttp,
    by_anthropic,
    by_bedrock,
    by_chat_anthropic,
    by_chat_google,
    by_chat_openai,
    by_dynamo,
    by_genai,
    by_httpx,
    by_mistral,
    by_openai,
    by_requests,
    by_urllib,
    google_error,
    module,
)

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]


class Case(NamedTuple):
    id: str
    raises: Raises
    expected: str
    """Category, error type, `safe` where it is, and seconds where the other side asked for them."""


def raising(make: Callable[[], BaseException]) -> Raises:
    def raises(server: Answering) -> None:
        raise make()

    return raises


def calling(call: Callable[[], object]) -> Raises:
    return lambda server: call()


WAIT = {"Retry-After": "4"}
LONG = "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."
PER_DAY = {"violations": [{"quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier"}]}
BAD_KEY = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}
LIMITS = {
    "x-ratelimit-remaining-requests": "0",
    "x-ratelimit-reset-requests": "1m30s",
    "x-ratelimit-remaining-tokens": "9000",
    "x-ratelimit-reset-tokens": "6ms",
}

PROVIDERS = [
    (f"{name} {case}", by(fault), expected)
    for name, by in (
        ("openai", by_openai),
        ("chat_openai", by_chat_openai),
        ("anthropic", by_anthropic),
        ("chat_anthropic", by_chat_anthropic),
    )
    for case, fault, expected in (
        ("rate limit", Fault.rate_limit(), "retryable rate_limit safe"),
        ("rate limit, wait", Fault.rate_limit(7), "retryable rate_limit safe 7"),
        ("rate limit, reset", Fault.rate_limit(headers=LIMITS), "retryable rate_limit safe 90"),
        ("quota", Fault.insufficient_quota(), "degradable quota"),
        ("overloaded, wait", Fault.overloaded(3), "retryable overloaded safe 3"),
        ("overloaded", Fault.overloaded(), "retryable overloaded"),
        ("500", Fault.status(500), "retryable server_error"),
        ("502", Fault.status(502), "retryable server_error"),
        ("408", Fault.status(408), "retryable timeout"),
        ("409", Fault.status(409), "retryable conflict"),
        ("401", Fault.unauthorized(), "fatal authentication"),
        ("403", Fault.status(403), "fatal permission"),
        ("404", Fault.status(404), "fatal not_found"),
        ("400", Fault.status(400), "fatal invalid_request"),
        ("422", Fault.status(422), "fatal invalid_request"),
        ("customer id 14290", Fault.status(400, "no 14290"), "fatal invalid_request"),
        ("too long", Fault.context_length_exceeded(), "degradable context_length"),
        ("filtered prompt", Fault.prompt_filtered(), "degradable content_filter"),
        (
            "will not",
            Fault.status(429, headers={"x-should-retry": "false", "Retry-After": "9"}),
            "degradable rate_limit 9",
        ),
        ("slow", Fault.slow(), "retryable timeout"),
        ("cut", Fault.cut(), "retryable network"),
        ("reset", Fault.reset(), "retryable network"),
        ("truncated", Fault.truncated_json(), "degradable bad_output"),
    )
]

STREAMS = [
    ("openai stream cut", by_openai(Fault.cut(), streams=True), "retryable network"),
    (
        "openai stream error",
        by_openai(Fault.fails_in_stream(), streams=True),
        "retryable server_error",
    ),
    ("chat_openai stream cut", by_chat_openai(Fault.cut(), streams=True), "retryable network"),
    (
        "chat_openai stream error",
        by_chat_openai(Fault.fails_in_stream(), streams=True),
        "retryable server_error",
    ),
    (
        "anthropic stream error, status 200",
        by_anthropic(Fault.fails_in_stream(), streams=True),
        "retryable overloaded",
    ),
    (
        "chat_anthropic stream error, status 200",
        by_chat_anthropic(Fault.fails_in_stream(), streams=True),
        "retryable overloaded",
    ),
    (
        "chat_anthropic stream reset",
        by_chat_anthropic(Fault.reset(), streams=True),
        "retryable network",
    ),
]

GOOGLE = [
    (
        "genai rate limit, RetryInfo",
        by_genai(429, google_error(429, "RESOURCE_EXHAUSTED", "quota", {"retryDelay": "34.5s"})),
        "retryable rate_limit safe 34.5",
    ),
    (
        "genai quota per day",
        by_genai(429, google_error(429, "RESOURCE_EXHAUSTED", "quota", PER_DAY)),
        "degradable quota",
    ),
    (
        "genai key",
        by_genai(400, google_error(400, "INVALID_ARGUMENT", "key", BAD_KEY)),
        "fatal authentication",
    ),
    (
        "genai too long",
        by_genai(400, google_error(400, "INVALID_ARGUMENT", LONG)),
        "degradable context_length",
    ),
    ("genai 400", by_genai(400, google_error(400, "INVALID_ARGUMENT")), "fatal invalid_request"),
    ("genai 403", by_genai(403, google_error(403, "PERMISSION_DENIED")), "fatal permission"),
    ("genai 404", by_genai(404, google_error(404, "NOT_FOUND")), "fatal not_found"),
    ("genai 500", by_genai(500, b"<html>"), "retryable server_error"),
    ("genai 503", by_genai(503, google_error(503, "UNAVAILABLE")), "retryable overloaded"),
    ("genai 504", by_genai(504, google_error(504, "DEADLINE_EXCEEDED")), "retryable timeout"),
    ("genai refused", by_genai(leaves="refused"), "retryable network safe"),
    ("genai silent", by_genai(leaves="silent"), "retryable timeout"),
    (
        "chat_google rate limit",
        by_chat_google(429, google_error(429, "RESOURCE_EXHAUSTED", "quota", {"retryDelay": "3s"})),
        "retryable rate_limit safe 3",
    ),
    (
        "chat_google quota per day, in LangChain's words a rate limit",
        by_chat_google(429, google_error(429, "RESOURCE_EXHAUSTED", "quota", PER_DAY)),
        "degradable quota",
    ),
    (
        "chat_google too long",
        by_chat_google(400, google_error(400, "INVALID_ARGUMENT", LONG)),
        "degradable context_length",
    ),
]

MISTRAL = [
    ("mistral 401", by_mistral(401), "fatal authentication"),
    ("mistral 422", by_mistral(422, {"detail": []}), "fatal invalid_request"),
    ("mistral 429", by_mistral(429, headers=WAIT), "retryable rate_limit safe 4"),
    ("mistral 500", by_mistral(500), "retryable server_error"),
    ("mistral refused", by_mistral(leaves="refused"), "retryable network safe"),
    ("mistral silent", by_mistral(leaves="silent"), "retryable timeout"),
    ("mistral no answer of its kind", by_mistral(200, {"a": 1}), "degradable bad_output"),
]

AWS = [
    ("bedrock throttled", by_bedrock("ThrottlingException", 429), "retryable rate_limit safe"),
    ("bedrock quota", by_bedrock("ServiceQuotaExceededException", 400), "degradable quota"),
    ("bedrock not ready", by_bedrock("ModelNotReadyException", 429), "retryable overloaded safe"),
    ("bedrock timeout", by_bedrock("ModelTimeoutException", 408), "retryable timeout"),
    ("bedrock 500", by_bedrock("InternalServerException", 500), "retryable server_error"),
    ("bedrock denied", by_bedrock("AccessDeniedException", 403), "fatal permission"),
    ("bedrock expired", by_bedrock("ExpiredTokenException", 403), "fatal authentication"),
    ("bedrock model", by_bedrock("ResourceNotFoundException", 404), "fatal not_found"),
    ("bedrock invalid", by_bedrock("ValidationException", 400), "fatal invalid_request"),
    (
        "bedrock too long",
        by_bedrock("ValidationException", 400, "Input is too long for requested model."),
        "degradable context_length",
    ),
    ("bedrock refused", by_bedrock("", 200, leaves="refused"), "retryable network safe"),
    ("bedrock silent", by_bedrock("", 200, leaves="silent"), "retryable timeout"),
    ("bedrock gone", by_bedrock("", 200, leaves="gone"), "retryable network"),
    ("dynamo invalid", by_dynamo("ValidationException"), "degradable invalid_arguments"),
    ("dynamo no table", by_dynamo("ResourceNotFoundException"), "degradable not_found"),
    (
        "dynamo throttled, status 400",
        by_dynamo("ProvisionedThroughputExceededException"),
        "retryable rate_limit safe",
    ),
]


def by_httpx2(status: int = 200, **answer: Any) -> Raises:
    return by_httpx(status, name="httpx2", **answer)


HTTP = [
    (f"{name} {case}", by(**answer), expected)
    for name, by in (
        ("httpx", by_httpx),
        ("httpx2", by_httpx2),
        ("requests", by_requests),
        ("aiohttp", by_aiohttp),
        ("urllib", by_urllib),
    )
    for case, answer, expected in (
        ("400", {"status": 400}, "degradable invalid_arguments"),
        ("401", {"status": 401}, "fatal authentication"),
        ("403", {"status": 403}, "degradable permission"),
        ("404", {"status": 404}, "degradable not_found"),
        ("409", {"status": 409}, "degradable conflict"),
        ("425", {"status": 425}, "retryable overloaded safe"),
        ("429, wait", {"status": 429, "headers": WAIT}, "retryable rate_limit safe 4"),
        ("500", {"status": 500}, "retryable server_error"),
        ("503", {"status": 503}, "retryable overloaded"),
        ("503, wait", {"status": 503, "headers": WAIT}, "retryable overloaded safe 4"),
        ("refused", {"leaves": "refused"}, "retryable network safe"),
        ("cut", {"leaves": "cut"}, "retryable network"),
        ("reset", {"leaves": "reset"}, "retryable network"),
        ("gone", {"leaves": "gone"}, "retryable network"),
        ("silent", {"leaves": "silent"}, "retryable timeout"),
        ("no such host", {"url": "http://nowhere.invalid/"}, "retryable network safe"),
        ("no URL", {"url": "no url"}, "degradable invalid_arguments"),
    )
] + [
    ("httpx no JSON", by_httpx(body=b"<html>"), "degradable bad_output"),
    ("requests no JSON", by_requests(body=b"<html>"), "degradable bad_output"),
    (
        "aiohttp no JSON",
        by_aiohttp(body=b"<html>", headers={"Content-Type": "text/html"}),
        "degradable bad_output",
    ),
]


class Input(pydantic.BaseModel):
    city: str


def done(error: BaseException) -> Future[object]:
    future: Future[object] = Future()
    future.set_exception(error)
    return future


def tool_invocation() -> BaseException:
    nodes = module("langgraph.prebuilt.tool_node")
    try:
        Input.model_validate({})
    except pydantic.ValidationError as error:
        return nodes.ToolInvocationError("search", error, {})
    raise AssertionError("it validates")


def locked() -> None:
    one = sqlite3.connect("file:locked?mode=memory&cache=shared", uri=True, timeout=0)
    two = sqlite3.connect("file:locked?mode=memory&cache=shared", uri=True, timeout=0)
    try:
        one.execute("create table t (a primary key)")
        one.execute("begin immediate")
        one.execute("insert into t values (1)")
        two.execute("insert into t values (2)")
    finally:
        one.close()
        two.close()


def sql(statement: str, *more: str) -> Raises:
    def raises(server: Answering) -> None:
        connection = sqlite3.connect(":memory:")
        try:
            connection.execute("create table t (a primary key)")
            for each in (statement, *more):
                connection.execute(each)
        finally:
            connection.close()

    return raises


def api_core(name: str, *details: object) -> Callable[[], BaseException]:
    return lambda: getattr(module("google.api_core.exceptions"), name)("no", details=details)


def retry_info() -> object:
    module("google.rpc.error_details_pb2")
    from google.protobuf.duration_pb2 import Duration
    from google.rpc.error_details_pb2 import RetryInfo

    return RetryInfo(retry_delay=Duration(seconds=2, nanos=500_000_000))


def langchain(name: str, *args: object) -> Callable[[], BaseException]:
    def make() -> BaseException:
        errors = module("langchain_core.exceptions")
        if not hasattr(errors, name):
            pytest.skip(f"this langchain-core has no {name}")
        return getattr(errors, name)(*(args or ("no",)))

    return make


def langgraph(name: str, *args: object, **options: object) -> Callable[[], BaseException]:
    def make() -> BaseException:
        errors = module("langgraph.errors")
        if not hasattr(errors, name):
            pytest.skip(f"this langgraph has no {name}")
        return getattr(errors, name)(*args, **options)

    return make


def mcp(code: int) -> Callable[[], BaseException]:
    def make() -> BaseException:
        return module("mcp.shared.exceptions").MCPError(code, "no")

    return make


def postgres(name: str) -> Callable[[], BaseException]:
    return lambda: getattr(module("psycopg.errors"), name)("no")


def redis(name: str) -> Callable[[], BaseException]:
    return lambda: getattr(module("redis.exceptions"), name)("no")


def grpc_error(name: str) -> Callable[[], BaseException]:
    def make() -> BaseException:
        grpc = module("grpc")
        aio = module("grpc.aio")
        metadata = aio.Metadata()
        return aio.AioRpcError(getattr(grpc.StatusCode, name), metadata, metadata, "no")

    return make


HOSTS: list[tuple[str, Raises, str]] = [
    (
        "langchain rate limit",
        raising(langchain("ModelRateLimitError")),
        "retryable rate_limit safe",
    ),
    ("langchain 5xx", raising(langchain("ModelAPIError")), "retryable server_error"),
    ("langchain connection", raising(langchain("ModelConnectionError")), "retryable network"),
    ("langchain timeout", raising(langchain("ModelTimeoutError")), "retryable timeout"),
    ("langchain key", raising(langchain("ModelAuthenticationError")), "fatal authentication"),
    ("langchain denied", raising(langchain("ModelPermissionDeniedError")), "fatal permission"),
    ("langchain no model", raising(langchain("ModelNotFoundError")), "fatal not_found"),
    ("langchain request", raising(langchain("ModelInvalidRequestError")), "fatal invalid_request"),
    ("langchain length", raising(langchain("ContextOverflowError")), "degradable context_length"),
    ("langchain refusal", raising(langchain("ModelRefusalError")), "degradable content_filter"),
    ("langchain parser", raising(langchain("OutputParserException")), "degradable bad_output"),
    (
        "langchain tool",
        raising(lambda: module("langchain_core.tools").ToolException("no such customer: 14290")),
        "degradable tool_error",
    ),
    ("langgraph tool arguments", raising(tool_invocation), "degradable invalid_arguments"),
    (
        "langgraph timeout",
        raising(langgraph("NodeTimeoutError", "n", 2.0, kind="run", run_timeout=1.0)),
        "retryable timeout",
    ),
    ("langgraph cancelled", raising(langgraph("NodeCancelledError", "n")), "degradable cancelled"),
    (
        "langgraph limit",
        raising(langgraph("GraphRecursionError", "no")),
        "degradable recursion_limit",
    ),
    ("langgraph update", raising(langgraph("InvalidUpdateError", "no")), "fatal programming"),
    ("langgraph interrupt", raising(langgraph("GraphInterrupt", ())), "control control"),
    ("langgraph drained", raising(langgraph("GraphDrained")), "control control"),
    ("langgraph command", raising(langgraph("ParentCommand", None)), "control control"),
    (
        "answer with an error in it",
        raising(lambda: ValueError({"message": "no credit", "code": "insufficient_quota"})),
        "degradable quota",
    ),
    (
        "answer with a status in it",
        raising(lambda: ValueError({"message": "Provider returned error", "code": 429})),
        "retryable rate_limit safe",
    ),
    ("pydantic", calling(lambda: Input.model_validate({"city": 1})), "degradable validation"),
    ("mcp no method", raising(mcp(-32601)), "degradable unavailable"),
    ("mcp arguments", raising(mcp(-32602)), "degradable invalid_arguments"),
    ("mcp internal", raising(mcp(-32603)), "retryable server_error"),
    ("mcp timeout", raising(mcp(408)), "retryable timeout"),
    ("mcp closed", raising(mcp(-32000)), "retryable network"),
    ("mcp other", raising(mcp(7)), "degradable tool_error"),
    (
        "tenacity",
        raising(lambda: module("tenacity").RetryError(done(ConnectionRefusedError(111, "no")))),
        "retryable network safe",
    ),
    (
        "tenacity of a mistake",
        raising(lambda: module("tenacity").RetryError(done(TypeError("no")))),
        "fatal programming",
    ),
    ("shearpin's own stop", raising(lambda: BudgetExceededError("no")), "control control"),
    ("shearpin's ledger", raising(lambda: LedgerError("no")), "fatal ledger"),
    ("api_core exhausted", raising(api_core("ResourceExhausted")), "retryable rate_limit safe"),
    (
        "api_core exhausted, RetryInfo",
        lambda server: (_ for _ in ()).throw(api_core("ResourceExhausted", retry_info())()),
        "retryable rate_limit safe 2.5",
    ),
    ("api_core unavailable", raising(api_core("ServiceUnavailable")), "retryable overloaded"),
    ("api_core no table", raising(api_core("NotFound")), "degradable not_found"),
    ("api_core key", raising(api_core("Unauthenticated")), "fatal authentication"),
    ("grpc unavailable", raising(grpc_error("UNAVAILABLE")), "retryable overloaded"),
    ("grpc deadline", raising(grpc_error("DEADLINE_EXCEEDED")), "retryable timeout"),
    ("grpc argument", raising(grpc_error("INVALID_ARGUMENT")), "degradable invalid_arguments"),
]

DATA: list[tuple[str, Raises, str]] = [
    ("sqlite locked", calling(locked), "retryable conflict safe"),
    ("sqlite syntax", sql("selct 1"), "degradable invalid_arguments"),
    (
        "sqlite constraint",
        sql("insert into t values (1)", "insert into t values (1)"),
        "degradable conflict",
    ),
    ("postgres deadlock", raising(postgres("DeadlockDetected")), "retryable conflict safe"),
    ("postgres syntax", raising(postgres("SyntaxError")), "degradable invalid_arguments"),
    ("postgres password", raising(postgres("InvalidPassword")), "fatal authentication"),
    ("postgres shutdown", raising(postgres("AdminShutdown")), "retryable network"),
    ("postgres full", raising(postgres("TooManyConnections")), "retryable overloaded"),
    ("redis loading", raising(redis("BusyLoadingError")), "retryable overloaded safe"),
    ("redis password", raising(redis("AuthenticationError")), "fatal authentication"),
    ("redis timeout", raising(redis("TimeoutError")), "retryable timeout"),
    ("json", calling(lambda: json.loads("{")), "degradable bad_output"),
]


class SearchFailedError(Exception):
    """A tool's own."""


class StatusError(Exception):
    def __init__(self, status_code: object) -> None:
        super().__init__(f"failed with {status_code!r}")
        self.status_code = status_code


PYTHON: list[tuple[str, Raises, str]] = [
    (repr(error), raising(lambda error=error: error), expected)
    for error, expected in (
        (TypeError("no"), "fatal programming"),
        (KeyError("city"), "fatal programming"),
        (IndexError("no"), "fatal programming"),
        (AttributeError("no"), "fatal programming"),
        (NameError("no"), "fatal programming"),
        (ImportError("no"), "fatal programming"),
        (ModuleNotFoundError("no"), "fatal programming"),
        (AssertionError("no"), "fatal programming"),
        (NotImplementedError("no"), "fatal programming"),
        (RecursionError("no"), "fatal programming"),
        (MemoryError(), "fatal resources"),
        (ValueError("customer id 14290"), "degradable invalid_arguments"),
        (ZeroDivisionError("division by zero"), "degradable invalid_arguments"),
        (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "no"), "degradable invalid_arguments"),
        (RuntimeError("no"), "degradable unknown"),
        (SearchFailedError("no"), "degradable unknown"),
        (Exception("customer id 14290"), "degradable unknown"),
        (Exception("429"), "degradable unknown"),
        (Exception("429 Too Many Requests"), "retryable rate_limit"),
        (Exception("HTTP 503: upstream is down"), "retryable overloaded"),
        (Exception("Error code: 401 - {'error': 'no'}"), "fatal authentication"),
        (RuntimeError("I read 429 pages; too many requests"), "degradable unknown"),
        (Exception("请求过于频繁 429"), "degradable unknown"),
        (StatusError(429), "retryable rate_limit safe"),
        (StatusError("503"), "retryable overloaded"),
        (StatusError("429 widgets"), "degradable unknown"),
        (StatusError(True), "degradable unknown"),
        (StatusError(14290), "degradable unknown"),
        (TimeoutError(), "retryable timeout"),
        (ConnectionRefusedError(111, "Connection refused"), "retryable network safe"),
        (ConnectionResetError(104, "Connection reset"), "retryable network"),
        (BrokenPipeError(32, "Broken pipe"), "retryable network"),
        (OSError(113, "No route to host"), "retryable network safe"),
        (OSError(28, "No space left on device"), "degradable unavailable"),
        (socket.gaierror(-2, "Name or service not known"), "retryable network safe"),
        (FileNotFoundError(2, "No such file"), "degradable not_found"),
        (PermissionError(13, "Permission denied"), "degradable permission"),
        (asyncio.IncompleteReadError(b"", 4), "retryable network"),
        (subprocess.TimeoutExpired("make", 3), "retryable timeout"),
        (subprocess.CalledProcessError(2, "make"), "degradable tool_error"),
        (asyncio.CancelledError(), "control control"),
        (KeyboardInterrupt(), "control control"),
        (GeneratorExit(), "control control"),
        (SystemExit(1), "control control"),
    )
] + [
    ("code of the agent's", calling(lambda: eval("1 +")), "degradable invalid_arguments"),
]

TABLE = [
    Case(*row)
    for row in (*PROVIDERS, *STREAMS, *GOOGLE, *MISTRAL, *AWS, *HTTP, *HOSTS, *DATA, *PYTHON)
]


@pytest.fixture(scope="module")
def server() -> Iterator[Answering]:
    with answering() as running:
        yield running


def summary(found: Classification) -> str:
    parts = [found.category.value, found.error_type]
    parts += ["safe"] if found.safe_to_retry else []
    parts += [f"{found.retry_after:g}"] if found.retry_after is not None else []
    return " ".join(parts)


def nowhere(*_: object, **__: object) -> None:
    raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")


@pytest.mark.parametrize("case", TABLE, ids=lambda case: case.id)
def test_what_is_raised_is_known_for_what_it_is(
    case: Case, server: Answering, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "no such host" in case.id:
        monkeypatch.setattr(socket, "getaddrinfo", nowhere)
    with pytest.raises(BaseException) as caught:
        case.raises(server)
    error = caught.value
    if type(error).__name__ == "Skipped":
        raise error
    found = classify(error)
    assert summary(found) == case.expected
    assert found.message
    assert "\n" not in found.message
    assert len(found.message) <= 200
    wrapped = RuntimeError("the tool failed")
    wrapped.__cause__ = error
    if found.category.value != "control":
        assert summary(classify(wrapped)) == case.expected, "a wrapper changes nothing"
        group = ExceptionGroup("of tasks", [ExceptionGroup("of more", [error])])  # type: ignore[list-item]
        assert summary(classify(group)) == case.expected


def test_the_table_is_large_enough() -> None:
    assert len(TABLE) >= 200
    assert len({case.id for case in TABLE}) == len(TABLE)

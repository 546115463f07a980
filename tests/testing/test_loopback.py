"""The provider on loopback, through the real clients of OpenAI and Anthropic."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from threading import Thread
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage

from shearpin import ConfigError
from shearpin.testing import Fault, LoopbackProvider, ProviderRequest, asks_for

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")

openai = pytest.importorskip("langchain_openai")
anthropic = pytest.importorskip("langchain_anthropic")

Client = Callable[..., Any]


def chat_openai(provider: LoopbackProvider, **options: Any) -> Any:
    options = {"max_retries": 0, "timeout": 30, **options}
    return openai.ChatOpenAI(
        model="gpt-4o-mini", base_url=provider.openai_url, api_key="none", **options
    )


def chat_anthropic(provider: LoopbackProvider, **options: Any) -> Any:
    options = {"max_tokens": 60, "max_retries": 0, "timeout": 30, **options}
    return anthropic.ChatAnthropic(
        model="claude-haiku-4-5", base_url=provider.url, api_key="none", **options
    )


CLIENTS = pytest.mark.parametrize("client", [chat_openai, chat_anthropic])
WAYS = pytest.mark.parametrize("streams", [False, True])


@pytest.fixture
def provider() -> Iterator[LoopbackProvider]:
    with LoopbackProvider() as running:
        yield running


def search(q: str) -> str:
    """Search."""
    return q


def fetch(n: int) -> int:
    """Fetch."""
    return n


def asked(model: Any, streams: bool) -> AIMessage:
    if not streams:
        return model.invoke([HumanMessage("hi")])
    whole: AIMessageChunk | None = None
    for chunk in model.stream([HumanMessage("hi")]):
        whole = chunk if whole is None else whole + chunk
    assert whole is not None
    return whole


@CLIENTS
@WAYS
def test_answers_and_tool_calls_arrive(
    client: Client, streams: bool, provider: LoopbackProvider
) -> None:
    call = asks_for(("search", {"q": "pin"}), ("fetch", {"n": 2}), text="let me see")
    provider.play("hello there", call)
    model = client(provider).bind_tools([search, fetch])
    assert asked(model, streams).text == "hello there"
    answer = asked(model, streams)
    assert answer.text == "let me see"
    assert [(c["name"], c["args"], c["id"]) for c in answer.tool_calls] == [
        (c["name"], c["args"], c["id"]) for c in call.tool_calls
    ]
    assert asked(model, streams).text == "done"
    assert [request.streamed for request in provider.requests] == [streams] * 3
    assert [request.number for request in provider.requests] == [1, 2, 3]


@CLIENTS
@WAYS
def test_an_answer_is_cut_to_what_the_request_allows(client: Client, streams: bool) -> None:
    with LoopbackProvider(then="one two three four five") as provider:
        answer = asked(client(provider, max_tokens=3), streams)
    assert answer.text.split() == ["one", "two", "three"]
    told = answer.response_metadata
    assert (told.get("finish_reason") or told.get("stop_reason")) in ("length", "max_tokens")


def beneath(error: BaseException | None) -> Iterator[str]:
    while error is not None:
        yield type(error).__name__
        error = error.__cause__


REFUSALS = {
    "rate_limit": (Fault.rate_limit(2), "RateLimitError", 429),
    "quota": (Fault.insufficient_quota(), None, None),
    "overloaded": (Fault.overloaded(), None, None),
    "status 500": (Fault.status(500), "InternalServerError", 500),
    "status 503": (Fault.status(503), None, 503),
    "unauthorized": (Fault.unauthorized(), "AuthenticationError", 401),
    "context": (Fault.context_length_exceeded(), "BadRequestError", 400),
    "filtered prompt": (Fault.prompt_filtered(), "BadRequestError", 400),
}


@CLIENTS
@WAYS
@pytest.mark.parametrize("name", REFUSALS)
def test_refusals_are_the_errors_of_the_sdk(
    client: Client, streams: bool, name: str, provider: LoopbackProvider
) -> None:
    fault, kind, status = REFUSALS[name]
    provider.play(fault)
    with pytest.raises(Exception, match=r".") as caught:
        asked(client(provider), streams)
    error: Any = caught.value
    names = {base.__name__ for base in type(error).__mro__}
    assert kind is None or kind in names
    assert error.status_code == (status or error.status_code)
    assert "APIStatusError" in names
    for header, value in fault.headers.items():
        assert error.response.headers[header] == value


@CLIENTS
@WAYS
def test_an_empty_answer_and_a_filtered_one_say_so(
    client: Client, streams: bool, provider: LoopbackProvider
) -> None:
    provider.play(Fault.empty(), Fault.content_filter("half of"))
    model = client(provider)
    empty, filtered = asked(model, streams), asked(model, streams)
    assert not empty.text
    assert not empty.tool_calls
    told = [m.response_metadata for m in (empty, filtered)]
    reasons = [each.get("finish_reason") or each.get("stop_reason") for each in told]
    assert reasons in (["stop", "content_filter"], ["end_turn", "refusal"])
    assert filtered.text == "half of"


@CLIENTS
@WAYS
@pytest.mark.parametrize("fault", [Fault.cut(), Fault.reset()], ids=["cut", "reset"])
def test_a_connection_that_ends_in_the_middle(
    client: Client, streams: bool, fault: Fault, provider: LoopbackProvider
) -> None:
    provider.play(fault)
    pieces: list[str] = []
    with pytest.raises(Exception, match=r".") as caught:
        if streams:
            pieces.extend(chunk.text for chunk in client(provider).stream("hi"))
        else:
            client(provider).invoke("hi")
    chain = set(beneath(caught.value))
    assert chain & {"RemoteProtocolError", "ReadError", "ConnectionResetError"}
    assert len(provider.billed) == 1
    assert asked(client(provider), streams).text == "done", "the next request is served"


@CLIENTS
def test_json_that_breaks_off(client: Client, provider: LoopbackProvider) -> None:
    provider.play(Fault.truncated_json())
    with pytest.raises(ValueError, match=r"char \d+"):
        client(provider).invoke("hi")


@CLIENTS
def test_a_stream_that_turns_into_an_error(client: Client, provider: LoopbackProvider) -> None:
    provider.play(Fault.fails_in_stream(after=2))
    pieces: list[str] = []
    with pytest.raises(Exception, match=r"overloaded|Overloaded"):
        pieces.extend(chunk.text for chunk in client(provider).stream("hi"))
    assert provider.billed[0][1] == 2


@CLIENTS
def test_slow_until_released(client: Client, provider: LoopbackProvider) -> None:
    provider.play(Fault.slow(), Fault.slow("now"))
    with pytest.raises(Exception, match=r"(?i)timed? ?out"):
        client(provider, timeout=0.05).invoke("hi")
    said: list[str] = []
    waiting = Thread(target=lambda: said.append(client(provider).invoke("hi").text))
    waiting.start()
    provider.release()
    waiting.join()
    assert said == ["now"]


def test_a_function_decides_by_the_request() -> None:
    def script(request: ProviderRequest) -> str | Fault:
        return Fault.status(500) if request.number == 1 else request.body["messages"][0]["content"]

    with LoopbackProvider(script) as provider:
        assert chat_openai(provider, max_retries=1).invoke("echo me").text == "echo me"
        assert provider.requests[0].headers["authorization"] == "Bearer none"


def test_a_fault_of_the_server_itself_is_raised_at_the_end() -> None:
    def broken(request: ProviderRequest) -> str:
        raise LookupError("the script is wrong")

    with (
        pytest.raises(LookupError, match="the script is wrong"),
        LoopbackProvider(broken) as provider,
        pytest.raises(Exception, match=r"(?i)connection error"),
    ):
        chat_openai(provider).invoke("hi")


def test_paths_that_it_does_not_have_and_a_server_that_is_not_running() -> None:
    with LoopbackProvider() as provider:
        request = Request(provider.url + "/v1/embeddings", data=b"{}")
        with pytest.raises(HTTPError) as caught:
            urlopen(request)
        assert json.load(caught.value)["error"]["message"] == "no /v1/embeddings here"
        caught.value.close()
    with pytest.raises(RuntimeError, match="with"):
        assert LoopbackProvider().url


def test_what_cannot_be_played_is_refused() -> None:
    for script in ("hello", [3], [None]):
        with pytest.raises(ConfigError):
            LoopbackProvider(script)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="not 3"):
        LoopbackProvider(then=3)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="not 3"):
        LoopbackProvider().play(3)  # type: ignore[arg-type]

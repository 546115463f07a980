"""Budgets through real HTTP and the real clients of OpenAI and Anthropic, on loopback."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from langgraph.graph import START, MessagesState, StateGraph

import shearpin
from shearpin import Budget
from shearpin.langchain import clamped
from shearpin.testing import Fault, LoopbackProvider

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")

openai = pytest.importorskip("langchain_openai")
anthropic = pytest.importorskip("langchain_anthropic")


@pytest.fixture
def provider() -> Iterator[LoopbackProvider]:
    with LoopbackProvider(then=words(20)) as running:
        yield running


def words(number: int) -> str:
    return "".join(f"word{place} " for place in range(number)).rstrip()


def tokens(provider: LoopbackProvider) -> int:
    return sum(into + out for into, out in provider.billed)


def chat_openai(provider: LoopbackProvider, **options: Any) -> Any:
    return openai.ChatOpenAI(
        model="gpt-4o-mini", base_url=provider.openai_url, api_key="none", **options
    )


def chat_anthropic(provider: LoopbackProvider, **options: Any) -> Any:
    options = {"max_tokens": 60, **options}
    return anthropic.ChatAnthropic(
        model="claude-haiku-4-5", base_url=provider.url, api_key="none", **options
    )


CLIENTS = pytest.mark.parametrize("client", [chat_openai, chat_anthropic])
Client = Callable[..., Any]


def asks(ask: Callable[[str], object], times: int = 40) -> Any:
    """A graph whose one node asks a model so often."""

    def node(state: MessagesState) -> dict[str, Any]:
        for number in range(times):
            ask(f"question {number} about the work")
        return {}

    graph = StateGraph(MessagesState)
    graph.add_node("node", node)
    graph.add_edge(START, "node")
    return graph.compile()


def run(graph: Any, budget: object, **options: object) -> Any:
    app = shearpin.guard(graph, budget=budget, detectors=(), **options)
    app.invoke({"messages": []})
    return app.report()


@CLIENTS
@pytest.mark.parametrize("streams", [False, True])
def test_usage_that_is_told_is_what_is_counted(
    client: Client, streams: bool, provider: LoopbackProvider
) -> None:
    told = {"stream_usage": True} if client is chat_openai else {}
    model = client(provider, max_tokens=60, **told)
    ask = (lambda text: list(model.stream(text))) if streams else model.invoke
    report = run(asks(ask), Budget(tokens=1_000))
    spent = report.budget.scopes[0].spent["tokens"]
    assert spent == tokens(provider)
    assert 800 <= spent <= 1_000
    assert report.budget.estimated_calls == 0
    assert report.reason == "budget:tokens"
    assert not report.faults


@CLIENTS
def test_dollars_at_list_prices(client: Client, provider: LoopbackProvider) -> None:
    provider.then = words(60)
    report = run(asks(client(provider, max_tokens=60).invoke), "$0.001")
    usd = float(report.budget.usd)
    assert report.reason == "budget:usd"
    assert 0.0005 < usd <= 0.001
    assert report.budget.unpriced_calls == 0


def test_a_stream_without_usage_is_estimated(provider: LoopbackProvider) -> None:
    model = chat_openai(provider, max_tokens=60)
    report = run(asks(lambda text: list(model.stream(text))), Budget(tokens=1_500))
    spent = report.budget.scopes[0].spent["tokens"]
    assert report.budget.estimated_calls == report.budget.scopes[0].spent["model_calls"]
    assert tokens(provider) <= spent <= 1_500
    assert any("stream_usage=True" in note for note in report.budget.notes)


def test_a_proxy_that_tells_no_usage_at_all(provider: LoopbackProvider) -> None:
    provider.tells_usage = False
    model = chat_openai(provider, max_tokens=60)
    report = run(asks(model.invoke, 3), Budget(tokens=5_000))
    assert report.budget.estimated_calls == 3
    assert report.budget.scopes[0].spent["tokens"] >= tokens(provider)


def test_a_stream_that_tells_only_of_the_answer(provider: LoopbackProvider) -> None:
    provider.tells_usage = False
    model = chat_anthropic(provider)
    report = run(asks(lambda text: list(model.stream(text)), 5), Budget(tokens=5_000))
    spent = report.budget.scopes[0].spent
    assert spent["input_tokens"] >= sum(into for into, _ in provider.billed)
    assert spent["output_tokens"] == sum(out for _, out in provider.billed)
    assert report.budget.estimated_calls == 5


@CLIENTS
def test_an_abandoned_stream_costs_the_prompt_and_what_was_read(
    client: Client, provider: LoopbackProvider
) -> None:
    def ask(text: str) -> None:
        chunks = model.stream(text)
        next(chunks)
        next(chunks)
        chunks.close()

    model = client(provider, max_tokens=60)
    report = run(asks(ask, 1), Budget(tokens=5_000))
    scope = report.budget.scopes[0]
    assert scope.spent["model_calls"] == 1
    assert scope.spent["input_tokens"] >= provider.billed[0][0] - 5
    assert scope.spent.get("output_tokens", 0) >= 1
    assert not scope.held


@CLIENTS
def test_a_stream_that_breaks_off_costs_what_came(
    client: Client, provider: LoopbackProvider
) -> None:
    provider.play(Fault.cut(5, words(20)))
    model = client(provider, max_tokens=60, max_retries=0)

    def ask(text: str) -> None:
        with pytest.raises(Exception, match=r".+"):
            list(model.stream(text))

    report = run(asks(ask, 1), Budget(tokens=5_000))
    scope = report.budget.scopes[0]
    assert scope.spent["input_tokens"] > 0
    assert scope.spent["output_tokens"] >= 4
    assert scope.spent.get("steps", 0) == 0
    assert report.budget.estimated_calls == 1


@CLIENTS
def test_retries_within_the_client_are_one_call(client: Client, provider: LoopbackProvider) -> None:
    at_once = {"Retry-After-Ms": "1"}
    provider.play(Fault.status(429, headers=at_once), Fault.status(503, headers=at_once))
    model = client(provider, max_tokens=60, max_retries=3)
    report = run(asks(model.invoke, 1), Budget(model_calls=5))
    assert len(provider.requests) == 3
    assert report.budget.scopes[0].spent["model_calls"] == 1
    assert report.budget.scopes[0].spent["tokens"] == tokens(provider)


@CLIENTS
def test_a_refusal_for_the_rate_costs_nothing_and_the_next_attempt_does(
    client: Client, provider: LoopbackProvider
) -> None:
    provider.play(Fault.rate_limit(headers={"Retry-After-Ms": "1"}))
    model = client(provider, max_tokens=60, max_retries=0)
    retried = model.with_retry(stop_after_attempt=2, wait_exponential_jitter=False)
    report = run(asks(retried.invoke, 1), Budget(model_calls=5))
    spent = report.budget.scopes[0].spent
    assert (spent["model_calls"], spent["steps"]) == (2, 1)
    assert spent["tokens"] == tokens(provider)


@CLIENTS
@pytest.mark.parametrize("streams", [False, True])
def test_a_clamped_client_sends_what_is_left(
    client: Client, streams: bool, provider: LoopbackProvider
) -> None:
    provider.then = words(500)
    told = {"stream_usage": True} if client is chat_openai else {}
    model = clamped(client(provider, max_tokens=900, **told))
    ask = (lambda text: list(model.stream(text))) if streams else model.invoke
    run(asks(ask), Budget(tokens=4_000))
    bounds = [
        r.body.get("max_tokens") or r.body.get("max_completion_tokens") for r in provider.requests
    ]
    assert bounds[0] == 900
    assert bounds[-1] < 900
    assert 3_200 <= tokens(provider) <= 4_000


def test_without_a_limit_the_catalogue_of_models_bounds_the_answer(
    provider: LoopbackProvider,
) -> None:
    report = run(asks(chat_openai(provider).invoke), "$0.005")
    assert not provider.requests, "16,384 tokens of gpt-4o-mini can cost more than that"
    assert report.reason == "budget:usd"
    report = run(asks(chat_openai(provider).invoke, 3), "$0.05")
    assert report.outcome == "completed"
    assert report.budget.unbounded_calls == 0

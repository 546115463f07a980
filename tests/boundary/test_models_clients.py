"""Models under the boundary through the real clients of OpenAI and Anthropic, over HTTP."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver

from shearpin import guard
from shearpin.boundary import Answers, Boundary
from shearpin.langchain import GuardMiddleware, ResilienceMiddleware, resilient_model
from shearpin.testing import Fault, LoopbackProvider, asks_for
from tests.boundary.models_setup import (
    DONE,
    HELLO,
    QUICK,
    Waits,
    assert_answered,
    last,
    look,
    mark,
)

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")

openai = pytest.importorskip("langchain_openai")
anthropic = pytest.importorskip("langchain_anthropic")

Client = Callable[..., Any]


def chat_openai(provider: LoopbackProvider, **options: Any) -> Any:
    options = {"max_retries": 0, "timeout": 30, "stream_usage": True, **options}
    return openai.ChatOpenAI(
        model="gpt-4o-mini", base_url=provider.openai_url, api_key="none", **options
    )


def chat_anthropic(provider: LoopbackProvider, **options: Any) -> Any:
    options = {"max_tokens": 60, "max_retries": 0, "timeout": 30, **options}
    return anthropic.ChatAnthropic(
        model="claude-haiku-4-5", base_url=provider.url, api_key="none", **options
    )


CLIENTS = pytest.mark.parametrize("client", [chat_openai, chat_anthropic])


@pytest.fixture
def provider() -> Iterator[LoopbackProvider]:
    with LoopbackProvider(then=DONE) as running:
        yield running


@pytest.fixture
def other() -> Iterator[LoopbackProvider]:
    with LoopbackProvider(then="the other one") as running:
        yield running


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> Waits:
    return Waits(monkeypatch)


def agent_of(model: Any, **options: Any) -> tuple[Any, GuardMiddleware]:
    watch = GuardMiddleware(budget="20 calls")
    resilience = ResilienceMiddleware(**{"retries": QUICK, **options})
    return create_agent(model, [look], middleware=[watch, resilience]), watch


def types_in(watch: GuardMiddleware) -> dict[str, int]:
    told = watch.report().boundary
    assert told is not None
    return {name: count for place in told.places for name, count in place.types.items()}


def calls_in(watch: GuardMiddleware) -> object:
    budget = watch.report().budget
    assert budget is not None
    return budget.scopes[0].spent["model_calls"]


TRANSIENT = {
    "rate_limit": (Fault.rate_limit(), "rate_limit"),
    "500": (Fault.status(500), "server_error"),
    "overloaded": (Fault.overloaded(), "overloaded"),
    "cut": (Fault.cut(), "network"),
    "reset": (Fault.reset(), "network"),
    "empty": (Fault.empty(), "empty_answer"),
}


@CLIENTS
@pytest.mark.parametrize("name", TRANSIENT)
async def test_what_passes_by_itself_is_tried_again(
    client: Client, name: str, provider: LoopbackProvider
) -> None:
    fault, kind = TRANSIENT[name]
    provider.play(asks_for(("look", {"what": "a"})), fault, DONE)
    agent, watch = agent_of(client(provider))
    out = await agent.ainvoke(HELLO)
    assert last(out).content == DONE
    assert_answered(out["messages"])
    assert types_in(watch) == {kind: 1}
    assert len(provider.requests) == 3
    assert calls_in(watch) == 3, "each attempt is held against the budget"
    assert watch.report().steps == 2, "and only answers are steps"


@CLIENTS
def test_a_wait_that_the_provider_asks_for_is_kept(
    client: Client, provider: LoopbackProvider, waits: Waits
) -> None:
    provider.play(Fault.rate_limit(retry_after=4), Fault.overloaded(retry_after=2))
    agent, _ = agent_of(client(provider))
    assert last(agent.invoke(HELLO)).content == DONE
    assert waits.seconds == [4.0, 2.0]


@CLIENTS
def test_what_a_client_tries_by_itself_is_not_multiplied(
    client: Client, provider: LoopbackProvider, other: LoopbackProvider, waits: Waits
) -> None:
    """Three tries of the client are the three attempts; then the fallback is asked."""
    provider.play(*[Fault.status(500, headers={"retry-after-ms": "1"})] * 20)
    agent, watch = agent_of(client(provider, max_retries=2), models=[client(other)])
    assert last(agent.invoke(HELLO)).content == "the other one"
    assert len(provider.requests) == 3
    assert waits.seconds == []
    assert types_in(watch) == {"server_error": 1}


@CLIENTS
@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (Fault.unauthorized(), "authentication"),
        (Fault.insufficient_quota(), "quota"),
        (Fault.status(403), "permission"),
        (Fault.status(404), "not_found"),
        (Fault.prompt_filtered(), "content_filter"),
    ],
)
async def test_another_providers_model_answers_where_trying_again_is_of_no_use(
    client: Client, fault: Fault, kind: str, provider: LoopbackProvider, other: LoopbackProvider
) -> None:
    provider.play(*[fault] * 3)
    second = chat_anthropic if client is chat_openai else chat_openai
    other.play(asks_for(("look", {"what": "a"})))
    agent, watch = agent_of(client(provider), models=[second(other)], answers=Answers(again=1))
    out = await agent.ainvoke(HELLO)
    assert_answered(out["messages"])
    assert last(out).content in (DONE, "the other one")
    first = out["messages"][1]
    assert mark(first)["fallback"] is True
    assert mark(first)["failures"][0]["error_type"] == kind
    expected = 2 if kind == "content_filter" else 1
    refused = [r for r in provider.requests if len(r.body["messages"]) <= 3]
    assert len(refused) >= expected
    assert kind in types_in(watch)


@CLIENTS
def test_without_another_model_a_wrong_key_ends_in_an_honest_answer(
    client: Client, provider: LoopbackProvider
) -> None:
    provider.play(Fault.unauthorized())
    agent, watch = agent_of(client(provider))
    out = agent.invoke(HELLO)
    words = str(last(out).content)
    assert "did not accept our credentials" in words
    assert "none" not in words
    assert len(provider.requests) == 1
    assert watch.report().outcome == "completed"


@CLIENTS
async def test_a_request_that_is_too_long_is_made_shorter(
    client: Client, provider: LoopbackProvider
) -> None:
    rounds = [asks_for(("look", {"what": "w" * 200})) for _ in range(5)]
    provider.play(*rounds, Fault.context_length_exceeded())
    agent, watch = agent_of(client(provider))
    out = await agent.ainvoke(HELLO)
    assert last(out).content == DONE
    assert types_in(watch) == {"context_length": 1}
    sizes = [len(str(request.body["messages"])) for request in provider.requests]
    assert sizes[-1] < sizes[-2]


@CLIENTS
async def test_answers_that_a_filter_ends_are_asked_for_once_more(
    client: Client, provider: LoopbackProvider
) -> None:
    provider.play(*[Fault.content_filter()] * 5)
    agent, _ = agent_of(client(provider))
    out = await agent.ainvoke(HELLO)
    assert len(provider.requests) == (2 if client is chat_openai else 1)
    words = str(last(out).content)
    assert "content filter" in words or "declined" in words


@CLIENTS
@pytest.mark.parametrize("fault", [Fault.fails_in_stream(), Fault.cut(), Fault.reset()])
async def test_a_stream_that_was_read_ends_where_it_broke_off(
    client: Client, fault: Fault, provider: LoopbackProvider
) -> None:
    provider.play(fault, DONE)
    agent, _ = agent_of(client(provider))
    parts = [
        str(chunk.text)
        async for chunk, _ in agent.astream(HELLO, stream_mode="messages")
        if chunk.type in ("ai", "AIMessageChunk")
    ]
    text = "".join(parts)
    assert text.startswith("one two")
    assert "broke off here" in text
    assert len(provider.requests) == 1


@CLIENTS
async def test_a_part_of_an_answer_that_was_read_is_not_saved_in_a_guarded_graph(
    client: Client, provider: LoopbackProvider
) -> None:
    provider.play(Fault.cut(), DONE)
    graph = create_agent(client(provider), [look], checkpointer=InMemorySaver())
    app = guard(graph, boundary=Boundary(retries=QUICK))
    thread: Any = {"configurable": {"thread_id": "1"}}
    read = "".join(
        [str(chunk.text) async for chunk, _ in app.astream(HELLO, thread, stream_mode="messages")]
    )
    saved = [str(message.content) for message in app.get_state(thread).values["messages"]]
    assert "one two" in read
    assert len(provider.requests) == 1
    assert saved[-1].startswith("This could not be finished")
    assert not any("one two" in text for text in saved)


@CLIENTS
async def test_a_resilient_model_streams_binds_and_parses_over_http(
    client: Client, provider: LoopbackProvider, other: LoopbackProvider
) -> None:
    second = chat_anthropic if client is chat_openai else chat_openai
    model = resilient_model(client(provider), [second(other)], boundary=Boundary(retries=QUICK))
    assert type(model).__name__ == type(client(provider)).__name__
    provider.play(Fault.status(500), "here it is")
    assert "".join([str(part.text) async for part in model.astream("hi")]) == "here it is"
    provider.play(*[Fault.unauthorized()] * 2)
    other.play(asks_for(("look", {"what": "a"})), "plain")
    bound = model.bind_tools([look], tool_choice="any")
    answer = await bound.ainvoke([HumanMessage("hi")])
    assert answer.tool_calls[0]["name"] == "look"
    assert model.invoke("hi").content == "plain"
    offered = other.requests[0].body["tools"][0]
    assert ("input_schema" in offered) is (second is chat_anthropic), "in its own provider's form"

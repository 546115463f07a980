"""Known faults of LangGraph and LangChain: each one seen bare, and gone under a guard."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from threading import Lock
from typing import Any

import pydantic
import pytest
from langchain.agents import create_agent
from langchain.agents import middleware as stock
from langchain.agents.structured_output import ToolStrategy
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGenerationChunk
from langchain_core.tools import BaseTool, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Command, RetryPolicy

import shearpin
from shearpin import Budget, ToolFacts
from shearpin.boundary import Boundary, Effects, ToolPolicy, retry_policy
from shearpin.testing import ProviderRejectedError, ScriptedModel, StrictProvider, asks_for
from tests.boundary.answering import Answering, answering, nobody
from tests.boundary.models_setup import PRICES

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")

HELLO: Any = {"messages": [("user", "hi")]}
THREAD: Any = {"configurable": {"thread_id": "1"}}

Guard = Callable[[Any], Any]


def bare(graph: Any) -> Any:
    return graph


def bounded(graph: Any) -> Any:
    return shearpin.guard(graph, boundary=True)


def invoke(app: Any, given: Any, config: Any, how: str) -> Any:
    return app.invoke(given, config) if how == "sync" else asyncio.run(app.ainvoke(given, config))


def answers(result: Any) -> list[tuple[str, str]]:
    """Status and words of the tool messages."""
    return [(m.status, m.text) for m in result["messages"] if isinstance(m, ToolMessage)]


def last(result: Any) -> Any:
    return result["messages"][-1]


@tool
def find(city: str) -> str:
    """Find a city."""
    if city == "Atlantis":
        raise ValueError(f"no such city: {city}")
    return f"{city} is there"


WAYS = pytest.mark.parametrize("how", ["sync", "async"])


# -- a tool that raises ends the run --------------------------------------------------------------


def asks_for_atlantis() -> Any:
    script = [asks_for(("find", {"city": "Atlantis"})), "it is a legend"]
    return create_agent(StrictProvider(script), [find])


@WAYS
def test_one_tool_that_raises_ends_the_run(how: str) -> None:
    with pytest.raises(ValueError, match="no such city: Atlantis"):
        invoke(asks_for_atlantis(), HELLO, None, how)


@WAYS
def test_one_tool_that_raises_is_answered_under_guard(how: str) -> None:
    result = invoke(bounded(asks_for_atlantis()), HELLO, None, how)
    ((status, text),) = answers(result)
    assert status == "error"
    assert "no such city: Atlantis" in text
    assert last(result).text == "it is a legend"


# -- siblings without an answer poison the thread -------------------------------------------------


def three_at_once() -> Any:
    calls = [("find", {"city": city}) for city in ("Oslo", "Atlantis", "Lima")]
    script = [asks_for(*calls), "two of three", "as I said"]
    return create_agent(StrictProvider(script), [find], checkpointer=InMemorySaver())


@WAYS
def test_three_calls_with_one_failure_poison_the_thread(how: str) -> None:
    app = three_at_once()
    with pytest.raises(ValueError, match="no such city"):
        invoke(app, HELLO, THREAD, how)
    messages = app.get_state(THREAD).values["messages"]
    (asked,) = [m for m in messages if isinstance(m, AIMessage)]
    answered = {m.tool_call_id for m in messages if isinstance(m, ToolMessage)}
    assert {call["id"] for call in asked.tool_calls} - answered
    with pytest.raises(ProviderRejectedError, match="not answered"):
        invoke(app, {"messages": [("user", "and now?")]}, THREAD, how)


@WAYS
def test_three_calls_with_one_failure_are_all_answered_under_guard(how: str) -> None:
    app = bounded(three_at_once())
    result = invoke(app, HELLO, THREAD, how)
    assert [status for status, _ in answers(result)] == ["success", "error", "success"]
    assert last(result).text == "two of three"
    result = invoke(app, {"messages": [("user", "and now?")]}, THREAD, how)
    assert last(result).text == "as I said"


def test_a_thread_that_was_poisoned_before_is_mended_under_guard() -> None:
    plain = three_at_once()
    with pytest.raises(ValueError, match="no such city"):
        plain.invoke(HELLO, THREAD)
    app = bounded(plain)
    assert last(app.invoke({"messages": [("user", "and now?")]}, THREAD)).text == "two of three"


# -- a rejection is proposed again for ever -------------------------------------------------------


def reviewed(model: StrictProvider) -> Any:
    @tool
    def delete(path: str) -> str:
        """Delete a file."""
        raise AssertionError(f"{path} was deleted although a person said no")

    return create_agent(
        model,
        [delete],
        middleware=[
            stock.HumanInTheLoopMiddleware(interrupt_on={"delete": True}),
            stock.ModelCallLimitMiddleware(run_limit=3),
        ],
        checkpointer=InMemorySaver(),
    )


def rejections(guard: Guard) -> tuple[int, int, Any]:
    """How often a person is asked and the model is called, at most 20 times."""
    model = StrictProvider(lambda messages, number: asks_for(("delete", {"path": "/data"})))
    app = guard(reviewed(model))
    no = Command(resume={"decisions": [{"type": "reject", "message": "no"}]})
    result, asked = app.invoke(HELLO, THREAD), 0
    while result.get("__interrupt__") and asked < 20:
        asked += 1
        result = app.invoke(no, THREAD)
    return asked, model.calls, app


def test_a_persons_no_is_asked_about_for_ever() -> None:
    asked, calls, _ = rejections(bare)
    assert asked == 20
    assert calls == 21, "the limit of 3 calls begins anew with each resume"


def test_a_persons_no_is_asked_about_once_under_guard() -> None:
    asked, calls, app = rejections(shearpin.guard)
    assert asked == 1
    assert calls <= 3
    assert app.report(THREAD).reason == "loop:rejection"


# -- a limit on tool calls does not limit model calls ---------------------------------------------


def limited(model: ScriptedModel) -> Any:
    return create_agent(model, [find], middleware=[stock.ToolCallLimitMiddleware(run_limit=3)])


def eager(messages: Sequence[BaseMessage], number: int) -> AIMessage | str:
    if number > 60:
        return "enough"
    return asks_for(("find", {"city": f"town {number}"}))


def test_a_limit_of_3_tool_calls_pays_61_model_calls() -> None:
    model = StrictProvider(eager)
    limited(model).invoke(HELLO)
    assert model.calls == 61


@pytest.mark.parametrize(
    ("options", "most", "reason"),
    [
        ({}, 9, "loop:"),
        pytest.param({"budget": Budget(model_calls=5)}, 5, "budget:model_calls", marks=PRICES),
        pytest.param({"budget": Budget(tool_calls=3)}, 9, "", marks=PRICES),
    ],
    ids=["by itself", "5 model calls", "3 tool calls"],
)
def test_refused_tool_calls_do_not_go_on_for_ever_under_guard(
    options: dict[str, Any], most: int, reason: str
) -> None:
    model = StrictProvider(eager)
    app = shearpin.guard(limited(model), **options)
    app.invoke(HELLO)
    assert model.calls <= most
    assert app.report().outcome == "stopped"
    assert app.report().reason.startswith(reason)


# -- invalid structured output is asked for without end -------------------------------------------


class Place(pydantic.BaseModel):
    city: str
    population: int


def never_valid(messages: Sequence[BaseMessage], number: int) -> AIMessage:
    if number > 60:
        return asks_for(("Place", {"city": "Paris", "population": 2}))
    return asks_for(("Place", {"city": "Paris", "population": f"about {number}"}))


def structured(model: ScriptedModel) -> Any:
    return create_agent(model, [find], response_format=ToolStrategy(Place))


def test_invalid_structured_output_is_asked_for_without_end() -> None:
    model = StrictProvider(never_valid)
    structured(model).invoke(HELLO)
    assert model.calls == 61


def test_invalid_structured_output_ends_under_guard() -> None:
    model = StrictProvider(never_valid)
    app = shearpin.guard(structured(model))
    app.invoke(HELLO)
    assert model.calls <= 6
    assert app.report().reason.startswith("loop:")


# -- what LangGraph's policy retries --------------------------------------------------------------


@pytest.fixture
def server() -> Iterator[Answering]:
    with answering() as running:
        yield running


def fetching(url: str, policy: RetryPolicy, tries: list[str]) -> Any:
    requests = pytest.importorskip("requests")

    def fetch(state: MessagesState) -> dict[str, Any]:
        tries.append(url)
        with requests.Session() as session:
            session.trust_env = False
            session.get(url, timeout=30).raise_for_status()
        return {}

    graph = StateGraph(MessagesState)
    graph.add_node("fetch", fetch, retry_policy=policy)
    graph.add_edge(START, "fetch")
    return graph.compile()


AT_ONCE: dict[str, Any] = {"initial_interval": 0.001, "max_interval": 0.001, "jitter": False}


def attempts(url: str, policy: RetryPolicy, guard: Guard = bare) -> int:
    tries: list[str] = []
    app = guard(fetching(url, policy, tries))
    with pytest.raises(Exception, match=r"404|refused|Max retries|establish"):
        app.invoke(HELLO)
    return len(tries)


def test_the_stock_policy_retries_a_404_and_no_refused_connection(server: Answering) -> None:
    stock_policy = RetryPolicy(**AT_ONCE)
    assert attempts(server.says(404), stock_policy) == 3
    assert attempts(nobody(), stock_policy) == 1


def test_our_policy_retries_a_refused_connection_and_no_404(server: Answering) -> None:
    ours = retry_policy()._replace(**AT_ONCE)
    for guard in (bare, shearpin.guard):
        assert attempts(server.says(404), ours, guard) == 1
        assert attempts(nobody(), ours, guard) == 3


# -- a charge is made again after an ambiguous timeout --------------------------------------------


def charging(charged: list[int], how: str) -> tuple[BaseTool, Any]:
    @tool
    def charge(amount: int) -> str:
        """Charge the card."""
        charged.append(amount)
        raise TimeoutError("no answer from the bank")

    options = {"max_retries": 2, "initial_delay": 0, "jitter": False, "on_failure": how}
    return charge, stock.ToolRetryMiddleware(**options)


def charges(guard: Guard, ends: str, how: str) -> tuple[int, str]:
    charged: list[int] = []
    charge, retries = charging(charged, ends)
    model = StrictProvider([asks_for(("charge", {"amount": 5})), "I shall look first"])
    app = guard(create_agent(model, [charge], middleware=[retries]))
    ((_, text),) = answers(invoke(app, HELLO, None, how))
    return len(charged), text


@WAYS
def test_a_retry_layer_charges_three_times(how: str) -> None:
    made, text = charges(bare, "continue", how)
    assert made == 3
    assert "failed after 3 attempts" in text, "and newer versions add: please try again"


@WAYS
@pytest.mark.parametrize("ends", ["continue", "error"])
@pytest.mark.parametrize(
    "options",
    [
        {"boundary": True},
        {"boundary": Boundary(tools={"charge": ToolPolicy(effect=Effects())})},
        {"boundary": True, "tools": {"charge": ToolFacts(destructive=True)}},
    ],
    ids=["boundary", "effect", "facts"],
)
def test_a_retry_layer_of_the_host_does_not_charge_again(
    options: dict[str, Any], ends: str, how: str
) -> None:
    made, text = charges(lambda graph: shearpin.guard(graph, **options), ends, how)
    assert made == 1
    assert "may or may not have happened" in text
    assert "attempts" not in text
    assert "try again." not in text


@WAYS
def test_a_retry_layer_of_the_host_may_repeat_what_is_declared_harmless(how: str) -> None:
    facts = {"charge": ToolFacts(idempotent=True)}
    made, _ = charges(
        lambda graph: shearpin.guard(
            graph, tools=facts, boundary=Boundary(retries=shearpin.boundary.Retries(attempts=1))
        ),
        "continue",
        how,
    )
    assert made == 3


# -- a bound on concurrency in the wrong place ----------------------------------------------------


class Crowd:
    """Six tool calls of one message; knows how many of them ran at once."""

    def __init__(self) -> None:
        self.at_once, self.most, self.made = 0, 0, 0

    def agent(self) -> Any:
        @tool
        async def visit(place: int) -> str:
            """Visit a place."""
            self.made += 1
            self.at_once += 1
            self.most = max(self.most, self.at_once)
            for _ in range(100):  # let all others come in
                await asyncio.sleep(0)
            self.at_once -= 1
            return "seen"

        script = [asks_for(*(("visit", {"place": number}) for number in range(6))), "done"]
        return create_agent(StrictProvider(script), [visit])


def crowd(guard: Guard) -> int:
    visitors = Crowd()
    app = guard(visitors.agent())
    asyncio.run(app.ainvoke(HELLO, {"configurable": {"max_concurrency": 2}}))
    assert visitors.made == 6
    return visitors.most


def test_a_bound_on_concurrency_in_the_wrong_place_is_ignored() -> None:
    assert crowd(bare) == 6


@PRICES
def test_a_bound_on_concurrency_in_the_wrong_place_is_named_under_guard() -> None:
    def guard(graph: Any) -> Any:
        return shearpin.guard(graph, budget=Budget(max_concurrency=2))

    with pytest.warns(UserWarning, match="on the top level"):
        assert crowd(guard) == 2


# -- cumulative usage of stream chunks ------------------------------------------------------------


class Cumulative(ScriptedModel):
    """Tells with each chunk what has been used so far, as some providers do."""

    def _stream(self, messages: Any, *args: Any, **kwargs: Any) -> Iterator[ChatGenerationChunk]:
        self._next(messages)
        for number in range(1, 51):
            told: Any = {
                "input_tokens": 100,
                "output_tokens": number,
                "total_tokens": 100 + number,
            }
            yield ChatGenerationChunk(message=AIMessageChunk(content="x", usage_metadata=told))


def streaming(model: ScriptedModel, heard: list[AIMessageChunk]) -> Any:
    def node(state: MessagesState) -> dict[str, Any]:
        whole: Any = None
        for chunk in model.stream("hi"):
            whole = chunk if whole is None else whole + chunk
        heard.append(whole)
        return {"messages": [AIMessage(whole.text)]}

    graph = StateGraph(MessagesState)
    graph.add_node("node", node)
    graph.add_edge(START, "node")
    return graph.compile()


def test_usage_told_fifty_times_is_added_up_fifty_times() -> None:
    heard: list[AIMessageChunk] = []
    streaming(Cumulative(["."]), heard).invoke(HELLO)
    assert heard[0].usage_metadata is not None
    assert heard[0].usage_metadata["input_tokens"] == 50 * 100


@PRICES
def test_usage_told_fifty_times_is_counted_once_under_guard() -> None:
    app = shearpin.guard(streaming(Cumulative(["."]), []), budget=Budget(tokens=10_000))
    app.invoke(HELLO)
    spent = app.report().budget.scopes[0].spent
    assert (spent["input_tokens"], spent["output_tokens"]) == (100, 50)


# -- a budget that a retry layer swallows ---------------------------------------------------------


class OverspentError(Exception):
    """A budget as it is often written by hand."""


def retrying_models() -> Any:
    made = getattr(stock, "ModelRetryMiddleware", None)
    if made is None:
        pytest.skip("this langchain has no ModelRetryMiddleware")
    return made(max_retries=4, initial_delay=0, jitter=False)


def test_a_budget_of_exceptions_is_retried() -> None:
    lock, tries = Lock(), [0]

    def model(messages: Sequence[BaseMessage], number: int) -> AIMessage | BaseException:
        with lock:
            tries[0] += 1
        return OverspentError("$0.10 spent")

    retries = retrying_models()
    app = create_agent(ScriptedModel(model), [], middleware=[retries])
    app.invoke(HELLO)
    assert tries[0] == 5


@PRICES
def test_our_budget_is_not_retried() -> None:
    model = ScriptedModel(["one"], repeat_last=True)
    retries = retrying_models()
    app = shearpin.guard(
        create_agent(model, [], middleware=[retries]), budget=Budget(model_calls=0)
    )
    result = app.invoke(HELLO)
    assert model.calls == 0
    assert last(result).response_metadata["shearpin"]["reason"] == "budget:model_calls"


# -- siblings of a fatal failure go on ------------------------------------------------------------


class KeyRefusedError(Exception):
    """A failure that concerns the whole run."""

    status_code = 401


class Siblings:
    """Two calls side by side, of which one fails for good once the other has begun."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.finished = False

    def graph(self) -> Any:
        @tool
        async def slow(name: str) -> str:
            """Take long."""
            self.begun.set()
            await let_others_run()
            self.finished = True
            return "done"

        @tool
        async def broken(name: str) -> str:
            """Fail for good."""
            await self.begun.wait()
            raise KeyRefusedError("no such key")

        def ask(state: MessagesState) -> dict[str, Any]:
            return {"messages": [asks_for(("slow", {"name": "a"}), ("broken", {"name": "b"}))]}

        graph = StateGraph(MessagesState)
        graph.add_sequence([("ask", ask), ("tools", ToolNode([slow, broken]))])
        graph.add_edge(START, "ask")
        return graph.compile()


async def let_others_run() -> None:
    for _ in range(300):
        await asyncio.sleep(0)


async def test_the_sibling_of_a_fatal_failure_goes_on_after_the_run() -> None:
    siblings = Siblings()
    with pytest.raises(KeyRefusedError):
        await siblings.graph().ainvoke(HELLO)
    assert not siblings.finished
    await let_others_run()
    assert siblings.finished


async def test_the_sibling_of_a_fatal_failure_is_given_up_and_answered_under_guard() -> None:
    siblings = Siblings()
    result = await bounded(siblings.graph()).ainvoke(HELLO)
    assert [status for status, _ in answers(result)] == ["error", "error"]
    await let_others_run()
    assert not siblings.finished

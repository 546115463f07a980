"""Functions and tools that answer with a result instead of raising."""

from __future__ import annotations

import asyncio
import functools
import inspect
import pickle
import threading
from typing import Annotated, Any

import pytest
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import BaseTool, InjectedToolCallId, StructuredTool, ToolException, tool
from langgraph.errors import GraphInterrupt
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import InjectedState, ToolNode

from shearpin import ConfigError
from shearpin.boundary import (
    Cached,
    Effects,
    Retries,
    Static,
    ToolPolicy,
    ToolResult,
    resilient,
)
from shearpin.core.tools import ToolFacts

NOW = Retries(attempts=3, base_seconds=0.0)
READ = ToolFacts(read_only=True)
CALLS: list[Any] = []


@pytest.fixture(autouse=True)
def _no_calls() -> None:
    CALLS.clear()


# -- functions -------------------------------------------------------------------------------------


@resilient(retries=NOW, facts=READ)
def flaky(query: str, *, limit: int = 10) -> str:
    """Looks things up."""
    CALLS.append((query, limit))
    if len(CALLS) < 3:
        raise TimeoutError("slow")
    return f"{query}:{limit}"


@resilient
def plain(query: str) -> str:
    raise ValueError(f"no index for {query}")


@resilient(retries=NOW, facts=READ)
async def aflaky(query: str) -> str:
    """Looks things up, without blocking."""
    await asyncio.sleep(0)
    CALLS.append(query)
    if len(CALLS) < 2:
        raise ConnectionRefusedError
    return query


def test_a_function_gives_a_result() -> None:
    result = flaky("shoes", limit=2)
    assert (result.success, result.output, result.attempts) == (True, "shoes:2", 3)
    assert CALLS == [("shoes", 2)] * 3


def test_a_failing_function_gives_a_result() -> None:
    result = plain("shoes")
    assert (result.success, result.tool_name, result.error_detail) == (
        False,
        "plain",
        "no index for shoes",
    )
    assert isinstance(result.error, ValueError)


async def test_an_async_function_stays_one() -> None:
    assert inspect.iscoroutinefunction(aflaky)
    result = await aflaky("x")
    assert (result.success, result.output, result.attempts) == (True, "x", 2)


def test_name_description_and_signature_stay() -> None:
    assert (flaky.__name__, flaky.__doc__) == ("flaky", "Looks things up.")
    signature = inspect.signature(flaky)
    assert list(signature.parameters) == ["query", "limit"]
    assert signature.return_annotation is ToolResult
    assert flaky.__wrapped__.__annotations__["return"] == "str"  # type: ignore[attr-defined]


def test_a_function_pickles_where_it_did() -> None:
    assert pickle.loads(pickle.dumps(flaky)) is flaky
    assert pickle.loads(pickle.dumps(aflaky)) is aflaky


def test_a_wrong_call_is_the_callers_mistake() -> None:
    with pytest.raises(TypeError, match="limits"):
        flaky("x", limits=3)  # type: ignore[call-arg]
    assert CALLS == []


def test_methods_and_partial_functions_work() -> None:
    class Shop:
        @resilient(effect=Effects(key=("item",)))
        def order(self, item: str) -> str:
            CALLS.append(item)
            return f"ordered {item}"

    shop = Shop()
    assert shop.order("shoes").output == "ordered shoes"
    assert shop.order("shoes").degraded == "earlier"
    assert CALLS == ["shoes"]
    bound = resilient(functools.partial(pow, 3))
    assert (bound(2).output, bound(2).tool_name) == (9, "pow")
    with pytest.raises(ConfigError, match="signature"):
        resilient(max)


def test_whose_method_it_is_has_to_be_said() -> None:
    for options in ({"effect": Effects()}, {"fallbacks": [Cached()]}):
        with pytest.raises(ConfigError, match="of one object from those of another"):

            class Account:
                @resilient(**options)
                def refund(self, amount: int) -> str:
                    return f"refunded {amount}"


def test_control_flow_leaves_a_function() -> None:
    @resilient
    def asks() -> None:
        raise GraphInterrupt

    with pytest.raises(GraphInterrupt):
        asks()


def test_a_second_call_is_another_one_where_nobody_can_tell() -> None:
    @resilient(effect=Effects(), fallbacks=[])
    def send(to: str) -> str:
        CALLS.append(to)
        return f"sent to {to}"

    assert send("ann").degraded is None
    again = send(to="ann")
    assert (again.output, again.degraded) == ("sent to ann", "earlier")
    assert CALLS == ["ann"]


async def test_blocking_fallbacks_do_not_block_the_loop() -> None:
    seen: list[int] = []

    def backup(query: str) -> str:
        seen.append(threading.get_ident())
        return "backup"

    @resilient(fallbacks=[backup])
    async def search(query: str) -> str:
        raise ValueError

    assert (await search("x")).output == "backup"
    assert seen != [threading.get_ident()]


def test_a_resilient_function_can_take_anothers_place() -> None:
    @resilient(fallbacks=[plain, resilient(lambda query: f"found {query}")])
    def search(query: str) -> str:
        raise ValueError

    assert search("x").output == "found x"


@pytest.mark.parametrize(
    "wrong",
    [3, "search", None.__class__, StructuredTool, StateGraph(MessagesState), [len]],
    ids=lambda wrong: type(wrong).__name__,
)
def test_what_cannot_be_wrapped_is_refused_when_it_is_wrapped(wrong: Any) -> None:
    with pytest.raises(ConfigError, match="takes a function or a tool"):
        resilient(wrong)


def test_what_yields_is_refused() -> None:
    def numbers():  # type: ignore[no-untyped-def]
        yield 1

    async def anumbers():  # type: ignore[no-untyped-def]
        yield 1

    for each in (numbers, anumbers):
        with pytest.raises(ConfigError, match="yields"):
            resilient(each)


def test_options_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(ConfigError, match="policy or its fields"):
        resilient(plain, policy=ToolPolicy(), never_degrade=True)
    with pytest.raises(ConfigError, match="excludes fallbacks"):
        resilient(plain, never_degrade=True, fallbacks=[Static(1)])


# -- tools -----------------------------------------------------------------------------------------


@tool
def search(
    query: str,
    call: Annotated[str, InjectedToolCallId],
    state: Annotated[dict[str, Any], InjectedState],
) -> str:
    """Looks things up.

    Args:
        query: what for.
    """
    CALLS.append(query)
    if query == "bad":
        raise KeyError("no index")
    if query == "slow" and len(CALLS) < 3:
        raise TimeoutError("slow")
    return f"{query} {call} {len(state['messages'])}"


class Lookup(BaseTool):
    """A tool of a class of its own, with an artifact."""

    name: str = "lookup"
    description: str = "Looks up a number."
    response_format: Any = "content_and_artifact"

    def _run(self, number: int, run_manager: Any = None) -> tuple[str, dict[str, int]]:
        assert run_manager is not None
        CALLS.append(number)
        if number < 0:
            raise KeyError("negative")
        return str(number), {"number": number}


@tool
async def only_async(query: str) -> str:
    """Looks things up."""
    await asyncio.sleep(0)
    raise KeyError(query)


def answers(tools: list[Any], *calls: tuple[str, dict[str, Any]], how: str) -> list[ToolMessage]:
    graph = StateGraph(MessagesState)
    graph.add_node("tools", ToolNode(tools))
    graph.add_edge(START, "tools")
    graph.add_edge("tools", END)
    asked = [{"name": name, "args": args, "id": f"c{i}"} for i, (name, args) in enumerate(calls)]
    given: Any = {"messages": [AIMessage("", tool_calls=asked)]}
    app = graph.compile()
    out = app.invoke(given) if how == "invoke" else asyncio.run(app.ainvoke(given))
    return out["messages"][1:]


@pytest.mark.parametrize("how", ["invoke", "ainvoke"])
def test_a_tool_keeps_what_it_is_and_what_is_injected(how: str) -> None:
    wrapped = resilient(search, facts=READ, retries=NOW)
    assert isinstance(wrapped, StructuredTool)
    assert (wrapped.name, wrapped.description, wrapped.args) == (
        search.name,
        search.description,
        search.args,
    )
    assert next(iter(wrapped.args)) == "query"
    good, slow, bad, wrong = answers(
        [wrapped],
        ("search", {"query": "x"}),
        ("search", {"query": "bad"}),
        ("search", {"wrong": 1}),
        ("search", {"query": "y"}),
        how=how,
    )
    assert (good.content, good.status, good.artifact) == ("x c0 1", "success", None)
    assert slow.status == "error"
    assert str(slow.content).startswith("search failed (")
    assert "Traceback" not in str(slow.content)
    result = ToolResult.from_json(slow.artifact)
    assert (result.attempts, result.tool_name, type(result.error)) == (1, "search", KeyError)
    assert "Field required" in str(bad.content)  # arguments stay the host's own
    assert wrong.content == "y c3 1"


@pytest.mark.parametrize("how", ["invoke", "ainvoke"])
def test_a_tool_is_tried_again(how: str) -> None:
    wrapped = resilient(search, facts=READ, retries=NOW)
    (message,) = answers([wrapped], ("search", {"query": "slow"}), how=how)
    assert message.content == "slow c0 1"
    assert CALLS == ["slow"] * 3


@pytest.mark.parametrize("how", ["invoke", "ainvoke"])
def test_classes_of_ones_own_and_artifacts_work(how: str) -> None:
    good, bad = answers(
        [resilient(Lookup())], ("lookup", {"number": 3}), ("lookup", {"number": -3}), how=how
    )
    assert (good.content, good.artifact) == ("3", {"number": 3})
    assert (bad.status, bad.artifact["success"]) == ("error", False)
    cached = resilient(Lookup(), fallbacks=[Static(("none", None))])
    (message,) = answers([cached], ("lookup", {"number": -3}), how=how)
    assert (message.status, "fixed answer" in str(message.content)) == ("success", True)


async def test_a_tool_that_is_only_async_stays_so() -> None:
    wrapped = resilient(only_async)
    call = {"type": "tool_call", "name": "only_async", "args": {"query": "x"}, "id": "c1"}
    message = await wrapped.ainvoke(call)
    assert (message.status, message.tool_call_id) == ("error", "c1")


async def test_a_wait_of_a_tool_without_async_can_be_cancelled() -> None:
    begun = asyncio.Event()
    loop = asyncio.get_running_loop()

    class Busy(Lookup):
        def _run(self, number: int, run_manager: Any = None) -> Any:
            CALLS.append(number)
            loop.call_soon_threadsafe(begun.set)
            raise ConnectionRefusedError

    hours = Retries(base_seconds=3600.0, cap_seconds=3600.0, deadline_seconds=None)
    wrapped = resilient(Busy(), retries=hours)
    task = asyncio.create_task(wrapped.ainvoke({"number": 1}))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert CALLS == [1]


def test_without_a_call_a_tool_gives_what_it_gave() -> None:
    wrapped = resilient(Lookup())
    assert wrapped.invoke({"number": 3}) == "3"
    failed = wrapped.invoke({"number": -3})
    assert (failed.status, failed.tool_call_id) == ("error", "")


def test_another_tool_takes_its_place() -> None:
    @tool
    def backup(query: str) -> str:
        """Looks things up elsewhere."""
        CALLS.append(("backup", query))
        return f"{query} from the backup"

    wrapped = resilient(search, fallbacks=[Cached(), backup])
    (message,) = answers([wrapped], ("search", {"query": "bad"}), how="invoke")
    assert message.name == "search"
    assert str(message.content).endswith("backup has answered in its place.]\nbad from the backup")
    assert message.artifact["degraded"] == "tool:backup"


def test_an_effect_happens_once_with_its_artifact() -> None:
    wrapped = resilient(Lookup(), effect=Effects())
    call = {"type": "tool_call", "name": "lookup", "args": {"number": 3}, "id": "c1"}
    first, again = wrapped.invoke(call), wrapped.invoke({**call, "id": "c2"})
    assert (first.content, first.artifact) == ("3", {"number": 3})
    assert "done this already" in again.content
    assert again.artifact == {"number": 3}
    assert CALLS == [3]


def test_what_a_tool_handles_by_itself_stays_its_own() -> None:
    @tool
    def strict(query: str) -> str:
        """Is strict."""
        raise ToolException("not so")

    strict.handle_tool_error = "handled"
    wrapped = resilient(strict, fallbacks=[Static("never")])
    assert wrapped.invoke({"query": "x"}) == "handled"


def test_interrupts_leave_a_tool() -> None:
    @tool
    def asks(query: str) -> str:
        """Asks."""
        raise GraphInterrupt

    with pytest.raises(GraphInterrupt):
        resilient(asks, fallbacks=[Static("never")]).invoke({"query": "x"})


def test_annotations_of_a_tool_count_as_declared() -> None:
    @tool
    def read(query: str) -> str:
        """Reads."""
        CALLS.append(query)
        raise TimeoutError

    read.metadata = {"annotations": {"readOnlyHint": True}}
    resilient(read, retries=NOW).invoke({"query": "x"})
    assert len(CALLS) == 3


def test_tools_pickle_and_copy_where_they_did() -> None:
    wrapped = resilient(Lookup(), policy=ToolPolicy(fallbacks=[Static(("none", None))]))
    for twin in (pickle.loads(pickle.dumps(wrapped)), wrapped.model_copy()):
        assert isinstance(twin, Lookup)
        assert "fixed answer" in twin.invoke({"number": -1})


def test_the_tool_itself_stays_as_it_was() -> None:
    plain_tool = Lookup()
    resilient(plain_tool)
    with pytest.raises(KeyError):
        plain_tool.invoke({"number": -1})
    assert type(plain_tool) is Lookup


@pytest.mark.parametrize("host", ["invoke", "ainvoke"])
async def test_a_result_that_comes_out_of_a_tool_is_an_answer_with_its_status(host: str) -> None:
    from langchain.agents import create_agent

    import shearpin
    from shearpin.testing import StrictProvider, asks_for

    @tool
    @resilient
    def look(place: str) -> str:
        """Look somewhere."""
        if place == "drawer":
            raise KeyError(place)
        return f"{place}: nothing"

    def script(messages: Any, call: int) -> Any:
        calls = ("look", {"place": "drawer"}), ("look", {"place": "shelf"})
        return asks_for(*calls) if call == 1 else "Nowhere."

    app = shearpin.guard(create_agent(StrictProvider(script), [look]), boundary=True)
    given: Any = {"messages": [("user", "where?")]}
    values = app.invoke(given) if host == "invoke" else await app.ainvoke(given)
    failed, found = values["messages"][2:4]
    assert (failed.status, found.status) == ("error", "success")
    assert failed.content.startswith("look failed (programming)")
    assert failed.artifact["error_type"] == "programming"
    assert found.content == "shelf: nothing"

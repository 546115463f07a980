"""Agents behind tools: they are told, held back and led elsewhere like any other agent."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.tools import StructuredTool, tool

import shearpin
from shearpin.adapters.langgraph import closures, subagents
from shearpin.testing import StrictProvider, asks_for
from tests.adapters.builds import HELLO, MOST_CALLS, THREAD, assert_valid, look, react, run, saver
from tests.adapters.interventions import HEEDS, stubborn

researcher: Any = None
"""An agent of this module, as scripts have them."""


def boss(*tools: Any) -> tuple[StrictProvider, Any]:
    """An agent that asks its tool once, with a new question, and passes the answer on."""

    def script(messages: list[BaseMessage], call: int) -> AIMessage | str:
        if messages[-1].type == "tool":
            return str(messages[-1].content)
        return asks_for((tools[0].name, {"question": f"question {call}"}))

    model = StrictProvider(script)  # type: ignore[arg-type]
    return model, create_agent(model, list(tools), checkpointer=saver())


def text_of(answer: dict[str, Any]) -> str:
    return str(answer["messages"][-1].content)


def ask(agent: Any, question: str) -> str:
    return text_of(agent.invoke({"messages": [("user", question)]}))


def by_name(question: str) -> str:
    return ask(researcher, question)


def in_a_variable(agent: Any) -> Any:
    @tool
    def delegate(question: str) -> str:
        """Ask the searcher."""
        return ask(agent, question)

    return delegate


def in_the_module(agent: Any) -> Any:
    global researcher
    researcher = agent

    @tool
    def delegate(question: str) -> str:
        """Ask the searcher."""
        return ask(researcher, question)

    return delegate


def by_a_function_of_the_module(agent: Any) -> Any:
    global researcher
    researcher = agent

    @tool
    def delegate(question: str) -> str:
        """Ask the searcher."""
        return by_name(question)

    return delegate


def in_a_registry(agent: Any) -> Any:
    agents = {"searcher": agent}

    def chosen(name: str) -> Any:
        return agents[name]

    @tool
    def delegate(question: str) -> str:
        """Ask the searcher."""
        return ask(chosen("searcher"), question)

    return delegate


def in_a_partial(agent: Any) -> Any:
    def delegate(question: str, *, agent: Any) -> str:
        return ask(agent, question)

    bound = functools.partial(delegate, agent=agent)

    @tool
    def delegate_to(question: str) -> str:
        """Ask the searcher."""
        return bound(question)

    return delegate_to


def in_a_default(agent: Any) -> Any:
    def delegate(question: str, helpers: Any = (agent,)) -> str:
        return ask(helpers[0], question)

    def shown(question: str) -> str:
        """Ask the searcher."""
        return delegate(question)

    return StructuredTool.from_function(shown, name="delegate")


def with_retry(agent: Any) -> Any:
    sturdy = agent.with_retry(stop_after_attempt=2)

    @tool
    def delegate(question: str) -> str:
        """Ask the searcher."""
        return ask(sturdy, question)

    return delegate


def asynchronous(agent: Any) -> Any:
    @tool
    async def delegate(question: str) -> str:
        """Ask the searcher."""
        return text_of(await agent.ainvoke({"messages": [("user", question)]}))

    return delegate


WAYS = [
    in_a_variable,
    in_the_module,
    by_a_function_of_the_module,
    in_a_registry,
    in_a_partial,
    in_a_default,
    with_retry,
]


def acted(app: Any) -> set[tuple[str, str]]:
    """What was done about which graphs (older versions of LangChain do not name agents)."""
    return {(v.verdict, v.agent.partition(":")[0]) for v in app.report(THREAD).verdicts if v.acted}


@pytest.mark.parametrize("held", WAYS)
@pytest.mark.parametrize("what", ["nudge", "block"])
def test_it_is_told_and_held_back_wherever_its_tool_holds_it(
    what: str, held: Callable[[Any], Any]
) -> None:
    model = stubborn(HEEDS[what])
    delegate = held(create_agent(model, [look], name="searcher"))
    _, app = boss(delegate)
    guarded: Any = shearpin.guard(app)
    assert guarded.invoke(HELLO, THREAD)["messages"][-1].content == "The drawer is locked."
    report = guarded.report(THREAD)
    assert (report.outcome, report.faults) == ("completed", ())
    assert (what, "tools") in acted(guarded)
    assert model.calls <= MOST_CALLS
    assert_valid(guarded.get_state(THREAD).values["messages"])


async def test_an_asynchronous_tool() -> None:
    _, app = boss(asynchronous(create_agent(stubborn(HEEDS["block"]), [look], name="searcher")))
    guarded: Any = shearpin.guard(app)
    result = await guarded.ainvoke(HELLO, THREAD)
    assert result["messages"][-1].content == "The drawer is locked."
    assert ("block", "tools") in acted(guarded)


@pytest.mark.parametrize("how", ["invoke", "ainvoke", "stream", "astream"])
@pytest.mark.parametrize("build", [react, lambda model: create_agent(model, [look])])
async def test_its_state_goes_back(build: Any, how: str) -> None:
    _, app = boss(in_a_variable(build(stubborn(HEEDS["rollback"]))))
    guarded: Any = shearpin.guard(app, on_loop="rollback")
    await run(guarded, how)
    assert guarded.get_state(THREAD).values["messages"][-1].content == "The drawer is locked."
    assert ("rollback", "tools") in acted(guarded)


def test_an_agent_within_an_agent_within_a_tool() -> None:
    model = stubborn(HEEDS["block"])
    _, middle = boss(in_a_variable(create_agent(model, [look], name="searcher")))
    middle.name = "middle"
    _, app = boss(in_the_module(middle))
    guarded: Any = shearpin.guard(app)
    assert guarded.invoke(HELLO, THREAD)["messages"][-1].content == "The drawer is locked."
    assert ("block", "tools/tools") in acted(guarded)


def test_an_agent_with_a_memory_of_its_own() -> None:
    """Its checkpointer and its thread are what they were."""
    kept = saver()
    inner: Any = create_agent(stubborn(HEEDS["block"]), [look], name="searcher", checkpointer=kept)
    own = {"configurable": {"thread_id": "inner"}}

    @tool
    def delegate(question: str) -> str:
        """Ask the searcher."""
        return text_of(inner.invoke({"messages": [("user", question)]}, own))

    _, app = boss(delegate)
    guarded: Any = shearpin.guard(app)
    assert guarded.invoke(HELLO, THREAD)["messages"][-1].content == "The drawer is locked."
    assert ("block", "tools") in acted(guarded)
    remembered = inner.get_state(own).values["messages"]
    assert remembered[-1].content == "The drawer is locked."
    assert_valid(remembered)


def test_agents_with_threads_of_their_own_do_not_excuse_who_calls_them() -> None:
    """Their histories are others: a short one is no sign that the caller's was cut."""
    inner: Any = create_agent(
        StrictProvider(lambda messages, call: "Nothing."), checkpointer=saver()
    )

    @tool
    def delegate(question: str) -> str:
        """Ask the searcher."""
        own = {"configurable": {"thread_id": f"inner {next(numbers)}"}}
        return text_of(inner.invoke({"messages": [("user", question)]}, own))

    numbers = itertools.count()
    model = StrictProvider(lambda messages, call: asks_for(("delegate", {"question": "where?"})))
    app: Any = shearpin.guard(create_agent(model, [delegate], checkpointer=saver()))
    app.invoke(HELLO, THREAD)
    assert app.report(THREAD).outcome == "stopped"
    assert model.calls <= MOST_CALLS


def test_a_rollback_does_not_mix_up_an_agent_and_its_caller() -> None:
    inner: Any = create_agent(
        stubborn(HEEDS["rollback"]), [look], name="searcher", checkpointer=saver()
    )
    own = {"configurable": {"thread_id": "inner"}}

    @tool
    def delegate(question: str) -> str:
        """Ask the searcher."""
        return text_of(inner.invoke({"messages": [("user", question)]}, own))

    _, app = boss(delegate)
    guarded: Any = shearpin.guard(app, on_loop="rollback")
    messages = guarded.invoke(HELLO, THREAD)["messages"]
    assert [m.type for m in messages] == ["human", "ai", "tool", "ai"]
    assert messages[-1].content == "The drawer is locked."
    assert ("rollback", "tools") in acted(guarded)


def test_the_tool_that_others_see_is_the_users_own() -> None:
    from langchain.agents.middleware import wrap_tool_call

    seen: list[Any] = []

    @wrap_tool_call
    def watch(request: Any, handler: Any) -> Any:
        seen.append(request.tool)
        return handler(request)

    delegate = in_a_variable(create_agent(stubborn(HEEDS["block"]), [look], name="searcher"))
    model, _ = boss(delegate)
    app: Any = shearpin.guard(create_agent(model, [delegate], middleware=[watch]))
    assert app.invoke(HELLO)["messages"][-1].content == "The drawer is locked."
    assert seen == [delegate]
    assert seen[0] is delegate


def test_the_agent_itself_stays_unguarded() -> None:
    model = StrictProvider(
        lambda messages, call: "enough" if call >= 14 else asks_for(("look", {"place": "desk"}))
    )
    agent: Any = create_agent(model, [look])
    delegate = in_the_module(agent)
    nodes = dict(agent.nodes)
    _, app = boss(delegate)
    shearpin.guard(app).invoke(HELLO, THREAD)
    assert agent.nodes == nodes
    assert researcher is agent
    assert delegate.invoke({"question": "again"}) == "enough"


def test_what_a_tool_holds_is_looked_at_again() -> None:
    """An agent that is put in the place of another one is guarded from then on."""
    global researcher
    agents = {"now": create_agent(StrictProvider(["first"]), [look], name="first")}

    @tool
    def delegate(question: str) -> str:
        """Ask whoever is there."""
        return ask(agents["now"], question) + ask(researcher, question)

    researcher = create_agent(StrictProvider(["one"]), [look])
    model, app = boss(delegate)
    guarded: Any = shearpin.guard(app)
    assert guarded.invoke(HELLO, THREAD)["messages"][-1].content == "firstone"
    agents["now"] = create_agent(stubborn(HEEDS["block"]), [look], name="second")
    researcher = create_agent(StrictProvider(["two"]), [look])
    result = guarded.invoke({"messages": [("user", "once more")]}, THREAD)
    assert result["messages"][-1].content == "The drawer is locked.two"
    assert ("block", "tools") in acted(guarded)
    assert model.calls == 4


def test_a_tool_that_writes_to_its_module_is_left_alone() -> None:
    """A copy with names of its own would write them where nobody looks."""
    model = stubborn(None)
    counted: Any = create_agent(model, [look], name="searcher")
    space: dict[str, Any] = {"agent": counted, "count": 0, "ask": ask}
    exec(  # a module of its own
        "def delegate(question: str) -> str:\n"
        "    'Ask.'\n"
        "    global count\n"
        "    count += 1\n"
        "    return ask(agent, question)\n",
        space,
    )
    _, app = boss(StructuredTool.from_function(space["delegate"]))
    guarded: Any = shearpin.guard(app)
    guarded.invoke(HELLO, THREAD)
    assert space["count"] == 1
    assert guarded.report(THREAD).outcome == "stopped"
    assert model.calls <= MOST_CALLS


def test_an_agent_that_asks_itself() -> None:
    """A graph that leads back to itself is copied once."""
    global researcher
    delegate = by_a_function_of_the_module(None)
    model, researcher = boss(delegate)
    app: Any = shearpin.guard(researcher, budget="6 calls")
    app.invoke(HELLO, THREAD)
    assert app.report(THREAD).outcome == "stopped"
    assert model.calls <= 6


def test_a_fault_leaves_the_tool_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks(*args: object) -> Any:
        raise RuntimeError("broken")

    monkeypatch.setattr(subagents, "twin_of", breaks)
    model = stubborn(None)
    _, app = boss(in_a_variable(create_agent(model, [look], name="searcher")))
    guarded: Any = shearpin.guard(app)
    guarded.invoke(HELLO, THREAD)
    report = guarded.report(THREAD)
    assert report.outcome == "stopped"
    assert any("subagents.instead" in str(fault) for fault in report.faults)


def test_a_function_that_holds_no_agent_is_not_copied() -> None:
    def plain(text: str) -> str:
        return ask(HELLO, text) if text else str(THREAD)

    assert (
        closures.twin_of(plain, lambda value: isinstance(value, bytes), lambda value: value) is None
    )
    assert closures.twin_of(len, lambda value: True, lambda value: value) is None


def test_a_container_that_holds_other_things_stays_the_same_object() -> None:
    agent = object()
    mixed: dict[str, Any] = {"agent": agent, "count": 0}

    def counts() -> Any:
        mixed["count"] += 1
        return mixed["agent"]

    assert closures.twin_of(counts, lambda value: value is agent, lambda value: "other") is None


def test_names_are_those_of_the_module_at_each_moment() -> None:
    space: dict[str, Any] = {"agent": b"", "greeting": "hello", "__builtins__": __builtins__}
    exec("def greet(): return (len(greeting), [agent for _ in range(2)])", space)
    twin = closures.twin_of(space["greet"], lambda value: value == b"", lambda value: "other")
    assert twin is not None
    assert twin.function() == (5, ["other", "other"])
    space["greeting"], space["agent"] = "hi", "somebody else"
    assert twin.function() == (2, ["somebody else", "somebody else"])
    assert twin.function.__module__ == space["greet"].__module__

"""A node is not run again over a tool call in it that may have taken effect."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langchain_core.tools import BaseTool, tool
from langgraph.func import entrypoint, task
from langgraph.graph import START, MessagesState, StateGraph

from shearpin import ToolFacts, guard
from shearpin.boundary import Boundary, Effects, Retries, ToolPolicy

HELLO: Any = {"messages": [("user", "hi")]}
QUICK = Retries(base_seconds=0.0)
WAYS = pytest.mark.parametrize("how", ["sync", "async"])


def invoke(app: Any, given: Any, how: str) -> Any:
    return app.invoke(given) if how == "sync" else asyncio.run(app.ainvoke(given))


def charging(error: Exception) -> tuple[BaseTool, list[int]]:
    charged: list[int] = []

    @tool
    def charge(order: int) -> str:
        """Charge for an order."""
        charged.append(order)
        raise error

    return charge, charged


def in_node(charge: BaseTool) -> Any:
    def pay(state: Any) -> Any:
        return {"messages": [AIMessage(charge.invoke({"order": 1}))]}

    builder = StateGraph(MessagesState)
    builder.add_node("pay", pay)
    builder.add_edge(START, "pay")
    return builder.compile()


def in_task(charge: BaseTool) -> Any:
    @task
    def pay(order: int) -> str:
        return charge.invoke({"order": order})

    @entrypoint()
    def flow(order: int) -> str:
        return pay(order).result()

    return flow


@WAYS
def test_an_unclear_charge_in_a_node_is_made_once_and_the_end_says_so(how: str) -> None:
    charge, charged = charging(TimeoutError("no answer"))
    app = guard(in_node(charge), boundary=Boundary(retries=QUICK))
    result = invoke(app, HELLO, how)
    assert charged == [1]
    assert "may or may not have happened" in result["messages"][-1].text


@WAYS
def test_an_unclear_charge_in_a_task_of_an_entrypoint_is_made_once(how: str) -> None:
    charge, charged = charging(TimeoutError("no answer"))
    with pytest.raises(TimeoutError, match="no answer"):  # nothing else would tell of it
        invoke(guard(in_task(charge), boundary=Boundary(retries=QUICK)), 1, how)
    assert charged == [1]


@WAYS
@pytest.mark.parametrize(
    "error",
    [TimeoutError("no answer"), ConnectionRefusedError("nobody there")],
    ids=["declared-idempotent", "certainly-did-nothing"],
)
def test_what_may_be_done_again_is(error: Exception, how: str) -> None:
    charge, charged = charging(error)
    facts = {"charge": ToolFacts(idempotent=True)} if isinstance(error, TimeoutError) else {}
    result = invoke(
        guard(in_node(charge), tools=facts, boundary=Boundary(retries=QUICK)), HELLO, how
    )
    assert charged == [1, 1, 1]
    assert "may or may not" not in result["messages"][-1].text


def test_who_asks_for_a_retry_gets_it_of_a_tool_of_which_nothing_is_declared() -> None:
    charge, charged = charging(TimeoutError("no answer"))
    asked = Boundary(retries=QUICK, on={TimeoutError: "retry"})
    guard(in_node(charge), boundary=asked).invoke(HELLO)
    assert charged == [1, 1, 1]


@pytest.mark.parametrize("declared", ["destructive", "recorded"])
def test_nobody_gets_a_second_effect(declared: str) -> None:
    charge, charged = charging(TimeoutError("no answer"))
    recorded = declared == "recorded"
    facts = {} if recorded else {"charge": ToolFacts(destructive=True)}
    policy = {"charge": ToolPolicy(effect=Effects())} if recorded else {}
    asked = Boundary(retries=QUICK, on={TimeoutError: "retry"}, tools=policy)
    app = guard(in_node(charge), tools=facts, boundary=asked)
    app.invoke(HELLO)
    assert charged == [1]
    assert app.report().boundary.actions == {"terminate": 1}


def test_the_alternative_is_taken_where_there_is_one() -> None:
    charge, charged = charging(TimeoutError("no answer"))

    def pay(state: Any) -> Any:
        return {"messages": [AIMessage(charge.invoke({"order": 1}))]}

    builder = StateGraph(MessagesState)
    builder.add_node("pay", pay)
    builder.add_node("ask", lambda state: {"messages": [AIMessage("a person will look")]})
    builder.add_edge(START, "pay")
    recipe = Boundary(retries=QUICK, alternative={"pay": "ask"})
    result = guard(builder.compile(), boundary=recipe).invoke(HELLO)
    assert charged == [1]
    assert result["messages"][-1].text == "a person will look"


def test_a_call_in_another_node_keeps_nobody_from_being_tried_again() -> None:
    charge, charged = charging(TimeoutError("no answer"))
    tried: list[int] = []

    def pay(state: Any) -> Any:
        try:
            charge.invoke({"order": 1})
        except TimeoutError:
            return {"messages": [AIMessage("unclear")]}
        return {}

    def look(state: Any) -> Any:
        tried.append(1)
        if len(tried) < 3:
            raise TimeoutError("slow")
        return {"messages": [AIMessage("found")]}

    builder = StateGraph(MessagesState)
    builder.add_node("pay", pay)
    builder.add_node("look", look)
    builder.add_edge(START, "pay")
    builder.add_edge("pay", "look")
    result = guard(builder.compile(), boundary=Boundary(retries=QUICK)).invoke(HELLO)
    assert (charged, len(tried)) == ([1], 3)
    assert result["messages"][-1].text == "found"

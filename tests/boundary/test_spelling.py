"""One effect, however a model spells the arguments of the call."""

from __future__ import annotations

from typing import Annotated, Any
from uuid import uuid4

import pytest
from langchain.agents import create_agent
from langchain_core.tools import BaseTool, tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import InjectedState, ToolNode, tools_condition
from pydantic import BaseModel, Field

from shearpin import guard
from shearpin.adapters.boundary.spelling import as_read
from shearpin.boundary import Boundary, Effects, ToolPolicy, resilient
from shearpin.langchain import ResilienceMiddleware
from shearpin.testing import StrictProvider, asks_for

HELLO: Any = {"messages": [("user", "hi")]}
ONCE = Boundary(tools={"send": ToolPolicy(effect=Effects())})


def mail() -> tuple[BaseTool, list[tuple[str, bool]]]:
    sent: list[tuple[str, bool]] = []

    @tool
    def send(to: str, urgent: bool = False) -> str:
        """Send a mail."""
        sent.append((to, urgent))
        return "sent"

    return send, sent


def in_tool_node(model: Any, send: BaseTool) -> Any:
    builder = StateGraph(MessagesState)
    builder.add_node("agent", lambda state: {"messages": [model.invoke(state["messages"])]})
    builder.add_node("tools", ToolNode([send]))
    builder.add_edge(START, "agent")
    builder.add_conditional_edges("agent", tools_condition)
    builder.add_edge("tools", "agent")
    return guard(builder.compile(), boundary=ONCE)


def in_agent(model: Any, send: BaseTool) -> Any:
    return guard(create_agent(model, [send]), boundary=ONCE)


def in_middleware(model: Any, send: BaseTool) -> Any:
    return create_agent(model, [send], middleware=[ResilienceMiddleware(ONCE)])


def in_resilient(model: Any, send: BaseTool) -> Any:
    return guard(create_agent(model, [resilient(send, effect=Effects())]))


@pytest.mark.parametrize("build", [in_tool_node, in_agent, in_middleware, in_resilient])
@pytest.mark.parametrize(
    "again",
    [
        {"to": "ann", "urgent": False},
        {"to": "ann", "urgent": "false"},
        {"to": "ann", "extra": 1},
    ],
    ids=["default", "coerced", "unknown"],
)
def test_a_mail_spelt_differently_is_sent_once(build: Any, again: dict[str, Any]) -> None:
    send, sent = mail()
    asked = [asks_for(("send", {"to": "ann"})), asks_for(("send", again)), "done"]
    build(StrictProvider(asked), send).invoke(HELLO)
    assert sent == [("ann", False)]


def test_another_mail_is_sent() -> None:
    send, sent = mail()
    asked = [asks_for(("send", {"to": "ann"})), asks_for(("send", {"to": "ann", "urgent": True}))]
    in_agent(StrictProvider([*asked, "done"]), send).invoke(HELLO)
    assert sent == [("ann", False), ("ann", True)]


def test_what_the_host_puts_in_and_what_is_made_anew_do_not_count() -> None:
    class Order(BaseModel):
        item: str
        request: str = Field(default_factory=lambda: uuid4().hex)
        tags: list[str] = Field(default_factory=list)
        state: Annotated[dict[str, Any], InjectedState]

    @tool(args_schema=Order)
    def order(item: str, request: str, tags: list[str], state: Any) -> str:
        """Order something."""
        return item

    if order.tool_call_schema.model_fields["request"].is_required():
        pytest.skip("this langchain-core forgets how defaults are made; the call counts as spelt")
    assert as_read(order, {"item": "pen"}) == {"item": "pen", "tags": []}


def test_arguments_that_do_not_fit_count_as_they_were_spelt() -> None:
    send, _ = mail()
    assert as_read(send, {"urgent": "perhaps"}) is None
    assert as_read(lambda to: to, {"to": "ann"}) is None

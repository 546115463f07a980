"""Retry layers of LangChain within a `ResilienceMiddleware`, where no guarded run sees the call."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents import middleware as stock
from langchain_core.tools import tool

from shearpin import ToolFacts
from shearpin.boundary import Boundary, Effects, Retries, ToolPolicy
from shearpin.langchain import ResilienceMiddleware
from shearpin.testing import StrictProvider, asks_for

pytestmark = pytest.mark.skipif(
    not hasattr(stock, "ToolRetryMiddleware"), reason="this LangChain has no ToolRetryMiddleware"
)

HELLO: Any = {"messages": [("user", "hi")]}
QUICK = Retries(base_seconds=0.0)
RECORDED = {"charge": ToolPolicy(effect=Effects())}
WAYS = pytest.mark.parametrize("how", ["sync", "async"])


def charged(
    how: str, resilience: ResilienceMiddleware, error: Exception, on_failure: str = "continue"
) -> tuple[int, Any]:
    """How often a tool ran that fails, with LangChain's retries, and how the call is answered."""
    made: list[int] = []

    def fail(order: int) -> str:
        made.append(order)
        raise error

    async def afail(order: int) -> str:
        return fail(order)

    charge: Any
    if how == "sync":
        charge = tool("charge", description="Charge for an order.")(fail)
    else:
        charge = tool("charge", description="Charge for an order.")(afail)
    options: Any = {"max_retries": 3, "initial_delay": 0.0, "jitter": False}
    retries = stock.ToolRetryMiddleware(on_failure=on_failure, **options)
    model = StrictProvider([asks_for(("charge", {"order": 1})), "done"])
    agent = create_agent(model, [charge], middleware=[resilience, retries])
    result = agent.invoke(HELLO) if how == "sync" else asyncio.run(agent.ainvoke(HELLO))
    return len(made), result["messages"][2]


@WAYS
@pytest.mark.parametrize("on_failure", ["continue", "error"])
@pytest.mark.parametrize("declared", ["nothing", "destructive", "recorded"])
def test_an_unclear_charge_is_made_once(
    how: str, on_failure: str, declared: str, caplog: pytest.LogCaptureFixture
) -> None:
    boundary = Boundary(retries=QUICK, tools=RECORDED if declared == "recorded" else {})
    facts = {"charge": ToolFacts(destructive=True)} if declared == "destructive" else {}
    with caplog.at_level(logging.WARNING):
        times, answer = charged(
            how, ResilienceMiddleware(boundary, facts=facts), TimeoutError("no answer"), on_failure
        )
    assert times == 1
    assert "charge failed (timeout)" in answer.text
    assert "may or may not have happened" in answer.text
    assert answer.artifact["outcome_unknown"] is True
    assert "_Innermost" not in caplog.text  # a refusal is no fault of a callback's


@WAYS
def test_what_is_declared_idempotent_is_left_to_them(how: str) -> None:
    resilience = ResilienceMiddleware(
        Boundary(retries=QUICK), facts={"charge": ToolFacts(idempotent=True)}
    )
    times, answer = charged(how, resilience, TimeoutError("no answer"))
    assert times == 4
    assert answer.status == "error"


@WAYS
def test_what_certainly_did_nothing_is_left_to_them(how: str) -> None:
    resilience = ResilienceMiddleware(Boundary(retries=QUICK))
    times, _ = charged(how, resilience, ConnectionRefusedError("nobody there"))
    assert times == 4

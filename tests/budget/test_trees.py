"""Random trees of calls: what was truly paid never exceeds the cap, and the cap is used.

A tree is a program: models called one after the other, in parallel branches, by sub-agents in
tools, streamed with and without usage, retried, with fallbacks, abandoned, cancelled, one prompt
huge. The
provider counts what it is paid. Answers are bounded.

Long run: SHEARPIN_TREES=10000 python -m pytest tests/budget/test_trees.py
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langchain_core.messages import BaseMessage
from langchain_core.tools import tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Send

import shearpin
from shearpin import Budget
from tests.budget.paying import PRICE, Paid

EXAMPLES = int(os.environ.get("SHEARPIN_TREES", "200"))
WORDS = "all the work that there is to do in this part of the tree goes on and on and on".split()


@dataclass
class Step:
    """One thing that a node does."""

    kind: str
    size: int = 1


@dataclass
class Plan:
    """A node's steps, over and over until the budget ends it; `branches` of it at once."""

    steps: list[Step]
    branches: int = 1
    asynchronous: bool = False
    cap: int = 2_000
    unit: str = "tokens"
    answers: list[int] = field(default_factory=lambda: [5])


kinds = st.sampled_from(
    ["call", "call", "call", "stream", "silent", "silent_stream", "abandon", "retry", "fallback",
     "sub_agent", "cancel"]
)  # fmt: skip
steps = st.lists(st.builds(Step, kinds, st.integers(1, 3)), min_size=1, max_size=5)
plans = st.builds(
    Plan,
    steps,
    branches=st.sampled_from([1, 1, 1, 2, 8, 64]),
    asynchronous=st.booleans(),
    cap=st.integers(3_000, 9_000),
    unit=st.sampled_from(["tokens", "usd"]),
    answers=st.lists(st.integers(1, 30), min_size=1, max_size=8),
)


class World:
    """A plan at work: one provider, so that there is one bill."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.calls = 0
        self.model = self._paid()
        self.silent = self._paid(reports=False)
        self.failing = self._paid(fails=2)
        self.broken = self._paid(fails=10**9)

    def _paid(self, *, reports: bool = True, fails: int = 0) -> Paid:
        answers = self.plan.answers

        def script(messages: Sequence[BaseMessage], number: int) -> str | BaseException:
            if number % (fails + 1):
                return RuntimeError("the provider fails")
            return " ".join(f"w{number}x{n}" for n in range(answers[number % len(answers)]))

        return Paid(script, reports=reports, max_tokens=35)

    @property
    def paid(self) -> int:
        models = (self.model, self.silent, self.failing, self.broken)
        if self.plan.unit == "tokens":
            return sum(model.tokens for model in models)
        return sum(model.micros for model in models)

    @property
    def attempts(self) -> int:
        models = (self.model, self.silent, self.failing, self.broken)
        return sum(model.calls for model in models)

    def prompt(self, size: int) -> str:
        return " ".join(WORDS * size)

    def do(self, step: Step) -> None:
        prompt = self.prompt(step.size)
        if step.kind == "call":
            self.model.invoke(prompt)
        elif step.kind == "stream":
            list(self.model.stream(prompt))
        elif step.kind == "silent":
            self.silent.invoke(prompt)
        elif step.kind == "silent_stream":
            list(self.silent.stream(prompt))
        elif step.kind in ("abandon", "cancel"):  # who is not asynchronous cannot be cancelled
            chunks = self.model.stream(prompt)
            next(chunks)
            chunks.close()
        elif step.kind == "retry":
            self.failing.with_retry(stop_after_attempt=200, wait_exponential_jitter=False).invoke(
                prompt
            )
        elif step.kind == "fallback":
            self.broken.with_fallbacks([self.model]).invoke(prompt)
        else:
            self.delegate(prompt)

    async def ado(self, step: Step) -> None:
        prompt = self.prompt(step.size)
        if step.kind in ("stream", "silent_stream"):
            model = self.model if step.kind == "stream" else self.silent
            async for _ in model.astream(prompt):
                await asyncio.sleep(0)
        elif step.kind in ("call", "silent"):
            await (self.model if step.kind == "call" else self.silent).ainvoke(prompt)
        elif step.kind == "cancel":
            task = asyncio.create_task(self.model.ainvoke(prompt))
            for _ in range(step.size):
                await asyncio.sleep(0)
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        else:
            self.do(step)

    def delegate(self, prompt: str) -> None:
        def think(state: MessagesState) -> dict[str, Any]:
            return {"messages": [self.model.invoke(state["messages"])]}

        graph = StateGraph(MessagesState)
        graph.add_node("think", think)
        graph.add_node("again", think)
        graph.add_edge(START, "think")
        graph.add_edge("think", "again")

        def ask(question: str) -> str:
            """Asks somebody else."""
            return graph.compile().invoke({"messages": [("user", question)]})["messages"][-1].text

        tool(ask).invoke({"question": prompt})

    def graph(self) -> Any:
        """Branches of one round each, round after round, until the budget ends it."""
        plan = self.plan

        def work(state: MessagesState) -> dict[str, Any]:
            for step in plan.steps:
                self.do(step)
            return {}

        async def awork(state: MessagesState) -> dict[str, Any]:
            for step in plan.steps:
                await self.ado(step)
            return {}

        def onward(state: MessagesState) -> list[Send]:
            return [Send("work", state) for _ in range(plan.branches)]

        graph = StateGraph(MessagesState)
        graph.add_node("work", awork if plan.asynchronous else work)
        graph.add_node("plan", lambda state: {})
        graph.add_edge(START, "plan")
        graph.add_conditional_edges("plan", onward, ["work"])
        graph.add_edge("work", "plan")
        return graph.compile()


@settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(plan=plans)
def test_what_is_paid_never_exceeds_the_cap_and_the_cap_is_used(plan: Plan) -> None:
    world = World(plan)
    cap = plan.cap if plan.unit == "tokens" else plan.cap * 15
    budget = Budget(tokens=cap) if plan.unit == "tokens" else Budget(usd=f"{cap / 1_000_000:.6f}")
    app = shearpin.guard(world.graph(), budget=budget, unknown_price=PRICE, detectors=())
    config = {"recursion_limit": 10_000}
    inputs: dict[str, Any] = {"messages": [("user", "begin")]}
    if plan.asynchronous:
        asyncio.run(app.ainvoke(inputs, config))
    else:
        app.invoke(inputs, config)
    report = app.report()
    assert not report.faults
    assert world.paid <= cap
    (scope,) = report.budget.scopes
    counted = scope.spent.get(plan.unit, 0)
    counted = int(counted * 1_000_000) if plan.unit == "usd" else counted
    assert world.paid <= counted <= cap
    assert not scope.held
    assert report.outcome == "stopped"
    # What the guard believes to be spent is at least 80 % of the cap; where usage was told, that is
    # what was truly paid.
    assert counted >= 0.8 * cap


@settings(max_examples=max(20, EXAMPLES // 20), deadline=None)
@given(size=st.integers(2_000, 40_000), cap=st.integers(500, 1_500))
def test_one_huge_prompt_is_never_sent(size: int, cap: int) -> None:
    world = World(Plan([Step("call")], cap=cap))

    def node(state: MessagesState) -> dict[str, Any]:
        world.model.invoke("a few words")
        world.model.invoke("word " * size)
        return {}

    graph = StateGraph(MessagesState)
    graph.add_node("node", node)
    graph.add_edge(START, "node")
    app = shearpin.guard(graph.compile(), budget=Budget(tokens=cap))
    app.invoke({"messages": []})
    assert world.attempts == 1
    assert world.paid <= cap
    assert app.report().reason == "budget:tokens"

"""Agents in a world where a tenth of all exchanges goes wrong: bare, with stock retries, guarded.

    python -m benchmarks.chaos [--runs 2000] [--http 0.5] [--rate 0.1] [--seed 1]

Each run is a ReAct agent with five tools (one sends an e-mail, one asks an agent of its own),
parallel calls and a summariser. The model is scripted and asks again for what has failed, as models
do. A part of the runs goes over HTTP, through the real clients of OpenAI and Anthropic with their
own retries; the rest meets the same faults in process, as exceptions of these clients, without
retries of theirs. Waits take no time. Every arm gets the same tasks and draws its faults from the
same seed.

Target, guarded: at most 0.3 % abnormal terminations, no unanswered call, no e-mail sent twice.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import (
    ModelFallbackMiddleware,
    ModelRetryMiddleware,
    SummarizationMiddleware,
    ToolRetryMiddleware,
)
from langchain_core.messages import AIMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver

from benchmarks.chaos_world import RESEARCHER, InProcessModel, World, lookup_of, tools_of
from benchmarks.measuring import save, table
from shearpin import ToolFacts, clock, guard
from shearpin.boundary import Boundary, Effects, ToolPolicy
from shearpin.testing import LoopbackProvider

ARMS = ("bare", "stock", "guarded")
PRICE_IN, PRICE_OUT = 0.15e-6, 0.60e-6
FACTS = {
    **{name: ToolFacts(read_only=True) for name in ("search", "lookup", "fetch", "delegate")},
    "send_email": ToolFacts(read_only=False, idempotent=False),
}
BOUNDARY = {"tools": {"send_email": ToolPolicy(effect=Effects(key=("to",)))}}


@dataclass
class Tally:
    """What came of the runs of one arm."""

    runs: int = 0
    abnormal: int = 0
    unanswered: int = 0
    poisoned: int = 0
    duplicates: int = 0
    lost: int = 0
    reported: int = 0
    answers: Counter[str] = field(default_factory=Counter[str])
    errors: Counter[str] = field(default_factory=Counter[str])
    exchanges: int = 0
    faulty: int = 0
    dollars: float = 0.0
    seconds: float = 0.0

    def add(self, other: Tally) -> Tally:
        """Both together."""
        return Tally(*(getattr(self, n) + getattr(other, n) for n in self.__dataclass_fields__))


def models_of(world: World, provider: LoopbackProvider | None, turn: int) -> tuple[Any, Any]:
    """The model of a run and the one to fall back on, of the other provider."""
    flavours = ("openai", "anthropic") if turn % 2 == 0 else ("anthropic", "openai")
    if provider is None:
        first, second = (InProcessModel(world=world, flavour=flavour) for flavour in flavours)
        return first, second
    first, second = (_client(flavour, provider) for flavour in flavours)
    return first, second


def _client(flavour: str, provider: LoopbackProvider) -> Any:
    if flavour == "openai":
        from langchain_openai import ChatOpenAI

        return ChatOpenAI(model="gpt-4o-mini", base_url=provider.openai_url, api_key="none")
    from langchain_anthropic import ChatAnthropic

    return ChatAnthropic(
        model="claude-haiku-4-5", base_url=provider.url, api_key="none", max_tokens=1000
    )


def agent_of(arm: str, world: World, model: Any, fallback: Any) -> Any:
    """An agent as one arm has it."""
    researcher = create_agent(model, lookup_of(world), system_prompt=RESEARCHER)
    middleware: list[Any] = [
        SummarizationMiddleware(model, trigger=("messages", 14), keep=("messages", 6))
    ]
    if arm == "stock":
        middleware += [
            ModelFallbackMiddleware(fallback),
            ModelRetryMiddleware(max_retries=2, initial_delay=0.0, jitter=False),
            ToolRetryMiddleware(max_retries=2, initial_delay=0.0, jitter=False),
        ]
    agent = create_agent(
        model,
        tools_of(world, researcher),
        system_prompt="You work on cases.",
        middleware=middleware,
        checkpointer=InMemorySaver(),
    )
    if arm != "guarded":
        return agent
    return guard(agent, boundary=Boundary(models=[fallback], **BOUNDARY), tools=FACTS)


async def run_arm(arm: str, tasks: range, *, http: bool, rate: float, seed: int) -> Tally:
    """All runs of one arm over one way to the provider."""
    world, tally = World(seed, rate), Tally()
    began = time.process_time()
    with ExitStack() as stack:
        provider = stack.enter_context(LoopbackProvider(world.answer)) if http else None
        apps = [agent_of(arm, world, *models_of(world, provider, turn)) for turn in range(2)]
        for task in tasks:
            await _run(apps[task % 2], task, tally, world)
        if arm == "guarded":
            told = [app.report().boundary for app in apps]
            tally.reported = sum(one.abnormal_runs for one in told if one is not None)
    tally.seconds = time.process_time() - began
    tally.exchanges = sum(world.exchanges.values())
    tally.faulty = sum(world.faulty.values())
    tally.dollars = world.tokens["in"] * PRICE_IN + world.tokens["out"] * PRICE_OUT
    return tally


async def _run(app: Any, task: int, tally: Tally, world: World) -> None:
    given = {"messages": [("user", f"Please work on task:{task}.")]}
    config: Any = {"configurable": {"thread_id": str(task)}, "recursion_limit": 100}
    tally.runs += 1
    answer = "none"
    try:
        out = app.invoke(given, config) if task % 4 < 2 else await app.ainvoke(given, config)
        answer = _kind(out["messages"][-1], task)
    except Exception as error:
        tally.abnormal += 1
        tally.errors[type(error).__name__] += 1
    tally.answers[answer] += 1
    left = _unanswered(app.get_state(config).values.get("messages", []))
    tally.unanswered += left
    tally.poisoned += left > 0
    tally.duplicates += max(0, world.sent[task] - 1)
    tally.lost += world.sent[task] == 0
    app.checkpointer.delete_thread(str(task))


def _kind(message: Any, task: int) -> str:
    text = message.text if isinstance(message, AIMessage) else ""
    if text == f"answer to task:{task}":
        return "whole"
    if not text.strip() or message.tool_calls:
        return "none"
    return "said so" if "shearpin" in message.response_metadata else "other"


def _unanswered(messages: list[Any]) -> int:
    asked = {str(c["id"]) for m in messages if isinstance(m, AIMessage) for c in m.tool_calls}
    return len(asked - {m.tool_call_id for m in messages if isinstance(m, ToolMessage)})


@contextmanager
def no_waiting() -> Iterator[None]:
    """Waits take no time: neither ours nor those of the providers' clients."""
    patches: list[tuple[Any, str, object]] = [
        (clock, "sleep", lambda seconds: None),
        (clock, "asleep", _asleep),
    ]
    for name in ("openai", "anthropic"):
        client = import_module(f"{name}._base_client").BaseClient
        patches.append((client, "_calculate_retry_timeout", lambda *_, **__: 0.0))
    kept = [(place, name, getattr(place, name)) for place, name, _ in patches]
    try:
        for place, name, value in patches:
            setattr(place, name, value)
        yield
    finally:
        for place, name, value in kept:
            setattr(place, name, value)


async def _asleep(seconds: float) -> None:
    await asyncio.sleep(0)


def rows_of(found: dict[str, Tally]) -> list[list[str]]:
    """The table."""
    return [
        [
            arm,
            f"{one.runs:,}",
            f"{one.abnormal} ({100 * one.abnormal / one.runs:.2f} %)",
            f"{one.unanswered} in {one.poisoned}",
            f"{one.duplicates}",
            f"{one.answers['whole']}",
            f"{one.answers['said so']}",
            f"{one.answers['other'] + one.answers['none'] - one.abnormal}",
            f"{one.lost}",
            f"{one.exchanges:,} ({100 * one.faulty / max(1, one.exchanges):.1f} %)",
            f"{one.dollars:.3f}",
        ]
        for arm, one in found.items()
    ]


HEADER = [
    "arm", "runs", "abnormal", "unanswered calls, in threads", "duplicate e-mails", "whole answers",
    "honest partial answers", "other ends", "e-mail not sent", "exchanges (faulty)", "dollars",
]  # fmt: skip


def run_all(
    runs: int, http: float, rate: float, seed: int, arms: tuple[str, ...], *, told: bool = False
) -> dict[str, dict[str, Tally]]:
    """Every arm, over HTTP and in process."""
    share = round(runs * http)
    parts = {"HTTP": (range(share), True), "in process": (range(share, runs), False)}
    found: dict[str, dict[str, Tally]] = {}
    for name, (tasks, over_http) in parts.items():
        if not len(tasks):
            continue
        found[name] = {}
        for arm in arms:
            one = asyncio.run(run_arm(arm, tasks, http=over_http, rate=rate, seed=seed))
            found[name][arm] = one
            if told:
                print(f"{name}, {arm}: {one}", file=sys.stderr, flush=True)
    if len(found) > 1:
        found["all"] = {arm: found["HTTP"][arm].add(found["in process"][arm]) for arm in arms}
    return found


def main() -> int:
    """Run it and print the tables; 1 where a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--http", type=float, default=0.5)
    parser.add_argument("--rate", type=float, default=0.1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--arms", default="bare,stock,guarded")
    given = parser.parse_args()
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    arms = tuple(given.arms.split(","))
    with no_waiting():
        found = run_all(given.runs, given.http, given.rate, given.seed, arms, told=True)
    rows: list[dict[str, object]] = []
    for part, by_arm in found.items():
        print(f"\n{part}\n\n{table(HEADER, rows_of(by_arm))}")
        rows += [{"part": part, "arm": arm, **vars(one)} for arm, one in by_arm.items()]
        for arm, one in by_arm.items():
            print(f"{arm}: {one.seconds:.0f} s CPU; left by {dict(one.errors.most_common(8))}")
            if arm == "guarded":
                print(f"guarded: the guard itself has counted {one.reported} abnormal ends")
    save("chaos", rows)
    last = list(found.values())[-1].get("guarded")
    met = last is None or (
        last.abnormal <= 0.003 * last.runs and not last.unanswered and not last.duplicates
    )
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())

"""Runs the same agent bare and guarded, and measures both from outside the guard."""

# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# (the types of langgraph's own API are partly unknown)

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Protocol, TypeAlias, cast
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, LLMResult
from langchain_core.runnables import RunnableConfig
from langgraph.errors import GraphRecursionError
from langgraph.graph import MessagesState
from langgraph.graph.state import CompiledStateGraph

from shearpin.clock import monotonic
from shearpin.report.model import Report

__all__ = ["Agent", "Result", "run_bare", "run_guarded"]

Agent: TypeAlias = CompiledStateGraph[MessagesState]

_SUPERSTEPS_PER_CALL = 2


@dataclass(frozen=True, slots=True)
class Result:
    """What one run cost and how it ended.

    Attributes:
        usd: at list price, every call priced by itself; None where the price is not known.
        ended: how it ended, in words.
        answer: the last message of the run, empty where the harness cut it off.
        report: the guard's own, where there was one.
    """

    model_calls: int
    tool_calls: int
    input_tokens: int
    output_tokens: int
    usd: Decimal | None
    seconds: float
    ended: str
    answer: str
    report: Report | None = None


class _Reporting(Protocol):
    """What a guarded graph has besides what the graph itself has."""

    def report(self, config: RunnableConfig | None = None) -> Report: ...


class _Meter(BaseCallbackHandler):
    """Counts calls and tokens as the provider reported them, without asking the guard."""

    def __init__(self) -> None:
        self.usage: list[tuple[int, int]] = []
        self.tool_calls = 0

    def on_llm_end(
        self, response: LLMResult, *, run_id: UUID, parent_run_id: UUID | None = None, **_: object
    ) -> None:
        """One model call has been answered."""
        spent = made = 0
        for generation in response.generations[0]:
            message = generation.message if isinstance(generation, ChatGeneration) else None
            if isinstance(message, AIMessage) and message.usage_metadata is not None:
                spent = message.usage_metadata["input_tokens"]
                made = message.usage_metadata["output_tokens"]
        self.usage.append((spent, made))

    def on_tool_end(
        self, output: object, *, run_id: UUID, parent_run_id: UUID | None = None, **_: object
    ) -> None:
        """One tool has really run."""
        self.tool_calls += 1


def run_bare(agent: Agent, question: str, model_name: str, most_calls: int) -> Result:
    """Runs the agent as it is. A harness cuts it off after `most_calls` model calls."""
    meter, config = _instruments(most_calls)
    started = monotonic()
    answer = ""
    try:
        state = agent.invoke({"messages": [HumanMessage(question)]}, config)
        answer = _last_words(state)
        ended = "ended by itself"
    except GraphRecursionError:
        ended = f"did not end; cut off by the harness after {most_calls} calls"
    return _result(meter, monotonic() - started, model_name, ended, answer)


def run_guarded(agent: Agent, question: str, model_name: str, most_calls: int) -> Result:
    """Runs the agent under `shearpin.guard` at default settings, within the same harness."""
    from shearpin import guard

    meter, config = _instruments(most_calls)
    app = guard(agent)
    started = monotonic()
    answer = ""
    try:
        state = app.invoke({"messages": [HumanMessage(question)]}, config)
        answer = _last_words(state)
        ended = "a normal end"
    except GraphRecursionError:
        ended = f"did not end; cut off by the harness after {most_calls} calls"
    seconds = monotonic() - started
    report = cast("_Reporting", app).report(config)
    if report.reason is not None:
        ended = f"{ended}, stopped by the guard: {report.reason}"
    return _result(meter, seconds, model_name, ended, answer, report)


def _instruments(most_calls: int) -> tuple[_Meter, RunnableConfig]:
    meter = _Meter()
    limit = most_calls * _SUPERSTEPS_PER_CALL
    return meter, RunnableConfig(callbacks=[meter], recursion_limit=limit)


def _last_words(state: object) -> str:
    messages = cast("dict[str, list[BaseMessage]]", state)["messages"]
    return str(messages[-1].text) if messages else ""


def _result(
    meter: _Meter,
    seconds: float,
    model_name: str,
    ended: str,
    answer: str,
    report: Report | None = None,
) -> Result:
    return Result(
        model_calls=len(meter.usage),
        tool_calls=meter.tool_calls,
        input_tokens=sum(spent for spent, _ in meter.usage),
        output_tokens=sum(made for _, made in meter.usage),
        usd=_price(meter.usage, model_name),
        seconds=seconds,
        ended=ended,
        answer=answer,
        report=report,
    )


def _price(usage: list[tuple[int, int]], model_name: str) -> Decimal | None:
    """The list price of these calls, from the offline snapshot of genai-prices."""
    from genai_prices import Usage, calc_price

    total = Decimal(0)
    try:
        for spent, made in usage:
            priced = calc_price(Usage(input_tokens=spent, output_tokens=made), model_name)
            total += priced.total_price
    except LookupError:
        return None
    return total

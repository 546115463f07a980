"""The node layer: a runnable around what LangGraph executes for a node.

Contract: input, output, errors, streams and cancellation of the node pass through unchanged, unless
the run has been stopped: then the node's turn is used to end its graph. It writes through the node's
own first writer only, never into channels of its own. A fault of this layer is contained.
"""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

from langchain_core.messages import HumanMessage
from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.errors import GraphBubbleUp, GraphInterrupt, ParentCommand
from langgraph.types import Command
from pydantic import BaseModel

from shearpin.adapters.calls import HANDLER, place_of
from shearpin.adapters.langgraph.compat import AnyNode, AnyRunnable
from shearpin.adapters.langgraph.delta import delta_of
from shearpin.adapters.langgraph.stopping import AFTER_HOOK, Endings
from shearpin.adapters.messages import is_messages, nudge_message, removes, unanswered
from shearpin.adapters.run import Run
from shearpin.adapters.signals import stop_in
from shearpin.events import HistoryCompacted, NodeEntered, NodeLeft
from shearpin.verdicts import PROCEED, Halt

__all__ = ["GuardedNode", "NodePlan"]


@dataclass(frozen=True, slots=True)
class NodePlan:
    """What is known of a node when it is guarded.

    Attributes:
        name: the node's name.
        node: the node as it was.
        inner: what LangGraph would execute.
        endings: how its graph is ended.
        merged: channels of its graph that merge updates.
        answers: whether it answers tool calls itself, also those of a stopped run.
        cached: whether its writes may be kept for other runs.
    """

    name: str
    node: AnyNode
    inner: AnyRunnable
    endings: Endings
    merged: frozenset[str]
    answers: bool
    cached: bool

    @property
    def runs_when_stopped(self) -> bool:
        """After-hooks run in a stopped run, and tool nodes answer what was asked for."""
        return self.answers or self.name.endswith(AFTER_HOOK)


class _Visit(NamedTuple):
    """One execution of a node."""

    task: str
    agent: str
    input: Any
    added: tuple[str, ...] = ()
    halt: Halt | None = None


class GuardedNode(Runnable[Any, Any]):
    """Executes a node under the run that the context carries; plainly where there is none."""

    def __init__(self, plan: NodePlan) -> None:
        self.plan = plan
        self.name = plan.inner.get_name()

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        handler = HANDLER.get()
        if handler is None or handler.run.closed or config is None:
            return self.plan.inner.invoke(input, config, **kwargs)
        run = handler.run
        visit = self._enter(run, input, config)
        if visit.halt is not None:
            return self._end(run, visit.halt, config)
        try:
            output = self.plan.inner.invoke(visit.input, config, **kwargs)
        except BaseException as error:
            return self._failed(run, visit, config, error)
        return self._left(run, visit, output)

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        handler = HANDLER.get()
        if handler is None or handler.run.closed or config is None:
            return await self.plan.inner.ainvoke(input, config, **kwargs)
        run = handler.run
        visit = self._enter(run, input, config)
        if visit.halt is not None:
            return self._end(run, visit.halt, config)
        try:
            output = await self.plan.inner.ainvoke(visit.input, config, **kwargs)
        except BaseException as error:
            return self._failed(run, visit, config, error)
        return self._left(run, visit, output)

    def stream(
        self, input: Any, config: RunnableConfig | None = None, **kwargs: Any
    ) -> Iterator[Any]:
        handler = HANDLER.get()
        if handler is None or handler.run.closed or config is None:
            yield from self.plan.inner.stream(input, config, **kwargs)
            return
        run = handler.run
        visit = self._enter(run, input, config)
        if visit.halt is not None:
            self._end(run, visit.halt, config)
            return
        chunks = _Chunks()
        try:
            for chunk in self.plan.inner.stream(visit.input, config, **kwargs):
                yield chunks.keep(chunk)
        except BaseException as error:
            self._failed(run, visit, config, error)
            return
        self._left(run, visit, chunks.value)

    async def astream(
        self, input: Any, config: RunnableConfig | None = None, **kwargs: Any
    ) -> AsyncIterator[Any]:
        handler = HANDLER.get()
        if handler is None or handler.run.closed or config is None:
            async for chunk in self.plan.inner.astream(input, config, **kwargs):
                yield chunk
            return
        run = handler.run
        visit = self._enter(run, input, config)
        if visit.halt is not None:
            self._end(run, visit.halt, config)
            return
        chunks = _Chunks()
        try:
            async for chunk in self.plan.inner.astream(visit.input, config, **kwargs):
                yield chunks.keep(chunk)
        except BaseException as error:
            self._failed(run, visit, config, error)
            return
        self._left(run, visit, chunks.value)

    # -- the three moments ------------------------------------------------------------------------

    def _enter(self, run: Run, input: Any, config: RunnableConfig) -> _Visit:
        plan = self.plan
        try:
            place = place_of(config.get("metadata"))
            run.forget(place.task)
            verdict = run.before(NodeEntered(run.now(), plan.name, place.task, place.agent))
            if verdict is not PROCEED and isinstance(verdict, Halt) and not plan.runs_when_stopped:
                return _Visit(place.task, place.agent, input, halt=verdict)
            if run.speakers:
                self._watch_history(run, place.agent, input, config)
                if run.has_nudges and (place.agent, plan.name) in run.speakers:
                    return self._speak(run, _Visit(place.task, place.agent, input))
            return _Visit(place.task, place.agent, input)
        except Exception as error:
            run.fault("nodes.enter", error)
            return _Visit("", "main", input)

    def _left(self, run: Run, visit: _Visit, output: Any) -> Any:
        try:
            if visit.added:
                output = _without(output, self.plan.endings.channel, visit.added)
            delta = None
            if run.speakers:
                delta = delta_of(output, visit.input, self.plan.merged)
                self._watch_removals(run, visit.agent, output)
            run.after(NodeLeft(run.now(), self.plan.name, visit.task, visit.agent, delta))
            run.forget(visit.task)
        except Exception as error:
            run.fault("nodes.left", error)
        return output

    def _failed(
        self, run: Run, visit: _Visit, config: RunnableConfig, error: BaseException
    ) -> None:
        """Turn a refused call into the end of the graph; pass everything else on."""
        halt = None if isinstance(error, (GraphInterrupt, ParentCommand)) else stop_in(error)
        if halt is not None:
            return self._end(run, halt, config)
        try:
            if isinstance(error, GraphInterrupt):
                run.interrupted = True
            elif isinstance(error, ParentCommand):
                delta = delta_of(error.args[0], visit.input, self.plan.merged)
                run.after(NodeLeft(run.now(), self.plan.name, visit.task, visit.agent, delta))
            elif isinstance(error, Exception) and not isinstance(error, GraphBubbleUp):
                left = NodeLeft(run.now(), self.plan.name, visit.task, visit.agent, None, "error")
                run.after(left)
        except Exception as fault:
            run.fault("nodes.failed", fault)
        raise error

    def _end(self, run: Run, halt: Halt, config: RunnableConfig) -> None:
        plan = self.plan
        try:
            if plan.cached:
                run.uncache.append(plan.name)
            if not plan.name.endswith(AFTER_HOOK):
                plan.endings.end(run, halt, plan.node, config)
                return
            for writer in plan.node.writers:
                cast("AnyRunnable", writer).invoke(None, config)
        except Exception as error:
            run.fault("nodes.end", error)

    # -- the conversation -------------------------------------------------------------------------

    def _speak(self, run: Run, visit: _Visit) -> _Visit:
        """Hand the node a copy of its input with the waiting nudges in it, if that is allowed now."""
        channel = self.plan.endings.channel
        if channel is None:
            return visit
        messages = visit.input if channel == "__root__" else _get(visit.input, channel)
        if not is_messages(messages) or unanswered(messages):
            return visit
        news = [nudge_message(run.id, nudge) for nudge in run.take_nudges(visit.agent)]
        if not news:
            return visit
        if channel == "__root__":
            told: Any = [*messages, *news]
        else:
            told = _with(visit.input, channel, [*messages, *news])
            shown = _get(visit.input, "llm_input_messages")
            if is_messages(shown) and not unanswered(shown):
                told = _with(told, "llm_input_messages", [*shown, *news])
        return visit._replace(input=told, added=tuple(str(message.id) for message in news))

    def _watch_history(self, run: Run, agent: str, input: Any, config: RunnableConfig) -> None:
        channel = self.plan.endings.channel
        messages = _get(input, channel) if channel is not None else None
        if is_messages(messages):
            metadata = cast("Mapping[str, Any]", config.get("metadata") or {})
            graph = str(metadata.get("langgraph_checkpoint_ns", "")).rpartition("|")[0]
            if run.shrank(graph, len(messages)):
                run.after(HistoryCompacted(run.now(), agent))

    def _watch_removals(self, run: Run, agent: str, output: Any) -> None:
        channel = self.plan.endings.channel
        update = output.update if isinstance(output, Command) else output
        messages = _get(update, channel) if channel is not None else None
        if isinstance(messages, list) and messages and removes((messages[0], messages[-1])):
            run.after(HistoryCompacted(run.now(), agent))


class _Chunks:
    """What a streaming node gave: its output if that came in one piece."""

    __slots__ = ("count", "value")

    def __init__(self) -> None:
        self.count = 0
        self.value: Any = None

    def keep(self, chunk: Any) -> Any:
        self.count += 1
        self.value = chunk if self.count == 1 else self
        return chunk


def _get(state: Any, key: str) -> Any:
    if isinstance(state, Mapping):
        return cast("Mapping[str, Any]", state).get(key)
    return getattr(state, key, None) if isinstance(key, str) and not isinstance(state, list) else None


def _with(state: Any, key: str, value: Any) -> Any:
    """A copy of a state in which one key has another value."""
    if isinstance(state, Mapping):
        return {**cast("Mapping[str, Any]", state), key: value}
    if isinstance(state, BaseModel):
        return state.model_copy(update={key: value})
    return dataclasses.replace(state, **{key: value})


def _without(output: Any, channel: str | None, ids: tuple[str, ...]) -> Any:
    """A node's output without the messages that were only lent to it."""
    messages = output if channel == "__root__" else _get(output, channel) if channel else None
    if not isinstance(messages, list):
        return output
    items = cast("list[Any]", messages)
    kept = [
        item
        for item in items
        if not (isinstance(item, HumanMessage) and item.id in ids)
    ]
    if len(kept) == len(items):
        return output
    return kept if channel == "__root__" else _with(output, cast("str", channel), kept)

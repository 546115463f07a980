"""A node that lets people decide on calls, entered with one that they have refused already.

Contract: that call is answered, and the person is not asked about it; the other calls of the same
message go their way through the node. The node's edges are followed as they always are.
"""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import TYPE_CHECKING, Any, cast

from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.types import Command

from shearpin.adapters.langgraph.compat import AnyRunnable, executable_with
from shearpin.adapters.langgraph.speaking import member, with_member
from shearpin.adapters.messages import answer, is_messages, requests_of
from shearpin.adapters.refusing import proposed_again
from shearpin.adapters.run import Run
from shearpin.events import ToolRequest, ToolReturned
from shearpin.verdicts import Halt

if TYPE_CHECKING:
    from shearpin.adapters.langgraph.nodes import NodePlan, Visit

__all__ = ["reviewed"]

_LOOK_BACK = 64


def reviewed(run: Run, plan: NodePlan, visit: Visit) -> Visit:
    """The visit of a node that asks people, without the calls that they have refused."""
    channel = plan.endings.channel or ""
    messages: Any = member(visit.input, channel)
    if channel == "__root__" or not plan.endings.merged or not is_messages(messages):
        return visit
    recent = cast("list[Any]", messages)[-_LOOK_BACK:]
    at = next((n for n, m in enumerate(reversed(recent)) if isinstance(m, AIMessage)), None)
    if at is None:
        return visit
    asking = cast("AIMessage", recent[-1 - at])
    answered = {m.tool_call_id for m in recent[len(recent) - at :] if isinstance(m, ToolMessage)}
    answers: list[ToolMessage] = []
    for request in requests_of(asking):
        if request.id in answered:
            continue
        verdict = proposed_again(run, request, f"{visit.task}:{request.id}", visit.agent)
        if isinstance(verdict, Halt):
            return visit._replace(halt=verdict)
        if verdict is not None:
            _report(run, plan.name, visit, request)
            times = run.numbers.times(request.id)
            answers.append(answer(run.id, request, verdict.message, times))
    if not answers:
        return visit
    done = answered | {message.tool_call_id for message in answers}
    left = [call for call in asking.tool_calls if call["id"] not in done]
    bound: AnyRunnable
    if left:
        rest = [
            call
            for call in asking.tool_calls
            if call["id"] not in {m.tool_call_id for m in answers}
        ]
        shorter = asking.model_copy(update={"tool_calls": rest})
        place = len(cast("list[Any]", messages)) - 1 - at
        told = [*messages[:place], shorter, *messages[place + 1 :]]
        visit = visit._replace(input=with_member(visit.input, channel, told))
        bound = _Restoring(plan.bound, channel, asking, answers)
    else:
        goto = run.state.people.way(plan.name)
        update: dict[str, Any] = {channel: answers}
        output: Any = Command(update=update, goto=goto) if goto in plan.graph.nodes else update
        bound = _Answering(plan.bound.get_name(), output)
    return visit._replace(inner=executable_with(plan.node, bound) or plan.inner)


def _report(run: Run, node: str, visit: Visit, request: ToolRequest) -> None:
    call = run.numbers.tool_call(visit.task, request.name, request.args, request.id)
    run.after(
        ToolReturned(
            run.now(), call, request.name, request.args, None, "blocked", visit.agent, node
        )
    )


class _Answering(Runnable[Any, Any]):
    """In place of the node's work: the answers."""

    def __init__(self, name: str, output: Any) -> None:
        self.name = name
        self.output = output

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        return self.output


class _Restoring(Runnable[Any, Any]):
    """The node's work on the other calls; its output gets back what it was not shown."""

    def __init__(
        self, bound: AnyRunnable, channel: str, asking: AIMessage, answers: Sequence[ToolMessage]
    ) -> None:
        self.bound = bound
        self.channel = channel
        self.calls = list(asking.tool_calls)
        self.id = asking.id
        self.answers = list(answers)
        self.name = bound.get_name()

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        return self._whole(self.bound.invoke(input, config, **kwargs))

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        return self._whole(await self.bound.ainvoke(input, config, **kwargs))

    def stream(
        self, input: Any, config: RunnableConfig | None = None, **kwargs: Any
    ) -> Iterator[Any]:
        yield self.invoke(input, config, **kwargs)

    async def astream(
        self, input: Any, config: RunnableConfig | None = None, **kwargs: Any
    ) -> AsyncIterator[Any]:
        yield await self.ainvoke(input, config, **kwargs)

    def _whole(self, output: Any) -> Any:
        if isinstance(output, Command):
            command = cast("Command[Any]", output)
            return dataclasses.replace(command, update=self._whole(command.update))
        if output is None:
            return {self.channel: self.answers}
        held: Any = member(output, self.channel)
        many = cast("list[Any]", held) if isinstance(held, list) else [held] if held else []
        whole = [self._restored(item) for item in many]
        return with_member(output, self.channel, [*whole, *self.answers])

    def _restored(self, item: Any) -> Any:
        if not isinstance(item, AIMessage) or item.id != self.id:
            return item
        kept = {call["id"]: call for call in item.tool_calls}
        refused = {message.tool_call_id for message in self.answers}
        calls = [
            kept.get(call["id"], call)
            for call in self.calls
            if call["id"] in kept or call["id"] in refused
        ]
        return item.model_copy(update={"tool_calls": calls})

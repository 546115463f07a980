"""Speaking to a node: messages that are lent to it in a copy of its input, and never saved.

Contract: a message is lent only where every tool call of the conversation has its answer. The state
itself is left alone; what the node returns is freed of what it was lent before it is written.
"""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Any, cast

from langchain_core.messages import BaseMessage
from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.types import Command
from pydantic import BaseModel

from shearpin.adapters.calls import HANDLER
from shearpin.adapters.langgraph.compat import AnyRunnable

__all__ = ["SHOWN", "Unlending", "is_many", "member", "with_member", "written_messages"]

_ROOT = "__root__"
_MOST_UPDATES = 16
SHOWN = "llm_input_messages"
"""Where `create_react_agent`'s `pre_model_hook` leaves what the model is to see."""


class Unlending(Runnable[Any, Any]):
    """A node's main part; takes back from its output what its input was lent."""

    def __init__(self, bound: AnyRunnable, channel: str, lent: Sequence[BaseMessage]) -> None:
        self.bound = bound
        self.channel = channel
        self.ids = frozenset(message.id for message in lent)
        self.name = bound.get_name()

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        return self._freed(self.bound.invoke(input, config, **kwargs))

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        return self._freed(await self.bound.ainvoke(input, config, **kwargs))

    def stream(
        self, input: Any, config: RunnableConfig | None = None, **kwargs: Any
    ) -> Iterator[Any]:
        for chunk in self.bound.stream(input, config, **kwargs):
            yield self._freed(chunk)

    async def astream(
        self, input: Any, config: RunnableConfig | None = None, **kwargs: Any
    ) -> AsyncIterator[Any]:
        async for chunk in self.bound.astream(input, config, **kwargs):
            yield self._freed(chunk)

    def _freed(self, output: Any) -> Any:
        try:
            return self._without_lent(output)
        except Exception as error:
            handler = HANDLER.get()
            if handler is not None:
                handler.run.fault("speaking.freed", error)
            return output

    def _without_lent(self, output: Any) -> Any:
        if is_many(output):
            return [self._without_lent(part) for part in output]
        if isinstance(output, Command):
            command = cast("Command[Any]", output)
            return dataclasses.replace(command, update=self._without_lent(command.update))
        messages = output if self.channel == _ROOT else member(output, self.channel)
        if not isinstance(messages, list):
            return output
        items = cast("list[Any]", messages)
        kept = [item for item in items if getattr(item, "id", None) not in self.ids]
        if len(kept) == len(items):
            return output
        return kept if self.channel == _ROOT else with_member(output, self.channel, kept)


def is_many(output: Any) -> bool:
    """Whether a node has returned several updates in one list, as it may with commands."""
    if not isinstance(output, list):
        return False
    return any(isinstance(part, Command) for part in cast("list[Any]", output)[:_MOST_UPDATES])


def written_messages(output: Any, channel: str | None) -> list[Any]:
    """The messages that a node has written to the conversation, whatever form its output has."""
    if channel is None:
        return []
    found: list[Any] = []
    for part in cast("list[Any]", output)[:_MOST_UPDATES] if is_many(output) else [output]:
        update: Any = cast("Any", part).update if isinstance(part, Command) else part
        messages = update if channel == _ROOT else member(update, channel)
        if isinstance(messages, list):
            found.extend(cast("list[Any]", messages))
        elif isinstance(messages, (BaseMessage, tuple)) or (
            isinstance(messages, Mapping) and "content" in messages
        ):
            found.append(messages)
    return found


def member(state: Any, key: str) -> Any:
    """A key of a state, whatever kind of state it is; None where it has none."""
    if isinstance(state, Mapping):
        return cast("Mapping[str, Any]", state).get(key)
    return getattr(state, key, None) if not isinstance(state, list) else None


def with_member(state: Any, key: str, value: Any) -> Any:
    """A copy of a state in which one key has another value."""
    if isinstance(state, Mapping):
        return {**cast("Mapping[str, Any]", state), key: value}
    if isinstance(state, BaseModel):
        return state.model_copy(update={key: value})
    return dataclasses.replace(state, **{key: value})

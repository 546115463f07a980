"""The last answer of a run that is being ended: one more model call, without tools.

Contract: whatever the model does, what is written is one honest last message that asks for nothing:
its own answer with its tool calls struck out or, where it gave none or failed, the fixed text. The
call is streamed, traced and paid for like any other.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.types import Command

from shearpin.adapters.langgraph.announcing import announce
from shearpin.adapters.langgraph.compat import AnyRunnable, read_channel
from shearpin.adapters.langgraph.speaking import is_many, written_messages
from shearpin.adapters.langgraph.stopping import Endings
from shearpin.adapters.lastwords import as_last_word
from shearpin.adapters.messages import last_word
from shearpin.adapters.places import namespace_of
from shearpin.adapters.run import Run
from shearpin.adapters.signals import HardStop, stop_in
from shearpin.verdicts import Halt

__all__ = ["Landing"]

_ROOT = "__root__"
_STRUCTURED = "structured_response"


class Landing(Runnable[Any, Any]):
    """A node's main part, run once more for the last answer."""

    def __init__(self, bound: AnyRunnable, run: Run, halt: Halt, endings: Endings) -> None:
        self.bound = bound
        self.run = run
        self.halt = halt
        self.endings = endings
        self.name = bound.get_name()

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        output: Any = None
        try:
            output = self.bound.invoke(input, config, **kwargs)
        except (Exception, HardStop) as error:
            self._failed(error)
        return self._landed(output, config)

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        output: Any = None
        try:
            output = await self.bound.ainvoke(input, config, **kwargs)
        except (Exception, HardStop) as error:
            self._failed(error)
        return self._landed(output, config)

    def _failed(self, error: BaseException) -> None:
        if stop_in(error) is None:  # a refusal, say for want of budget, is no fault
            self.run.fault("landing", error)

    def _landed(self, output: Any, config: RunnableConfig | None) -> Any:
        run, halt, channel = self.run, self.halt, self.endings.channel or ""
        run.ways.landing = None
        metadata = cast("Mapping[str, Any]", (config or {}).get("metadata") or {})
        run.say_once(namespace_of(metadata).rpartition("|")[0])
        updates = _others(output, channel)
        messages = written_messages(output, channel)
        if updates.get(_STRUCTURED) is None:
            messages = self._last_messages(messages)
        announce(run, config, halt)
        if channel == _ROOT:
            return messages
        held: Any = messages
        if not self.endings.merged:
            before = read_channel(cast("RunnableConfig", config), channel)
            held = [*cast("list[Any]", before or []), *messages]
        return Command(update={**updates, channel: held}, goto=self.endings.exit or ())

    def _last_messages(self, written: list[Any]) -> list[BaseMessage]:
        kept: list[BaseMessage] = []
        for message in written:
            if isinstance(message, AIMessage):
                said = as_last_word(self.run.id, message, self.halt)
                kept = [said] if said is not None else kept
            elif isinstance(message, BaseMessage) and not isinstance(message, ToolMessage):
                kept.append(message)
        if not any(isinstance(message, AIMessage) for message in kept):
            kept.append(self._salvaged() or last_word(self.run.id, self.halt))
        return kept

    def _salvaged(self) -> AIMessage | None:
        """What the model said, where the node came to nothing over the tools it asked for."""
        words = last_word(self.run.id, self.halt).model_copy(update={"content": self.run.ways.said})
        return as_last_word(self.run.id, words, self.halt)


def _others(output: Any, channel: str) -> dict[str, Any]:
    """What a node has written besides messages."""
    found: dict[str, Any] = {}
    for part in cast("list[Any]", output) if is_many(output) else [output]:
        update: Any = cast("Any", part).update if isinstance(part, Command) else part
        if isinstance(update, Mapping) and channel != _ROOT:
            found.update(cast("Mapping[str, Any]", update))
    found.pop(channel, None)
    return found

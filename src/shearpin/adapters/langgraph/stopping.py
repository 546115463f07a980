"""The normal end of a stopped run.

Contract: the graph drains as if it had come to its end by itself. Every tool call at the end of the
conversation is answered, then comes one last word, then the agent's after-hooks run; no edge of the
ended node is followed. Nothing is said twice, in whichever graph of the tree the run is stopped.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.runnables import RunnableConfig
from langgraph.types import Command

from shearpin.adapters.langgraph.announcing import announce, say
from shearpin.adapters.langgraph.compat import (
    PREVIOUS,
    AnyGraph,
    AnyNode,
    Returned,
    entrypoint,
    message_channel,
    read_channel,
    returned_by,
)
from shearpin.adapters.langgraph.speaking import written_messages
from shearpin.adapters.messages import answer, is_last_word, is_messages, last_word, unanswered
from shearpin.adapters.places import namespace_of
from shearpin.adapters.run import Run
from shearpin.adapters.toolcalls import not_run
from shearpin.verdicts import Halt

__all__ = ["AFTER_HOOK", "Endings", "endings_of", "left_open"]

AFTER_HOOK = ".after_agent"
"""How `create_agent` ends the names of the nodes that run once an agent is done."""


@dataclass(frozen=True, slots=True)
class Endings:
    """How nodes of one graph end a stopped run.

    Attributes:
        channel: the channel that holds the conversation, where there is one.
        merged: whether that channel merges updates; if not, it is written as a whole.
        exit: the first after-hook, where there is one.
        returns: for an entrypoint that declares to return a text or a message: which of them.
        entrypoint: whether it is one, so that there is no other node to go to.
    """

    channel: str | None
    merged: bool
    exit: str | None
    returns: Returned | None = None
    entrypoint: bool = False

    @property
    def silent(self) -> bool:
        """Whether there is nowhere to put a last word, so that an end looks like success."""
        return self.channel is None and self.returns is None

    def end(self, run: Run, halt: Halt, node: AnyNode, config: RunnableConfig) -> None:
        """End the graph from within the task of a node, instead of the node's own writes."""
        output = self.ending(run, halt, config)
        if output is None or not node.writers:
            return
        node.writers[0].invoke(output, config)
        word = self._word_in(run, output)
        if word is not None:
            say(run, config, word)

    def _word_in(self, run: Run, output: Any) -> BaseMessage | None:
        """The last word in what is written, where it is a message."""
        if self.returns is not None:
            written: list[Any] = [output.value]
        else:
            written = written_messages(output, self.channel)
        word = written[-1] if written else None
        return word if isinstance(word, BaseMessage) and is_last_word(run.id, word) else None

    def ending(self, run: Run, halt: Halt, config: RunnableConfig) -> Any:
        """What a node writes to end the graph; None where there is nothing to write."""
        announce(run, config, halt)
        if self.returns is not None:
            return self._returned(run, halt, config)
        update = self._last_messages(run, halt, config)
        if update is None and self.exit is None:
            return None
        if self.channel == "__root__":
            return update
        named = {self.channel: update} if update is not None and self.channel else None
        return Command(update=named, goto=self.exit or ())

    def _returned(self, run: Run, halt: Halt, config: RunnableConfig) -> Any:
        """The last word as an entrypoint's return value; what it had saved stays."""
        word = last_word_of(run, halt)
        value = word if self.returns == "message" else str(word.content)  # pyright: ignore[reportUnknownMemberType,reportUnknownArgumentType]
        saved = read_channel(config, PREVIOUS)
        return entrypoint.final(value=value, save=saved)

    def _last_messages(
        self, run: Run, halt: Halt, config: RunnableConfig
    ) -> list[BaseMessage] | None:
        if self.channel is None:
            return None
        held = read_channel(config, self.channel)
        if not is_messages(held) and not (self.merged and self.channel == "messages" and not held):
            return None
        messages = cast("list[BaseMessage]", held or [])
        if any(is_last_word(run.id, message) for message in messages[-4:]):
            return None
        metadata = cast("Mapping[str, Any]", config.get("metadata") or {})
        if not run.say_once(namespace_of(metadata).rpartition("|")[0]):
            return None
        text = left_open(run, halt)
        answers = [
            answer(run.id, request, text, run.numbers.times(request.id))
            for request in unanswered(messages)
            if request.id
        ]
        news: list[BaseMessage] = [*answers, last_word_of(run, halt)]
        return news if self.merged else [*messages, *news]


def left_open(run: Run, halt: Halt) -> str:
    """What a call is answered with that nobody has answered in a run that is ended."""
    told = None if run.boundary is None else run.boundary.left_open(halt)
    return told or not_run(halt)


def last_word_of(run: Run, halt: Halt) -> AIMessage:
    """The honest last word, after what an answer that was cut off had to say."""
    word = last_word(run.id, halt)
    said = run.ways.cut_off
    if not said or said in halt.message:
        return word
    return word.model_copy(update={"content": f"{said}\n\n{halt.message}"})


def endings_of(graph: AnyGraph) -> Endings:
    """How the nodes of a graph end a stopped run."""
    found = message_channel(graph)
    hooks = [name for name in graph.nodes if name.endswith(AFTER_HOOK)]
    channel, merged = found if found is not None else (None, False)
    entered = PREVIOUS in graph.channels
    return Endings(channel, merged, hooks[-1] if hooks else None, returned_by(graph), entered)

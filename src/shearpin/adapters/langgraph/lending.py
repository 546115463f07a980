"""What a node is lent in a copy of its input: its history mended, and the nudges that wait.

Contract: a node whose history is valid and for whom no nudge waits gets its input as it is. What is
lent is not saved, and only the node that asks a model is told anything.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, cast

from langchain_core.messages import BaseMessage

from shearpin.adapters.langgraph.asking import Asks, is_asked
from shearpin.adapters.langgraph.speaking import SHOWN, member, with_member
from shearpin.adapters.mending import mend
from shearpin.adapters.messages import is_messages, nudge_message, unanswered
from shearpin.adapters.places import namespace_of
from shearpin.adapters.run import Run

__all__ = ["Lent", "history_key", "lent"]

_ROOT = "__root__"


class Lent(NamedTuple):
    """A node's input with more in it, and what of it was lent."""

    input: Any
    messages: list[BaseMessage]


def history_key(metadata: Mapping[str, Any] | None) -> str:
    """Which history a node's task works on: that of its graph."""
    return namespace_of(metadata or {}).rpartition("|")[0]


def lent(
    run: Run,
    state: Any,
    channel: str,
    key: str,
    *,
    agent: str,
    speaks: bool,
    patched: bool,
    asks: Asks | None = None,
) -> Lent | None:
    """What to hand a node instead of its input; None where that is fine as it is.

    Args:
        run: the run.
        state: the node's input.
        channel: where its conversation is.
        key: which history that is.
        agent: whose node it is.
        speaks: whether the node was seen to ask a model.
        patched: whether the node itself answers calls with unreadable arguments.
        asks: how it asks a model, where that is known of what it is made of.
    """
    messages: Any = state if channel == _ROOT else member(state, channel)
    if not is_messages(messages):
        return None
    given: list[BaseMessage] = []
    told: Any = state
    due = speaks or is_asked(asks, messages)
    fixed = mend(run, key, messages, agent=agent, asks=due, patched=patched)
    if fixed is not None:
        messages = fixed.messages
        given.extend(fixed.answers)
        told = messages if channel == _ROOT else with_member(told, channel, messages)
    shown = member(state, SHOWN)
    if is_messages(shown):
        due = speaks or is_asked(asks, shown)
        fixed = mend(run, f"{key}:{SHOWN}", shown, agent=agent, asks=due)
        if fixed is not None:
            shown = fixed.messages
            given.extend(fixed.answers)
            told = with_member(told, SHOWN, shown)
    if speaks and run.has_nudges and not unanswered(messages):
        news = [nudge_message(run.id, nudge) for nudge in run.take_nudges(agent, messages)]
        given.extend(news)
        told = _with_news(told, channel, messages, shown, news)
    return None if told is state else Lent(told, given)


def _with_news(
    told: Any, channel: str, messages: list[Any], shown: Any, news: Sequence[BaseMessage]
) -> Any:
    if not news:
        return told
    if channel == _ROOT:
        return [*messages, *news]
    told = with_member(told, channel, [*messages, *news])
    if is_messages(shown) and not unanswered(cast("list[Any]", shown)):
        told = with_member(told, SHOWN, [*shown, *news])
    return told

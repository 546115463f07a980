"""What is wrong with a stored conversation, and whether it may be mended.

Contract: what may still be answered is not broken: a run that waits for a person, one that has not
ended (or is going on now), a client that answers calls itself. Such a conversation is left as it
is, with the reason. A run that has failed answers nothing any more; what others of its step had
answered already is kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from shearpin.adapters.langgraph.stored.earlier import known_of, with_late_answers, with_reasons
from shearpin.adapters.langgraph.stored.raw import (
    is_conversation,
    members,
    messages_in,
    packed_message,
)
from shearpin.adapters.langgraph.stored.records import Change, Head, Stored
from shearpin.adapters.messages import requests_of
from shearpin.adapters.repair import mended

__all__ = ["Diagnosis", "Standing", "diagnose"]

Standing: TypeAlias = Literal["ended", "failed", "paused", "unfinished"]

_TASKS = "__pregel_tasks"
_START = "__start__"
_OLDEST_FORM = 4
_PAUSED = "it waits for a person; answer it, then run this again"
_UNFINISHED = (
    "its last run has not ended (it was killed, or it waits before a step, or it is going on now); "
    "resume it, or use --give-up once you know that nobody will"
)
_OPEN = "the graph ended with calls that a client may still answer; use --give-up if none does so"
_REASONS = {"paused": _PAUSED, "unfinished": _UNFINISHED, "ended": _OPEN, "failed": _OPEN}
_SIBLINGS = "other branches of its last step have finished and wait for the one that failed"


@dataclass(slots=True)
class Diagnosis:
    """What was found out about a conversation.

    Attributes:
        head: which conversation.
        channel: that holds it; None where none does.
        standing: how its last run stands.
        unanswered: the calls that nobody answers any more, as (tool, id).
        recovered: those that had been answered by a task whose step did not end.
        orphans: answers to no call.
        misplaced: answers in the wrong place.
        waiting: calls that may still be answered.
        waits: why they may.
        left: why it is left as it is although something is amiss; None where it is not.
        change: what mends it.
    """

    head: Head
    channel: str | None = None
    standing: Standing = "ended"
    unanswered: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    recovered: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    orphans: int = 0
    misplaced: int = 0
    waiting: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    waits: str | None = None
    left: str | None = None
    change: Change | None = None

    @property
    def broken(self) -> bool:
        """Whether a provider refuses it, or will once the user speaks."""
        return bool(self.unanswered or self.recovered or self.orphans or self.misplaced)


def diagnose(
    stored: Stored,
    key: str | None = None,
    *,
    root: Standing = "ended",
    give_up: bool = False,
    language: str = "en",
    earlier: Sequence[Stored] = (),
) -> Diagnosis:
    """What is wrong with a conversation.

    Args:
        stored: the conversation.
        key: the channel that holds it. None: it is looked for.
        root: how the graph around a subgraph stands; a subgraph waits with it.
        give_up: whether calls are given up that might still be answered, except by a person.
        language: of answers that are made up.
        earlier: checkpoints before it whose step failed, the latest first.
    """
    found = Diagnosis(stored.head, standing=_standing(stored))
    if found.standing == "ended" and root in ("paused", "unfinished"):
        found.standing = root
    found.channel, found.left = _channel(stored, key)
    if found.channel is None:
        return found
    messages = messages_in(stored.values[found.channel])
    if messages is None:
        if stored.values[found.channel]:
            found.left = f"{found.channel!r} holds other things than messages of LangChain's"
        return found
    given_up = give_up and found.standing != "paused" and _START not in stored.values
    over = found.standing == "failed" or given_up
    final, gives_up = _examined(found, (stored, *earlier), messages, over, language)
    if _same(final, messages):
        return found
    found.left = _obstacle(found, stored, gives_up, given_up)
    if found.left is None:
        items = _repacked(final, messages, stored.values[found.channel])
        found.change = Change(found.channel, items, _pending(stored) if gives_up else ())
    return found


def _examined(
    found: Diagnosis,
    checkpoints: Sequence[Stored],
    messages: list[BaseMessage],
    over: bool,
    language: str,
) -> tuple[list[BaseMessage], bool]:
    """The conversation as it should be, and whether calls at its end are given up for it."""
    newest, *earlier = checkpoints
    late, errors = known_of(messages, found.channel, newest if over else None, earlier)
    given = with_late_answers(messages, late)
    result = mended(given, asks=False, over=True, language=language)
    final = given if result is None else result.messages
    made_up = [] if result is None else result.answers
    with_reasons(made_up, errors, language)
    at_the_end = _waiting(messages)
    if not over:
        waiting = [it for it in made_up if it.tool_call_id in at_the_end]
        made_up = [it for it in made_up if it.tool_call_id not in at_the_end]
        final = [it for it in final if not _among(it, waiting)]
        found.waiting = _named(waiting)
        if waiting:
            found.waits = _REASONS[found.standing]
    found.unanswered, found.recovered = _named(made_up), _named(late)
    if result is not None:
        found.orphans, found.misplaced = result.removed, result.moved
    ended = over and any(it.tool_call_id in at_the_end for it in (*made_up, *late))
    return final, ended


def _obstacle(found: Diagnosis, stored: Stored, gives_up: bool, given_up: bool) -> str | None:
    """Why a broken conversation must be left as it is."""
    if found.standing == "paused" or (found.standing == "unfinished" and not given_up):
        return _REASONS[found.standing]
    if "counters_since_delta_snapshot" in stored.metadata:
        return "its messages are kept as differences (DeltaChannel), which cannot be mended here"
    if int(stored.checkpoint.get("v", 1)) < _OLDEST_FORM and _is_due(stored):
        return "it was written by an older LangGraph in the middle of a step; resume it first"
    others = [write for write in stored.writes if not write.channel.startswith("__")]
    if others and _is_due(stored) and not gives_up:
        return _SIBLINGS
    return None


def _standing(stored: Stored) -> Standing:
    channels = {write.channel for write in stored.writes}
    if "__interrupt__" in channels:
        return "paused"
    if not _is_due(stored):
        return "ended"
    return "failed" if "__error__" in channels and _START not in stored.values else "unfinished"


def _pending(stored: Stored) -> tuple[str, ...]:
    """The channels that name the nodes that come next."""
    return tuple(
        name
        for name, value in stored.values.items()
        if name.startswith((_TASKS, "branch:")) or _is_full(name, value)
    )


def _is_full(name: str, value: object) -> bool:
    """Whether all have arrived that a node waits for."""
    kind, _, rest = name.partition(":")
    return kind == "join" and members(value) >= frozenset(rest.partition(":")[0].split("+"))


def _is_due(stored: Stored) -> bool:
    """Whether a node has something to do that it has not done."""
    if _START in stored.values or _pending(stored):
        return True
    versions = stored.checkpoint["channel_versions"]
    return any(
        channel in stored.values and channel in versions and versions[channel] > version
        for node, seen in stored.checkpoint["versions_seen"].items()
        if not node.startswith("__")
        for channel, version in seen.items()
    )


def _channel(stored: Stored, key: str | None) -> tuple[str | None, str | None]:
    """The channel that holds the conversation; else why none is looked at, if that matters."""
    names = [name for name, value in stored.values.items() if is_conversation(value)]
    names = [name for name in names if not name.startswith(("branch:", _START))]
    if key is not None:
        return (key, None) if key in stored.values else (None, None)
    if "messages" in names:
        return "messages", None
    if len(names) > 1:
        return None, f"several channels hold messages ({', '.join(names)}); use --messages-key"
    return (names[0] if names else None), None


def _waiting(messages: Sequence[BaseMessage]) -> set[str]:
    """Ids of the calls after which nobody has spoken: their answers would still be in place."""
    for message in reversed(messages):
        if isinstance(message, AIMessage):
            return {request.id for request in requests_of(message) if request.id}
        if not isinstance(message, ToolMessage):
            break
    return set()


def _repacked(
    final: Sequence[BaseMessage], messages: Sequence[BaseMessage], items: Sequence[Any]
) -> list[Any]:
    """The stored form: what was there is as it was."""
    stored = {id(message): item for message, item in zip(messages, items, strict=True)}
    return [stored[id(it)] if id(it) in stored else packed_message(it) for it in final]


def _named(answers: Sequence[ToolMessage]) -> list[tuple[str, str]]:
    return [(it.name or "", it.tool_call_id) for it in answers]


def _among(message: BaseMessage, group: Sequence[BaseMessage]) -> bool:
    return any(message is other for other in group)


def _same(one: Sequence[BaseMessage], other: Sequence[BaseMessage]) -> bool:
    return len(one) == len(other) and all(a is b for a, b in zip(one, other, strict=True))

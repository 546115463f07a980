"""Mending a conversation that a provider would refuse: calls without answers, answers without
calls, answers in the wrong place.

Contract: a valid history is never touched, and is not read again from its start: `Histories` looks
at what is new since it looked last. Mending is idempotent and keeps the order of all else. A call
is given up as lost only where its answer cannot be on its way any more: a user has spoken since, or
the model is about to be asked right after it.
"""

from __future__ import annotations

import uuid
from collections import OrderedDict
from collections.abc import Sequence
from typing import Final, NamedTuple, cast

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from shearpin.adapters.messages import requests_of
from shearpin.events import ToolRequest

__all__ = ["Histories", "Mended", "mended"]

_SPACE = uuid.UUID("4f1a1c0a-6d0e-5b52-9a52-2a3c8e9d7f31")
_MOST_HISTORIES: Final = 256

_LOST: Final = {
    "en": "No answer was recorded: the run ended before this call was answered. It may or may not "
    "have been carried out.",
    "zh": "没有记录到结果：运行在该调用得到答复之前就结束了。该调用可能已经执行，也可能没有执行。",
}


class Mended(NamedTuple):
    """A history as a provider accepts it, and what had to be done.

    Attributes:
        messages: the whole history.
        answers: the answers that were made up for lost calls; they are among the messages.
        removed: how many answers to no call were left out.
        moved: how many answers were put where they belong.
    """

    messages: list[BaseMessage]
    answers: list[ToolMessage]
    removed: int
    moved: int


class _Seen(NamedTuple):
    """How far a history was found valid, and the message before that place."""

    clean: int
    last: object


class Histories:
    """Knows which part of each history was found valid already."""

    def __init__(self) -> None:
        self._seen: OrderedDict[str, _Seen] = OrderedDict()

    def is_broken(self, key: str, messages: Sequence[object], *, asks: bool) -> bool:
        """Whether a history would be refused, as far as is known.

        Args:
            key: which history it is.
            messages: all of it; what was found valid before is not looked at again.
            asks: whether a model is about to be asked, so that calls at the end are lost.
        """
        seen = self._seen.get(key)
        start = 0
        if seen is not None and 0 < seen.clean <= len(messages):
            start = seen.clean if _same(messages[seen.clean - 1], seen.last) else 0
        if start == len(messages):
            return False
        faulty, clean = _look(messages, start, asks)
        if not faulty and clean:
            self._seen[key] = _Seen(clean, messages[clean - 1])
            if len(self._seen) > _MOST_HISTORIES:
                self._seen.popitem(last=False)
        return faulty


def _same(one: object, other: object) -> bool:
    if one is other:
        return True
    known = getattr(one, "id", None)
    return known is not None and known == getattr(other, "id", None)


def _look(messages: Sequence[object], start: int, asks: bool) -> tuple[bool, int]:
    """Whether there is a fault from a place on, and up to where all is well and answered.

    What comes after the user's last message is none of our business unless a model is about to be
    asked: agents that work side by side write into one history.
    """
    open_ids: set[str] = set()
    stray = fault = False  # a call was passed over; an answer stands where it may not
    clean = start
    for at in range(start, len(messages)):
        message = messages[at]
        if isinstance(message, ToolMessage):
            fault = fault or message.tool_call_id not in open_ids
            open_ids.discard(message.tool_call_id)
            continue
        stray = stray or bool(open_ids)
        open_ids = set()
        if isinstance(message, HumanMessage):
            if stray or fault:
                return True, clean
        elif isinstance(message, AIMessage):
            open_ids = {request.id for request in requests_of(message) if request.id}
            if open_ids and not stray and not fault:
                clean = at
    if asks and (fault or (open_ids and not stray)):
        return True, clean
    settled = not (open_ids or stray or fault or _may_go_on(messages))
    return False, len(messages) if settled else clean


def _may_go_on(messages: Sequence[object]) -> bool:
    """Whether more answers to the last calls would still be in place here."""
    return bool(messages) and isinstance(messages[-1], ToolMessage)


def mended(
    messages: Sequence[object], *, asks: bool, over: bool = False, language: str = "en"
) -> Mended | None:
    """A history mended; None where there is nothing to mend.

    Args:
        messages: the history; anything in it that is no message stays where it is.
        asks: whether a model is about to be asked.
        over: whether all calls are lost that have no answer: the turn that made them has ended.
        language: of the answers that are made up.
    """
    work = _Work(list(messages), asks, over, language)
    result = work.done()
    same = len(result) == len(messages) and all(
        one is other for one, other in zip(result, messages, strict=True)
    )
    if same:
        return None
    return Mended(cast("list[BaseMessage]", result), work.answers, work.removed, work.moved)


class _Work:
    """One pass over a history: every call takes its answers, the rest is left over."""

    def __init__(self, messages: list[object], asks: bool, over: bool, language: str) -> None:
        self.messages = messages
        self.answers: list[ToolMessage] = []
        self.removed = self.moved = 0
        self._lost = _LOST.get(language, _LOST["en"])
        places = range(len(messages))
        spoken = [at for at in places if isinstance(messages[at], HumanMessage)]
        self._settled = len(messages) if over else (spoken[-1] if spoken else 0)
        self._asks = asks
        asked = [at for at in places if not isinstance(messages[at], ToolMessage)]
        self._last = asked[-1] if asked else -1

    def done(self) -> list[object]:
        taken, groups = self._taken()
        result: list[object] = []
        for at, message in enumerate(self.messages):
            if isinstance(message, ToolMessage):
                if at not in taken:
                    if at < self._settled or self._asks:
                        self.removed += 1
                    else:
                        result.append(message)
                continue
            result.append(message)
            result.extend(groups.get(at, ()))
        return result

    def _taken(self) -> tuple[set[int], dict[int, list[object]]]:
        """Which tool messages answer a call, and what follows each message that asks."""
        waiting: dict[str, list[int]] = {}
        for at, message in enumerate(self.messages):
            if isinstance(message, ToolMessage):
                waiting.setdefault(message.tool_call_id, []).append(at)
        again = self._asked_again()
        taken: set[int] = set()
        groups: dict[int, list[object]] = {}
        for at, message in enumerate(self.messages):
            if not isinstance(message, AIMessage) or not (at < self._settled or self._asks):
                continue
            found: list[int] = []
            lost: list[ToolMessage] = []
            for request in requests_of(message):
                until = again.get((at, request.id), len(self.messages))
                place = next((p for p in waiting.get(request.id, ()) if at < p < until), None)
                if place is not None and place not in taken:
                    taken.add(place)
                    found.append(place)
                elif place is None and request.id and self._is_lost(at):
                    lost.append(self._made_up(at, message, request))
            found.sort()
            for number, place in enumerate(found):
                self.moved += place != at + 1 + number and not self._follows(at, place)
            groups[at] = [*(self.messages[place] for place in found), *lost]
            self.answers.extend(lost)
        return taken, groups

    def _asked_again(self) -> dict[tuple[int, str], int]:
        """For each call, the place where a later message asks under the same id."""
        latest: dict[str, int] = {}
        again: dict[tuple[int, str], int] = {}
        for at in range(len(self.messages) - 1, -1, -1):
            message = self.messages[at]
            if isinstance(message, AIMessage):
                for request in requests_of(message):
                    if request.id in latest:
                        again[(at, request.id)] = latest[request.id]
                for request in requests_of(message):
                    latest[request.id] = at
        return again

    def _follows(self, at: int, place: int) -> bool:
        """Whether only answers lie between a message and one of its answers."""
        between = self.messages[at + 1 : place]
        return all(isinstance(message, ToolMessage) for message in between)

    def _is_lost(self, at: int) -> bool:
        return at < self._settled or (self._asks and at == self._last)

    def _made_up(self, at: int, message: AIMessage, request: ToolRequest) -> ToolMessage:
        name = f"{message.id or at}:{request.id}"
        return ToolMessage(
            content=self._lost,
            name=request.name,
            tool_call_id=request.id,
            status="error",
            id=str(uuid.uuid5(_SPACE, name)),
        )

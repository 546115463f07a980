"""What people have refused: a call that a person has said no to is not asked about again.

Contract: remembered with the conversation, over pauses and processes, as digests only, until a user
speaks again: then they may have changed their mind. A task that is executed again proposes nothing
anew. Which answers are a refusal is read leniently; what is unclear is none.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast
from zlib import crc32

from shearpin.core.normal import call_key
from shearpin.core.settings import Settings
from shearpin.events import ToolRequest
from shearpin.findings import Finding, Severity
from shearpin.verdicts import Halt

__all__ = [
    "People",
    "answers_by_pause",
    "halt_for",
    "identity_of",
    "is_refusal",
    "refusal_words",
]

_MOST_REFUSALS: Final = 32
_MOST_ASKED: Final = 16
_MOST_PROPOSALS: Final = 2
_DEEPEST: Final = 4
_PAUSE: Final = re.compile("[0-9a-f]{32}")
"""How LangGraph names its interrupts."""

_NO: Final = frozenset(
    "no n nope false reject rejected deny denied decline declined refuse refused cancel cancelled "
    "canceled abort stop disapprove disapproved 否 不 不行 不要 拒绝 取消 不同意".split()
)
_KEYS: Final = tuple(
    "decisions type action decision response answer approved approve accepted accept allow allowed "
    "confirm confirmed value".split()
)

_ANSWER: Final = {
    "en": "Not run: a person has refused this call in this conversation. Do not propose it again; "
    "do something else, or say what cannot be done without it.",
    "zh": "未执行：有人已在本次对话中拒绝了该调用。"
    "请不要再次提出；换一种做法，或说明没有它无法完成什么。",
}
_STOP: Final = {
    "en": "This run was stopped because `{tool}` was proposed again {count} times after a person "
    "had refused it. What was found up to then stands above.",
    "zh": "本次运行已停止：`{tool}` 被拒绝后又被提出 {count} 次。此前得到的内容见上文。",
}


class People:
    """The refusals of one conversation; the caller holds its lock."""

    def __init__(self) -> None:
        self._refused: OrderedDict[str, list[int]] = OrderedDict()
        self._asked: OrderedDict[int, list[int]] = OrderedDict()
        self._nodes: OrderedDict[int, str] = OrderedDict()

    @property
    def have_refused(self) -> bool:
        """Whether anything was refused at all."""
        return bool(self._refused)

    def ask(self, task: str, pauses: Sequence[str] = ()) -> None:
        """A task waits for a person; `pauses` are the ids by which it may be answered."""
        marks = [crc32(pause.encode()) for pause in pauses[:_MOST_ASKED]]
        _keep(self._asked, crc32(task.encode()), marks, _MOST_ASKED)

    def were_asked(self, task: str) -> bool:
        """Whether a task has waited for a person, so that it is being answered now."""
        return bool(self._asked) and crc32(task.encode()) in self._asked

    def answer_to(self, task: str, said: Mapping[str, object]) -> object:
        """What was said to a task, where several pauses were answered at once; None: nothing."""
        marks = self._asked.get(crc32(task.encode()), ())
        return next((it for pause, it in said.items() if crc32(pause.encode()) in marks), None)

    def refuse(self, call: str, node: str = "", goto: str = "") -> None:
        """A person has refused a call.

        `node` is the one that asked, where it was a node, and `goto` where it has led to then.
        """
        if call not in self._refused:
            _keep(self._refused, call, [0, 0], _MOST_REFUSALS)
        if node:
            _keep(self._nodes, crc32(node.encode()), goto, _MOST_ASKED)

    def way(self, node: str) -> str:
        """Where a node has led to after a refusal; empty where its edges did."""
        return self._nodes.get(crc32(node.encode()), "")

    def asks(self, node: str) -> bool:
        """Whether a node is one that lets people decide."""
        return bool(self._refused) and crc32(node.encode()) in self._nodes

    def refused(self, call: str) -> bool:
        """Whether a person has refused this call."""
        return call in self._refused

    def propose(self, call: str, task: str) -> tuple[int, bool]:
        """A refused call comes again: how often by now, and whether this task is a new one."""
        entry = self._refused[call]
        mark = crc32(task.encode())
        fresh = entry[1] != mark
        if fresh:
            entry[0] += 1
            entry[1] = mark
        return entry[0], fresh

    def clear(self) -> None:
        """A user has spoken: nothing is refused any more."""
        self._refused.clear()
        self._asked.clear()
        self._nodes.clear()

    def dump(self) -> list[object]:
        """The state as JSON-ready data; empty where there is nothing to keep."""
        if not (self._refused or self._asked):
            return []
        refused = [[key, *entry] for key, entry in self._refused.items()]
        asked = [[mark, *marks] for mark, marks in self._asked.items()]
        return [refused, asked, [list(item) for item in self._nodes.items()]]

    def load(self, data: object) -> None:
        """Restore what `dump` gave; what is damaged is left out."""
        if not isinstance(data, list) or len(cast("list[Any]", data)) != 3:
            return
        refused, asked, nodes = cast("list[Any]", data)
        self._refused = OrderedDict((str(key), [int(n), int(m)]) for key, n, m in refused)
        rows = [
            cast("list[Any]", item) if isinstance(item, list) else [item]
            for item in cast("list[Any]", asked)
        ]
        self._asked = OrderedDict((int(row[0]), [int(mark) for mark in row[1:]]) for row in rows)
        self._nodes = OrderedDict((int(mark), str(goto)) for mark, goto in nodes)


def _keep(kept: OrderedDict[Any, Any], key: Any, value: Any, most: int) -> None:
    kept[key] = value
    kept.move_to_end(key)
    while len(kept) > most:
        kept.popitem(last=False)


def identity_of(request: ToolRequest, settings: Settings) -> str:
    """What makes two calls the same: the tool and the arguments that count."""
    facts = settings.tools.get(request.name)
    return call_key(request.name, request.args, facts, settings.ignored_arguments)


def answers_by_pause(said: object) -> Mapping[str, object] | None:
    """The answers to several pauses by their ids; None where only one thing was said.

    Example:
        >>> answers_by_pause({"decisions": []}) is None
        True
    """
    if not isinstance(said, Mapping) or not said:
        return None
    answers = cast("Mapping[object, object]", said)
    if not all(isinstance(key, str) and _PAUSE.fullmatch(key) for key in answers):
        return None
    return cast("Mapping[str, object]", said)


def is_refusal(answer: object, depth: int = 0) -> bool:
    """Whether a person's answer to an interrupt is a no.

    Example:
        >>> is_refusal({"decisions": [{"type": "reject"}]}), is_refusal("No."), is_refusal("maybe")
        (True, True, False)
    """
    if isinstance(answer, bool):
        return not answer
    if isinstance(answer, str):
        return answer.strip(" .!。！\n\t").casefold() in _NO
    if depth >= _DEEPEST:
        return False
    if isinstance(answer, Mapping):
        values = cast("Mapping[str, object]", answer)
        found = next((values[key] for key in _KEYS if key in values), None)
        return found is not None and is_refusal(found, depth + 1)
    if isinstance(answer, (list, tuple)) and answer:
        items = cast("Sequence[object]", answer)
        return all(is_refusal(item, depth + 1) for item in items)
    return False


def refusal_words(language: str) -> str:
    """What a call is answered with that a person has refused before."""
    return _ANSWER.get(language, _ANSWER["en"])


def halt_for(
    request: ToolRequest, call: str, count: int, agent: str, step: int, language: str
) -> Halt | None:
    """The stop that a refused call is due when it comes again and again; None before that."""
    if count < _MOST_PROPOSALS:
        return None
    finding = Finding(
        family="rejection",
        rule="proposed_again",
        key=f"rejection:{call}",
        level=Severity.STOP,
        count=count,
        limit=_MOST_PROPOSALS,
        onset_step=step,
        step=step,
        agent=agent,
        subject=request.name,
        cause="refused_by_person",
    )
    words = _STOP.get(language, _STOP["en"]).format(tool=request.name, count=count)
    return Halt("loop:rejection", words, finding)

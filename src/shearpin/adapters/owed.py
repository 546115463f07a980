"""Nudges that have not reached their agent yet, kept with the conversation.

Contract: a nudge is owed from when it is given until its agent's next request. It survives a pause
and, with `save_every`, a killed process; a new turn of the user's cancels it. Kept are numbers and
names of the finding and which nodes speak for its agent, no text: what the nudge quotes of a call
is read again from the conversation when it is put into words. A budget's notices are not kept.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from langchain_core.messages import AIMessage, ToolMessage

from shearpin.adapters.messages import requests_of
from shearpin.core.messages import firm_words, nudge_text
from shearpin.core.outcomes import result_text
from shearpin.core.stored import finding_of, finding_row, flag, row, sequence, texts
from shearpin.findings import Finding
from shearpin.verdicts import Nudge

if TYPE_CHECKING:
    from shearpin.core.settings import Settings

__all__ = ["Due", "Owed"]

_MOST: Final = 4
_MOST_NODES: Final = 4
_LOOK_BACK: Final = 64


class Due(NamedTuple):
    """A nudge that is owed: what of, whether in the firmer form, and through which nodes."""

    finding: Finding
    firm: bool
    nodes: tuple[str, ...]

    def nudge(self, settings: Settings, messages: Sequence[Any]) -> Nudge:
        """The nudge in words, with what it quotes as the conversation has it."""
        args, text = _quoted(self.finding, messages)
        words = nudge_text(
            self.finding, args, text, self.firm, settings.language, settings.messages
        )
        return Nudge(self.finding, words)


class Owed:
    """The nudges that one conversation's agents are owed; the caller holds its lock."""

    def __init__(self) -> None:
        self._due: OrderedDict[str, Due] = OrderedDict()

    def __bool__(self) -> bool:
        return bool(self._due)

    def add(self, nudge: Nudge, settings: Settings, nodes: Iterable[str]) -> None:
        """A nudge waits for its agent, which is asked in these nodes."""
        finding = nudge.finding
        if finding.family == "budget":
            return
        firm = nudge.message.endswith(firm_words(settings.language, settings.messages))
        self._due[finding.key] = Due(finding, firm, tuple(sorted(nodes))[:_MOST_NODES])
        self._due.move_to_end(finding.key)
        while len(self._due) > _MOST:
            self._due.popitem(last=False)

    def of(self) -> list[Due]:
        """What is owed, oldest first."""
        return list(self._due.values())

    def paid(self, agent: str) -> None:
        """An agent has been told, or will not be."""
        for key in [key for key, due in self._due.items() if due.finding.agent == agent]:
            del self._due[key]

    def clear(self) -> None:
        """A user has spoken: nothing is owed any more."""
        self._due.clear()

    def dump(self) -> list[object]:
        """The state as JSON-ready data; empty where nothing is owed."""
        return [[finding_row(due.finding), due.firm, list(due.nodes)] for due in self._due.values()]

    def load(self, data: object) -> None:
        """Restore what `dump` gave; None where there was nothing.

        Raises:
            TypeError: a value is of the wrong type.
            ValueError: a value is of the wrong shape.
        """
        for item in sequence(data if data is not None else [])[:_MOST]:
            finding, firm, nodes = row(item, 3)
            found = finding_of(finding)
            if found is not None:
                self._due[found.key] = Due(found, flag(firm), tuple(texts(nodes)))


def _quoted(finding: Finding, messages: Sequence[Any]) -> tuple[object, str]:
    """Arguments and result of the latest call of a finding's tool; empty where it is about none."""
    if finding.subject is None:
        return "", ""
    results: dict[str, object] = {}
    for message in reversed(messages[-_LOOK_BACK:]):
        if isinstance(message, ToolMessage):
            results.setdefault(message.tool_call_id, message.content)  # pyright: ignore[reportUnknownMemberType]
        elif isinstance(message, AIMessage):
            for request in reversed(requests_of(message)):
                if request.name == finding.subject and request.id in results:
                    return request.args, result_text(cast("Any", results[request.id]))
    return "", ""

"""Nudges of one run: those that wait for the next request of their agent, and what became of them.

Contract: a nudge is given out once. In the journal it was carried out only if it was given out: it
may still wait when the run ends, or have given way to a stronger verdict.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

from shearpin.adapters.owed import Due
from shearpin.core.journal import Record, VerdictRecord
from shearpin.verdicts import Nudge, Verdict

__all__ = ["Nudges"]

_MOST = 256


class Nudges:
    """See the module's contract. Threads may share it."""

    __slots__ = ("_due", "_given", "_lock", "_missed", "_waiting")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: list[Nudge] = []
        self._due: list[Due] = []
        self._given: dict[str, None] = {}
        self._missed: dict[str, None] = {}

    @property
    def wait(self) -> bool:
        """Whether any nudge waits."""
        return bool(self._waiting or self._due)

    def keep(self, nudge: Nudge) -> None:
        """Let a nudge wait for the next request of its agent."""
        with self._lock:
            self._waiting.append(nudge)

    def recall(self, due: Due) -> None:
        """A nudge is owed from before this run."""
        self._due.append(due)

    def recalled(self, agent: str) -> list[Due]:
        """What an agent is owed from before this run; it will not be given out again."""
        if not self._due:
            return []
        with self._lock:
            mine = [due for due in self._due if due.finding.agent == agent]
            self._due = [due for due in self._due if due.finding.agent != agent]
        return mine

    def take(self, agent: str) -> list[Nudge]:
        """The nudges that wait for an agent; they will not be given out again."""
        with self._lock:
            mine = [nudge for nudge in self._waiting if nudge.finding.agent == agent]
            self._waiting = [nudge for nudge in self._waiting if nudge.finding.agent != agent]
            for nudge in mine:
                _note(self._given, nudge.message)
        return mine

    def miss(self, verdict: Verdict) -> None:
        """A verdict, of whatever kind, could not be acted upon where it was given."""
        message = getattr(verdict, "message", None)
        if isinstance(message, str):
            with self._lock:
                _note(self._missed, message)

    def settled(self, records: Sequence[Record], unmet: set[str]) -> list[Record]:
        """The journal at a run's end, with what was not carried out marked so.

        `unmet` are the messages of other verdicts that were not.
        """
        with self._lock:
            self._waiting = []
            missed = unmet.union(self._missed)
            given = set(self._given)
        return [
            record._replace(acted=False)
            if isinstance(record, VerdictRecord)
            and record.acted
            and (
                record.message in missed
                or (record.verdict == "nudge" and record.message not in given)
            )
            else record
            for record in records
        ]


def _note(kept: dict[str, None], message: str) -> None:
    kept[message] = None
    if len(kept) > _MOST:
        del kept[next(iter(kept))]

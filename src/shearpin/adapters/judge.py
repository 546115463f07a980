"""A conversation's session behind its lock, with the faults of the core contained.

Contract: all calls into the core go through a `Judge`. What the core raises is written down, the
answer is `PROCEED`, and the run goes on; the session is only ever touched under the lock.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from shearpin import clock
from shearpin.adapters.money.funds import Funds
from shearpin.adapters.owed import Owed
from shearpin.adapters.people import People
from shearpin.core.session import Session
from shearpin.core.settings import Settings
from shearpin.events import Fact
from shearpin.verdicts import PROCEED, Verdict

__all__ = ["Judge", "ThreadState"]

logger = logging.getLogger("shearpin")
T = TypeVar("T")

_MOST_FAULTS = 256
_MOST_WARNINGS = 20


class Judge:
    """All calls into the core, with faults contained. Tests replace its session to inject them."""

    def __init__(self, session: Session, now: clock.Clock) -> None:
        self.session = session
        self.lock = threading.Lock()
        self.now = now
        self.faults: list[str] = []
        self._contained = 0

    def before(self, fact: Fact) -> Verdict:
        """What the core says about something that is about to happen."""
        with self.lock:
            try:
                return self.session.before(fact)
            except Exception as error:
                self._contain("session.before", error)
                return PROCEED

    def after(self, fact: Fact) -> Verdict:
        """What the core says about something that happened."""
        with self.lock:
            try:
                return self.session.after(fact)
            except Exception as error:
                self._contain("session.after", error)
                return PROCEED

    def ask(self, question: Callable[[Session], T], otherwise: T) -> T:
        """Read something from the session; `otherwise` when that fails."""
        with self.lock:
            try:
                return question(self.session)
            except Exception as error:
                self._contain("session", error)
                return otherwise

    def fault(self, where: str, error: BaseException) -> None:
        """Record a contained failure of the adapter itself."""
        with self.lock:
            self._contain(where, error)

    def _contain(self, where: str, error: BaseException) -> None:
        self._contained += 1
        if self._contained <= _MOST_WARNINGS:
            logger.warning("shearpin: contained a fault in %s: %r", where, error)
        try:
            self.session.fault(where, error, self.now())
        except Exception as second:
            # The session cannot even take the note: keep it for the report.
            if len(self.faults) < _MOST_FAULTS:
                self.faults.append(f"{where}: {type(error).__name__}: {error}"[:300])
                self.faults.append(f"session.fault: {type(second).__name__}: {second}"[:300])


@dataclass(slots=True)
class ThreadState:
    """What outlives a run: the session of a conversation, and where its saved copy stands.

    Attributes:
        judge: the session behind its lock.
        turn: genuine user turns so far.
        sequence: number of the newest saved snapshot, which orders copies in forks.
        unsaved: True while this process knows more than the saved copy.
        users: runs that are going on.
        funds: what the conversation has to spend, where there is a budget.
        saved_funds: the same as it was read back, before a run asks for it.
        people: what people have refused.
        owed: what agents are still to be told.
    """

    judge: Judge
    turn: int = 0
    sequence: int = 0
    unsaved: bool = False
    users: int = 0
    funds: Funds | None = None
    saved_funds: Mapping[str, Any] | None = None
    people: People = field(default_factory=People)
    owed: Owed = field(default_factory=Owed)

    @classmethod
    def fresh(cls, settings: Settings, now: clock.Clock) -> ThreadState:
        """A thread that nothing is known of."""
        return cls(Judge(Session(settings), now))

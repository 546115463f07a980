"""One run under guard, and the thread's state that it works on.

Contract: a `Run` belongs to one invocation of one guarded thing; nothing in it is shared with other
runs but the `ThreadState`, whose session is only ever touched under its lock. A fault in the core
is contained here: it is journaled, the answer is `PROCEED`, and the run goes on.
"""

from __future__ import annotations

import itertools
import logging
import os
import threading
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from shearpin import clock
from shearpin.adapters.branches import Branches
from shearpin.adapters.carrying import carried
from shearpin.adapters.judge import ThreadState
from shearpin.adapters.money.settling import Chunks
from shearpin.adapters.money.spending import Spending
from shearpin.adapters.nudges import Nudges
from shearpin.adapters.numbering import Numbers
from shearpin.adapters.repair import Histories
from shearpin.adapters.thoughts import Thoughts, thoughts_of
from shearpin.adapters.ways import Ways
from shearpin.core.journal import NoteRecord, Record
from shearpin.core.session import Session
from shearpin.events import (
    Fact,
    ModelCalled,
    ModelReturned,
    RunEnded,
    RunOutcome,
    RunStarted,
    ThoughtEmbedded,
    TurnStarted,
)
from shearpin.switch import SWITCH
from shearpin.verdicts import PROCEED, Halt, Nudge, Verdict

if TYPE_CHECKING:
    from shearpin.adapters.boundary.bounds import Bounds

__all__ = ["OpenCall", "Run"]

logger = logging.getLogger("shearpin")
K = TypeVar("K")
T = TypeVar("T")

_SPACE = uuid.UUID("6f1b0c1e-1c36-5f0e-9a51-7a0f6d3c2b11")
_NUMBERS = itertools.count(1)
_MOST_RECORDS = 256
_MOST_COUNTERS = 1024


@dataclass(slots=True)
class OpenCall:
    """A model or tool call in flight."""

    call: str
    agent: str
    node: str
    name: str = ""
    args: object = None
    held: bool = False
    spending: Spending | None = None
    chunks: Chunks | None = None


class Keeps(Protocol):
    """Saves a run's session in mid-run."""

    def save(self, config: Mapping[str, Any]) -> None: ...
    async def asave(self, config: Mapping[str, Any]) -> None: ...


@dataclass(slots=True, eq=False)
class Run:
    """One invocation under guard.

    Attributes:
        graph: name of what is guarded.
        thread: id of the conversation, where there is one.
        state: the thread's session and counters.
        answering: calls that the node layer answers itself, with the status it was told; the call
            layer then reports nothing for them.
        numbers: gives calls their ids.
        open: calls in flight, by the host's run id.
        speakers: (agent, node) pairs that were seen to call a model.
        models: model calls seen, and answers of models that no callback has seen.
        texts: the first text of each node that may be an agent, until there is a second one.
        resumed: whether it goes on with a turn that was paused.
        branches: which node executions run side by side in a fan-out.
        nudges: what its agents are still to be told, and what they were.
        said: graphs in the tree that have their last word already.
        uncache: graphs and nodes whose cached writes must go: the nodes ended a stopped run.
        halted: the stop that the run ended with.
        redirects: whether guarded nodes are there to turn a refusal into a normal end.
        spending: its budget, where there is one.
        boundary: its error boundary, where there is one.
        ways: what it does besides speaking, blocking and ending.
        repair: what to do where the history is broken: `lend`, `save` or `off`.
        histories: which histories were found valid so far.
        answer: what a person has said to the pause that this run goes on from.
        keeper: saves the session in mid-run, where that is asked for.
    """

    graph: str
    thread: str | None
    state: ThreadState
    now: clock.Clock = clock.monotonic
    id: str = ""
    started: float = 0.0
    started_at: str | None = None
    ended: float | None = None
    outcome: RunOutcome = "completed"
    interrupted: bool = False
    closed: bool = False
    halted: Halt | None = None
    redirects: bool = True
    resumed: bool = False
    spending: Spending | None = None
    boundary: Bounds | None = None
    repair: str = "lend"
    ways: Ways = field(default_factory=Ways)
    numbers: Numbers = field(default_factory=Numbers)
    histories: Histories = field(default_factory=Histories)
    answer: object = None
    keeper: Keeps | None = None
    records: list[Record] = field(default_factory=list[Record])
    answering: dict[str, str | None] = field(default_factory=dict[str, "str | None"])
    open: dict[uuid.UUID, OpenCall] = field(default_factory=dict[uuid.UUID, OpenCall])
    speakers: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    models: int = 0
    texts: dict[tuple[str, str], ModelReturned] = field(
        default_factory=dict[tuple[str, str], ModelReturned]
    )
    uncache: list[tuple[object, str]] = field(default_factory=list[tuple[object, str]])
    said: set[str] = field(default_factory=set[str])
    branches: Branches = field(default_factory=Branches)
    nudges: Nudges = field(default_factory=Nudges)
    _refusals: dict[str, int] = field(default_factory=dict[str, int])
    _noted: dict[str, NoteRecord | None] = field(default_factory=dict[str, "NoteRecord | None"])
    _lengths: dict[str, int] = field(default_factory=dict[str, int])
    _thoughts: Thoughts | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    # -- life ---------------------------------------------------------------------------------

    def begin(self, *, new_turn: bool) -> None:
        """Open the run; `new_turn` where a genuine user message opens it."""
        self.started = self.now()
        self.started_at = clock.wall_time()
        self.id = str(uuid.uuid5(_SPACE, f"{os.getpid()}:{self.started}:{next(_NUMBERS)}"))
        self.resumed = not new_turn
        judge = self.state.judge
        with judge.lock:
            self.state.users += 1
        judge.after(RunStarted(self.started, self.id, self.thread, resumed=not new_turn))
        if new_turn:
            self.state.turn += 1
            self.state.people.clear()
            self.state.owed.clear()
            judge.after(TurnStarted(self.started, self.state.turn))
        for due in self.state.owed.of():
            self.nudges.recall(due)
            self.speakers.update((due.finding.agent.partition("#")[0], it) for it in due.nodes)
        try:
            self._thoughts = thoughts_of(judge.session.settings)
        except Exception as error:
            self.fault("embedding", error)

    def end(self, outcome: RunOutcome) -> None:
        """Close the run, once. A run that was stopped has the outcome `stopped`."""
        if self.closed:
            return
        if outcome == "completed" and self.interrupted:
            outcome = "interrupted"
        if outcome in ("completed", "interrupted") and self.stopped is not None:
            outcome = "interrupted" if self.ways.pausing else "stopped"
        self.halted = self.stopped
        self.closed = True
        if self.spending is not None:
            try:
                self.spending.finish(interrupted=outcome == "interrupted")
            except Exception as error:
                self.fault("budget.finish", error)
        if self.boundary is not None:
            self.boundary.ended(outcome)
        self.outcome = outcome
        with self.state.judge.lock:
            self.state.users -= 1
        self.ended = self.now()
        self.state.judge.after(RunEnded(self.ended, self.id, outcome))
        self.collect()
        self.records = self.nudges.settled(self.records, self.ways.unmet())
        self.open.clear()
        if self.ways.learners:
            from shearpin.adapters.learning import learn_from

            learn_from(self)

    @property
    def step(self) -> int:
        """Model answers so far in this conversation."""
        return self.state.judge.session.step

    @property
    def stopped(self) -> Halt | None:
        """The stop that all further calls are refused with; None while the run may go on."""
        if SWITCH.is_off():
            return None
        return self.state.judge.ask(lambda session: session.stopped, None)

    def collect(self) -> None:
        """Move what the session wrote down since the last time into the run's own records."""
        news: list[Record] = self.state.judge.ask(lambda session: list(session.drain()), [])
        with self._lock:
            noted = [record for record in self._noted.values() if record is not None]
            self._noted.update(dict.fromkeys(self._noted))
        self.records = [*self.records, *noted, *news][-_MOST_RECORDS:]

    def note(self, record: NoteRecord) -> bool:
        """Write a remark into the report; False where it was made before in this run."""
        with self._lock:
            if record.key in self._noted or len(self._noted) >= _MOST_RECORDS:
                return False
            self._noted[record.key] = record
            return True

    # -- facts and verdicts ---------------------------------------------------------------------

    def before(self, fact: Fact) -> Verdict:
        """Tell the core what is about to happen."""
        if self.ways.hides(fact):
            return PROCEED
        if self._thoughts is not None and isinstance(fact, ModelCalled):
            self._hear(self._thoughts, fact)
        verdict = self.state.judge.before(self.branches.named(fact))
        return verdict if verdict is PROCEED else carried(self, fact, verdict)

    def after(self, fact: Fact) -> Verdict:
        """Tell the core what happened, and keep a nudge that it answers with for later."""
        if self.ways.hides(fact):
            return PROCEED
        if self._thoughts is not None and isinstance(fact, ModelReturned):
            self._thoughts.hand_in(fact.agent, fact.text)
        if self.ways.landing is not None and isinstance(fact, ModelReturned):
            self.ways.said = fact.text
        verdict = self.state.judge.after(self.branches.named(fact))
        return verdict if verdict is PROCEED else carried(self, fact, verdict)

    def _hear(self, thoughts: Thoughts, fact: ModelCalled) -> None:
        """Tell the core of the thoughts that were embedded by now."""
        for vector in thoughts.come_in(fact.agent):
            self.after(ThoughtEmbedded(fact.at, fact.agent, vector))
        trouble = thoughts.trouble()
        if trouble is not None:
            self.fault("embedding", RuntimeError(trouble))

    def keep(self, nudge: Nudge) -> None:
        """Let a nudge wait for the next request of its agent."""
        self.nudges.keep(nudge)
        agent, judge = nudge.finding.agent.partition("#")[0], self.state.judge
        with judge.lock:
            nodes = [node for name, node in self.speakers if name == agent]
            self.state.owed.add(nudge, judge.session.settings, nodes)

    def not_carried_out(self, verdict: Verdict) -> None:
        """Note that a verdict could not be acted upon where it was given."""
        self.nudges.miss(verdict)

    def leaves_alone(self, node: str) -> bool:
        """Whether a node is to be executed as if there were no guard."""
        try:
            return self.closed or self.ways.apart("", node)
        except Exception as error:
            self.fault("run.leaves_alone", error)
            return False

    @property
    def speaks(self) -> bool:
        """Whether models have a part in this turn; if not, there is little to watch."""
        return self.resumed or bool(self.speakers)

    @property
    def has_nudges(self) -> bool:
        """Whether a nudge waits."""
        return self.nudges.wait and not SWITCH.is_off()

    def take_nudges(self, agent: str, messages: Sequence[Any]) -> list[Nudge]:
        """The nudges that wait for an agent; they will not be given out again.

        `messages` are its conversation, for what is owed from before.
        """
        judge = self.state.judge
        for due in self.nudges.recalled(agent):
            nudge, at = due.nudge(judge.session.settings, messages), self.now()
            given = judge.ask(partial(_ruled, nudge, at), PROCEED)
            if isinstance(given, Nudge):
                self.nudges.keep(given)
        with judge.lock:
            self.state.owed.paid(agent)
        return self.nudges.take(agent)

    def fault(self, where: str, error: BaseException) -> None:
        """Record a contained failure of the adapter."""
        self.state.judge.fault(where, error)

    # -- counters -------------------------------------------------------------------------------

    def refusal(self, task: str) -> int:
        """Count a refused call of a task; 1 for the first."""
        with self._lock:
            if len(self._refusals) > _MOST_COUNTERS:
                self._refusals.clear()
            self._refusals[task] = self._refusals.get(task, 0) + 1
            return self._refusals[task]

    def refused_in(self, task: str) -> bool:
        """Whether a call of a task was refused."""
        return task in self._refusals

    def shrank(self, key: str, length: int) -> bool:
        """Whether a history has become shorter than it was when last seen."""
        last = self._lengths.get(key, 0)
        if last == length:
            return False
        if len(self._lengths) > _MOST_COUNTERS:
            self._lengths.clear()
        self._lengths[key] = length
        return length < last

    def say_once(self, place: str) -> bool:
        """True for the first who may say the last word in a graph of the tree."""
        with self._lock:
            if place in self.said:
                return False
            self.said.add(place)
            return True


def _ruled(nudge: Nudge, at: float, session: Session) -> Verdict:
    return session.rule(nudge, nudge.finding, at)

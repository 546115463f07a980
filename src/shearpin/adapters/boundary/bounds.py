"""What a run's error boundary works with: its recipe, its tally, and what it shares with others.

Contract: a guard without a boundary has none of this, loads none of it, and pays one `is None`.
What runs of one boundary share (the store, what is known of availability, how runs have ended) is
opened once, and closed when the boundary is forgotten. In mode `observe` it counts, and never acts.
"""

from __future__ import annotations

import random
import threading
import weakref
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal
from uuid import UUID

from shearpin import clock
from shearpin.adapters.boundary.doubts import Doubts
from shearpin.adapters.boundary.siblings import Siblings
from shearpin.adapters.carrying import tell
from shearpin.adapters.places import Place
from shearpin.core.modes import Modes
from shearpin.errors import ConfigError, StoreError
from shearpin.events import RunOutcome
from shearpin.switch import SWITCH
from shearpin.verdicts import PROCEED, Halt

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig

    from shearpin.adapters.langgraph.plans import NodePlan
    from shearpin.adapters.run import Run
    from shearpin.boundary.availability import AvailabilityBreaker
    from shearpin.boundary.boundary import Boundary
    from shearpin.boundary.categories import Classification
    from shearpin.boundary.effects import Begun, EffectRecords
    from shearpin.boundary.settings import Availability
    from shearpin.boundary.tally import RunErrors
    from shearpin.recipe import Guard
    from shearpin.stores.base import Store

__all__ = ["Bounds", "Shared", "boundary_of", "open_bounds", "shared_of"]

_MOST_BREAKERS = 256
_MOST_STEPS = 64
_MOST_COUNTERS = 1024


class Shared:
    """What all runs of one boundary share.

    Args:
        boundary: whose store is opened.

    Raises:
        ConfigError: the store cannot be opened as it is named.
    """

    def __init__(self, boundary: Boundary) -> None:
        from shearpin.boundary.effects import EffectRecords
        from shearpin.boundary.tally import Terminations
        from shearpin.stores.opening import open_store

        self.store: Store = open_store(boundary.store)
        self.owned = isinstance(boundary.store, str)
        self.effects = EffectRecords(self.store)
        self.ends = Terminations()
        self.uniform = random.Random().uniform  # of its own: programs and tests seed the other one
        self._breakers: dict[tuple[str, Availability], AvailabilityBreaker] = {}
        self._lock = threading.Lock()

    def breaker(self, name: str, settings: Availability) -> AvailabilityBreaker:
        """What is known of the availability of a tool (`tool:NAME`) or model (`model:NAME`)."""
        from shearpin.boundary.availability import AvailabilityBreaker

        with self._lock:
            found = self._breakers.get((name, settings))
            if found is None:
                if len(self._breakers) >= _MOST_BREAKERS:  # its state is in the store
                    self._breakers.clear()
                found = AvailabilityBreaker(self.store, name, settings)
                self._breakers[name, settings] = found
            return found

    def close(self) -> None:
        """Close the store, unless it was handed in."""
        if self.owned:
            self.store.close()


@dataclass(slots=True, eq=False)
class Bounds:
    """The boundary of one run.

    Attributes:
        boundary: the recipe.
        shared: what it shares with other runs.
        tally: what was counted in this run.
        thread: whose effects happen at most once: the conversation, or the run where there is none.
        modes: in which places it acts.
        language: of what models and users read.
        now: monotonic seconds.
        sleep: waits, in threads.
        asleep: waits, in event loops.
        rollbacks: how often the run went back.
        rolls_back: whether it may have to, so that states have to be remembered.
        siblings: tool calls that run side by side.
        doubts: tool calls whose outcome is unknown, by where they were made.
        effects_open: records begun for calls that only callbacks see, by the host's run id.
        cause: the failure over which the run was ended.
    """

    boundary: Boundary
    shared: Shared
    tally: RunErrors
    thread: str
    modes: Modes = field(default_factory=lambda: Modes("enforce", {}))
    language: Literal["en", "zh"] = "en"
    now: clock.Clock = clock.monotonic
    sleep: Callable[[float], None] = field(default_factory=lambda: clock.sleep)
    asleep: Callable[[float], Awaitable[None]] = field(default_factory=lambda: clock.asleep)
    rollbacks: int = 0
    rolls_back: bool = False
    siblings: Siblings = field(default_factory=Siblings)
    doubts: Doubts = field(default_factory=Doubts)
    cause: BaseException | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)
    effects_open: dict[UUID, Begun] = field(default_factory=dict["UUID", "Begun"])
    _failed: dict[str, int] = field(default_factory=dict[str, int])
    _tasks: dict[tuple[str, object], set[str]] = field(
        default_factory=dict[tuple[str, object], set[str]]
    )

    @property
    def store(self) -> Store:
        """Where effects and availability are kept."""
        return self.shared.store

    @property
    def effects(self) -> EffectRecords:
        """The records by which effects happen at most once."""
        return self.shared.effects

    def breaker(self, name: str, settings: Availability) -> AvailabilityBreaker:
        """What is known of the availability of a tool (`tool:NAME`) or model (`model:NAME`)."""
        return self.shared.breaker(name, settings)

    def acts(self, tool: str = "", node: str = "") -> bool:
        """Whether anything may be done about a failure here, besides counting it."""
        return not SWITCH.is_off() and self.modes.at(tool, node) == "enforce"

    def classify(self, error: BaseException) -> Classification:
        """What kind of failure it is, by the user's rules and ours."""
        from shearpin.boundary.classification import classify

        return classify(
            error, self.boundary.rules, on_fault=lambda fault: self.tally.fault("rules", fault)
        )

    def entered(self, place: Place, metadata: Mapping[str, object]) -> None:
        """A node is executed."""
        self.tally.step(place.node)
        key = _superstep(metadata)
        with self._lock:
            peers = self._tasks.get(key)
            if peers is None:
                if len(self._tasks) >= _MOST_STEPS:
                    del self._tasks[next(iter(self._tasks))]
                peers = self._tasks[key] = set()
            peers.add(place.task)

    def left(self, run: Run, plan: NodePlan, agent: str, config: RunnableConfig) -> None:
        """A node has done its work; the run may have no steps left to go on."""
        from shearpin.adapters.langgraph.laststep import end_in_last_step

        end_in_last_step(run, plan, agent, config)

    def peers(self, metadata: Mapping[str, object]) -> int:
        """How many nodes have been executed so far in the same superstep of the same graph."""
        return len(self._tasks.get(_superstep(metadata), ()))

    def failed_before(self, task: str) -> int:
        """Count a failure that LangGraph's own retries decide about; 1 for the first."""
        with self._lock:
            if len(self._failed) >= _MOST_COUNTERS:
                self._failed.clear()
            self._failed[task] = self._failed.get(task, 0) + 1
            return self._failed[task]

    def halt(self, run: Run, halt: Halt, error: BaseException | None = None) -> bool:
        """End a run over a failure; False where its mode does not let that happen.

        Args:
            run: which is ended.
            halt: how.
            error: the failure. None: the latest that was counted.
        """
        finding = halt.finding
        if finding is None:
            return False
        at = run.now()
        given = run.state.judge.ask(lambda session: session.rule(halt, finding, at), PROCEED)
        if given is halt:
            tell(run, halt)
            self._note_end(halt, error or self.tally.latest)
        return given is halt

    def _note_end(self, halt: Halt, error: BaseException | None) -> None:
        from shearpin.boundary.log import log_end

        self.cause = error
        log_end(halt.reason, "" if halt.finding is None else halt.finding.subject or "", error)

    def pardon(self, run: Run) -> None:
        """A person wants what has failed to be tried again."""
        from shearpin.boundary.endings import FAMILY

        run.state.judge.ask(lambda session: session.pardon(f"{FAMILY}:"), None)

    def left_open(self, halt: Halt) -> str | None:
        """What an open call is answered with in a run that ends over a failure; None: as usual."""
        from shearpin.boundary.endings import no_result

        return no_result(halt, self.language)

    def ended(self, outcome: RunOutcome) -> None:
        """The run is over; an error that has left it is no normal end."""
        if outcome == "failed":
            self.tally.left()
        self.shared.ends.ended(abnormal=self.tally.abnormal)


def boundary_of(guard: Guard) -> Boundary | None:
    """The error boundary of a guard, where it has one."""
    return None if isinstance(guard.boundary, bool) else guard.boundary


_OPENED: dict[int, Shared] = {}
_LOCK = threading.RLock()  # a boundary may be forgotten, by the collector, while one is opened


def shared_of(boundary: Boundary) -> Shared:
    """What the runs of a boundary share; opened for the first of them.

    Raises:
        ConfigError, StoreError: its store cannot be opened as it is named.
    """
    key = id(boundary)
    with _LOCK:
        found = _OPENED.get(key)
        if found is None:
            found = _OPENED[key] = Shared(boundary)
            weakref.finalize(boundary, _forget, key)
        return found


def _forget(key: int) -> None:
    with _LOCK:
        found = _OPENED.pop(key, None)
    if found is not None:
        found.close()


def open_bounds(run: Run, guard: Guard) -> None:
    """Give a run that has begun its boundary, if the guard has one.

    Raises:
        ConfigError, StoreError: its store cannot be opened as it is named.
    """
    boundary = boundary_of(guard)
    if boundary is None:
        return
    try:
        from shearpin.boundary.tally import RunErrors

        settings = guard.settings
        run.boundary = Bounds(
            boundary,
            shared_of(boundary),
            RunErrors(boundary.error_budget, boundary.retries.per_run),
            run.thread or run.id,
            modes=Modes(settings.mode, settings.modes),
            language=settings.language,
            now=run.now,
            rolls_back=_rolls_back(boundary),
        )
    except (ConfigError, StoreError):
        raise
    except Exception as error:
        run.fault("boundary.open", error)


def _rolls_back(boundary: Boundary) -> bool:
    return any(callable(action) or action == "rollback" for action in boundary.on.values())


def _superstep(metadata: Mapping[str, object]) -> tuple[str, object]:
    namespace = str(metadata.get("langgraph_checkpoint_ns", ""))
    return namespace.rpartition("|")[0], metadata.get("langgraph_step")

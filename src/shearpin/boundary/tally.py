"""What the error boundary of one run has seen and done: counted, bounded, safe between threads.

Contract: every failed attempt is one error, told once by whoever caught it. The tally decides two
things for the whole run: whether another retry is allowed, and whether so many non-fatal errors
have come together that the run has to end with what it has. An error that passes through several
places (a call, its node, the graph around that) is counted where it is told of first. What can be
read of it are names, numbers and a few short, masked messages; never an argument or a result.
"""

from __future__ import annotations

import threading
from collections import Counter, deque
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias

from shearpin.boundary.categories import Classification, ErrorCategory

__all__ = ["Failed", "PlaceTally", "RunErrors", "Tallied", "Terminations"]

Kind: TypeAlias = Literal["tool", "model", "node"]

_MOST_PLACES = 100
_MOST_TYPES = 50
_MOST_FAILURES = 50
_MOST_FAULTS = 50
_MOST_KNOWN = 8
_LONGEST = 300
_OTHERS = "(others)"


class Failed(NamedTuple):
    """One failed attempt.

    Attributes:
        kind: what failed: a tool, a model or a node.
        name: of what failed.
        category: what the failure called for.
        error_type: as in `Classification`.
        message: one short, masked line.
    """

    kind: Kind
    name: str
    category: str
    error_type: str
    message: str


@dataclass(slots=True)
class PlaceTally:
    """What was counted of one tool, model or node.

    Attributes:
        kind: tool, model or node.
        name: of it.
        steps: how often it was entered; counted for nodes.
        errors: failed attempts.
        retries: attempts that were made again.
        degraded: how often something else took its place.
        refused: how often it was not even tried.
        types: failed attempts by error type.
    """

    kind: Kind
    name: str
    steps: int = 0
    errors: int = 0
    retries: int = 0
    degraded: int = 0
    refused: int = 0
    types: Counter[str] = field(default_factory=Counter[str])


class Tallied(NamedTuple):
    """A copy of everything that was counted so far.

    Attributes:
        places: each tool, model and node that something was counted of.
        categories: failed attempts by category.
        actions: what was done about failures, by name of the action.
        failures: the latest failed attempts.
        degradations: what took something's place, or why it was refused: the latest sentences.
        faults: failures of handlers within the boundary, contained.
        waited_seconds: in all, before retries.
        exhausted: whether the error budget was reached.
        abnormal: whether an error left the run.
        error_budget: that the run had; None for no bound.
    """

    places: tuple[PlaceTally, ...]
    categories: dict[str, int]
    actions: dict[str, int]
    failures: tuple[Failed, ...]
    degradations: tuple[str, ...]
    faults: tuple[str, ...]
    waited_seconds: float
    exhausted: bool
    abnormal: bool
    error_budget: int | None


class RunErrors:
    """The tally of one run. See the module's contract.

    Each method takes the name of what it is about as exactly one of `tool`, `model` or `node`; the
    most specific counts where several are given.

    Args:
        error_budget: non-fatal errors after which the run has to end. None: no bound.
        retries: that all calls of the run may make together. None: no bound.

    Example:
        >>> errors = RunErrors(error_budget=25, retries=1)
        >>> errors.retry(tool="search"), errors.retry(tool="search")
        (True, False)
    """

    def __init__(self, error_budget: int | None = 25, retries: int | None = 20) -> None:
        self.error_budget = error_budget
        self._retries_left = retries
        self._lock = threading.Lock()
        self._places: dict[tuple[Kind, str], PlaceTally] = {}
        self._categories: Counter[str] = Counter()
        self._actions: Counter[str] = Counter()
        self._failures: deque[Failed] = deque(maxlen=_MOST_FAILURES)
        self._degradations: deque[str] = deque(maxlen=_MOST_FAILURES)
        self._faults: deque[str] = deque(maxlen=_MOST_FAULTS)
        self._known: deque[tuple[BaseException, PlaceTally]] = deque(maxlen=_MOST_KNOWN)
        self._waited = 0.0
        self._nonfatal = 0
        self._abnormal = False

    # -- telling --------------------------------------------------------------------------------

    def step(self, node: str) -> None:
        """A node was entered."""
        with self._lock:
            self._place(tool="", model="", node=node).steps += 1

    def error(
        self, classification: Classification, *, tool: str = "", model: str = "", node: str = ""
    ) -> None:
        """An attempt has failed. Control flow is no error, nor is one that was told elsewhere."""
        if classification.category is ErrorCategory.CONTROL:
            return
        with self._lock:
            place = self._place(tool, model, node)
            for root, first in self._known:
                if root is classification.root and first is not place:
                    return
            self._known.append((classification.root, place))
            place.errors += 1
            known = classification.error_type in place.types or len(place.types) < _MOST_TYPES
            place.types[classification.error_type if known else _OTHERS] += 1
            self._categories[classification.category.value] += 1
            if classification.category is not ErrorCategory.FATAL:
                self._nonfatal += 1
            self._failures.append(
                Failed(
                    place.kind,
                    place.name,
                    classification.category.value,
                    classification.error_type,
                    classification.message[:_LONGEST],
                )
            )

    def retry(
        self, *, tool: str = "", model: str = "", node: str = "", waited_seconds: float = 0.0
    ) -> bool:
        """Take one of the run's retries; False where none is left, and then it must not happen."""
        with self._lock:
            if self._retries_left is not None:
                if self._retries_left <= 0:
                    return False
                self._retries_left -= 1
            self._place(tool, model, node).retries += 1
            self._waited += waited_seconds
            return True

    def waited(self, seconds: float) -> None:
        """So much was waited before a retry, where that was not known when it was taken."""
        with self._lock:
            self._waited += seconds

    def degraded(self, how: str, *, tool: str = "", model: str = "", node: str = "") -> None:
        """Something else took its place; `how` says what, in a few words."""
        with self._lock:
            place = self._place(tool, model, node)
            place.degraded += 1
            self._degradations.append(f"{place.kind} {place.name}: {how}"[:_LONGEST])

    def refused(self, why: str, *, tool: str = "", model: str = "", node: str = "") -> None:
        """It was not tried, e.g. because it counts as down or its effect has happened."""
        with self._lock:
            place = self._place(tool, model, node)
            place.refused += 1
            self._degradations.append(f"{place.kind} {place.name}: {why}"[:_LONGEST])

    def acted(self, action: str) -> None:
        """An action was carried out, e.g. `rollback`."""
        with self._lock:
            known = action in self._actions or len(self._actions) < _MOST_TYPES
            self._actions[action if known else _OTHERS] += 1

    def fault(self, where: str, error: BaseException) -> None:
        """A handler within the boundary has failed, and was contained."""
        with self._lock:
            self._faults.append(f"{where}: {type(error).__name__}: {error}"[:_LONGEST])

    def left(self) -> None:
        """An error has left the run: it did not end normally."""
        with self._lock:
            self._abnormal = True

    # -- asking ---------------------------------------------------------------------------------

    def may_retry(self) -> bool:
        """Whether the run has a retry left. `retry` takes it."""
        with self._lock:
            return self._retries_left is None or self._retries_left > 0

    @property
    def exhausted(self) -> bool:
        """Whether so many non-fatal errors came together that the run has to end."""
        with self._lock:
            return self._is_exhausted()

    @property
    def abnormal(self) -> bool:
        """Whether an error has left the run."""
        return self._abnormal

    @property
    def latest(self) -> BaseException | None:
        """The latest failure that was counted; None where there was none."""
        with self._lock:
            return self._known[-1][0] if self._known else None

    def snapshot(self) -> Tallied:
        """A copy of everything that was counted so far."""
        with self._lock:
            places = tuple(
                PlaceTally(
                    each.kind,
                    each.name,
                    each.steps,
                    each.errors,
                    each.retries,
                    each.degraded,
                    each.refused,
                    Counter(each.types),
                )
                for each in self._places.values()
            )
            return Tallied(
                places,
                dict(self._categories),
                dict(self._actions),
                tuple(self._failures),
                tuple(self._degradations),
                tuple(self._faults),
                self._waited,
                self._is_exhausted(),
                self._abnormal,
                self.error_budget,
            )

    def _is_exhausted(self) -> bool:
        return self.error_budget is not None and self._nonfatal >= self.error_budget

    def _place(self, tool: str, model: str, node: str) -> PlaceTally:
        kind: Kind = "tool" if tool else "model" if model else "node"
        name = (tool or model or node)[:_LONGEST]
        if (kind, name) not in self._places and len(self._places) >= _MOST_PLACES:
            name = _OTHERS
        found = self._places.get((kind, name))
        if found is None:
            found = self._places[kind, name] = PlaceTally(kind, name)
        return found


class Terminations:
    """How the runs of one guard have ended: all of them, and those that an error has left.

    Example:
        >>> ends = Terminations()
        >>> ends.ended(abnormal=False)
        >>> ends.counts()
        (1, 0)
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._runs = 0
        self._abnormal = 0

    def ended(self, *, abnormal: bool) -> None:
        """A run has ended."""
        with self._lock:
            self._runs += 1
            self._abnormal += int(abnormal)

    def counts(self) -> tuple[int, int]:
        """Runs that have ended, and how many of them an error has left."""
        with self._lock:
            return self._runs, self._abnormal

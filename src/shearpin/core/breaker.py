"""The circuit breaker: how patient the guard still is, as a transition table.

CLOSED (watch) -> REFLECTING (the agent has been told, work goes on) -> HALF_OPEN (the last try: the
repeated call is refused, a few trial rounds are allowed) -> OPEN (the run is ended).

Back to CLOSED only on *evidence of a pivot*: new calls with new results, not one clean step. A
relapse soon after a recovery skips the first rung. Trial rounds are leases: one that is never
settled, because the process died in it, runs out and is given back, so a crash cannot jam the
breaker.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from shearpin.core.canonical import digest_text
from shearpin.core.checks import check_kinds
from shearpin.core.stored import mapping, number, row, text, whole
from shearpin.errors import ConfigError

__all__ = ["SIGNALS", "STATES", "TRANSITIONS", "Breaker", "BreakerSettings", "Signal", "State"]

State: TypeAlias = Literal["closed", "reflecting", "half_open", "open"]
Signal: TypeAlias = Literal[
    "warned", "refused", "exhausted", "pivoted", "turn_started", "continued"
]

STATES: tuple[State, ...] = ("closed", "reflecting", "half_open", "open")
SIGNALS: dict[Signal, str] = {
    "warned": "a finding at nudge level",
    "refused": "a finding at block level",
    "exhausted": "a finding at stop level, or the trial rounds are used up",
    "pivoted": "new calls with new results",
    "turn_started": "a genuine user message",
    "continued": "a person said: go on",
}

TRANSITIONS: dict[tuple[State, Signal], State] = {
    ("closed", "warned"): "reflecting",
    ("closed", "refused"): "half_open",
    ("closed", "exhausted"): "open",
    ("reflecting", "refused"): "half_open",
    ("reflecting", "exhausted"): "open",
    ("reflecting", "pivoted"): "closed",
    ("reflecting", "turn_started"): "closed",
    ("half_open", "exhausted"): "open",
    ("half_open", "pivoted"): "closed",
    ("half_open", "turn_started"): "closed",
    ("open", "continued"): "half_open",
    ("open", "turn_started"): "closed",
}
"""Every transition there is; a pair that is not listed changes nothing."""


@dataclass(frozen=True, slots=True)
class BreakerSettings:
    """How patient the breaker is.

    Attributes:
        pivot_calls: new calls with new results that make a recovery, in calls (1 or more).
        trial_rounds: rounds without a new result that HALF_OPEN allows before it opens; a round
            that goes on with the loop counts twice.
        relapse_rounds: for so many rounds after a recovery, the same loop skips the first rung.
        persist_rounds: rounds of further hard evidence after a nudge that end the run, whatever the
            single counts. *Source*: adds stops on failed public runs and none on successful ones.
        calm_rounds: rounds in a row without evidence after which that count starts afresh; new work
            of the agent does the same.
        refused_rounds: rounds in a row in which every call was refused, after which the run ends.
        lease_seconds: a trial round that is not settled by then is given back, in seconds.
        continues: how many times a run may be continued by a person after it was opened.
        withhold_rounds: for so many model answers a tool is taken away, with
            `on_loop="without_tool"`, or another model takes over, with `on_loop="model:..."`.

    Raises:
        ConfigError: a number is out of range.
    """

    pivot_calls: int = 2
    trial_rounds: int = 2
    relapse_rounds: int = 10
    persist_rounds: int = 4
    calm_rounds: int = 3
    refused_rounds: int = 3
    lease_seconds: float = 600.0
    continues: int = 3
    withhold_rounds: int = 5

    def __post_init__(self) -> None:
        check_kinds(self)
        for name in (
            "pivot_calls", "trial_rounds", "persist_rounds", "calm_rounds", "refused_rounds",
            "withhold_rounds",
        ):  # fmt: skip
            if type(value := getattr(self, name)) is not int or value < 1:
                raise ConfigError(f"BreakerSettings.{name} must be 1 or more, not {value!r}")
        for name in ("relapse_rounds", "continues"):
            if type(value := getattr(self, name)) is not int or value < 0:
                raise ConfigError(f"BreakerSettings.{name} must be 0 or more, not {value!r}")
        if self.lease_seconds <= 0:
            raise ConfigError(
                f"BreakerSettings.lease_seconds must be above 0 seconds, not {self.lease_seconds!r}"
            )


class Breaker:
    """The state of one session's breaker. `signal` moves it; the rest keeps the counts."""

    __slots__ = (
        "_calm",
        "_continued",
        "_leases",
        "_persisted",
        "_pivots",
        "_settings",
        "_used",
        "recovered",
        "state",
    )

    def __init__(self, settings: BreakerSettings) -> None:
        self._settings = settings
        self.state: State = "closed"
        self.recovered: dict[str, int] = {}
        """Loops that were recovered from, with the round of the recovery (at most eight)."""
        self._pivots = 0
        self._persisted = 0
        self._calm = 0
        self._used = 0
        self._continued = 0
        self._leases: dict[str, float] = {}

    def signal(self, signal: Signal) -> bool:
        """Take a signal; True if the state changed."""
        if signal == "turn_started":  # patience is new, whatever the state was
            self._continued = 0
            self.recovered.clear()
        target = TRANSITIONS.get((self.state, signal))
        if target is None or target == self.state:
            return False
        if signal == "continued":
            if self._continued >= self._settings.continues:
                return False
            self._continued += 1
        self.state = target
        self._pivots = 0
        self._used = -1 if signal == "refused" else 0  # the round of the refusal is not a trial
        self._leases.clear()
        if target in ("closed", "reflecting"):
            # the round of the first nudge is not yet one after it
            self._persisted = -1 if target == "reflecting" else 0
            self._calm = 0
        return True

    def grant(self) -> None:
        """All trial rounds are there again: something else is tried."""
        self._used = -1  # the round in which that was decided is not a trial
        self._pivots = self._persisted = 0
        self._leases.clear()

    def lease(self, call: str, at: float) -> bool:
        """HALF_OPEN: a trial round begins; False if no permit is left for it.

        Leases that ran out are given back first.
        """
        for name in [name for name, until in self._leases.items() if until <= at]:
            del self._leases[name]
        mark = digest_text(call)
        if mark not in self._leases:
            if max(self._used, 0) + len(self._leases) >= self._settings.trial_rounds:
                return False
            self._leases[mark] = at + self._settings.lease_seconds
        return True

    def release(self, call: str) -> None:
        """Give a permit back whose round never came about (the model call failed)."""
        self._leases.pop(digest_text(call), None)

    def settle(self, progressed: bool, evidence: int) -> Signal | None:
        """A round is over: what it says about the loop, as the signal to give next, if any.

        `evidence` is its weight, 0 for none.
        """
        if self._leases:
            self._leases.pop(next(iter(self._leases)))
        if self.state == "half_open":
            if not progressed:
                # the round of the refusal is no trial; one that repeats the loop counts twice
                self._used = 0 if self._used < 0 else self._used + (2 if evidence else 1)
                if self._used >= self._settings.trial_rounds:
                    return "exhausted"
        elif self.state == "reflecting" and evidence:
            self._calm = 0
            self._persisted += evidence if self._persisted >= 0 else 1
            if self._persisted >= self._settings.persist_rounds:
                return "exhausted"
        elif self.state == "reflecting":
            self._calm += 1
            if self._calm >= self._settings.calm_rounds:
                self._persisted = 0
        return None

    def worked(self) -> None:
        """The agent has done new work: what it repeats from now on is counted afresh."""
        if self.state == "reflecting":
            self._persisted = 0

    def pivot(self, calls: int) -> bool:
        """Count new calls with new results; True when they amount to a recovery."""
        if self.state not in ("reflecting", "half_open"):
            return False
        self._pivots += calls
        return self._pivots >= self._settings.pivot_calls

    def unpivot(self) -> None:
        """The loop went on: earlier new calls were no pivot."""
        self._pivots = 0

    def recover(self, key: str, round_: int) -> None:
        """Remember which loop was left, so that a relapse is recognised."""
        if key not in self.recovered and len(self.recovered) >= 8:
            self.recovered.pop(next(iter(self.recovered)))
        self.recovered[key] = round_

    def relapse(self, key: str, round_: int) -> Literal["never_left", "soon", "late"]:
        """Whether this loop was recovered from, and whether within `relapse_rounds` rounds."""
        since = self.recovered.get(key)
        if since is None:
            return "never_left"
        if round_ - since <= self._settings.relapse_rounds:
            return "soon"
        del self.recovered[key]
        return "late"

    def dump(self) -> list[object]:
        """The state as JSON-ready data."""
        return [self.state, self._pivots, self._persisted, self._calm, self._used, self._continued,
                dict(self._leases), dict(self.recovered)]  # fmt: skip

    def load(self, data: object) -> None:
        """Restore what `dump` gave."""
        state, pivots, persisted, calm, used, continued, leases, recovered = row(data, 8)
        self.state = _STATES[text(state)]
        self._pivots, self._persisted, self._used = whole(pivots), whole(persisted), whole(used)
        self._calm, self._continued = whole(calm), whole(continued)
        self._leases = {name: number(until) for name, until in mapping(leases).items()}
        self.recovered = {name: whole(round_) for name, round_ in mapping(recovered).items()}


_STATES: dict[str, State] = {state: state for state in STATES}

"""The breaker against a naive model, and its promises one by one."""

from __future__ import annotations

import pytest
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from shearpin.core.breaker import SIGNALS, STATES, TRANSITIONS, Breaker, BreakerSettings
from shearpin.errors import ConfigError

CALLS = st.sampled_from(["a", "b", "c", "d"])
LOOPS = st.sampled_from([f"loop{n}" for n in range(12)])


class Naive:
    """The breaker as one would tell it, with everything that ever happened kept."""

    def __init__(self, settings: BreakerSettings) -> None:
        self.settings = settings
        self.state = "closed"
        self.continued = 0
        self.pivots = 0
        self.evidence = 0
        self.calm = 0
        self.nudged_last = False
        self.trials = 0
        self.refused_last = False
        self.leases: list[tuple[str, float]] = []
        self.recoveries: list[tuple[str, int]] = []

    def target(self, signal: str) -> str:
        state = self.state
        if signal == "turn_started":
            return "closed"
        if state == "open":
            may = signal == "continued" and self.continued < self.settings.continues
            return "half_open" if may else "open"
        if signal == "exhausted":
            return "open"
        if signal == "pivoted":
            return "closed"
        if signal == "refused":
            return "half_open"
        if signal == "warned" and state == "closed":
            return "reflecting"
        return state

    def signal(self, signal: str) -> bool:
        target = self.target(signal)
        moved = target != self.state
        if signal == "turn_started":
            self.continued = 0
            self.recoveries = []
        if not moved:
            return False
        if signal == "continued":
            self.continued += 1
        self.state = target
        self.pivots = self.trials = 0
        self.refused_last = signal == "refused"
        self.leases = []
        if target in ("closed", "reflecting"):
            self.evidence = self.calm = 0
            self.nudged_last = target == "reflecting"
        return True

    def lease(self, call: str, at: float) -> bool:
        self.leases = [(name, until) for name, until in self.leases if until > at]
        if any(name == call for name, _ in self.leases):
            return True
        if self.trials + len(self.leases) >= self.settings.trial_rounds:
            return False
        self.leases.append((call, at + self.settings.lease_seconds))
        return True

    def worked(self) -> None:
        if self.state == "reflecting":
            self.evidence = 0
            self.nudged_last = False

    def settle(self, progressed: bool, evidence: int) -> str | None:
        self.leases = self.leases[1:]
        if self.state == "half_open" and not progressed:
            if self.refused_last:
                self.refused_last = False
                return None
            self.trials += 2 if evidence else 1
            return "exhausted" if self.trials >= self.settings.trial_rounds else None
        if self.state == "reflecting" and not evidence:
            self.calm += 1
            if self.calm >= self.settings.calm_rounds:
                self.evidence = 0
                self.nudged_last = False
        elif self.state == "reflecting":
            self.calm = 0
            if self.nudged_last:
                self.nudged_last = False
                return None
            self.evidence += evidence
            return "exhausted" if self.evidence >= self.settings.persist_rounds else None
        return None

    def recover(self, key: str, step: int) -> None:
        known = [name for name, _ in self.recoveries]
        if key not in known and len(known) >= 8:
            self.recoveries = self.recoveries[1:]
        self.recoveries = [
            (name, step if name == key else since) for name, since in self.recoveries
        ]
        if key not in [name for name, _ in self.recoveries]:
            self.recoveries.append((key, step))

    def relapse(self, key: str, step: int) -> str:
        since = dict(self.recoveries).get(key)
        if since is None:
            return "never_left"
        if step - since <= self.settings.relapse_rounds:
            return "soon"
        self.recoveries = [entry for entry in self.recoveries if entry[0] != key]
        return "late"


class BreakerMachine(RuleBasedStateMachine):
    """Every sequence of events, with a dump and load at any point."""

    @initialize(
        pivots=st.integers(1, 3),
        trials=st.integers(1, 3),
        relapse=st.integers(0, 5),
        persist=st.integers(1, 3),
        continues=st.integers(0, 2),
    )
    def start(self, pivots: int, trials: int, relapse: int, persist: int, continues: int) -> None:
        self.settings = BreakerSettings(
            pivot_calls=pivots,
            trial_rounds=trials,
            relapse_rounds=relapse,
            persist_rounds=persist,
            continues=continues,
            lease_seconds=10.0,
        )
        self.breaker = Breaker(self.settings)
        self.naive = Naive(self.settings)
        self.at = 0.0
        self.step = 0
        self.continues_in_turn = 0

    @rule(signal=st.sampled_from(list(SIGNALS)))
    def signal(self, signal: str) -> None:
        before = self.breaker.state
        moved = self.breaker.signal(signal)  # type: ignore[arg-type]
        assert moved == self.naive.signal(signal)
        assert moved == (before != self.breaker.state)
        if signal == "turn_started":
            self.continues_in_turn = 0
        elif signal == "continued" and moved:
            self.continues_in_turn += 1

    @rule(call=CALLS, seconds=st.sampled_from([0.0, 1.0, 11.0]))
    @precondition(lambda self: self.breaker.state == "half_open")
    def lease(self, call: str, seconds: float) -> None:
        self.at += seconds
        assert self.breaker.lease(call, self.at) == self.naive.lease(call, self.at)

    @rule(call=CALLS)
    def release(self, call: str) -> None:
        self.breaker.release(call)
        self.naive.leases = [entry for entry in self.naive.leases if entry[0] != call]

    @rule()
    def worked(self) -> None:
        self.breaker.worked()
        self.naive.worked()

    @rule(progressed=st.booleans(), evidence=st.integers(0, 2))
    def settle(self, progressed: bool, evidence: int) -> None:
        said = self.breaker.settle(progressed, evidence)
        assert said == self.naive.settle(progressed, evidence)
        if said is not None:
            self.signal(said)

    @rule(calls=st.integers(1, 2))
    def pivot(self, calls: int) -> None:
        expected = False
        if self.naive.state in ("reflecting", "half_open"):
            self.naive.pivots += calls
            expected = self.naive.pivots >= self.settings.pivot_calls
        assert self.breaker.pivot(calls) == expected

    @rule()
    def unpivot(self) -> None:
        self.breaker.unpivot()
        self.naive.pivots = 0

    @rule(key=LOOPS, steps=st.integers(0, 4))
    def recover(self, key: str, steps: int) -> None:
        self.step += steps
        self.breaker.recover(key, self.step)
        self.naive.recover(key, self.step)

    @rule(key=LOOPS, steps=st.integers(0, 4))
    def relapse(self, key: str, steps: int) -> None:
        self.step += steps
        assert self.breaker.relapse(key, self.step) == self.naive.relapse(key, self.step)

    @rule()
    def restart(self) -> None:
        data = self.breaker.dump()
        other = Breaker(self.settings)
        other.load(data)
        assert other.dump() == data
        self.breaker = other

    @invariant()
    def agrees(self) -> None:
        if not hasattr(self, "breaker"):
            return
        assert self.breaker.state == self.naive.state
        assert self.breaker.state in STATES
        assert self.continues_in_turn <= self.settings.continues
        assert len(self.breaker.recovered) <= 8


TestBreakerMachine = BreakerMachine.TestCase
TestBreakerMachine.settings = hypothesis_settings(max_examples=150, stateful_step_count=40)


def test_the_table_names_states_and_signals_only() -> None:
    for (state, signal), target in TRANSITIONS.items():
        assert state in STATES
        assert target in STATES
        assert state != target
        assert signal in SIGNALS


def test_every_state_is_reached_and_left() -> None:
    assert {state for state, _ in TRANSITIONS} == set(STATES)
    assert set(TRANSITIONS.values()) == set(STATES)


def test_open_is_left_by_a_person_only() -> None:
    assert {signal for state, signal in TRANSITIONS if state == "open"} == {
        "continued",
        "turn_started",
    }


def test_nothing_but_a_pivot_or_a_person_closes_it() -> None:
    closing = {signal for (_, signal), target in TRANSITIONS.items() if target == "closed"}
    assert closing == {"pivoted", "turn_started"}


def test_continuing_never_removes_the_upper_bound() -> None:
    settings = BreakerSettings(continues=2)
    breaker = Breaker(settings)
    for _ in range(settings.continues):
        breaker.signal("exhausted")
        assert breaker.signal("continued")
        assert breaker.state == "half_open"
        # and in HALF_OPEN only so many rounds without a new result are left
        said = [breaker.settle(False, False) for _ in range(settings.trial_rounds)]
        assert said[-1] == "exhausted"
    breaker.signal("exhausted")
    assert not breaker.signal("continued")
    assert breaker.state == "open"


def test_continues_are_not_given_back_by_a_recovery() -> None:
    breaker = Breaker(BreakerSettings(continues=1))
    breaker.signal("exhausted")
    assert breaker.signal("continued")
    breaker.signal("pivoted")
    assert breaker.state == "closed"
    breaker.signal("exhausted")
    assert not breaker.signal("continued")


def test_a_new_turn_renews_patience_from_every_state() -> None:
    for state in STATES:
        breaker = Breaker(BreakerSettings(continues=1))
        breaker.signal("exhausted")
        breaker.signal("continued")
        breaker.recover("loop", 1)
        breaker.state = state
        breaker.signal("turn_started")
        assert breaker.state == "closed"
        assert breaker.relapse("loop", 1) == "never_left"
        breaker.signal("exhausted")
        assert breaker.signal("continued"), state


def test_a_lease_that_is_never_settled_runs_out() -> None:
    breaker = Breaker(BreakerSettings(trial_rounds=1, lease_seconds=60))
    breaker.signal("refused")
    assert breaker.lease("a", 0.0)
    assert not breaker.lease("b", 59.9)
    assert breaker.lease("b", 60.0)


def test_a_call_that_failed_gives_its_lease_back() -> None:
    breaker = Breaker(BreakerSettings(trial_rounds=1))
    breaker.signal("refused")
    assert breaker.lease("a", 0.0)
    breaker.release("a")
    assert breaker.lease("b", 0.0)


def test_the_same_call_holds_one_lease() -> None:
    breaker = Breaker(BreakerSettings(trial_rounds=1))
    breaker.signal("refused")
    assert breaker.lease("a", 0.0)
    assert breaker.lease("a", 1.0)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("pivot_calls", (0, -1, 1.5, True, "2")),
        ("trial_rounds", (0, -3)),
        ("persist_rounds", (0, None)),
        ("relapse_rounds", (-1, 0.5)),
        ("continues", (-1, 1.0)),
        ("lease_seconds", (0, -1.0)),
    ],
)
def test_bad_settings_name_field_and_value(name: str, values: tuple[object, ...]) -> None:
    for value in values:
        with pytest.raises(ConfigError, match=rf"BreakerSettings\.{name} must be .*{value!r}"):
            BreakerSettings(**{name: value})  # type: ignore[arg-type]


def test_every_damaged_dump_is_refused() -> None:
    good = Breaker(BreakerSettings()).dump()
    for place in range(len(good)):
        for wrong in (None, "ajar", 1.5, [], {"a": "b"}):
            bad = [*good[:place], wrong, *good[place + 1 :]]
            with pytest.raises((TypeError, ValueError, LookupError)):
                Breaker(BreakerSettings()).load(bad)
    for wrong in (None, [], [*good, 1], "closed", {}):
        with pytest.raises((TypeError, ValueError)):
            Breaker(BreakerSettings()).load(wrong)


def test_relapse_counts_rounds() -> None:
    breaker = Breaker(BreakerSettings(relapse_rounds=3))
    breaker.recover("loop", 10)
    said = [breaker.relapse("loop", step) for step in (10, 13, 14, 15)]
    assert said == ["soon", "soon", "late", "never_left"]


def test_new_work_and_calm_start_the_count_afresh() -> None:
    for calms in ("worked", "calm"):
        breaker = Breaker(BreakerSettings(persist_rounds=2, calm_rounds=2))
        breaker.signal("warned")
        assert breaker.settle(False, 1) is None  # the round of the nudge
        assert breaker.settle(False, 1) is None
        if calms == "worked":
            breaker.worked()
        else:
            breaker.settle(True, 0)
            breaker.settle(True, 0)
        assert breaker.settle(False, 1) is None
        assert breaker.settle(False, 1) == "exhausted"


def test_a_round_that_cannot_end_differently_counts_twice() -> None:
    breaker = Breaker(BreakerSettings(persist_rounds=4))
    breaker.signal("warned")
    assert [breaker.settle(False, 2) for _ in range(3)] == [None, None, "exhausted"]

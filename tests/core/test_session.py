"""The session: what it promises about facts, modes, turns, faults, spend and recovery."""

from __future__ import annotations

from typing import ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shearpin.core.breaker import BreakerSettings
from shearpin.core.detectors import DEFAULT_DETECTORS, Repeats
from shearpin.core.journal import FaultRecord, TransitionRecord, VerdictRecord
from shearpin.core.seen import (
    MessageSeen,
    ModelSeen,
    NodeSeen,
    RoundSeen,
    Seen,
    StartSeen,
    ToolSeen,
)
from shearpin.core.session import Session, Spend
from shearpin.core.settings import MODES, Mode, Settings
from shearpin.core.tools import ToolFacts
from shearpin.errors import ConfigError
from shearpin.events import (
    HistoryCompacted,
    ModelCalled,
    ModelReturned,
    NodeEntered,
    NodeLeft,
    RunEnded,
    RunStarted,
    SignalReceived,
    ToolCalled,
    ToolReturned,
    TurnStarted,
    Usage,
)
from shearpin.findings import Finding, Severity
from shearpin.verdicts import PROCEED, Block, Halt, Nudge
from tests.core.driving import Call, Driver, first_at
from tests.core.streams import STEPS, Item, essence, feed, weave

NUDGE, BLOCK, STOP = Severity.NUDGE, Severity.BLOCK, Severity.STOP
Steps = list[tuple[object, ...]]


# -- identity of facts ----------------------------------------------------------------------------


@given(STEPS, st.text(alphabet="abcXYZ-:0123", min_size=1, max_size=12))
@settings(deadline=None)
def test_it_is_blind_to_the_names_of_ids(steps: Steps, prefix: str) -> None:
    one = feed(Session(Settings()), weave(steps))
    other = feed(Session(Settings()), weave(steps, prefix))
    assert [essence(v) for v in one] == [essence(v) for v in other]


def reordered(items: list[Item]) -> list[Item]:
    """The same facts with the keys of every mapping in another order, and other kinds of number."""

    def turned(args: object) -> object:
        if not isinstance(args, dict):
            return args
        return {
            key: float(value) if isinstance(value, int) else value
            for key, value in reversed(args.items())
        }

    out = []
    for when, fact in items:
        if isinstance(fact, (ToolCalled, ToolReturned)):
            fact = fact._replace(args=turned(fact.args))
        out.append(Item(when, fact))
    return out


@given(STEPS)
@settings(deadline=None)
def test_it_is_blind_to_key_order_and_ways_to_write_a_number(steps: Steps) -> None:
    items = [
        Item(when, fact._replace(args={**fact.args, "z": 1, "a": {"y": 2, "b": 3}}))
        if isinstance(fact, (ToolCalled, ToolReturned)) and isinstance(fact.args, dict)
        else Item(when, fact)
        for when, fact in weave(steps)
    ]
    one = feed(Session(Settings()), items)
    other = feed(Session(Settings()), reordered(items))
    assert [essence(v) for v in one] == [essence(v) for v in other]


@given(STEPS, st.data())
@settings(deadline=None)
def test_facts_reported_twice_are_ignored(steps: Steps, data: st.DataObject) -> None:
    once = Session(Settings())
    twice = Session(Settings())
    for item in weave(steps):
        first, second = feed(once, [item])[0], feed(twice, [item])[0]
        assert essence(first) == essence(second)
        if isinstance(item.fact, (ModelReturned, ToolReturned, NodeLeft)):
            for _ in range(data.draw(st.integers(0, 2))):
                repeated = feed(twice, [item])[0]
                assert repeated is (twice.stopped or PROCEED)
    assert twice.spend == once.spend
    assert twice.step == once.step
    assert twice.dump() == once.dump()


def test_a_call_that_is_done_is_not_refused_when_it_is_announced_again() -> None:
    """A resumed graph replays its tasks; what ran before is not to be blocked."""
    driver = Driver(Repeats(nudge=2, block=3, stop=None, error_stop=None))
    driver.steps(2, Call())
    session = driver.session
    assert isinstance(session.before(ToolCalled(9, "new", "search", {"q": "x"})), Block)
    assert session.before(ToolCalled(9, "c1", "search", {"q": "x"})) is PROCEED


def test_digests_of_a_recording_decide_equality_of_arguments() -> None:
    driver = Driver(Repeats(nudge=2))
    session = driver.session
    for n in range(2):
        session.after(ModelReturned(n, f"m{n}"))
        cut = ToolReturned(n, f"c{n}", "search", {"q": f"cut {n}"}, "r", args_digest="d" * 64)
        verdict = session.after(cut)
    assert verdict.severity is NUDGE
    other = session.after(ToolReturned(3, "c9", "find", {}, "r", args_digest="d" * 64))
    assert other is PROCEED, "another tool with the same arguments is another call"


def test_a_result_digest_decides_equality_of_results() -> None:
    session = Driver(Repeats(nudge=2)).session
    said = []
    for n, digest in enumerate(["a", "a", "b"]):
        session.after(ModelReturned(n, f"m{n}"))
        fact = ToolReturned(n, f"c{n}", "search", {}, f"text {n}", result_digest=digest)
        said.append(session.after(fact).severity)
    assert said == [Severity.NONE, NUDGE, Severity.NONE]


# -- spend and step -------------------------------------------------------------------------------


def test_spend_counts_every_call_also_after_a_stop_and_never_falls() -> None:
    driver = Driver(Repeats(nudge=2, block=None, stop=3, error_stop=3))
    for _ in range(5):
        driver.step(Call(), usage=Usage(10, 3))
    assert isinstance(driver.session.stopped, Halt)
    assert driver.session.spend == Spend(5, 5, 50, 15)
    driver.turn()
    driver.step(text="hello", usage=Usage(1, 1))
    assert driver.session.spend == Spend(6, 5, 51, 16)


def test_blocked_calls_cost_nothing() -> None:
    driver = Driver(Repeats(nudge=2, block=3, stop=None, error_stop=None))
    driver.steps(4, Call())
    assert driver.session.spend.tool_calls == 2


def test_steps_are_model_responses() -> None:
    driver = Driver()
    assert driver.session.step == 0
    driver.steps(3, Call())
    session = driver.session
    session.after(ModelReturned(9, "failed", status="error"))
    assert session.step == 3


def test_it_is_active_once_there_is_something_to_keep() -> None:
    session = Session(Settings())
    session.after(RunStarted(0, "r"))
    session.before(NodeEntered(0, "n", "t"))
    session.after(NodeLeft(0, "n", "t", delta="d"))
    assert not session.active
    session.after(ModelReturned(0, "m"))
    assert session.active


# -- stop, turn, continue -------------------------------------------------------------------------


def test_a_stop_is_sticky_until_the_next_turn() -> None:
    driver = Driver()
    driver.steps(9, Call())
    session = driver.session
    halt = session.stopped
    assert isinstance(halt, Halt)
    for fact in (
        ModelCalled(50, "x"),
        ToolCalled(50, "y", "t", {}),
        NodeEntered(50, "n", "t"),
    ):
        assert session.before(fact) is halt
    for fact in (
        ModelReturned(50, "x"),
        ToolReturned(50, "y", "t", {}, "r"),
        RunEnded(50, "r", "stopped"),
    ):
        assert session.after(fact) is halt
    assert session.after(TurnStarted(60, 2)) is PROCEED
    assert session.stopped is None
    assert session.state == "closed"
    assert session.worst is Severity.NONE
    assert session.before(ModelCalled(61, "z")) is PROCEED


def test_continuing_never_removes_the_upper_bound() -> None:
    """However often a person says go on, a run that only repeats itself comes to an end."""
    driver = Driver(breaker=BreakerSettings(continues=2))
    stops = 0
    steps_between: list[int] = []
    for _ in range(10):
        count = 0
        while driver.session.stopped is None and count < 100:
            driver.step(Call())
            count += 1
        steps_between.append(count)
        stops += 1
        driver.session.after(SignalReceived(driver.at, "continue"))
        if driver.session.stopped is not None:
            break
    assert stops == 3, "two continuations, then it stays stopped"
    assert max(steps_between[1:]) <= 10
    assert driver.session.state == "open"


def test_continuing_a_run_that_is_not_stopped_changes_nothing() -> None:
    driver = Driver()
    driver.steps(3, Call())
    before = driver.session.dump()
    assert driver.session.after(SignalReceived(9, "continue")) is PROCEED
    assert driver.session.dump() == before


def test_another_signal_changes_nothing() -> None:
    driver = Driver()
    driver.steps(9, Call())
    halt = driver.session.stopped
    assert driver.session.after(SignalReceived(9, "hooray")) is halt


@given(STEPS)
@settings(deadline=None)
def test_after_a_turn_nothing_of_the_old_one_counts(steps: Steps) -> None:
    """A turn after any history is judged like a first turn."""
    used = Session(Settings())
    items = weave(steps)
    feed(used, items)
    used.after(TurnStarted(10_000, 99))
    fresh = Driver()
    again = Driver()
    again.session = used
    again.model_calls = again.tool_calls = 5_000
    again.at = fresh.at = 10_000
    for _ in range(9):
        one = [v.severity for v in fresh.step(Call(), Call("read_file", {"p": 1}, "text of it"))]
        other = [v.severity for v in again.step(Call(), Call("read_file", {"p": 1}, "text of it"))]
        assert one == other
    assert used.state == fresh.session.state


# -- recovery -------------------------------------------------------------------------------------


def fresh_call(n: int) -> Call:
    return Call("read_file", {"path": f"new{n}"}, f"something else, number {n} of many {n * 7}")


def test_one_clean_step_is_no_recovery() -> None:
    driver = Driver(Repeats(nudge=3))
    driver.steps(3, Call())
    assert driver.session.state == "reflecting"
    driver.step(text="I see, I will do something else.")
    assert driver.session.state == "reflecting"
    driver.step(fresh_call(0))
    assert driver.session.state == "reflecting"
    driver.step(fresh_call(1))
    assert driver.session.state == "closed"


def test_old_calls_with_old_results_are_no_pivot() -> None:
    driver = Driver(Repeats(nudge=3))
    driver.step(fresh_call(0))
    driver.step(fresh_call(1))
    driver.steps(3, Call())
    driver.step(fresh_call(0))
    driver.step(fresh_call(1))
    assert driver.session.state == "reflecting"


@pytest.mark.parametrize(
    "call",
    [
        lambda n: Call("lookup", {"n": n}, f"Error: nothing at {n}", "error"),
        lambda n: Call("sleep", {"n": n}, f"slept {n} times"),
        lambda n: Call("think", {"n": n}, f"thought {n}"),
    ],
    ids=["failing", "waiting", "thinking"],
)
def test_failing_waiting_or_thinking_is_no_pivot(call: object) -> None:
    driver = Driver(Repeats(nudge=3))
    driver.steps(3, Call())
    for n in range(3):
        driver.step(call(n))  # type: ignore[operator]
    assert driver.session.state != "closed"


def test_a_relapse_skips_the_first_rung() -> None:
    driver = Driver(
        Repeats(nudge=3, block=6, stop=None, error_stop=None),
        breaker=BreakerSettings(relapse_rounds=10, persist_rounds=99, trial_rounds=99),
    )
    driver.steps(3, Call())
    driver.step(fresh_call(0))
    driver.step(fresh_call(1))
    assert driver.session.state == "closed"
    driver.step(Call())
    assert first_at(driver.steps(1, Call()), BLOCK) == 1, "refused at once, without another hint"


def test_a_late_relapse_starts_at_the_first_rung() -> None:
    driver = Driver(
        Repeats(nudge=3, block=9, stop=None, error_stop=None, window=4),
        breaker=BreakerSettings(relapse_rounds=5, persist_rounds=99, trial_rounds=99),
    )
    driver.steps(3, Call())
    for n in range(9):
        driver.step(fresh_call(n))
    assert driver.session.state == "closed"
    assert driver.steps(3, Call()) == [[], [], [NUDGE]]


def test_a_refused_call_runs_again_after_new_work() -> None:
    driver = Driver(Repeats(nudge=2, block=3, stop=None, error_stop=None))
    tests = Call("run_tests", {}, "1 failed")
    driver.steps(2, tests)
    assert isinstance(driver.step(tests)[0], Block)
    driver.step(Call("edit_file", {"text": "fix"}, "edited"))
    assert driver.step(tests) == []


def test_permits_of_the_last_try_are_leases() -> None:
    """A process that died in a trial does not jam the breaker: its permit comes back."""
    driver = Driver(
        Repeats(nudge=2, block=3, stop=None, error_stop=None),
        breaker=BreakerSettings(trial_rounds=1, lease_seconds=60, refused_rounds=99),
    )
    driver.steps(2, Call())
    session = driver.session
    session.after(ModelReturned(10, "m10"))
    session.before(ToolCalled(10, "c10", "search", {"q": "x"}))
    assert session.state == "half_open"
    assert session.before(ModelCalled(11, "died")) is PROCEED
    copy = Session.load(session.settings, session.dump())
    assert copy.before(ModelCalled(12, "too many")).severity is STOP
    assert session.before(ModelCalled(71, "after the lease")) is PROCEED


# -- modes ----------------------------------------------------------------------------------------


@given(STEPS, st.sampled_from(MODES))
@settings(deadline=None)
def test_no_mode_acts_beyond_its_severity(steps: Steps, mode: Mode) -> None:
    session = Session(Settings(mode=mode))
    most = {"observe": Severity.NONE, "warn": NUDGE, "enforce": STOP}[mode]
    for verdict in feed(session, weave(steps)):
        assert verdict.severity <= most
    assert session.worst <= most
    if mode != "enforce":
        assert session.stopped is None


def test_what_is_not_done_is_still_written_down() -> None:
    driver = Driver(mode="observe")
    assert driver.steps(9, Call()) == [[]] * 9
    records = [r for r in driver.session.drain() if isinstance(r, VerdictRecord)]
    assert {record.verdict for record in records} >= {"nudge", "halt"}
    assert not any(record.acted for record in records)


def test_warn_only_tells() -> None:
    driver = Driver(mode="warn")
    said = driver.steps(12, Call())
    assert first_at(said, NUDGE) is not None
    assert first_at(said, BLOCK) is None


# -- faults ---------------------------------------------------------------------------------------


class Broken:
    """A rule that fails at everything it is asked."""

    family: ClassVar[str] = "broken"
    watches: ClassVar[tuple[type[Seen], ...]] = (
        StartSeen,
        ModelSeen,
        ToolSeen,
        MessageSeen,
        RoundSeen,
        NodeSeen,
    )

    def probe(self) -> Broken:
        return self

    def observe(self, seen: Seen) -> Finding | None:
        raise RuntimeError(f"cannot look at {type(seen).__name__}")

    def forget(self, agent: str | None) -> None:
        raise RuntimeError("cannot forget")

    def dump(self) -> object:
        return None

    def load(self, data: object) -> None:
        return None


@given(STEPS)
@settings(deadline=None)
def test_a_faulty_rule_changes_nothing_for_the_others(steps: Steps) -> None:
    items = weave(steps)
    sound = feed(Session(Settings()), items)
    faulty = feed(Session(Settings(detectors=(Broken(), *DEFAULT_DETECTORS))), items)
    assert [essence(v) for v in sound] == [essence(v) for v in faulty]


def test_a_fault_is_written_down_with_its_place() -> None:
    driver = Driver(Broken())
    driver.step(Call(), Call())
    driver.step(text="hello")
    driver.session.after(HistoryCompacted(1, "main"))
    driver.turn()
    faults = [r for r in driver.session.drain() if isinstance(r, FaultRecord)]
    assert {fault.where for fault in faults} == {"detector broken"}
    assert {fault.error for fault in faults} >= {
        "RuntimeError: cannot look at ToolSeen",
        "RuntimeError: cannot look at StartSeen",
        "RuntimeError: cannot look at MessageSeen",
        "RuntimeError: cannot look at RoundSeen",
        "RuntimeError: cannot forget",
    }
    assert len(faults[0].error) <= 200


def test_faults_of_others_are_taken_in() -> None:
    session = Session(Settings())
    session.fault("state.save", OSError("disk " * 100), 5.0)
    (record,) = session.drain()
    assert isinstance(record, FaultRecord)
    assert record.where == "state.save"
    assert len(record.error) == 200


# -- the journal ----------------------------------------------------------------------------------


def test_the_journal_is_drained_once_and_bounded() -> None:
    session = Session(Settings())
    for n in range(1000):
        session.fault("x", ValueError(str(n)), n)
    records = session.drain()
    assert len(records) == 256
    assert records[-1].at == 999
    assert session.drain() == []


def test_transitions_are_in_the_journal_with_their_signal() -> None:
    driver = Driver(Repeats(nudge=2, block=None, stop=3, error_stop=3))
    driver.steps(3, Call())
    moves = [r for r in driver.session.drain() if isinstance(r, TransitionRecord)]
    assert [(m.source, m.target, m.signal) for m in moves] == [
        ("closed", "reflecting", "warned"),
        ("reflecting", "open", "exhausted"),
    ]


def test_verdicts_are_in_the_journal_with_their_evidence() -> None:
    driver = Driver(Repeats(nudge=2))
    (nudge,) = (driver.step(Call()), driver.step(Call()))[1]
    assert isinstance(nudge, Nudge)
    record = next(r for r in driver.session.drain() if isinstance(r, VerdictRecord))
    assert record.verdict == "nudge"
    assert record.severity == "nudge"
    assert record.finding == "repeat"
    assert record.message == nudge.message
    assert record.evidence["count"] == 2
    assert record.evidence["tool"] == "search"
    assert record.acted


# -- settings -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"mode": "enforced"}, "mode must be one of observe, warn, enforce, not 'enforced'"),
        ({"language": "fr"}, "language must be 'en' or 'zh', not 'fr'"),
        ({"detectors": (Repeats(), Repeats(nudge=2))}, "two 'repeat' rules"),
        ({"detectors": ("repeat",)}, "detector configs such as Repeats"),
        ({"tools": {"search": {"polling": True}}}, r"tools\['search'\] must be ToolFacts"),
    ],
)
def test_bad_settings_name_field_and_fix(options: dict[str, object], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        Settings(**options)  # type: ignore[arg-type]


def test_settings_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        Settings().mode = "warn"  # type: ignore[misc]


def test_an_agent_with_a_very_long_name_is_one_agent() -> None:
    driver = Driver(Repeats(nudge=3))
    said = driver.steps(3, Call(), agent="outer/" * 50)
    assert first_at(said, NUDGE) == 3


def test_declared_tools_are_known() -> None:
    driver = Driver(tools={"frob": ToolFacts(key=("path",))})
    calls = [Call("frob", {"path": "x", "n": n}, "same") for n in range(3)]
    said = [[v.severity for v in driver.step(call)] for call in calls]
    assert first_at(said, NUDGE) == 3

"""Effects happen at most once: by a naive model, by threads, by processes, and through a kill."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from shearpin import ConfigError
from shearpin.boundary import Effects
from shearpin.boundary.effects import (
    Begun,
    EffectRecords,
    Finished,
    InFlight,
    TooMany,
    TooSoon,
    Unknown,
)
from shearpin.errors import StoreError
from shearpin.stores import Entry, MemoryStore, SqliteStore
from shearpin.testing import ManualClock

START = 1_700_000_000.0
ONCE = Effects()
ARGS = {"to": "ann", "text": "hello"}


def made(start: float = START) -> tuple[EffectRecords, MemoryStore, ManualClock]:
    clock = ManualClock(start)
    store = MemoryStore(clock)
    return EffectRecords(store, clock), store, clock


def begun(
    records: EffectRecords,
    args: Mapping[str, object] = ARGS,
    policy: Effects = ONCE,
    call: str = "c1",
    thread: str = "t",
) -> Begun:
    found = records.begin(thread, "sms", args, policy, call)
    assert isinstance(found, Begun), found
    return found


def test_a_call_carried_out_again_gets_the_first_result() -> None:
    records, _, clock = made()
    records.finish(begun(records), {"id": 7, "to": ["ann"]})
    clock.advance(3600)
    again = records.begin("t", "sms", {"text": "hello", "to": "ann"}, ONCE, "c1")
    assert again == Finished({"id": 7, "to": ["ann"]}, True, False, START, duplicate=False)
    other = records.begin("t", "sms", ARGS, ONCE, "c2")
    assert other == Finished({"id": 7, "to": ["ann"]}, True, False, START, duplicate=True)


def test_it_may_happen_again_once_the_record_has_expired() -> None:
    records, store, clock = made()
    records.finish(begun(records), "sent")
    clock.advance(ONCE.expiry_seconds - 1)
    assert isinstance(records.begin("t", "sms", ARGS, ONCE, "c2"), Finished)
    clock.advance(1)
    second = begun(records, call="c2")
    assert second.entry.since == START + ONCE.expiry_seconds
    records.finish(second, "sent again")
    clock.advance(10 * ONCE.expiry_seconds)
    assert store.keys() == []


def test_other_threads_tools_and_arguments_are_other_effects() -> None:
    records, _, _ = made()
    begun(records)
    begun(records, thread="u")
    begun(records, {"to": "bob", "text": "hello"})
    assert isinstance(records.begin("t", "email", ARGS, ONCE, "c1"), Begun)
    assert isinstance(records.begin("t", "sms", ARGS, ONCE, "c9"), InFlight)


def test_the_key_says_what_makes_the_same_effect() -> None:
    records, _, _ = made()
    by_order = Effects(key=("order",))
    records.finish(begun(records, {"order": 1, "note": "a"}, by_order), "done")
    again = records.begin("t", "sms", {"order": 1.0, "note": "b"}, by_order, "c2")
    assert isinstance(again, Finished)
    by_function = Effects(key=lambda args: str(args["to"]).lower())
    begun(records, {"to": "Ann"}, by_function)
    assert isinstance(records.begin("t", "sms", {"to": "ANN"}, by_function, "c2"), InFlight)


def test_a_key_that_does_not_fit_is_named() -> None:
    records, _, _ = made()
    with pytest.raises(ConfigError, match=r"Effects\.key of 'sms' names oder, but the call"):
        records.begin("t", "sms", ARGS, Effects(key=("oder",)), "c1")
    with pytest.raises(ConfigError, match=r"Effects\.key of 'sms' failed: KeyError"):
        records.begin("t", "sms", ARGS, Effects(key=lambda args: args["x"]), "c1")


def test_a_lease_that_is_over_leaves_the_outcome_unknown_until_somebody_looks() -> None:
    records, _, clock = made()
    begun(records)
    clock.advance(299)
    assert records.begin("t", "sms", ARGS, ONCE, "c1") == InFlight(START)
    assert not records.resolve("t", "sms", ARGS, ONCE, happened=False)
    clock.advance(1)
    assert records.begin("t", "sms", ARGS, ONCE, "c1") == Unknown(START)
    clock.advance(3600)
    assert records.begin("t", "sms", ARGS, ONCE, "c2") == Unknown(START)
    assert records.resolve("t", "sms", ARGS, ONCE, happened=True, output="it was sent")
    assert not records.resolve("t", "sms", ARGS, ONCE, happened=True)
    found = records.begin("t", "sms", ARGS, ONCE, "c1")
    assert isinstance(found, Finished)
    assert found.output == "it was sent"


def test_an_ambiguous_failure_is_unknown_at_once_and_a_certain_one_is_as_if_nothing_was() -> None:
    records, _, _ = made()
    records.fail(begun(records), known_not_to_have_happened=True)
    records.fail(begun(records, call="c2"), known_not_to_have_happened=False)
    assert records.begin("t", "sms", ARGS, ONCE, "c2") == Unknown(START)
    assert records.resolve("t", "sms", ARGS, ONCE, happened=False)
    begun(records, call="c3")


def test_a_late_end_counts_and_a_stale_one_changes_nothing() -> None:
    records, _, clock = made()
    first = begun(records)
    clock.advance(ONCE.lease_seconds + 60)
    records.finish(first, "late")
    found = records.begin("t", "sms", ARGS, ONCE, "c1")
    assert isinstance(found, Finished)
    assert found.output == "late"
    clock.advance(2 * ONCE.expiry_seconds)
    begun(records, call="c2")
    records.finish(first, "of another age")
    records.fail(first, known_not_to_have_happened=True)
    assert isinstance(records.begin("t", "sms", ARGS, ONCE, "c3"), InFlight)


def test_127_text_messages_are_impossible() -> None:
    records, _, clock = made()
    three = Effects(at_most=3)
    sent = 0
    for number in range(127):
        found = records.begin("t", "sms", {"text": f"reminder {number}"}, three, f"c{number}")
        if isinstance(found, Begun):
            sent += 1
            records.finish(found, "sent")
        else:
            assert found == TooMany(3)
        clock.advance(1)
    assert sent == 3
    clock.advance(three.expiry_seconds)
    begun(records, policy=three)
    assert records.begin("u", "sms", ARGS, Effects(at_most=0), "c1") == TooMany(0)


def test_what_certainly_did_not_happen_takes_no_place_and_what_may_have_does() -> None:
    records, _, _ = made()
    one = Effects(at_most=1)
    records.fail(begun(records, {"n": 1}, one), known_not_to_have_happened=True)
    records.fail(begun(records, {"n": 2}, one), known_not_to_have_happened=False)
    assert records.begin("t", "sms", {"n": 3}, one, "c3") == TooMany(1)


def test_the_interval_is_kept() -> None:
    records, _, clock = made()
    slowly = Effects(min_interval_seconds=60, expiry_seconds=10)
    records.finish(begun(records, {"n": 1}, slowly), "sent")
    clock.advance(45)
    assert records.begin("t", "sms", {"n": 2}, slowly, "c2") == TooSoon(15.0)
    clock.advance(15)
    begun(records, {"n": 2}, slowly)


class Odd:
    def __str__(self) -> str:
        return "token=abcdef1234567890 sent\nto ann"


class Nameless:
    def __str__(self) -> str:
        raise RuntimeError("no")


@pytest.mark.parametrize(
    ("output", "kept", "exact"),
    [
        (None, None, True),
        ([1, {"a": "中"}], [1, {"a": "中"}], True),
        (Odd(), "token=••• sent to ann", False),
        (Nameless(), "<Nameless without a text: RuntimeError>", False),
        ("\ud800", "?", False),
        (object, "<class 'object'>", False),
    ],
)
def test_an_output_is_kept_as_json_or_as_a_masked_text(
    output: object, kept: object, exact: bool
) -> None:
    records, _, _ = made()
    records.finish(begun(records), output, is_error=True)
    found = records.begin("t", "sms", ARGS, ONCE, "c1")
    assert found == Finished(kept, exact, True, START, duplicate=False)


def test_a_long_output_is_shortened() -> None:
    records, _, _ = made()
    records.finish(begun(records), "x" * 1_000_000)
    found = records.begin("t", "sms", ARGS, ONCE, "c1")
    assert isinstance(found, Finished)
    assert (len(str(found.output)), found.exact) == (4000, False)


@pytest.mark.parametrize("text", ["", "[]", '{"v": 2}', '{"v": 1, "effects": [[1]]}', "null"])
def test_a_damaged_page_is_no_leave_to_go_ahead(text: str) -> None:
    records, store, _ = made()
    begun(records)
    (page,) = store.keys()
    store.put(page, text)
    with pytest.raises(StoreError, match=f"{page}: the records of effects cannot be read"):
        records.begin("t", "sms", ARGS, ONCE, "c1")


def test_a_failing_store_is_no_leave_to_go_ahead_either(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "effects.db")
    records = EffectRecords(store)
    assert records.blocking
    assert not made()[0].blocking
    found = begun(records)
    store.close()
    with pytest.raises(StoreError, match="closed"):
        records.begin("t", "sms", ARGS, ONCE, "c2")
    with pytest.raises(StoreError, match="closed"):
        records.finish(found, "sent")


class Contended(MemoryStore):
    """Somebody else is always faster."""

    def put(self, key: str, value: str, **options: Any) -> Entry | None:
        return None


def test_a_page_that_never_stands_still_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shearpin.boundary.effects._ATTEMPTS", 5)
    with pytest.raises(StoreError, match="too many others"):
        EffectRecords(Contended()).begin("t", "sms", ARGS, ONCE, "c1")


def test_a_page_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shearpin.boundary.effects._MOST_EFFECTS", 5)
    records, _, _ = made()
    for number in range(5):
        records.finish(begun(records, {"n": number}), "sent")
    assert records.begin("t", "sms", {"n": 6}, ONCE, "c") == TooMany(5)


@pytest.mark.parametrize("same", [True, False])
def test_of_32_threads_no_more_go_ahead_than_may(same: bool) -> None:
    records, _, _ = made()
    policy = Effects(at_most=3)

    def send(number: int) -> bool:
        args = ARGS if same else {"n": number}
        found = records.begin("t", "sms", args, policy, f"c{number}")
        if isinstance(found, Begun):
            records.finish(found, number)
        return isinstance(found, Begun)

    with ThreadPoolExecutor(32) as pool:
        sent = list(pool.map(send, range(127)))
    assert sent.count(True) == (1 if same else 3)


RACE = """
import sys
from shearpin.boundary import Effects
from shearpin.boundary.effects import Begun, EffectRecords
from shearpin.stores import SqliteStore
path, me, same = sys.argv[1:]
records = EffectRecords(SqliteStore(path, busy_seconds=60))
print("ready", flush=True)
sys.stdin.readline()
sent = 0
for number in range(40):
    args = {"n": 0} if same == "same" else {"n": f"{me}-{number}"}
    found = records.begin("t", "sms", args, Effects(at_most=3), f"{me}-{number}")
    if isinstance(found, Begun):
        sent += 1
        records.finish(found, sent)
print(sent, flush=True)
"""


@pytest.mark.parametrize("same", ["same", "others"])
def test_of_several_processes_no_more_go_ahead_than_may(same: str, tmp_path: Path) -> None:
    children = [
        subprocess.Popen(
            [sys.executable, "-c", RACE, str(tmp_path / "effects.db"), str(number), same],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(4)
    ]
    for child in children:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
    sent = [int(child.communicate("go\n")[0]) for child in children]
    assert sum(sent) == (1 if same == "same" else 3)


KILLED = """
import os, signal, sys
from shearpin.boundary import Effects
from shearpin.boundary.effects import Begun, EffectRecords
from shearpin.stores import SqliteStore
path, effects, start, left = sys.argv[1], sys.argv[2], float(sys.argv[3]), int(sys.argv[4])

def step():
    global left
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)

class Store(SqliteStore):
    def put(self, *args, **options):
        step()
        found = super().put(*args, **options)
        step()
        return found

clock = lambda: start
records = EffectRecords(Store(path, now=clock), clock)
found = records.begin("t", "sms", {"to": "ann", "text": "hello"}, Effects(), "c1")
if isinstance(found, Begun):
    step()
    with open(effects, "a") as file:
        file.write("sent\\n")
    step()
    records.finish(found, "sent")
print(type(found).__name__)
"""


def test_a_kill_at_any_point_never_lets_it_happen_twice(tmp_path: Path) -> None:
    ends: dict[int, tuple[int, str]] = {}
    for left in range(1, 10):
        db, sent = tmp_path / f"{left}.db", tmp_path / f"{left}.txt"
        sent.touch()
        run = [sys.executable, "-c", KILLED, str(db), str(sent)]
        first = subprocess.run([*run, str(START), str(left)], capture_output=True, text=True)
        assert first.returncode == (0 if left == 9 else -9), first.stderr
        again = [
            subprocess.run(
                [*run, str(START + later), "99"], capture_output=True, text=True
            ).stdout.strip()
            for later in (10, 400)
        ]
        ends[left] = (len(sent.read_text().splitlines()), " ".join(again))
    # 1: before the record; 2: after it; 3, 4: before and after the effect; 5, 6: its output is
    # kept; 7, 8: it is marked as done.
    assert ends == {
        1: (1, "Begun Finished"),
        2: (0, "InFlight Unknown"),
        3: (0, "InFlight Unknown"),
        4: (1, "InFlight Unknown"),
        5: (1, "InFlight Unknown"),
        6: (1, "InFlight Unknown"),
        7: (1, "InFlight Unknown"),
        8: (1, "Finished Finished"),
        9: (1, "Finished Finished"),
    }


POLICY = Effects(
    expiry_seconds=50, lease_seconds=20, min_interval_seconds=2, at_most=3, key=("what",)
)
whats = st.sampled_from("abcd")


class EffectMachine(RuleBasedStateMachine):
    """Records beside a naive list of all that was begun, in several objects on one store."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = ManualClock(START)
        store = MemoryStore(self.clock)
        self.offices = [EffectRecords(store, self.clock) for _ in range(2)]
        self.known: list[dict[str, Any]] = []
        self.calls = 0
        self.open: list[tuple[Begun, dict[str, Any]]] = []
        self.happened: dict[str, list[float]] = {}

    def live(self) -> list[dict[str, Any]]:
        now = self.clock()
        for item in self.known:
            if item["state"] == "in_flight" and now >= item["at"] + POLICY.lease_seconds:
                item["state"], item["at"] = "unknown", item["at"] + POLICY.lease_seconds
        return [
            item
            for item in self.known
            if item["state"] != "none"
            and (item["state"] == "in_flight" or now < item["at"] + POLICY.expiry_seconds)
        ]

    def expected(self, what: str, call: str) -> object:
        now, live = self.clock(), self.live()
        for item in live:
            if item["what"] == what:
                if item["state"] == "in_flight":
                    return InFlight(item["since"])
                if item["state"] == "unknown":
                    return Unknown(item["since"])
                return Finished(item["out"], True, False, item["at"], item["call"] != call)
        if sum(now - item["marked"] <= POLICY.expiry_seconds for item in live) >= 3:
            return TooMany(3)
        latest = max((item["marked"] for item in live), default=-1e9)
        if now - latest < POLICY.min_interval_seconds:
            return TooSoon(POLICY.min_interval_seconds - (now - latest))
        return Begun

    @rule(what=whats, office=st.integers(0, 1), again=st.booleans())
    def begin(self, what: str, office: int, again: bool) -> None:
        self.calls += not again
        call = f"c{self.calls}"
        expected = self.expected(what, call)
        found = self.offices[office].begin("t", "tool", {"what": what}, POLICY, call)
        if expected is not Begun:
            assert found == expected
            return
        assert isinstance(found, Begun)
        now = self.clock()
        item = {"what": what, "since": now, "at": now, "marked": now, "call": call}
        item |= {"state": "in_flight", "out": None}
        self.known.append(item)
        self.open.append((found, item))

    def settled(self, number: int, state: str, out: object = None) -> Begun | None:
        if not self.open:
            return None
        ticket, item = self.open.pop(number % len(self.open))
        live = self.live()
        rival = next((o for o in live if o["what"] == item["what"] and o is not item), None)
        if rival is None:
            now = self.clock()
            item.update(state=state, at=now, marked=now, out=out)
        return ticket

    @rule(number=st.integers(0, 9), office=st.integers(0, 1))
    def finish(self, number: int, office: int) -> None:
        if (ticket := self.settled(number, "done", number)) is not None:
            self.offices[office].finish(ticket, number)

    @rule(number=st.integers(0, 9), certain=st.booleans())
    def fail(self, number: int, certain: bool) -> None:
        ticket = self.settled(number, "none" if certain else "unknown")
        if ticket is not None:
            self.offices[0].fail(ticket, known_not_to_have_happened=certain)

    @rule(what=whats, happened=st.booleans())
    def resolve(self, what: str, happened: bool) -> None:
        unknown = [i for i in self.live() if i["what"] == what and i["state"] == "unknown"]
        found = self.offices[1].resolve(
            "t", "tool", {"what": what}, POLICY, happened=happened, output="seen"
        )
        assert found == bool(unknown)
        for item in unknown:
            now = self.clock()
            item.update(state="done" if happened else "none", at=now, marked=now, out="seen")

    @rule(seconds=st.sampled_from([0.5, 1.5, 10.0, 25.0]))
    def wait(self, seconds: float) -> None:
        self.clock.advance(seconds)

    @invariant()
    def at_most_one_is_known_of_each(self) -> None:
        whats = [item["what"] for item in self.live()]
        assert len(whats) == len(set(whats))


EffectMachine.TestCase.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
TestEffectMachine = EffectMachine.TestCase


def test_pages_name_nobody() -> None:
    records, store, _ = made()
    records.finish(
        begun(records, {"to": "ann@example.org"}, thread="user-ann", policy=Effects()), "ok"
    )
    held = json.dumps([(key, store.get(key)) for key in store.keys("")])
    assert "ann" not in held

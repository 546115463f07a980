"""Weak findings together may nudge, never block or stop."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pytest

from shearpin.core.detectors import Probe
from shearpin.core.evidence import WEIGHTS, WINDOW, Notes, total_weight
from shearpin.core.seen import Seen, ToolSeen
from shearpin.core.session import Session
from shearpin.core.settings import Settings
from shearpin.events import ToolReturned
from shearpin.findings import Finding, Severity
from shearpin.verdicts import Nudge


def note(rule: str, step: int = 1, agent: str = "main") -> Finding:
    return Finding(
        "stagnation", rule, f"{rule}:{agent}", Severity.NONE, 4, 4, step, step, agent, hard=False
    )


@dataclass(frozen=True)
class Weak:
    """Takes a note at every call of the tool that it is named for."""

    family: ClassVar[str] = "weak"
    watches: ClassVar[tuple[type[Seen], ...]] = (ToolSeen,)

    def probe(self) -> Probe:
        return _Weak()


class _Weak:
    def observe(self, seen: Seen) -> Finding | None:
        assert isinstance(seen, ToolSeen)
        return note(seen.tool, seen.step, seen.agent)

    def forget(self, agent: str | None) -> None: ...

    def dump(self) -> object:
        return None

    def load(self, data: object) -> None: ...


def test_one_weak_finding_says_nothing_however_often() -> None:
    notes = Notes()
    assert all(notes.add(note("same_input"), step) is None for step in range(1, 40))


def test_two_that_look_at_different_things_nudge() -> None:
    notes = Notes()
    assert notes.add(note("same_input"), 3) is None
    joined = notes.add(note("swelling"), 5)
    assert joined is not None
    assert (joined.level, joined.hard, joined.onset_step) == (Severity.NUDGE, False, 3)
    assert joined.evidence["rules"] == "same_input, swelling"


def test_two_that_look_at_the_same_thing_are_one_witness() -> None:
    assert total_weight(["velocity", "slow_leak"]) == total_weight(["velocity"])
    assert total_weight(["untested_edits", "no_progress"]) == total_weight(["no_progress"])


def test_notes_grow_old_and_belong_to_one_agent() -> None:
    notes = Notes()
    notes.add(note("same_input"), 1)
    assert notes.add(note("swelling"), 1 + WINDOW) is None
    assert notes.add(note("same_input", agent="other"), 2 + WINDOW) is None


def test_a_new_turn_begins_without_notes() -> None:
    notes = Notes()
    notes.add(note("same_input"), 1)
    notes.clear()
    assert notes.add(note("swelling"), 2) is None


@pytest.mark.parametrize("rule", sorted(WEIGHTS))
def test_no_rule_reaches_a_nudge_alone(rule: str) -> None:
    assert 0 <= total_weight([rule]) < 1


def test_memory_is_bounded_and_comes_back_as_it_was() -> None:
    notes = Notes()
    for number in range(50):
        notes.add(note("same_input", agent=f"a{number}"), number)
    written = notes.dump()
    assert len(written) <= 6
    again = Notes()
    again.load(written)
    assert again.dump() == written


def test_a_session_nudges_once_and_goes_no_further() -> None:
    settings = Settings(detectors=(Weak(),))
    session = Session(settings)
    verdicts = []
    for number, tool in enumerate(["same_input", "swelling"] * 20):
        fact = ToolReturned(
            float(number), f"c{number}", tool, {"n": number}, f"{number} x", "success"
        )
        verdicts.append(session.after(fact))
        session = Session.load(settings, session.dump())
    assert [type(verdict) for verdict in verdicts].count(Nudge) == 1
    assert session.stopped is None
    assert session.worst is Severity.NUDGE

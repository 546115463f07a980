"""The ladder: each loop climbs by itself, nothing is said twice, refusals end with new work."""

from __future__ import annotations

import json

import pytest

from shearpin.core.ladder import Ladder
from shearpin.findings import Finding, Severity

NUDGE, BLOCK, STOP, NONE = Severity.NUDGE, Severity.BLOCK, Severity.STOP, Severity.NONE


def finding(key: str = "loop", agent: str = "main", *refuses: str) -> Finding:
    return Finding("repeat", "repeat", key, BLOCK, 5, 5, 1, 5, agent, "search", refuses=refuses)


def test_nothing_is_said_twice() -> None:
    ladder = Ladder()
    assert not ladder.told(finding())
    said = [ladder.climb(finding(), level) for level in (NUDGE, NUDGE, BLOCK, NUDGE, BLOCK, STOP)]
    assert said == [NUDGE, NONE, BLOCK, NONE, NONE, STOP]
    assert ladder.told(finding())


def test_each_loop_climbs_by_itself() -> None:
    ladder = Ladder()
    ladder.climb(finding("a"), BLOCK)
    assert ladder.climb(finding("b"), NUDGE) is NUDGE


def test_a_pardoned_loop_starts_at_the_first_rung() -> None:
    ladder = Ladder()
    ladder.climb(finding(), BLOCK)
    ladder.refuse(finding("loop", "main", "call"), 0)
    ladder.refuse(finding("other", "main", "second"), 0)
    ladder.pardon("loop")
    assert ladder.climb(finding(), NUDGE) is NUDGE
    assert ladder.refusal(["call"], "main", 0) is None
    assert ladder.refusal(["second"], "main", 0) is not None


def test_a_refusal_holds_for_its_agent_until_new_work() -> None:
    ladder = Ladder()
    assert not ladder.refusing
    ladder.refuse(finding("loop", "main", "call", "tool:bash pytest"), 3)
    assert ladder.refusing
    assert ladder.refusal(["x", "call"], "main", 3) is not None
    assert ladder.refusal(["x", "tool:bash pytest"], "main", 3) is not None
    assert ladder.refusal(["call"], "other", 3) is None
    assert ladder.refusal(["call"], "main", 4) is None
    assert ladder.refusal(["call"], "main", 3) is None, "new work ended it for good"


def test_a_new_result_ends_a_refusal() -> None:
    ladder = Ladder()
    ladder.refuse(finding("loop", "main", "call"), 0)
    ladder.allow("call")
    assert ladder.refusal(["call"], "main", 0) is None


def test_a_new_turn_forgets_all() -> None:
    ladder = Ladder()
    ladder.climb(finding(), STOP)
    ladder.refuse(finding("loop", "main", "call"), 0)
    ladder.clear()
    assert not ladder.refusing
    assert ladder.climb(finding(), NUDGE) is NUDGE


def test_it_stays_small_and_keeps_the_latest() -> None:
    ladder = Ladder()
    for n in range(1000):
        ladder.climb(finding(f"loop{n}"), NUDGE)
        ladder.refuse(finding(f"loop{n}", "main", f"call{n}"), 0)
    assert len(json.dumps(ladder.dump())) < 3000
    assert ladder.told(finding("loop999"))
    assert ladder.refusal(["call999"], "main", 0) is not None
    assert not ladder.told(finding("loop0"))


def test_dump_and_load_are_inverses() -> None:
    ladder = Ladder()
    ladder.climb(finding("a"), NUDGE)
    ladder.climb(finding("b"), BLOCK)
    ladder.refuse(finding("b", "main", "c1", "c2", "tool:x"), 7)
    data = json.loads(json.dumps(ladder.dump()))
    other = Ladder()
    other.load(data)
    assert other.dump() == ladder.dump()
    assert other.climb(finding("b"), BLOCK) is NONE
    held = other.refusal(["tool:x"], "main", 7)
    assert held is not None
    assert (held.key, held.count, held.subject) == ("b", 5, "search")


def test_no_word_of_a_command_is_written_down() -> None:
    ladder = Ladder()
    ladder.refuse(finding("loop", "main", "tool:bash hunter2"), 0)
    assert "hunter2" not in json.dumps(ladder.dump())


@pytest.mark.parametrize(
    "data",
    [
        None,
        [],
        [[], []],
        [[["loop"]], [], []],
        [[["loop", "1"]], [], []],
        [[[1, 1]], [], []],
        [[], [], [["call", 0, 0]]],
        [[], [None], [["call", 0, 0]]],
        [[], [["too", "short"]], []],
    ],
)
def test_damaged_dumps_are_refused(data: object) -> None:
    with pytest.raises((TypeError, ValueError, LookupError)):
        Ladder().load(data)


def test_a_note_is_taken_once_and_is_no_rung() -> None:
    ladder = Ladder()
    loop = finding()
    assert ladder.note(loop)
    assert not ladder.note(loop)
    assert not ladder.told(loop)
    assert ladder.climb(loop, Severity.NUDGE) is Severity.NUDGE
    assert ladder.told(loop)
    assert not ladder.note(loop)

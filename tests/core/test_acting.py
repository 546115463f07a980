"""Modes by place, words of the user's own, and the ways out of a loop before the run ends."""

from __future__ import annotations

import json

import pytest

from shearpin.core.session import Session
from shearpin.core.settings import Settings
from shearpin.errors import ConfigError
from shearpin.verdicts import Block, Halt, Nudge, Reroute, Rollback
from tests.core.driving import Call, Driver

LOOK = Call("look", {"place": "desk"}, "locked")


def loop(driver: Driver, times: int = 20, call: Call = LOOK) -> list[object]:
    """Repeat one call until the run is stopped; all verdicts."""
    given: list[object] = []
    for _ in range(times):
        given += driver.step(call)
        if driver.session.stopped is not None:
            break
    return given


def kinds(verdicts: list[object]) -> list[str]:
    return list(dict.fromkeys(type(verdict).__name__ for verdict in verdicts))


# -- modes -----------------------------------------------------------------------------------------


def test_a_tool_may_be_observed_only() -> None:
    driver = Driver(modes={"tool:look": "observe"})
    assert loop(driver) == []
    records = driver.session.drain()
    assert {record.verdict for record in records} == {"nudge", "halt"}  # type: ignore[union-attr]
    assert not any(record.acted for record in records)  # type: ignore[union-attr]
    assert driver.session.state == "closed"
    assert kinds(loop(driver, call=Call("read", {"at": 1}, "the same"))) == [
        "Nudge",
        "Block",
        "Halt",
    ]


def test_a_tool_may_be_warned_about_only() -> None:
    driver = Driver(modes={"tool:lo*": "warn"})
    given = loop(driver)
    assert kinds(given) == ["Nudge"]
    texts = [verdict.message for verdict in given]  # type: ignore[attr-defined]
    assert len(texts) == len(set(texts)) > 1
    assert driver.session.stopped is None


def test_a_node_may_be_observed_only() -> None:
    driver = Driver(modes={"node:planner": "observe"})
    for _ in range(12):
        assert driver.step(LOOK, node="planner", agent="main") == []


def test_one_tool_may_be_enforced_where_the_rest_is_observed() -> None:
    driver = Driver(mode="observe", modes={"tool:look": "enforce"})
    assert loop(driver, call=Call("read", {"at": 1}, "the same")) == []
    assert "Halt" in kinds(loop(driver))


def test_of_tool_and_node_the_milder_mode_counts() -> None:
    driver = Driver(modes={"tool:look": "enforce", "node:agent": "observe"})
    assert loop(driver) == []


@pytest.mark.parametrize(
    ("modes", "said"),
    [
        ({"look": "observe"}, "'tool:look'"),
        ({"tool:": "observe"}, "and a name"),
        ({"tool:look": "obey"}, "observe, warn, enforce"),
    ],
)
def test_a_wrong_place_or_mode_is_refused(modes: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        Settings(modes=modes)  # type: ignore[arg-type]


# -- words -----------------------------------------------------------------------------------------


def test_words_can_be_replaced_by_rule_and_by_cause() -> None:
    own = {
        "nudge.repeat": "{tool} again? {count} times.",
        "advice.answer_not_used": "Read what it says.",
        "firm": "I mean it.",
        "block": "No: {tool}.",
        "halt": "The end, because {what}",
    }
    given = loop(Driver(messages=own))
    nudges = [verdict.message for verdict in given if isinstance(verdict, Nudge)]
    assert nudges[0] == "look again? 3 times. Read what it says."
    assert nudges[1].endswith("I mean it.")
    assert next(v.message for v in given if isinstance(v, Block)).startswith("No: look.")
    assert next(v.message for v in given if isinstance(v, Halt)).startswith(
        "The end, because `look`"
    )


@pytest.mark.parametrize(
    ("messages", "said"),
    [
        ({"nudge.repaet": "x"}, "did you mean 'nudge.repeat'"),
        ({"nudge": "{what}"}, "it may name {tool}"),
        ({"halt": "{"}, "cannot be filled in"),
        ({"halt": "{0}"}, "cannot be filled in"),
    ],
)
def test_unsound_words_are_refused(messages: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError, match=said.replace("{", r"\{")):
        Settings(messages=messages)


def test_nothing_is_said_twice_in_the_same_words() -> None:
    """The rounds differ, the words would not: the second is firmer, and there is no third."""
    driver = Driver(messages={"nudge": "You repeat {tool}.", "advice": "Stop."})
    texts: list[str] = []
    for place in ("desk", "door", "shelf", "floor"):
        for _ in range(4):
            given = driver.step(Call("look", {"place": place}, f"{place} is locked"))
            texts += [verdict.message for verdict in given if isinstance(verdict, Nudge)]
        driver.step(Call("walk", {"to": place}, f"went to {place}"))
        driver.step(Call("walk", {"back": place}, f"came from {place}"))
    assert len(texts) == len(set(texts)) == 2


# -- ways out --------------------------------------------------------------------------------------


def test_a_loop_is_rolled_back_once_and_then_ends_the_run() -> None:
    driver = Driver(on_loop="rollback")
    given = loop(driver, 40)
    backs = [verdict for verdict in given if isinstance(verdict, Rollback)]
    assert len(backs) == 1
    assert backs[0].to_step == 0
    assert "undone" in backs[0].message
    assert isinstance(driver.session.stopped, Halt)


def test_a_loop_goes_on_at_another_node_once() -> None:
    driver = Driver(on_loop="node:planner")
    given = loop(driver, 40)
    assert [v.target for v in given if isinstance(v, Reroute)] == ["node:planner"]
    assert driver.session.stopped is not None


def test_a_tool_is_taken_away_for_some_rounds() -> None:
    driver = Driver(on_loop="without_tool")
    given: list[object] = []
    while not any(isinstance(verdict, Reroute) for verdict in given):
        given += driver.step(LOOK)
    (refused,) = driver.step(Call("look", {"place": "door"}, "open"))
    assert isinstance(refused, Block)
    assert "taken away" in refused.message
    for number in range(8):
        assert driver.step(Call("walk", {"to": number}, f"went to {number}")) == []
    assert driver.session.state == "closed"
    assert driver.step(Call("look", {"place": "door"}, "open")) == []


def test_what_was_tried_survives_a_restart() -> None:
    driver = Driver(on_loop="without_tool")
    while not any(isinstance(verdict, Reroute) for verdict in driver.step(LOOK)):
        pass
    data = json.loads(json.dumps(driver.session.dump()))
    driver.session = Session.load(driver.session.settings, data)
    assert driver.session.dump() == data
    assert isinstance(driver.step(Call("look", {"place": "door"}, "open"))[0], Block)
    assert not any(isinstance(verdict, Reroute) for verdict in loop(driver, 40))
    assert driver.session.stopped is not None


def test_without_a_tool_to_take_away_the_run_ends() -> None:
    driver = Driver(on_loop="without_tool")
    for _ in range(20):
        driver.step(text="I will look into it.")
    assert driver.session.stopped is not None


def test_a_new_turn_has_its_way_out_again() -> None:
    driver = Driver(on_loop="rollback")
    loop(driver, 40)
    driver.turn()
    assert any(isinstance(verdict, Rollback) for verdict in loop(driver, 40))


def test_an_unknown_way_out_is_refused() -> None:
    with pytest.raises(ConfigError, match="on_loop"):
        Settings(on_loop="retry")

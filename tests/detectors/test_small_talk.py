"""small_talk: good-byes in ever new words are hinted at; work, bargaining, long texts are not."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from langgraph.graph import END, START, MessagesState, StateGraph

import shearpin
from shearpin import ConfigError
from shearpin.core.detectors import SmallTalk
from shearpin.core.session import Session
from shearpin.findings import Severity
from shearpin.testing import StrictProvider
from tests.core.driving import Call, Driver

BYES = [
    "Thank you for the good talk, and have a nice day!",
    "Thank you too, have a nice day!",
    "Thanks, to good work together!",
    "Thanks, to good work together and see you soon!",
    "See you soon and thank you once more!",
    "Thank you once more, see you soon!",
    "You are welcome, all the best!",
    "All the best to you too, thanks!",
    "Thanks, all the best to you too and see you soon!",
    "Thanks, see you soon and have a nice day!",
    "Have a nice day and thanks!",
    "Thanks, and to you a nice day!",
    "Thank you very much, see you soon!",
    "See you soon, thank you very much!",
    "Thanks and all the best!",
    "All the best and thanks!",
]
BARGAIN = [
    f"I offer {90 - 3 * n} for it." if n % 2 else f"I want {99 - 2 * n} for it." for n in range(16)
]
AGENTS = ("sales", "buyer")


def talk(driver: Driver, texts: Sequence[str], agents: Sequence[str] = AGENTS) -> list[bool]:
    return [
        bool(driver.step(text=text, agent=agents[place % len(agents)]))
        for place, text in enumerate(texts)
    ]


def test_goodbyes_in_ever_new_words_are_hinted_at() -> None:
    """K54: two agents take leave of each other for ever."""
    driver = Driver(SmallTalk())
    said = talk(driver, BYES)
    assert said.index(True) + 1 == 12
    (record,) = [r for r in driver.session.drain() if getattr(r, "verdict", "") == "nudge"]
    assert record.rule == "small_talk"  # type: ignore[union-attr]
    assert "Finish here" in record.message  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("texts", "agents"),
    [
        (BARGAIN, AGENTS),
        (BYES, ("sales",)),
        ([f"{text} {'x' * 100}" for text in BYES], AGENTS),
        ([f"Point {n}: word{n} differs from thing{n}." for n in range(16)], AGENTS),
        (["", " "] * 8, AGENTS),
    ],
)
def test_other_talk_is_left_alone(texts: list[str], agents: tuple[str, ...]) -> None:
    assert not any(talk(Driver(SmallTalk()), texts, agents))


def test_a_call_in_between_starts_afresh() -> None:
    driver = Driver(SmallTalk())
    for place, text in enumerate(BYES * 2):
        if place % 5 == 4:
            driver.step(Call("send", {"n": place}, f"sent {place}"), agent="sales")
        assert driver.step(text=text, agent=AGENTS[place % 2]) == []


def test_it_goes_on_after_a_dump_in_the_middle() -> None:
    whole, half = Driver(SmallTalk()), Driver(SmallTalk())
    expected = talk(whole, BYES)
    before = talk(half, BYES[:8])
    half.session = Session.load(half.session.settings, json.loads(json.dumps(half.session.dump())))
    assert before + talk(half, BYES[8:]) == expected
    assert True in expected


def test_it_never_does_more_than_hint() -> None:
    driver = Driver(SmallTalk(nudge=2))
    given = [v.severity for text in BYES * 6 for v in driver.step(text=text, agent=text[:1])]
    assert set(given) == {Severity.NUDGE} and driver.session.stopped is None


@pytest.mark.parametrize(
    "wrong", [{"nudge": 1}, {"most_characters": 0}, {"known": 0}, {"known": 2}]
)
def test_wrong_values_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="SmallTalk"):
        SmallTalk(**wrong)


def test_it_is_reached_through_a_graph() -> None:
    turns = iter(range(100))
    models = [StrictProvider(BYES[place::2]) for place in range(2)]
    builder: StateGraph[Any] = StateGraph(MessagesState)
    for name, model in zip(AGENTS, models, strict=True):
        builder.add_node(name, lambda state, m=model: {"messages": [m.invoke([("user", "go on")])]})
    builder.add_edge(START, "sales")
    builder.add_edge("sales", "buyer")
    builder.add_conditional_edges(
        "buyer", lambda state: END if next(turns) >= 7 else "sales", ["sales", END]
    )
    app = shearpin.guard(builder.compile())
    app.invoke({"messages": [("user", "take leave")]})
    assert "small_talk" in {verdict.rule for verdict in app.report().verdicts}

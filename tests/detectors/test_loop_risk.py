"""The loop probability in live runs: reached, quiet, bounded, explained, never more than a hint."""

from __future__ import annotations

import json
from typing import Any

import pytest
from langchain_core.tools import tool

import shearpin
from shearpin import ConfigError, Guard
from shearpin.analysis.risk import early_rule, shipped_model
from shearpin.core.detectors import DEFAULT_DETECTORS, LoopRisk
from shearpin.core.detectors.loop_risk import FEATURES
from shearpin.core.journal import NoteRecord
from shearpin.core.session import Session
from shearpin.core.settings import Settings
from shearpin.findings import Severity
from shearpin.testing import StrictProvider, asks_for
from tests.adapters.builds import react_builder
from tests.core.driving import Call, Driver


def visits(driver: Driver, rounds: int, places: int = 2, *, start: int = 0) -> list[list[Severity]]:
    """Go back and forth between a few places, and fail each time."""
    said: list[list[Severity]] = []
    for n in range(start, start + rounds):
        door = n % places
        call = Call("open", {"door": door}, f"door {door} is locked, error", "error")
        said.append([v.severity for v in driver.step(call, text="I look at the next door now.")])
    return said


def test_it_speaks_and_says_of_what_it_is_made() -> None:
    driver = Driver(early_rule(0.9))
    said = visits(driver, 8)
    assert [Severity.NUDGE] in said
    records = driver.session.drain()
    nudge = next(one for one in records if getattr(one, "verdict", "") == "nudge")
    evidence = nudge.evidence  # type: ignore[union-attr]
    assert evidence["probability"] >= 0.9  # type: ignore[operator]
    assert set(str(evidence["signs"]).split(", ")) <= set(FEATURES)
    assert evidence["limit"] == 90


def test_it_never_does_more_than_nudge() -> None:
    driver = Driver(early_rule(0.5))
    said = [severity for step in visits(driver, 40) for severity in step]
    assert said and set(said) == {Severity.NUDGE}
    assert driver.session.stopped is None


def test_at_one_it_only_notes() -> None:
    driver = Driver(early_rule(1.0))
    assert visits(driver, 20) == [[]] * 20
    (note,) = [one for one in driver.session.drain() if isinstance(one, NoteRecord)]
    assert note.rule == "loop_risk" and note.evidence["probability"] >= 0.5  # type: ignore[operator]


def test_work_is_left_alone() -> None:
    driver = Driver(early_rule(0.5))
    for n in range(30):
        assert driver.step(Call("edit_file", {"path": f"{n}.py"}, f"{n} lines changed")) == []
        assert driver.step(Call("run_tests", {}, f"{n} passed")) == []
    assert driver.session.drain() == []


def test_it_goes_on_after_a_dump_in_the_middle() -> None:
    whole, half = Driver(early_rule(0.9)), Driver(early_rule(0.9))
    expected = visits(whole, 12)
    before = visits(half, 3)
    half.session = Session.load(half.session.settings, json.loads(json.dumps(half.session.dump())))
    assert before + visits(half, 9, start=3) == expected
    assert [Severity.NUDGE] in expected


@pytest.mark.parametrize(
    "wrong",
    [
        {"nudge_at": 0.2},
        {"note_at": 0.0},
        {"nudge_at": 1.5},
        {"weights": {"same_call": 1.0}},
        {"weights": dict.fromkeys(FEATURES, -1.0)},
    ],
)
def test_wrong_values_are_refused(wrong: dict[str, Any]) -> None:
    model = shipped_model()
    with pytest.raises(ConfigError, match="LoopRisk"):
        LoopRisk(**{"intercept": model.intercept, "weights": model.weights, **wrong})


@tool
def open_door(door: int) -> str:
    """Open a door."""
    return f"door {door} is locked, error"


def test_a_guard_with_early_nudges_reports_the_risk() -> None:
    def script(messages: Any, call: int) -> Any:
        if call > 9:
            return "They are all locked."
        return asks_for(("open_door", {"door": call % 2}), text="I look at the next door now.")

    builder = react_builder(StrictProvider(script), [open_door])
    app = shearpin.guard(builder.compile(), early_nudges=0.9)
    app.invoke({"messages": [("user", "leave")]})
    assert app.report().risk is not None and app.report().risk >= 0.5
    assert app.report().to_json()["risk"] == app.report().risk
    plain = shearpin.guard(builder.compile())
    plain.invoke({"messages": [("user", "leave")]})
    assert plain.report().risk is None


def test_it_is_off_by_default() -> None:
    assert "loop_risk" not in {rule.family for rule in DEFAULT_DETECTORS}
    assert Guard().settings == Settings()
    assert Guard(early_nudges=True).settings.detectors[-1] == early_rule()

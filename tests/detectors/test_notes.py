"""Rules that are off by default: notes that stay silent unless asked, and the author's measure."""

from __future__ import annotations

import json
from typing import Any

import pytest

from shearpin.core.detectors import (
    DEFAULT_DETECTORS,
    NoProgress,
    SameInputs,
    SlowLeaks,
    UntestedEdits,
)
from shearpin.core.session import Session
from shearpin.core.settings import Settings
from shearpin.errors import ConfigError
from shearpin.events import Usage
from shearpin.findings import Severity
from shearpin.verdicts import Halt, Verdict
from tests.core.driving import Call, Driver, finding_of

LOUD = Severity.NUDGE


def edits(driver: Driver, runs: bool) -> list[Verdict]:
    out = driver.step(Call("run_tests", {"n": 0}, "1 failed"))
    for n in range(9):
        out += driver.step(Call("edit_file", {"new": f"x = {n}"}, "edited"))
        if runs and n % 4 == 3:
            out += driver.step(Call("run_tests", {"n": n}, "1 failed"))
    return out


def prompts(driver: Driver, grows: bool) -> list[Verdict]:
    out: list[Verdict] = []
    for n in range(6):
        usage = Usage(2600 + (90 * n if grows else 0), 40)
        out += driver.step(Call("look", {"n": n}, f"thing {n}"), usage=usage)
    return out


def leak(driver: Driver, dearer: bool) -> list[Verdict]:
    out: list[Verdict] = []
    for n in range(200):
        usage = Usage(2000 + (60 * n if dearer else 0), 40)
        out += driver.step(Call("look", {"n": n}, f"thing {n}"), usage=usage)
    return out


def failures(driver: Driver, fewer: bool) -> list[Verdict]:
    out: list[Verdict] = []
    for n in range(9):
        count = 90 - n if fewer else 90
        out += driver.step(Call("run_tests", {"n": n}, f"{count} failed, run {n}"))
    return out


def measure(before: str, after: str) -> float:
    first, second = (int(text.split()[0]) for text in (before, after))
    return max(0.0, (first - second) / first)


RULES: list[tuple[str, Any, Any]] = [
    ("untested_edits", UntestedEdits, edits),
    ("same_input", SameInputs, prompts),
    ("slow_leak", SlowLeaks, leak),
    ("no_progress", lambda **more: NoProgress(measure, tools=("run_tests",), **more), failures),
]
NAMES = [name for name, _, _ in RULES]


@pytest.mark.parametrize(("name", "make", "script"), RULES, ids=NAMES)
def test_it_speaks_when_asked_to_and_only_where_it_should(
    name: str, make: Any, script: Any
) -> None:
    right, wrong = (
        (False, True)
        if name in ("untested_edits", "same_input", "no_progress")
        else (
            True,
            False,
        )
    )
    spoken = script(Driver(make(ceiling=LOUD)), right)
    assert {finding_of(verdict).rule for verdict in spoken} == {name}
    assert not script(Driver(make(ceiling=LOUD)), wrong)


@pytest.mark.parametrize(("name", "make", "script"), RULES[:3], ids=NAMES[:3])
def test_a_note_says_nothing_by_itself(name: str, make: Any, script: Any) -> None:
    for how in (True, False):
        driver = Driver(make())
        assert not script(driver, how)
        assert not driver.faults
    assert name not in {detector.family for detector in DEFAULT_DETECTORS}


@pytest.mark.parametrize(("name", "make", "script"), RULES, ids=NAMES)
def test_state_is_exact_and_small(name: str, make: Any, script: Any) -> None:
    rule = make(ceiling=LOUD)
    driver = Driver(rule)
    script(driver, True)
    data = json.loads(json.dumps(driver.session.dump()))
    assert len(json.dumps(driver.session._probes[name].dump())) < 250
    assert Session.load(Settings(detectors=(rule,)), data).dump() == data


def test_a_measure_can_end_the_run_and_a_wrong_one_is_contained() -> None:
    driver = Driver(NoProgress(lambda before, after: 0.0, nudge=2, stop=4))
    given = [v for n in range(8) for v in driver.step(Call("a", {"n": n}, f"{n}"))]
    assert isinstance(given[-1], Halt)
    for wrong in (lambda before, after: 7.0, lambda before, after: 1 / 0):
        broken = Driver(NoProgress(wrong))
        assert not [v for n in range(4) for v in broken.step(Call("a", {"n": n}, f"{n}"))]
        assert len(broken.faults) == 3


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: UntestedEdits(after=1),
        lambda: SameInputs(after=1),
        lambda: SlowLeaks(block=2),
        lambda: SlowLeaks(rising=1),
        lambda: SlowLeaks(growth=1),
        lambda: NoProgress(measure, nudge=1),
        lambda: NoProgress(measure, floor=0),
        lambda: NoProgress(measure, tools="run_tests"),  # type: ignore[arg-type]
        lambda: NoProgress(7),  # type: ignore[arg-type]
    ],
)
def test_numbers_out_of_range_are_refused_when_built(wrong: Any) -> None:
    with pytest.raises(ConfigError):
        wrong()

"""What became of each intervention, and how often they help."""

from __future__ import annotations

from pathlib import Path

import pytest

from shearpin import ConfigError
from shearpin.analysis.efficacy import Efficacy
from shearpin.core.journal import TransitionRecord, VerdictRecord
from shearpin.core.session import Session
from shearpin.core.settings import Settings
from shearpin.events import ModelReturned, ToolRequest, ToolReturned
from shearpin.report.interventions import WITHIN, interventions_of
from shearpin.report.model import Report, RunInfo, build_report


def verdict(step: int, severity: str, key: str = "k", acted: bool = True) -> VerdictRecord:
    return VerdictRecord(
        step, float(step), severity, severity, "repeat", "repeat", key, "main",
        {"tool": "search", "cause": "answer_not_used"}, "", acted,
    )  # fmt: skip


def pivot(step: int) -> TransitionRecord:
    return TransitionRecord(step, float(step), "reflecting", "closed", "pivoted")


def after(told: list[VerdictRecord], pivots: list[int], outcome: str = "completed") -> list[str]:
    found = interventions_of(told, [pivot(step) for step in pivots], outcome)
    return [one.after for one in found]


def test_new_calls_with_new_results_soon_afterwards_are_help() -> None:
    assert after([verdict(3, "nudge")], [5]) == ["pivoted"]
    assert after([verdict(3, "nudge")], [3 + WITHIN]) == ["pivoted"]
    assert after([verdict(3, "nudge")], [4 + WITHIN]) == ["finished"]


def test_the_same_loop_again_is_no_help_even_if_a_pivot_follows() -> None:
    assert after([verdict(3, "nudge"), verdict(5, "block")], [7]) == ["went_on", "pivoted"]


def test_another_loop_does_not_spoil_it() -> None:
    assert after([verdict(3, "nudge"), verdict(4, "nudge", "other")], [6]) == ["pivoted"] * 2


def test_a_stop_and_an_open_end_are_told_apart() -> None:
    assert after([verdict(3, "nudge"), verdict(8, "stop", "other")], [], "stopped") == ["stopped"]
    assert after([verdict(3, "nudge")], [], "interrupted") == ["unknown"]


def run(turns: list[str]) -> Report:
    session = Session(Settings())
    for number, query in enumerate(turns):
        args = {"q": query}
        asked = ToolRequest(f"c{number}", "search", args)
        session.after(ModelReturned(float(number), f"m{number}", "main", "agent", "", (asked,)))
        result = f"about {query}"
        fact = ToolReturned(float(number), f"c{number}", "search", args, result, "success")
        session.after(fact)
    return build_report(session, session.drain(), run=RunInfo())


def test_a_real_session_tells_what_followed_its_nudge() -> None:
    (helped,) = run(["x", "x", "x", "one", "two", "three"]).interventions
    assert (helped.after, helped.rule, helped.tool) == ("pivoted", "repeat", "search")
    assert helped.rounds == 2
    assert not any(one.helped for one in run(["x"] * 9).interventions)
    assert run(["x", "x", "x", "one", "two"]).to_json()["interventions"]


def test_a_tally_counts_keeps_and_comes_back(tmp_path: Path) -> None:
    tally = Efficacy()
    for _ in range(3):
        tally.add(run(["x", "x", "x", "one", "two", "three"]).interventions)
    tally.add(run(["x"] * 9).interventions)
    first = tally.lines()[0]
    assert (first.verdict, first.given, first.helped.value) == ("nudge", 5, 0.6)
    path = tmp_path / "tally.json"
    tally.save(path)
    assert Efficacy.load(path) == tally


@pytest.mark.parametrize("text", ["", "[]", '{"version": 9}', '{"version": 1, "rows": [[1]]}'])
def test_a_damaged_tally_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "tally.json"
    path.write_text(text)
    with pytest.raises(ConfigError, match="tally"):
        Efficacy.load(path)

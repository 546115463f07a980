"""What became of each intervention, and how often they help."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from shearpin import ConfigError
from shearpin.analysis.efficacy import Efficacy
from shearpin.core.journal import TransitionRecord, VerdictRecord
from shearpin.core.session import Session
from shearpin.core.settings import Settings
from shearpin.events import ModelReturned, RunOutcome, ToolRequest, ToolReturned
from shearpin.report.interventions import WITHIN, Ending, interventions_of
from shearpin.report.model import Report, RunInfo, build_report


def verdict(step: int, severity: str, key: str = "k", acted: bool = True) -> VerdictRecord:
    return VerdictRecord(
        step, float(step), severity, severity, "repeat", "repeat", key, "main",
        {"tool": "search", "cause": "answer_not_used"}, "", acted, "gpt", 100 * step,
    )  # fmt: skip


def pivot(step: int) -> TransitionRecord:
    return TransitionRecord(step, float(step), "reflecting", "closed", "pivoted", 100 * step)


def after(
    told: list[VerdictRecord], pivots: list[int], outcome: RunOutcome = "completed"
) -> list[str]:
    found = interventions_of(told, [pivot(step) for step in pivots], Ending(outcome))
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


def test_what_it_cost_until_it_was_clear_whether_it_had_helped() -> None:
    ending = Ending("completed", 2_000, Decimal("0.000002"))
    told = [verdict(3, "nudge"), verdict(9, "nudge", "other")]
    first, second = interventions_of(told, [pivot(5)], ending)
    assert (first.tokens, first.usd, first.model) == (200, Decimal("0.000400"), "gpt")
    assert (second.tokens, second.usd, second.ended_well) == (1_100, Decimal("0.002200"), True)
    assert interventions_of(told, [], Ending("failed"))[0].ended_well is False
    assert interventions_of(told, [], Ending("failed"))[0].usd is None


def test_other_ways_out_are_interventions_as_well() -> None:
    back = verdict(4, "block")._replace(verdict="rollback", evidence={"choice": "rollback"})
    (found,) = interventions_of([back], [pivot(6)], Ending("completed"))
    assert (found.verdict, found.template, found.helped) == ("rollback", "rollback", True)


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


def test_a_tally_tells_models_and_wordings_apart_and_says_what_they_cost() -> None:
    tally = Efficacy()
    ending = Ending("completed", 1_000, Decimal("0.001"))
    for model, template, pivots in (("a", "plain", [5]), ("a", "question", []), ("b", "plain", [])):
        record = verdict(3, "nudge")._replace(model=model, evidence={"choice": template})
        tally.add(interventions_of([record], [pivot(step) for step in pivots], ending))
    by_model = {line.model: line for line in tally.lines(by=["model"])}
    assert (by_model["a"].given, by_model["a"].helped.value) == (2, 0.5)
    assert (by_model["a"].tokens, by_model["a"].usd) == (450, Decimal("0.45"))
    assert by_model["a"].rule == "" and by_model["a"].ended_well == 1
    plain, question = tally.lines(by=["template"])
    assert (plain.template, plain.given, question.helped.value) == ("plain", 2, 0.0)
    with pytest.raises(ConfigError, match="colour"):
        tally.lines(by=["colour"])


@pytest.mark.parametrize("text", ["", "[]", '{"version": 9}', '{"version": 2, "rows": [[1]]}'])
def test_a_damaged_tally_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "tally.json"
    path.write_text(text)
    with pytest.raises(ConfigError, match="tally"):
        Efficacy.load(path)

"""Interventions chosen by what they did before: seeded, bounded, explained, and reached."""

from __future__ import annotations

import asyncio
import copy
import json
import pickle
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver

import shearpin
from shearpin import ConfigError, ToolFacts
from shearpin.analysis.choices import Choices
from shearpin.core.journal import TransitionRecord, VerdictRecord
from shearpin.core.phrasing import WORDINGS, added_words
from shearpin.core.session import Spend
from shearpin.findings import Finding, Severity
from shearpin.report.interventions import After
from shearpin.report.model import Report, RunInfo
from shearpin.stores import MemoryStore
from shearpin.testing import StrictProvider, asks_for
from shearpin.verdicts import Nudge, Reroute
from tests.adapters.builds import react_builder
from tests.adapters.interventions import HEEDS, stubborn
from tests.adapters.test_ways import taking_notes
from tests.core.driving import Call, Driver

LOOP = Finding("repeat", "repeat", "k", Severity.NUDGE, 3, 3, 1, 3, refuses=("k",))
OPTIONS = (*WORDINGS, "block")


def outcome(choice: str, after: After, verdict: str = "nudge", *, acted: bool = True) -> Report:
    """A report of a run with one intervention, and what came of it."""
    told = VerdictRecord(
        3, 3.0, verdict, "nudge", "repeat", "repeat", "k", "main", {"choice": choice}, "", acted
    )
    again = told._replace(step=4, evidence={}, verdict="halt", severity="stop")
    pivot = TransitionRecord(5, 5.0, "reflecting", "closed", "pivoted")
    info = RunInfo(outcome="completed" if after in ("pivoted", "finished") else "interrupted")
    verdicts = (told, again) if after in ("went_on", "stopped") else (told,)
    transitions = (pivot,) if after == "pivoted" else ()
    return Report(info, "closed", Severity.NUDGE, 6, Spend(), verdicts, transitions)


def dealt(choices: Choices, times: int = 400, options: tuple[str, ...] = OPTIONS) -> Counter[str]:
    picked = [choices.choose("nudge", LOOP, options, str(n)).name for n in range(times)]
    return Counter(picked)


def test_the_same_seed_outcomes_and_place_give_the_same_choice() -> None:
    first, second = Choices(seed=3), Choices(seed=3)
    names = [first.choose("nudge", LOOP, OPTIONS, str(n)).name for n in range(60)]
    assert names == [second.choose("nudge", LOOP, OPTIONS, str(n)).name for n in range(60)]
    other = Choices(seed=4)
    assert names != [other.choose("nudge", LOOP, OPTIONS, str(n)).name for n in range(60)]
    first.learn(outcome("question", "pivoted"))
    second.learn(outcome("question", "pivoted"))
    assert dealt(first) == dealt(second)


def test_the_ladder_is_what_mostly_happens_until_another_step_has_done_better() -> None:
    choices = Choices()
    before = dealt(choices)
    assert before.most_common(1)[0][0] == "plain" and before["plain"] > 200
    assert set(before) == set(OPTIONS)  # the others are tried
    for _ in range(40):
        choices.learn(outcome("plain", "went_on"))
        choices.learn(outcome("question", "pivoted"))
    after = dealt(choices)
    assert after.most_common(1)[0][0] == "question" and after["question"] > 300
    assert dealt(Choices(prior=1000))["plain"] > 390


def test_what_is_chosen_says_why() -> None:
    choices = Choices()
    for after in ("pivoted", "finished", "went_on"):
        choices.learn(outcome("answer", after))
    found = next(
        one
        for one in (choices.choose("nudge", LOOP, OPTIONS, str(n)) for n in range(99))
        if one.name == "answer"
    )
    assert found.why == "helped in 2 of 3 cases; the usual step (plain) in 0 of 0"
    arm = choices.arms()[0]
    assert (arm.rule, arm.name, arm.given, arm.helped) == ("nudge:repeat", "answer", 3, 0.6)


@pytest.mark.parametrize(
    "report",
    [
        outcome("question", "unknown"),
        outcome("question", "pivoted", acted=False),
        outcome("question", "pivoted", verdict="halt"),
        Report(RunInfo(), "closed", Severity.NONE, 1, Spend()),
    ],
)
def test_what_teaches_nothing_is_not_counted(report: Report) -> None:
    choices = Choices()
    choices.learn(report)
    assert choices.arms() == []


@given(st.lists(st.tuples(st.sampled_from(WORDINGS), st.sampled_from(["pivoted", "went_on"]))))
def test_counts_are_bounded(outcomes: list[tuple[str, After]]) -> None:
    choices = Choices(memory=10)
    for name, after in outcomes:
        choices.learn(outcome(name, after))
    assert sum(arm.given for arm in choices.arms()) <= 10
    assert all(0 < arm.helped < 1 for arm in choices.arms())


@pytest.mark.parametrize("kind", ["file", "store", "sqlite"])
def test_outcomes_are_kept_and_shared(kind: str, tmp_path: Path) -> None:
    place: Any = tmp_path / "choices.json"
    if kind != "file":
        place = MemoryStore() if kind == "store" else f"sqlite:///{tmp_path / 'choices.db'}"
    first, second = Choices(place), Choices(place)
    first.learn(outcome("question", "pivoted"))
    second.learn(outcome("question", "went_on"))
    third = Choices(place)
    assert [(arm.name, arm.given) for arm in third.arms()] == [("question", 2)]
    third.reset("cycle")
    assert Choices(place).arms()
    third.reset("repeat")
    assert Choices(place).arms() == []


@pytest.mark.parametrize("text", ["{", "[]", '{"version": 9}', '{"version": 1, "rules": {"a": 1}}'])
def test_a_damaged_file_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "choices.json"
    path.write_text(text)
    with pytest.raises(ConfigError):
        Choices(path)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"wordings": ()}, "wordings"),
        ({"wordings": ("rude",)}, "rude"),
        ({"ways": ("node:a",)}, "ways"),
        ({"words": {"block": "x"}}, "block"),
        ({"prior": -1}, "prior"),
        ({"memory": 3}, "memory"),
    ],
)
def test_wrong_values_are_refused(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        Choices(**wrong)


def test_a_guard_that_learns_can_be_copied_and_sent(tmp_path: Path) -> None:
    choices = Choices(tmp_path / "choices.json", seed=2)
    choices.learn(outcome("question", "pivoted"))
    recipe = shearpin.Guard(mode="observe", choices=choices)
    for twin in (copy.deepcopy(recipe), pickle.loads(pickle.dumps(recipe))):
        assert twin.choices.arms() == choices.arms()
        twin.choices.learn(outcome("question", "went_on"))
        assert len(twin.learners) == 2
    assert Choices(tmp_path / "choices.json").arms()[0].given == 3


# -- in a session ----------------------------------------------------------------------------------

LOOK = Call("look", {"place": "desk"}, "locked")


def nudges(driver: Driver, times: int = 4) -> list[Nudge]:
    given = [verdict for _ in range(times) for verdict in driver.step(LOOK)]
    return [verdict for verdict in given if isinstance(verdict, Nudge)]


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("wording", WORDINGS[1:])
def test_a_wording_is_added_to_the_nudge(wording: str, language: Any) -> None:
    driver = Driver(choices=Choices(wordings=(wording,), block=False), language=language)
    (told,) = nudges(driver, 3)
    assert told.message.endswith(added_words(wording, language))


def test_the_choice_stands_in_the_journal_and_in_the_dump_of_nothing_else() -> None:
    choices = Choices(wordings=("plain", "question"), block=False, prior=0)
    for _ in range(40):
        choices.learn(outcome("question", "pivoted"))
    driver = Driver(choices=choices)
    nudges(driver, 3)
    (record,) = [one for one in driver.session.drain() if isinstance(one, VerdictRecord)]
    assert record.evidence["choice"] == "question"
    assert str(record.evidence["choice_why"]).startswith("helped in 40 of 40 cases")


def test_words_of_ones_own_are_a_wording() -> None:
    choices = Choices(wordings=("plain",), words={"kind": "Take a breath."}, block=False, prior=0)
    for _ in range(30):
        choices.learn(outcome("kind", "pivoted"))
    (told,) = nudges(Driver(choices=choices), 3)
    assert told.message.endswith(" Take a breath.")


def test_a_refusal_may_be_chosen_before_the_ladder_comes_to_it() -> None:
    choices = Choices(wordings=("plain",), prior=0)
    for _ in range(40):
        choices.learn(outcome("block", "pivoted"))
        choices.learn(outcome("plain", "went_on"))
    driver = Driver(choices=choices)
    given = [type(verdict).__name__ for _ in range(4) for verdict in driver.step(LOOK)]
    assert given[:2] == ["Nudge", "Block"]
    usual = Driver()
    given = [type(verdict).__name__ for _ in range(4) for verdict in usual.step(LOOK)]
    assert "Block" not in given


def test_what_must_not_be_refused_is_not_refused_by_choice() -> None:
    choices = Choices(wordings=("plain",), prior=0)
    for _ in range(40):
        choices.learn(outcome("block", "pivoted"))
    driver = Driver(choices=choices, tools={"look": ToolFacts(polling=True)})
    given = [verdict for _ in range(8) for verdict in driver.step(LOOK)]
    assert {type(verdict).__name__ for verdict in given} == {"Nudge"}


@pytest.mark.parametrize("helps", [True, False])
def test_a_way_out_is_taken_while_it_helps(helps: bool) -> None:
    choices = Choices(wordings=("plain",), block=False, ways=("without_tool",))
    for _ in range(60):
        after: After = "pivoted" if helps else "stopped"
        choices.learn(outcome("without_tool", after, verdict="reroute"))
    driver = Driver(choices=choices)
    given: list[object] = []
    for _ in range(12):
        given += driver.step(LOOK)
    assert any(isinstance(verdict, Reroute) for verdict in given) is helps
    assert driver.session.stopped is not None


def test_a_faulty_chooser_is_contained() -> None:
    class Faulty(Choices):
        def choose(self, *args: object) -> Any:
            raise RuntimeError("no")

    driver = Driver(choices=Faulty())
    (told,) = nudges(driver, 3)
    assert "choice" not in told.finding.evidence
    assert any("choices" in str(record) for record in driver.session.drain())


# -- in a graph ------------------------------------------------------------------------------------


@tool
def look(place: str) -> str:
    """Look somewhere."""
    return "locked"


def test_a_guard_chooses_records_and_learns(tmp_path: Path) -> None:
    path = tmp_path / "choices.json"
    choices = Choices(path, seed=1)

    def reply(call: int, asked: object) -> Any:
        return asks_for(("look", {"place": "desk"}))

    app = shearpin.guard(react_builder(StrictProvider(reply), [look]).compile(), choices=choices)
    app.invoke({"messages": [("user", "open it")]})
    report = app.report()
    assert report.outcome == "stopped"
    (first, *_) = report.interventions
    assert first.template in OPTIONS and first.after in ("went_on", "stopped")
    kept = json.loads(path.read_text())["rules"]["nudge:repeat"]
    assert kept[first.template] == [0.0, 1.0]
    assert report.to_json()["interventions"]


@pytest.mark.parametrize("kept", [True, False])
async def test_a_guard_learns_on_an_event_loop_too(kept: bool, tmp_path: Path) -> None:
    choices = Choices(tmp_path / "choices.json" if kept else None, seed=1)
    assert choices.blocking is kept
    model = StrictProvider(lambda call, asked: asks_for(("look", {"place": "desk"})))
    app = shearpin.guard(react_builder(model, [look]).compile(), choices=choices)
    await app.ainvoke({"messages": [("user", "open it")]})
    await asyncio.get_running_loop().shutdown_default_executor()
    assert choices.arms()


def test_a_rollback_is_carried_out_where_it_was_chosen() -> None:
    choices = Choices(wordings=("plain",), block=False, ways=("rollback",))
    for _ in range(60):
        choices.learn(outcome("rollback", "pivoted", verdict="rollback"))
    app = shearpin.guard(
        taking_notes(stubborn(HEEDS["rollback"]), InMemorySaver()), choices=choices
    )
    config: Any = {"configurable": {"thread_id": "t"}}
    values = app.invoke({"messages": [("user", "go")], "log": ["asked"], "last": "-"}, config)
    assert values["log"] == ["asked", "step 1"], "the state went back"
    (way,) = [one for one in app.report(config).interventions if one.verdict == "rollback"]
    assert (way.template, way.acted, way.after) == ("rollback", True, "finished")
    assert [arm.given for arm in choices.arms() if arm.name == "rollback"] == [61]


def test_a_file_may_ask_for_all_of_it(tmp_path: Path) -> None:
    path = tmp_path / "guard.toml"
    place = str(tmp_path / "choices.json")
    path.write_text(
        f"adaptive = true\nearly_nudges = 0.99\n[choices]\nplace = '{place}'\nways = ['rollback']\n"
    )
    recipe = shearpin.Guard.from_file(path)
    assert len(recipe.learners) == 2
    assert recipe.settings.choices is not None
    assert tuple(recipe.settings.choices.ways) == ("rollback",)
    assert recipe.settings.rules[-1].nudge_at == 0.99  # type: ignore[attr-defined]
    for wrong in ("[choices]\nplaces = 'x'\n", "[choices]\nways = ['x']\n", "early_nudges = 'x'\n"):
        path.write_text(wrong)
        with pytest.raises(ConfigError):
            shearpin.Guard.from_file(path)

"""What is learnt moves slowly, stays in its bounds, says why, and can be undone."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage
from langchain_core.tools import tool

import shearpin
from shearpin import ConfigError, Guard
from shearpin.analysis.adaptive import JUDGEMENTS, KEPT, MOVES, Adaptive, Learnt
from shearpin.cli import main
from shearpin.report.interventions import After, Intervention
from shearpin.testing import StrictProvider, asks_for
from tests.adapters.builds import react_builder


def told(after: After, acted: bool = False) -> Intervention:
    return Intervention(3, "nudge", "repeat", "answer_not_used", "ls", "main", after, 2, acted)


def test_a_wrong_stop_weighs_as_much_as_ten_runs() -> None:
    assert MOVES["wrong-stop"] == 10 * MOVES["healed-by-itself"]
    learnt = Learnt()
    learnt.judge("w", "r1", "wrong-stop")
    assert learnt.patience("w") == 0.55
    assert learnt.patience("other") == 0.5
    assert learnt.moves["w"][-1].reason == "wrong-stop"


@given(st.lists(st.sampled_from(JUDGEMENTS), max_size=300))
def test_the_patience_never_leaves_its_bounds(judgements: list[str]) -> None:
    learnt = Learnt()
    for number, judgement in enumerate(judgements):
        before = float(learnt.patience("w"))
        learnt.judge("w", f"r{number}", judgement)
        after = float(learnt.patience("w"))
        assert learnt.lowest <= after <= learnt.highest
        assert abs(after - before) <= 0.05 + 1e-9
    assert len(learnt.moves.get("w", [])) <= KEPT


def test_only_verdicts_that_did_not_act_teach() -> None:
    learnt = Learnt()
    learnt.observe("w", "r1", [told("pivoted", acted=True), told("went_on", acted=True)])
    assert learnt.moves == {}
    learnt.observe("w", "r2", [told("pivoted")])
    assert learnt.patience("w") == 0.505
    learnt.observe("w", "r3", [told("went_on"), told("stopped")])
    learnt.observe("w", "r4", [told("finished")])
    assert [move.reason for move in learnt.moves["w"]] == ["healed-by-itself", "went-on"]


def test_it_is_kept_and_can_be_reset(tmp_path: Path) -> None:
    path = tmp_path / "learnt.json"
    assert Learnt.load(path) == Learnt()
    learnt = Learnt(start=0.4)
    learnt.judge("w", "r", "missed-loop")
    learnt.save(path)
    assert Learnt.load(path) == learnt
    assert Guard(patience=learnt.patience("w")).settings.patience == 0.35
    learnt.reset("w")
    assert learnt.patience("w") == 0.4


@pytest.mark.parametrize("text", ["", "[]", '{"version": 2}', '{"version": 1, "start": 9}'])
def test_a_damaged_file_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "learnt.json"
    path.write_text(text)
    with pytest.raises(ConfigError, match="learnt"):
        Learnt.load(path)
    shown = CliRunner().invoke(main, ["feedback", "r", "wrong-stop", "--store", str(path)])
    assert shown.exit_code == 2


def test_wrong_bounds_and_judgements_are_refused() -> None:
    with pytest.raises(ConfigError, match="lowest"):
        Learnt(start=0.9)
    with pytest.raises(ConfigError, match="judgement"):
        Learnt().judge("w", "r", "meh")


def test_the_command_says_what_follows(tmp_path: Path) -> None:
    path = str(tmp_path / "learnt.json")
    arguments = ["feedback", "run-1", "wrong-stop", "--store", path, "--workflow", "billing"]
    assert "0.5 -> 0.55" in CliRunner().invoke(main, arguments).output
    again = CliRunner().invoke(main, arguments)
    assert (again.exit_code, again.stdout) == (1, "")
    assert "run-1 is judged already (wrong-stop)" in again.stderr
    arguments[1] = "run-2"
    assert "0.55 -> 0.6" in CliRunner().invoke(main, arguments).output
    assert "0.5 -> 0.55" in CliRunner().invoke(main, [*arguments, "--reset"]).output


def test_the_command_names_what_there_is(tmp_path: Path) -> None:
    path = str(tmp_path / "learnt.json")

    def said(*arguments: str) -> tuple[int, str]:
        shown = CliRunner().invoke(main, ["feedback", *arguments, "--store", path])
        return shown.exit_code, shown.stderr

    for nothing in ([], ["--reset"], ["r", "wrong-stop", "--reset"]):
        assert said(*nothing) == (1, f"Error: {path}: nothing was learnt there yet\n")
    assert said("r", "wrong-stop", "--workflow", "billing") == (0, "")
    there = f"Error: {path}: there is no workflow 'biling'; there is: billing"
    assert said("--workflow", "biling") == (1, f"{there}\n")
    assert said("--reset", "--workflow", "biling") == (1, f"{there}\n")
    judged = ("r", "wrong-stop", "--workflow", "biling")
    assert said(*judged) == (1, f"{there} (--new begins one)\n")
    assert said(*judged, "--new") == (0, "")
    Path(path).write_text("{")
    code, error = said("--workflow", "billing")
    assert (code, error.count(path)) == (2, 1)


def test_the_command_explains_and_forgets(tmp_path: Path) -> None:
    store = ["--store", f"sqlite:///{tmp_path / 'learnt.db'}", "--workflow", "billing"]
    run = CliRunner().invoke
    assert run(main, ["feedback", "run-1", "wrong-stop", *store]).exit_code == 0
    shown = run(main, ["feedback", *store]).output
    assert shown.splitlines() == ["billing: patience 0.55", "  0.55  wrong-stop  run-1"]
    assert run(main, ["feedback", "--reset", *store]).output == "billing: patience 0.5\n"
    assert run(main, ["feedback", "run-1", *store]).exit_code == 2


# -- in a guard ------------------------------------------------------------------------------------


def test_it_is_on_in_observe_and_off_in_enforce() -> None:
    assert [type(one) for one in Guard(mode="observe").learners] == [Adaptive]
    for off in (
        Guard(),
        Guard(mode="warn"),
        Guard(mode="observe", adaptive=False),
        Guard(mode="observe", patience=0.5),
        Guard(mode="observe", preset="coding"),
    ):
        assert off.learners == ()
        assert off.fitted(off.settings) is off.settings
    assert Guard(adaptive=Adaptive()).learners
    assert Guard(mode="warn", adaptive=True).learners
    with pytest.raises(ConfigError, match="patience"):
        Guard(adaptive=True, patience=0.3)


def test_what_was_learnt_comes_in_with_the_next_conversation(tmp_path: Path) -> None:
    path = tmp_path / "learnt.json"
    adaptive = Adaptive(path, workflow="w")
    guard = Guard(adaptive=adaptive)
    for number in range(4):
        adaptive.judge(f"r{number}", "wrong-stop")
    rules = {rule.family: rule for rule in guard.fitted(guard.settings).rules}
    assert rules["repeat"].block == 7  # type: ignore[attr-defined]
    assert Adaptive(path, workflow="w").moves[-1].reason == "wrong-stop"


@tool
def look(place: str) -> str:
    """Look somewhere."""
    return "locked"


@pytest.mark.parametrize("kind", ["file", "sqlite"])
def test_a_guard_that_observes_learns_from_its_runs(tmp_path: Path, kind: str) -> None:
    place = str(tmp_path / "learnt.json")
    if kind == "sqlite":
        place = f"sqlite:///{tmp_path / 'learnt.db'}"

    def script(messages: object, call: int) -> AIMessage | str:
        return asks_for(("look", {"place": "desk"})) if call % 12 else "It is locked."

    guard = Guard(mode="observe", adaptive=place, name="billing")
    app = shearpin.guard(react_builder(StrictProvider(script), [look]).compile(), guard)
    for _ in range(2):
        app.invoke({"messages": [("user", "open it")]})
    kept = Adaptive(place, workflow="billing")
    assert [move.reason for move in kept.moves] == ["went-on", "went-on"]
    assert kept.patience == 0.49
    assert guard.fitted(guard.settings).patience == 0.49
    assert app.report().outcome == "completed"


def test_a_damaged_file_does_not_hurt_a_run(tmp_path: Path) -> None:
    path = tmp_path / "learnt.json"
    model = StrictProvider(["Hello."])
    guard = Guard(mode="observe", adaptive=str(path))
    app = shearpin.guard(react_builder(model, [look]).compile(), guard)
    path.write_text("{")
    app.invoke({"messages": [("user", "hi")]})
    assert any("learning" in fault for fault in app.report().faults)

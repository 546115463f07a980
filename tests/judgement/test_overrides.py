"""Other thresholds for some tools and nodes, and presets made of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from shearpin import ConfigError, Cycles, Guard, Repeats
from shearpin.analysis import replay_run
from shearpin.core.overrides import Override
from shearpin.core.session import Session
from shearpin.core.settings import Settings
from shearpin.events import ToolReturned
from shearpin.findings import Severity
from shearpin.presets import PRESETS
from shearpin.traces import TraceRun, parse_run

PATIENT = Repeats(nudge=6, block=12, stop=20, error_stop=12)


def calls(*names: str, result: str = "the page as it was", node: str = "agent") -> TraceRun:
    return parse_run(
        {
            "run": "r",
            "steps": [
                {"node": node, "calls": [{"name": name, "args": {}, "result": result}]}
                for name in names
            ],
        }
    )


def told(run: TraceRun, settings: Settings, severity: Severity = Severity.NUDGE) -> int | None:
    verdicts = replay_run(run, settings).verdicts
    return next((v.step for v in verdicts if v.severity >= severity), None)


def test_a_tool_gets_its_own_numbers_and_others_keep_theirs() -> None:
    settings = Settings(overrides=(Override(tools=("click*",), detectors=(PATIENT,)),))
    assert told(calls(*["click_next"] * 5), settings) is None
    assert told(calls(*["click_next"] * 9), settings) == 6
    assert told(calls(*["search"] * 9), settings) == 3


def test_a_tool_may_be_watched_more_closely() -> None:
    strict = Repeats(nudge=2, block=3, stop=4)
    settings = Settings(overrides=(Override(tools=("pay",), detectors=(strict,)),))
    assert told(calls(*["pay"] * 9), settings) == 2
    assert told(calls(*["pay"] * 9), settings, Severity.STOP) == 4
    assert told(calls(*["search"] * 9), settings) == 3


def test_a_node_gets_its_own_numbers() -> None:
    settings = Settings(overrides=(Override(nodes=("browser",), detectors=(PATIENT,)),))
    assert told(calls(*["open"] * 9, node="browser"), settings) == 6
    assert told(calls(*["open"] * 9, node="agent"), settings) == 3


def test_patience_of_a_tool_replaces_that_of_the_guard() -> None:
    settings = Settings(
        patience="minimal", overrides=(Override(tools=("click",), patience="maximal"),)
    )
    assert told(calls(*["click"] * 12), settings) == 6
    assert told(calls(*["search"] * 12), settings) == 2


def test_the_first_override_that_matches_counts() -> None:
    settings = Settings(
        overrides=(
            Override(tools=("click_fast",), detectors=(Repeats(nudge=2),)),
            Override(tools=("click*",), detectors=(PATIENT,)),
        )
    )
    assert told(calls(*["click_fast"] * 9), settings) == 2
    assert told(calls(*["click_slow"] * 9), settings) == 6


def test_a_rule_switched_off_for_a_tool_is_silent_there_only() -> None:
    off = Override(tools=("ping",), off=("repeat", "cycle"))
    settings = Settings(detectors=(Repeats(), Cycles()), overrides=(off,))
    assert told(calls(*["ping"] * 30), settings) is None
    assert told(calls(*["search"] * 30), settings) == 3


def test_a_round_is_matched_only_if_all_its_tools_are() -> None:
    override = Override(tools=("click*",))
    assert override.matches(("click_a", "click_b"), "")
    assert not override.matches(("click_a", "search"), "")
    assert not override.matches((), "")


def test_an_overridden_session_survives_dump_and_load() -> None:
    settings = Settings(overrides=(Override(tools=("click",), detectors=(PATIENT,)),))
    session = Session(settings)
    for number in range(12):
        again = Session.load(settings, session.dump())
        fact = ToolReturned(float(number), f"c{number}", "click", {}, "same", "success")
        assert type(again.after(fact)) is type(session.after(fact))
        assert again.dump() == session.dump()
        session = again


@pytest.mark.parametrize(
    ("wrong", "word"),
    [
        ({}, "tools"),
        ({"tools": "click"}, "tuple"),
        ({"tools": ("a",), "patience": 2.0}, "patience"),
        ({"tools": ("a",), "detectors": (1,)}, "rules"),
    ],
)
def test_a_wrong_override_is_refused(wrong: dict[str, object], word: str) -> None:
    with pytest.raises(ConfigError, match=word):
        Override(**wrong)  # type: ignore[arg-type]


def test_a_misspelt_rule_is_named_with_the_closest_one() -> None:
    with pytest.raises(ConfigError, match="did you mean 'stagnation'"):
        Settings(overrides=(Override(tools=("a",), off=("stagnaton",)),))


SITUATIONS = {
    "polling": calls(*["get_job_status"] * 8, result="state of job 7 is unchanged since"),
    "browser": calls(*["click_next"] * 5),
    "coding": calls(*["run_tests"] * 3, result="3 failed, 12 passed in all of the modules"),
    "research": parse_run(
        {
            "run": "r",
            "steps": [
                {"calls": [{"name": "web_search", "args": {"q": f"topic {n}"}, "result": "[]"}]}
                for n in range(7)
            ],
        }
    ),
    "batch": parse_run(
        {
            "run": "r",
            "steps": [
                {
                    "calls": [
                        {
                            "name": "read_record",
                            "args": {"id": n},
                            "result": "This record needs no correction at all.",
                        }
                    ]
                }
                for n in range(30)
            ],
        }
    ),
    "negotiation": parse_run(
        {
            "run": "r",
            "steps": [{"text": "I can go no lower than nine hundred for the whole lot."}] * 4,
        }
    ),
}
RUNAWAYS = {
    "browser": calls(*["click_next"] * 60),
    "coding": calls(*["run_tests"] * 60),
    "research": calls(*["web_search"] * 60),
    "batch": calls(*["tag_image"] * 60),
    "negotiation": parse_run({"run": "r", "steps": [{"text": "I can go no lower."}] * 60}),
}


@pytest.mark.parametrize("name", sorted(SITUATIONS))
def test_a_preset_is_quiet_where_the_default_is_not(name: str) -> None:
    assert told(SITUATIONS[name], Guard().settings) is not None
    assert told(SITUATIONS[name], Guard(preset=name).settings) is None


@pytest.mark.parametrize("name", sorted(RUNAWAYS))
def test_a_preset_still_ends_a_runaway(name: str) -> None:
    stopped = told(RUNAWAYS[name], Guard(preset=name).settings, Severity.STOP)
    assert stopped is not None
    assert stopped <= 24


def test_polling_is_remarked_on_in_the_end() -> None:
    run = calls(*["get_job_status"] * 60, result="state of job 7 is unchanged since")
    assert told(run, Guard(preset="polling").settings) == 10
    assert told(run, Guard(preset="polling").settings, Severity.BLOCK) is None


def test_every_preset_is_tested_and_says_what_it_is_for() -> None:
    assert set(SITUATIONS) == set(PRESETS)
    assert all(preset.purpose for preset in PRESETS.values())


def test_what_is_given_goes_before_the_preset() -> None:
    own = Override(tools=("click*",), detectors=(Repeats(nudge=2),))
    settings = Guard(preset="browser", overrides=(own,), patience=0.25).settings
    assert told(calls(*["click_next"] * 5), settings) == 2
    assert settings.patience == 0.25


def test_an_unknown_preset_names_the_known_ones() -> None:
    with pytest.raises(ConfigError, match="coding"):
        Guard(preset="codnig")


def test_all_of_it_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "guard.toml"
    path.write_text(
        'preset = "coding"\npatience = "high"\n'
        '[[overrides]]\ntools = ["click*"]\npatience = 1.0\noff = ["litany"]\n'
        "detectors.repeat.nudge = 5\n",
        encoding="utf-8",
    )
    guard = Guard.from_file(path)
    assert guard.preset == "coding"
    assert guard.overrides == (
        Override(tools=("click*",), patience=1.0, off=("litany",), detectors=(Repeats(nudge=5),)),
    )


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("patience = true", "patience"),
        ("overrides = 3", "overrides"),
        ('[[overrides]]\ntool = ["a"]', "did you mean 'tools'"),
        ('[[overrides]]\ntools = ["a"]\ndetectors.repeat.nudg = 2', "nudge"),
        ("[[overrides]]\npatience = 0.1", "number 1"),
        ('preset = "none"', "preset"),
    ],
)
def test_a_wrong_file_is_refused(tmp_path: Path, text: str, word: str) -> None:
    path = tmp_path / "guard.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=word):
        Guard.from_file(path)

"""Every further rule is reached at default settings, and leaves its legitimate twin alone."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from shearpin.core.breaker import BreakerSettings
from shearpin.core.detectors import (
    DEFAULT_DETECTORS,
    DeadEnds,
    Echoes,
    Guesses,
    Insistences,
    Litanies,
    Pagings,
    PingPongs,
    Revisits,
    StateOscillations,
    TokenVelocity,
)
from shearpin.core.session import Session
from shearpin.core.settings import Settings
from shearpin.core.tools import ToolFacts
from shearpin.errors import ConfigError
from shearpin.events import Usage
from shearpin.findings import Severity
from shearpin.verdicts import Block
from tests.core.driving import Call, Driver, finding_of
from tests.detectors import reaching
from tests.detectors.reaching import QUIET, REACHED, Script, rules

NAMES = sorted(REACHED)
PATIENT = BreakerSettings(trial_rounds=99, persist_rounds=99, refused_rounds=99)
FAMILIES = {detector.family: detector for detector in DEFAULT_DETECTORS}


def scripts(table: dict[str, list[Any]]) -> list[Any]:
    return [
        pytest.param(name, entry, id=f"{name}-{place}")
        for name, entries in sorted(table.items())
        for place, entry in enumerate(entries)
    ]


@pytest.mark.parametrize(("family", "entry"), scripts(REACHED))
def test_it_is_reached_at_default_settings(family: str, entry: tuple[str, Script]) -> None:
    rule, script = entry
    driver = Driver()
    assert rule in rules(script(driver))
    assert not driver.faults


@pytest.mark.parametrize(("family", "entry"), scripts(REACHED))
def test_the_page_says_under_which_names_it_reports(family: str, entry: tuple[str, Script]) -> None:
    page = (Path(__file__).parents[2] / "docs/detectors/index.md").read_text(encoding="utf-8")
    findings = [finding_of(verdict) for verdict in entry[1](Driver())]
    (found,) = {finding.family for finding in findings if finding.rule == entry[0]}
    if found == family and f"| `{found}` |" not in page:
        assert family in page.partition("| its own name | ")[2].partition(" |")[0].split(", ")
    else:
        assert family in page.partition(f"| `{found}` | ")[2].partition(" |")[0].split(", ")
    if entry[0] != family:
        assert f"`{entry[0]}`" in page


@pytest.mark.parametrize(("family", "script"), scripts(QUIET))
def test_its_legitimate_twin_is_left_alone(family: str, script: Script) -> None:
    driver = Driver()
    assert not script(driver)
    assert not driver.faults


@pytest.mark.parametrize(("family", "entry"), scripts(REACHED))
def test_the_ceiling_holds(family: str, entry: tuple[str, Script]) -> None:
    silent = replace(FAMILIES[family], ceiling=Severity.NONE)  # type: ignore[type-var]
    assert not entry[1](Driver(silent))


@pytest.mark.parametrize(("family", "entry"), scripts(REACHED))
def test_state_goes_through_a_dump_at_every_step(family: str, entry: tuple[str, Script]) -> None:
    """The same verdicts, whether or not the session is written down and read back in between."""
    _, script = entry
    settings = Settings(detectors=(FAMILIES[family],))

    class Restless(Driver):
        def step(self, *calls: Any, **more: Any) -> Any:
            given = super().step(*calls, **more)
            data = json.loads(json.dumps(self.session.dump()))
            again = Session.load(settings, data)
            assert again.dump() == data
            self.session = again
            return given

    restless = [finding_of(v).summary() for v in script(Restless(*settings.detectors))]
    steady = [finding_of(v).summary() for v in script(Driver(*settings.detectors))]
    assert restless == steady
    assert restless


@pytest.mark.parametrize("family", NAMES)
def test_a_new_turn_starts_afresh(family: str) -> None:
    _, script = REACHED[family][0]
    driver = Driver(FAMILIES[family])
    first = [finding_of(v).count for v in script(driver)]
    driver.turn()
    assert [finding_of(v).count for v in script(driver)] == first


@pytest.mark.parametrize("family", NAMES)
def test_state_is_small_and_stays_small(family: str) -> None:
    driver = Driver(FAMILIES[family])
    for lap in range(3):
        for name in ("a", "b", "c", "d", "e", "f", "g", "h"):
            for n in range(40):
                driver.step(
                    Call("grep", {"pattern": f"{lap}.{n}"}, f"{name} {lap} {n}\n" * 5),
                    agent=name,
                    text=f"I look for {n} in a sentence of some length, {name} {lap}.",
                    usage=Usage(1000 + n, 40),
                )
                driver.step(text=f"A message of {name} {lap} {n} with sixty characters and more.")
    probe = driver.session._probes[family]
    assert len(json.dumps(probe.dump(), separators=(",", ":"))) < 1400
    assert len(json.dumps(driver.session.dump())) < 4096


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Echoes(nudge=1),
        lambda: Echoes(least_characters=300),
        lambda: Litanies(nudge=1),
        lambda: Litanies(least_characters=0),
        lambda: Insistences(nudge=2),
        lambda: Insistences(similarity=0),
        lambda: Insistences(patient_seconds=0),
        lambda: Revisits(window=2),
        lambda: Revisits(different=1),
        lambda: Revisits(patient_seconds=0),
        lambda: Echoes(patient_seconds=0),
        lambda: Guesses(nudge=1),
        lambda: Guesses(most_characters=0),
        lambda: PingPongs(block=2),
        lambda: PingPongs(least_characters=-1),
        lambda: StateOscillations(undone=1),
        lambda: StateOscillations(stop=3),
        lambda: DeadEnds(nudge=1),
        lambda: DeadEnds(patient_seconds=-1),
        lambda: Pagings(backwards=1),
        lambda: TokenVelocity(growth=1),
        lambda: TokenVelocity(sustained=0),
    ],
)
def test_numbers_out_of_range_are_refused_when_built(wrong: Any) -> None:
    with pytest.raises(ConfigError):
        wrong()


# -- what makes the difference --------------------------------------------------------------------


def test_a_form_letter_between_new_messages_never_ends_the_run() -> None:
    driver = Driver()
    letter = "Please go on until the answer is found, then write it down in a box of its own."
    given = []
    for number in range(16):
        words = " ".join(reaching.REMARKS[(number * k + k) % 8] for k in (1, 3, 5))
        given += driver.step(text=f"{number * number} {words} {number}", agent="solver")
        given += driver.step(text=letter, agent="asker")
    assert {finding_of(v).rule for v in given} <= {"echo"}
    assert max(v.severity for v in given) is Severity.NUDGE


def test_echo_of_a_file_is_free_once() -> None:
    driver = Driver(Echoes())
    assert not [v for _ in range(3) for v in driver.step(text=reaching.FILE)]
    assert driver.step(text=reaching.FILE)


def test_litany_is_broken_by_other_words_or_another_tool() -> None:
    words = "I need to fix the indentation of the function."
    for breaker in ("Now I run it again, and look.", None):
        driver = Driver(Litanies())
        given = []
        for n in range(8):
            tool = "edit_file" if breaker or n % 3 else "write_file"
            text = breaker if breaker and n % 3 == 2 else words
            given += driver.step(Call(tool, {"n": n}, "edited"), text=text)
        assert not given


def test_litany_leaves_the_very_same_call_alone() -> None:
    words = "I need to fix the indentation of the function."

    def edits(*contents: str) -> list[Any]:
        driver = Driver(Litanies())
        calls = [
            Call("edit_file", {"path": "a.py", "new": new}, f"edited, {n} changes so far")
            for n, new in enumerate(contents)
        ]
        return [verdict for call in calls for verdict in driver.step(call, text=words)]

    assert not edits(*["x"] * 8)
    assert edits(*"abcdefgh")


def test_insistence_leaves_polling_and_growth_alone() -> None:
    polling = Driver(tools={"click": ToolFacts(polling=True)})
    assert not reaching.the_same_link(polling)
    growing = Driver(Insistences())
    lines = [f"step {n} of the build is done, all went well" for n in range(12)]
    given = [growing.step(Call("build_log", {}, "\n".join(lines[: n + 3]))) for n in range(9)]
    assert not any(given)


def test_revisits_end_with_new_work() -> None:
    driver = Driver(Revisits())
    trial = Call("bash", {"command": "python a.py"}, "SyntaxError: invalid syntax")
    source = Call("read_file", {"path": "a.py"}, "print('hello world')")
    given = []
    for n in range(6):
        given += driver.step(source) + driver.step(trial)
        given += driver.step(Call("edit_file", {"new": f"{n}"}, "edited"))
    assert not given


def test_guesses_end_with_new_work_elsewhere() -> None:
    driver = Driver(Guesses())
    given = []
    for n in range(8):
        given += driver.step(Call("check_answer", {"answer": n}, "That is wrong."))
        given += driver.step(Call("edit_file", {"new": f"{n}"}, "edited"))
    assert not given


def test_ping_pong_refuses_and_then_ends_the_run() -> None:
    driver = Driver(PingPongs(), breaker=PATIENT)
    strongest = Severity.NONE
    kinds = set()
    for n in range(12):
        for agent, other in (("a", "b"), ("b", "a")):
            call = Call(f"transfer_to_{other}", {"why": f"{n}"}, "transferred")
            for verdict in driver.step(call, agent=agent):
                kinds.add(type(verdict))
                strongest = max(strongest, verdict.severity)
    assert Block in kinds
    assert strongest is Severity.STOP


def test_a_delegation_that_brings_a_report_is_work() -> None:
    driver = Driver(PingPongs())
    given = []
    for n in range(12):
        for agent in "ab":
            report = f"Report {n}: " + "the figures were found and compared. " * 5
            given += driver.step(Call("delegate", {"task": n}, report), agent=agent)
    assert not given


def test_a_pause_is_no_dead_end() -> None:
    driver = Driver(DeadEnds(), seconds=120.0)
    call = Call("check_queue", {}, "empty queue, nothing waits here")
    assert not [v for _ in range(30) for v in driver.step(call)]


def test_velocity_needs_haste_and_tokens() -> None:
    calm = Driver(TokenVelocity())
    assert not reaching._paced(calm, [(2000, 15.0)] * 8 + [(210_000, 15.0)] * 9)
    once = Driver(TokenVelocity())
    assert not reaching._paced(once, [(2000, 15.0)] * 8 + [(210_000, 1.0)] + [(2000, 15.0)] * 9)
    blind = Driver(TokenVelocity())
    assert not [v for n in range(30) for v in blind.step(Call("read", {"n": n}, f"{n}"))]


def test_echo_leaves_reports_on_time_alone() -> None:
    driver = Driver(Echoes(), seconds=400.0)
    report = "No new events; all systems are operating within their normal parameters."
    assert not [v for _ in range(9) for v in driver.step(text=report)]


def test_litany_leaves_sweeps_over_places_alone() -> None:
    words = "I will now write the report for the next month."
    driver = Driver(Litanies())
    for name in ("path", "month"):
        calls = [Call("write_report", {name: f"2024-{n:02}"}, "written") for n in range(1, 9)]
        assert not [v for call in calls for v in driver.step(call, text=words)]


def test_insistence_leaves_changing_figures_alone() -> None:
    driver = Driver(Insistences())
    page = "Job 4412: {} of 120 shards are finished, the queue is empty, all workers are alive. "
    given = [driver.step(Call("get_job", {"id": 7}, page.format(11 * n) * 2)) for n in range(9)]
    assert not any(given)


def test_revisits_leave_outages_and_waiting_alone() -> None:
    calls = [Call("fetch", {"u": n}, "503 Service Unavailable", "error") for n in (1, 2, 3)]
    driver = Driver(Revisits())
    assert not [v for _ in range(3) for call in calls for v in driver.step(call)]
    checks = [Call("bash", {"command": f"check {n}"}, "Error: not there", "error") for n in (1, 2)]
    patient = Driver(Revisits(), seconds=90.0)
    assert not [v for _ in range(6) for call in checks for v in patient.step(call)]


def test_velocity_measures_a_new_agent_by_the_run() -> None:
    driver = Driver(TokenVelocity())
    assert not reaching._paced(driver, [(2200, 12.0)] * 8)
    driver.seconds = 1.0
    given = []
    for n in range(5):
        call = Call("read_chapter", {"no": n}, f"chapter {n}: {n * 77} words")
        given += driver.step(call, agent="child", usage=Usage(240_000 + n * 9000, 12))
    assert given


def test_velocity_learns_that_a_child_is_large_by_nature() -> None:
    driver = Driver(TokenVelocity())
    given = []
    for n in range(20):
        agent, tokens = ("child", 90_000) if n % 2 else ("main", 2000)
        driver.seconds = 9.0
        call = Call("read", {"no": n}, f"part {n}: {n * 77} words")
        given += driver.step(call, agent=agent, usage=Usage(tokens, 40))
    assert not given

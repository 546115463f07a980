"""Every verdict says what to change if it was wrong, and what it names is there to be changed."""

from __future__ import annotations

import re
from dataclasses import fields

import pytest

from shearpin import BreakerSettings, Guard, ToolFacts
from shearpin.core import detectors
from shearpin.core.journal import VerdictRecord
from shearpin.core.messages import RULES
from shearpin.core.session import Session
from shearpin.report.remedies import remedy_for
from tests.core.driving import Call, Driver

FAMILIES = {
    "blank": "monologue",
    "chanting": "monologue",
    "bad_args": "unknown_tool",
    "echo": "monologue",
    "empty_streak": "error_streak",
    "insistence": "repeat",
    "litany": "repeat",
    "other": "stagnation",
    "paraphrase": "paraphrase",
    "rejected_guesses": "error_streak",
    "revisits": "cycle",
    "undone": "oscillation",
    "state_oscillation": "oscillation",
    "velocity": "velocity",
    "swelling": "velocity",
    "slow_leak": "velocity",
}
RULED = sorted((set(RULES) | {"swelling", "slow_leak", "no_progress"}) - {"other", "paraphrase"})
KNOWN = {"BreakerSettings": BreakerSettings, "Guard": Guard, "ToolFacts": ToolFacts}


def record(rule: str, severity: str, **evidence: object) -> VerdictRecord:
    told = {"tool": "look", "count": 6, "limit": 5, "cause": "answer_not_used", **evidence}
    family = FAMILIES.get(rule, "stagnation")
    if rule in ("repeat", "cycle", "unknown_tool", "error_streak", "ping_pong", "monologue"):
        family = rule
    return VerdictRecord(
        5,
        1.0,
        severity,
        severity,
        family,
        rule,
        None,
        "main",
        told,
        "",
        acted=True,  # type: ignore[arg-type]
    )


def named(remedy: str) -> list[tuple[str, str]]:
    return re.findall(r"\b([A-Z]\w+)\((\w+)=", remedy)


@pytest.mark.parametrize("severity", ["nudge", "block", "stop"])
@pytest.mark.parametrize("rule", RULED)
def test_what_a_remedy_names_is_there(rule: str, severity: str) -> None:
    remedy = remedy_for(record(rule, severity))
    assert "maintainers" not in remedy
    found = named(remedy)
    assert found or rule == "together"
    for config, field in found:
        kind = KNOWN.get(config) or getattr(detectors, config)
        assert field in {spec.name for spec in fields(kind)}, remedy


@pytest.mark.parametrize("by", ["persist_rounds", "trial_rounds", "refused_rounds"])
def test_where_the_breaker_ran_out_of_patience_it_is_named(by: str) -> None:
    assert f"BreakerSettings({by}=...)" in remedy_for(record("error_streak", "stop", ended_by=by))


@pytest.mark.parametrize(
    ("cause", "field"), [("error_not_understood", "error_stop"), ("outage", "transient_stop")]
)
def test_the_stop_that_was_reached_is_named(cause: str, field: str) -> None:
    assert f"Repeats({field}=...)" in remedy_for(record("repeat", "stop", cause=cause))


def stop_of(session: Session) -> VerdictRecord:
    records = [one for one in session.drain() if isinstance(one, VerdictRecord)]
    return next(one for one in records if one.severity == "stop")


def test_a_session_says_what_ended_its_run() -> None:
    driver = Driver()
    while driver.session.stopped is None:
        number = driver.tool_calls
        driver.step(
            Call("look", {"at": number}, "error: there is no such place on this map", "error")
        )
    told = stop_of(driver.session)
    assert told.evidence["ended_by"] == "persist_rounds"
    patient = Driver(breaker=BreakerSettings(persist_rounds=20))
    for number in range(7):
        patient.step(
            Call("look", {"at": number}, "error: there is no such place on this map", "error")
        )
    assert patient.session.stopped is None, "what the remedy names has to help"


def test_a_rule_that_ends_a_run_by_itself_is_named() -> None:
    driver = Driver(breaker=BreakerSettings(persist_rounds=99, trial_rounds=99, refused_rounds=99))
    for _ in range(30):
        driver.step(Call("look", {}, "locked"))
    assert "ended_by" not in stop_of(driver.session).evidence

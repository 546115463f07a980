"""One knob scales every count; numbers set by hand stay as they are."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shearpin import BreakerSettings, ConfigError, Guard, Repeats
from shearpin.analysis import replay_run
from shearpin.core.detectors import DEFAULT_DETECTORS
from shearpin.core.patience import LEVELS, patience_value, patient, patient_breaker
from shearpin.core.settings import Settings
from shearpin.findings import Severity
from shearpin.traces import TraceRun, parse_run


def runaway(steps: int = 60) -> TraceRun:
    call = {"name": "search", "args": {"q": "x"}, "result": "nothing of use here"}
    return parse_run({"run": "r", "steps": [{"calls": [call]}] * steps})


def first(settings: Settings, severity: Severity) -> int:
    replay = replay_run(runaway(), settings)
    return next(v.step for v in replay.verdicts if v.severity >= severity)


def test_the_middle_is_the_documented_default() -> None:
    assert patient(DEFAULT_DETECTORS, "medium") == DEFAULT_DETECTORS
    assert patient_breaker(BreakerSettings(), 0.5) == BreakerSettings()
    assert Guard().settings == Settings()


@pytest.mark.parametrize("severity", [Severity.NUDGE, Severity.BLOCK, Severity.STOP])
def test_more_patience_means_later(severity: Severity) -> None:
    steps = [first(Settings(patience=level), severity) for level in sorted(LEVELS.values())]
    assert steps == sorted(steps)
    assert steps[0] < steps[2] < steps[-1]


@given(st.floats(0, 1))
def test_every_patience_makes_valid_rules(patience: float) -> None:
    settings = Settings(patience=patience)
    assert [rule.family for rule in settings.rules] == [rule.family for rule in DEFAULT_DETECTORS]


@given(st.floats(0, 1), st.floats(0, 1))
def test_counts_rise_with_patience(a: float, b: float) -> None:
    low, high = sorted((a, b))
    for less, more in zip(Settings(patience=low).rules, Settings(patience=high).rules, strict=True):
        for name in ("nudge", "block", "stop", "error_stop", "args_stop", "backwards"):
            one, other = getattr(less, name, None), getattr(more, name, None)
            assert one is None or one <= other


def test_numbers_set_by_hand_are_kept() -> None:
    rules = (Repeats(nudge=4, block=9, stop=20, error_stop=12),)
    (scaled,) = patient(rules, "maximal")
    assert isinstance(scaled, Repeats)
    assert (scaled.nudge, scaled.block, scaled.stop) == (4, 9, 20)
    assert patient_breaker(BreakerSettings(trial_rounds=7), 0.0).trial_rounds == 7


def test_a_scaled_threshold_never_falls_below_one_set_by_hand() -> None:
    (scaled,) = patient((Repeats(nudge=5),), "minimal")
    assert isinstance(scaled, Repeats)
    assert scaled.nudge == 5
    assert scaled.block is not None
    assert scaled.stop is not None
    assert scaled.nudge <= scaled.block <= scaled.stop


@pytest.mark.parametrize("wrong", [-0.1, 1.1, "endless", True, None])
def test_a_wrong_patience_is_refused(wrong: object) -> None:
    with pytest.raises(ConfigError, match="patience"):
        patience_value(wrong)  # type: ignore[arg-type]


def test_settings_survive_replacing_a_field() -> None:
    from dataclasses import replace

    settings = Settings(patience=0.0)
    assert replace(settings, language="zh").rules == settings.rules

"""What is configured is documented: every setting, the source of every heuristic, an example."""

from __future__ import annotations

from dataclasses import fields

import pytest

from shearpin.core.breaker import BreakerSettings
from shearpin.core.detectors import DEFAULT_DETECTORS
from shearpin.core.settings import Settings
from shearpin.core.tools import ToolFacts

CONFIGS = [
    *(type(detector) for detector in DEFAULT_DETECTORS),
    BreakerSettings,
    Settings,
    ToolFacts,
]


@pytest.mark.parametrize("config", CONFIGS, ids=lambda config: config.__name__)
def test_every_setting_is_documented(config: type) -> None:
    text = config.__doc__ or ""
    missing = [field.name for field in fields(config) if f"{field.name}:" not in text]
    assert missing == []


@pytest.mark.parametrize("detector", DEFAULT_DETECTORS, ids=lambda detector: detector.family)
def test_every_rule_names_its_source_and_shows_an_example(detector: object) -> None:
    text = type(detector).__doc__ or ""
    assert "*Source*" in text
    assert ">>>" in text

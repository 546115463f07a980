"""The kill switch: by a call at once, by environment or file within a quarter of a second."""

from __future__ import annotations

from pathlib import Path

import pytest

from shearpin.switch import FILE_VARIABLE, LOOK_SECONDS, VARIABLE, Switch
from shearpin.testing import ManualClock


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


def test_a_call_counts_at_once(clock: ManualClock) -> None:
    switch = Switch(clock)
    assert not switch.is_off()
    switch.throw(True)
    assert switch.is_off()
    switch.throw(False)
    assert not switch.is_off()


@pytest.mark.parametrize("value", ["1", "true", "YES", " on "])
def test_the_environment_counts_at_the_next_look(
    value: str, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    switch = Switch(clock)
    assert not switch.is_off()
    monkeypatch.setenv(VARIABLE, value)
    assert not switch.is_off()
    clock.advance(LOOK_SECONDS)
    assert switch.is_off()
    monkeypatch.setenv(VARIABLE, "0")
    assert switch.is_off()
    assert not switch.look()


def test_a_file_counts_as_long_as_it_is_there(
    clock: ManualClock, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    switch, path = Switch(clock), tmp_path / "off"
    monkeypatch.setenv(FILE_VARIABLE, str(path))
    assert not switch.look()
    path.touch()
    assert switch.look()
    switch.throw(True)
    switch.throw(False)
    assert switch.is_off(), "a call does not take back what the file says"
    path.unlink()
    assert not switch.look()


def test_the_hot_path_asks_nobody(clock: ManualClock, monkeypatch: pytest.MonkeyPatch) -> None:
    switch = Switch(clock)
    switch.look()
    monkeypatch.setattr("shearpin.switch.os", None)
    clock.advance(LOOK_SECONDS * 0.9)
    assert not any(switch.is_off() for _ in range(1000))

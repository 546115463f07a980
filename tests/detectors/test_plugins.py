"""Users' own rules: through `detectors`, and through an entry point."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any, ClassVar

import pytest

import shearpin
from shearpin import plugins
from shearpin.core.detectors import DEFAULT_DETECTORS
from shearpin.core.seen import Seen, ToolSeen
from shearpin.errors import ConfigError
from shearpin.findings import Finding, Severity
from tests.adapters.builds import HELLO, polite, react
from tests.core.driving import Call, Driver, finding_of


@dataclass(frozen=True)
class TooMany:
    family: ClassVar[str] = "too_many"
    watches: ClassVar[tuple[type[Seen], ...]] = (ToolSeen,)
    nudge: int = 2

    def probe(self) -> _Count:
        return _Count(self.nudge)


class _Count:
    def __init__(self, nudge: int) -> None:
        self.nudge, self.count = nudge, 0

    def observe(self, seen: Seen) -> Finding | None:
        assert isinstance(seen, ToolSeen)
        self.count += 1
        if self.count < self.nudge:
            return None
        return Finding(
            family="too_many", rule="too_many", key="n", level=Severity.NUDGE, count=self.count,
            limit=self.nudge, onset_step=1, step=seen.step, agent=seen.agent, subject=seen.tool,
            hard=False,
        )  # fmt: skip

    def forget(self, agent: str | None) -> None:
        self.count = 0

    def dump(self) -> object:
        return self.count

    def load(self, data: object) -> None:
        assert isinstance(data, int)
        self.count = data


class Faulty(TooMany):
    family: ClassVar[str] = "faulty"

    def probe(self) -> Any:
        probe = _Count(1)
        probe.observe = lambda seen: 1 / 0  # type: ignore[assignment,return-value,method-assign]
        return probe


def offer(monkeypatch: pytest.MonkeyPatch, **named: str) -> None:
    points = [EntryPoint(name, value, plugins.GROUP) for name, value in named.items()]
    monkeypatch.setattr(plugins, "entry_points", lambda group: points)


def test_a_rule_of_ones_own_speaks_like_any_other() -> None:
    driver = Driver(TooMany())
    driver.step(Call("a", {}, "one"))
    (nudge,) = driver.step(Call("b", {}, "two"))
    assert finding_of(nudge).family == "too_many"


def test_a_rule_of_ones_own_works_in_a_graph() -> None:
    app = shearpin.guard(react(polite(3)), detectors=(*DEFAULT_DETECTORS, TooMany()))
    app.invoke(HELLO)
    assert [v.finding for v in app.report().verdicts] == ["too_many"]


def test_a_faulty_rule_is_reported_and_the_run_goes_on() -> None:
    app = shearpin.guard(react(polite(3)), detectors=(Faulty(),))
    assert app.invoke(HELLO)["messages"][-1].content == "It is not there."
    assert app.report().faults


@pytest.mark.parametrize("value", [f"{__name__}:TooMany", f"{__name__}:TOO_MANY"])
def test_packages_offer_rules_by_name(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    offer(monkeypatch, mine=value, other="json:loads")
    assert plugins.plugin_names() == ("mine", "other")
    assert plugins.plugin_detector("mine").family == "too_many"


TOO_MANY = TooMany()
NOTHING = 7


def test_what_cannot_be_used_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    offer(
        monkeypatch,
        gone="no_such_module_here:x",
        number=f"{__name__}:NOTHING",
        builtin="builtins:dict",
    )
    for name in ("gone", "number", "builtin"):
        with pytest.raises(ConfigError, match=name):
            plugins.plugin_detector(name)
    with pytest.raises(ConfigError, match="offered: builtin, gone, number"):
        plugins.plugin_detector("absent")


def test_nothing_is_offered_unless_installed() -> None:
    assert "too_many" not in plugins.plugin_names()


def test_a_configuration_file_names_rules_that_are_off_by_default(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    offer(monkeypatch, too_many=f"{__name__}:TooMany", plain=f"{__name__}:PLAIN")
    path = tmp_path / "guard.toml"
    path.write_text(
        "[detectors.too_many]\nnudge = 7\n"
        "[detectors.same_input]\n"
        "[detectors.slow_leak]\nblock = 20\n"
    )
    rules = {rule.family: rule for rule in shearpin.Guard.from_file(path).detectors}
    assert rules["too_many"] == TooMany(nudge=7)
    assert {"same_input", "slow_leak", "repeat"} <= set(rules)
    for wrong, words in (
        ("[detectors.too_much]\n", "unknown key"),
        ("[detectors.plain]\nnudge = 7\n", "no settings"),
        ("[detectors.semantic_oscillation]\nembedder = 'x'\n", "embed"),
    ):
        path.write_text(wrong)
        with pytest.raises(ConfigError, match=words):
            shearpin.Guard.from_file(path)


class _Plain:
    family = "plain"
    watches = (ToolSeen,)

    def probe(self) -> _Count:
        return _Count(2)


PLAIN = _Plain()

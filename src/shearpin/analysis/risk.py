"""How likely it is that a run is going round in circles, step by step: a small logistic model.

Contract: the model is ten numbers in `risk.json`, with the report of its training beside them; what
a sign is stands in `core.detectors.loop_risk`, which also computes it, in recordings and in live
runs alike. It scores for reports and may nudge early; it never does more.

*Source*: fitted by `benchmarks/train_risk.py` to labelled public runs; see there for how well it
carries over to sources that it has not seen.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import ClassVar, cast

from shearpin.analysis.replay import replay_run
from shearpin.core.detectors.base import Probe
from shearpin.core.detectors.loop_risk import FEATURES, WINDOW, LoopRisk, RiskProbe
from shearpin.core.seen import ModelSeen, RoundSeen, Seen, ToolSeen
from shearpin.core.settings import Settings
from shearpin.findings import Finding
from shearpin.traces.model import TraceRun

__all__ = ["FEATURES", "WINDOW", "RiskModel", "early_rule", "features_of", "shipped_model"]

_NOTHING = LoopRisk(0.0, dict.fromkeys(FEATURES, 0.0))


def features_of(run: TraceRun) -> list[list[float]]:
    """For each step of a run the signs, in the order of `FEATURES`, each from 0 to 1.

    A step whose answers were not recorded shows what the step before it did.
    """
    recorder = _Recorder()
    replay_run(run, Settings(mode="observe", detectors=(recorder,)))
    found: list[list[float]] = []
    for step in range(1, len(run.steps) + 1):
        before = found[-1] if found else [0.0] * len(FEATURES)
        found.append(recorder.steps.get(step, before))
    return found


@dataclass(frozen=True, slots=True, eq=False)
class _Recorder:
    """A rule that concludes nothing and writes the signs down."""

    family: ClassVar[str] = "loop_risk"
    watches: ClassVar[tuple[type[Seen], ...]] = (ModelSeen, ToolSeen, RoundSeen)

    steps: dict[int, list[float]] = field(default_factory=dict[int, "list[float]"])

    def probe(self) -> Probe:
        return _RecordingProbe(self.steps)


class _RecordingProbe(RiskProbe):
    def __init__(self, steps: dict[int, list[float]]) -> None:
        super().__init__(_NOTHING)
        self._steps = steps

    def observe(self, seen: Seen) -> Finding | None:
        super().observe(seen)
        if isinstance(seen, RoundSeen):
            self._steps[seen.step] = self.signs()
        return None


@dataclass(frozen=True, slots=True)
class RiskModel:
    """A logistic model over the signs of `FEATURES`.

    Attributes:
        intercept: score of a step with nothing to see, as log odds.
        weights: by the names in `FEATURES`.

    Example:
        >>> model = RiskModel(-4.0, {name: 1.0 for name in FEATURES})
        >>> round(model.score([0.0] * len(FEATURES)), 3)
        0.018
    """

    intercept: float
    weights: dict[str, float]

    def score(self, features: Sequence[float]) -> float:
        """The probability that the step belongs to a loop, as far as the model knows."""
        return LoopRisk(self.intercept, self.weights).probability(features)

    def scores(self, run: TraceRun) -> list[float]:
        """The score of each step of a recording."""
        rule = LoopRisk(self.intercept, self.weights)
        return [rule.probability(features) for features in features_of(run)]


@cache
def shipped_model() -> RiskModel:
    """The model that comes with the package."""
    text = files("shearpin.analysis").joinpath("risk.json").read_text(encoding="utf-8")
    data = cast("dict[str, object]", json.loads(text))
    weights = cast("dict[str, float]", data["weights"])
    return RiskModel(float(cast("float", data["intercept"])), dict(weights))


def early_rule(nudge_at: float = 0.98) -> LoopRisk:
    """The rule that nudges by the shipped model, or at 1 only notes.

    Raises:
        ConfigError: the bound is not from 0.5 to 1.
    """
    model = shipped_model()
    return LoopRisk(model.intercept, model.weights, min(0.5, nudge_at), nudge_at)

"""How likely it is that a run is going round in circles, step by step: a small logistic model.

Contract: the model is ten numbers in `risk.json`, with the report of its training beside them; what
a feature is stands in `FEATURES`. It scores recordings for reports, and never acts: rules do.

*Source*: fitted by `benchmarks/train_risk.py` to labelled public runs; see there for how well it
carries over to sources that it has not seen.
"""

from __future__ import annotations

import json
import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import pairwise
from typing import Final, NamedTuple, cast

from shearpin.core.canonical import digest
from shearpin.core.masking import mask, mask_error, words_of
from shearpin.core.outcomes import outcome_of, result_text
from shearpin.core.tools import effect_of
from shearpin.traces.model import TraceCall, TraceRun, TraceStep

__all__ = ["FEATURES", "WINDOW", "RiskModel", "features_of", "shipped_model"]

WINDOW: Final = 8
"""Steps that a score looks back on."""
FEATURES: Final[dict[str, str]] = {
    "same_call": "share of calls that were made before",
    "same_result": "share of calls that were made before and gave the same result",
    "streak": "longest run of the same call with the same result",
    "errors": "share of calls that failed",
    "same_error": "share of calls that failed like the one before",
    "empty": "share of calls that came back empty",
    "same_words": "share of steps whose words were said before",
    "silent": "share of steps without a call",
    "no_work": "share of steps since something new was changed with success",
}
_FAILED: Final = ("error", "bad_args", "transient", "unknown_tool")


class _Step(NamedTuple):
    calls: tuple[tuple[str, str], ...]
    errors: tuple[str, ...]
    empty: int
    words: str
    worked: bool


def features_of(run: TraceRun) -> list[list[float]]:
    """For each step of a run the features, in the order of `FEATURES`, each from 0 to 1."""
    recent: deque[_Step] = deque(maxlen=WINDOW)
    known: set[str] = set()
    found: list[list[float]] = []
    for step in run.steps:
        recent.append(_read(step, known))
        found.append(_measure(recent))
    return found


def _read(step: TraceStep, known: set[str]) -> _Step:
    calls: list[tuple[str, str]] = []
    errors: list[str] = []
    empty, worked = 0, False
    for call in step.calls:
        text = result_text(call.result)
        outcome = outcome_of(text, call.status)
        key = call.args_digest or digest([call.name, call.args])
        calls.append((key, call.result_digest or mask(text)))
        empty += outcome == "empty"
        if outcome in _FAILED:
            errors.append(_error(call, text))
        fresh = key not in known
        worked |= fresh and outcome == "ok" and effect_of(call.name, call.args, None) == "write"
        known.add(key)
    words = mask(step.text.strip())
    return _Step(tuple(calls), tuple(errors), empty, words if len(words) >= 20 else "", worked)


def _error(call: TraceCall, text: str) -> str:
    args = call.args
    words = [args] if isinstance(args, str) else [str(value) for value in args.values()]
    return mask_error(text, words_of(words))


def _measure(recent: Sequence[_Step]) -> list[float]:
    calls = [call for step in recent for call in step.calls]
    errors = [error for step in recent for error in step.errors]
    spoken = [step.words for step in recent if step.words]
    total = max(1, len(calls))
    streak = best = 1 if calls else 0
    for before, call in pairwise(calls):
        streak = streak + 1 if call == before else 1
        best = max(best, streak)
    since = next((n for n, step in enumerate(reversed(recent)) if step.worked), len(recent))
    return [
        (len(calls) - len({key for key, _ in calls})) / total,
        (len(calls) - len(set(calls))) / total,
        min(1.0, max(0, best - 1) / (WINDOW - 1)),
        len(errors) / total,
        sum(a == b for a, b in pairwise(errors)) / total,
        sum(step.empty for step in recent) / total,
        (len(spoken) - len(set(spoken))) / len(recent),
        sum(not step.calls for step in recent) / len(recent),
        since / WINDOW,
    ]


@dataclass(frozen=True, slots=True)
class RiskModel:
    """A logistic model: the score of a step is 1 / (1 + exp(-(intercept + weights x features))).

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
        total = self.intercept + sum(
            self.weights[name] * value for name, value in zip(FEATURES, features, strict=True)
        )
        return 1 / (1 + math.exp(-max(-60.0, min(60.0, total))))

    def scores(self, run: TraceRun) -> list[float]:
        """The score of each step of a recording."""
        return [self.score(features) for features in features_of(run)]


@cache
def shipped_model() -> RiskModel:
    """The model that comes with the package."""
    text = files("shearpin.analysis").joinpath("risk.json").read_text(encoding="utf-8")
    data = cast("dict[str, object]", json.loads(text))
    weights = cast("dict[str, float]", data["weights"])
    return RiskModel(float(cast("float", data["intercept"])), dict(weights))

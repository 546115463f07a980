"""loop_risk: how likely the last rounds are part of a loop, by a small logistic model."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import exp
from typing import ClassVar, Final, NamedTuple

from shearpin.core.canonical import digest_text
from shearpin.core.checks import check_kinds
from shearpin.core.detectors.base import Probe
from shearpin.core.masking import mask, mask_error, words_of
from shearpin.core.seen import ModelSeen, RoundSeen, Seen, ToolSeen
from shearpin.core.stored import flag, row, sequence, text, texts, whole
from shearpin.errors import ConfigError
from shearpin.findings import Finding, Severity

__all__ = ["FEATURES", "WINDOW", "LoopRisk", "RiskProbe"]

WINDOW: Final = 8
"""Rounds that a score looks back on."""
_CALLS: Final = 6
"""Calls of a round that are looked at; of a larger batch the first ones."""
_FAILED: Final = ("error", "bad_args", "transient", "unknown_tool")
_AGENTS: Final = 6
_KEY: Final = 6
_LEAST_WORDS: Final = 20
FEATURES: Final[dict[str, str]] = {
    "same_call": "share of calls that were made before",
    "same_result": "share of calls that were made before and gave the same result",
    "streak": "longest run of the same call with the same result",
    "errors": "share of calls that failed",
    "same_error": "share of calls that failed like the one before",
    "empty": "share of calls that came back empty",
    "same_words": "share of rounds whose words were said before",
    "silent": "share of rounds without a call",
    "no_work": "share of rounds since something new was changed with success",
}
"""What a score is made of, each from 0 to 1, over the window."""
_CAUSES: Final = {
    "same_error": "error_not_understood",
    "errors": "error_not_understood",
    "empty": "empty_taken_for_failure",
    "silent": "says_the_same",
    "same_words": "says_the_same",
}


@dataclass(frozen=True, slots=True)
class LoopRisk:
    """A probability that a round belongs to a loop: 1 / (1 + exp(-(intercept + weights x signs))).

    It sums up what single rules count one by one, and so may speak a little before them. It never
    does more than nudge: a sum of signs is no repetition. Off by default;
    `Guard(early_nudges=True)` puts it in, with the coefficients that are shipped.

    Attributes:
        intercept: log odds of a round with nothing to see.
        weights: by the names in `FEATURES`; 0 or more.
        note_at: probability that is noted in the report, once (0 to 1).
        nudge_at: probability that is spoken of, at or above `note_at`; 1 never is.

    *Source*: fitted to labelled public runs by `benchmarks/train_risk.py`; the report of its
    training stands in `shearpin/analysis/risk.json`.

    Raises:
        ConfigError: a bound is out of range, or a weight is missing or below 0.

    Example:
        >>> rule = LoopRisk(-4.0, dict.fromkeys(FEATURES, 1.0))
        >>> round(rule.probability([0.0] * len(FEATURES)), 3)
        0.018
    """

    family: ClassVar[str] = "loop_risk"
    watches: ClassVar[tuple[type[Seen], ...]] = (ModelSeen, ToolSeen, RoundSeen)

    intercept: float
    weights: Mapping[str, float]
    note_at: float = 0.5
    nudge_at: float = 0.98

    def __post_init__(self) -> None:
        check_kinds(self)
        if not 0 < self.note_at <= self.nudge_at <= 1:
            raise ConfigError(
                "LoopRisk needs 0 < note_at <= nudge_at <= 1, not "
                f"{self.note_at!r} and {self.nudge_at!r}"
            )
        if set(self.weights) != set(FEATURES) or min(self.weights.values()) < 0:
            raise ConfigError(f"LoopRisk.weights needs 0 or more for each of {', '.join(FEATURES)}")

    def probability(self, signs: Sequence[float]) -> float:
        """The probability that goes with signs in the order of `FEATURES`."""
        total = self.intercept + sum(
            self.weights[name] * value for name, value in zip(FEATURES, signs, strict=True)
        )
        return 1 / (1 + exp(-max(-60.0, min(60.0, total))))

    def probe(self) -> Probe:
        return RiskProbe(self)


class _Round(NamedTuple):
    step: int
    calls: tuple[tuple[str, str], ...]
    errors: tuple[str, ...]
    empty: int
    words: str
    worked: bool


class RiskProbe:
    """Keeps the last rounds of the run, of whichever agent; constant work and room."""

    def __init__(self, config: LoopRisk) -> None:
        self._config = config
        self._rounds: deque[_Round] = deque(maxlen=WINDOW)
        self._open: dict[str, _Round] = {}

    def observe(self, seen: Seen) -> Finding | None:
        if isinstance(seen, ToolSeen):
            self._take(seen)
        elif isinstance(seen, ModelSeen):
            said = mask(seen.text.strip()) if seen.text else ""
            words = digest_text(said)[:_KEY] if len(said) >= _LEAST_WORDS else ""
            if len(self._open) >= _AGENTS and seen.agent not in self._open:
                del self._open[next(iter(self._open))]
            self._open[seen.agent] = _Round(seen.step, (), (), 0, words, worked=False)
        elif isinstance(seen, RoundSeen):
            closed = self._open.pop(seen.agent, None)
            if closed is not None:
                self._rounds.append(closed)
                return self._judge(self.signs(), seen)
        return None

    def _take(self, seen: ToolSeen) -> None:
        opened = self._open.get(seen.agent)
        if opened is None:
            return
        step, calls, errors, empty, words, worked = opened
        if len(calls) >= _CALLS or seen.outcome == "blocked":
            return
        if seen.outcome in _FAILED:
            args = seen.args
            given = [args] if isinstance(args, str) else [str(value) for value in args.values()]
            errors = (*errors, digest_text(mask_error(seen.text, words_of(given)))[:_KEY])
        calls = (*calls, (seen.call_key[:_KEY], seen.result_key[:_KEY]))
        empty += seen.outcome == "empty"
        worked = worked or seen.work
        self._open[seen.agent] = _Round(step, calls, errors, empty, words, worked)

    def signs(self) -> list[float]:
        """What the last rounds show, in the order of `FEATURES`."""
        rounds = self._rounds
        calls = [call for one in rounds for call in one.calls]
        errors = [error for one in rounds for error in one.errors]
        spoken = [one.words for one in rounds if one.words]
        total, size = max(1, len(calls)), max(1, len(rounds))
        streak = best = 1 if calls else 0
        for before, call in pairwise(calls):
            streak = streak + 1 if call == before else 1
            best = max(best, streak)
        since = next((n for n, one in enumerate(reversed(rounds)) if one.worked), len(rounds))
        return [
            (len(calls) - len({key for key, _ in calls})) / total,
            (len(calls) - len(set(calls))) / total,
            min(1.0, max(0, best - 1) / (WINDOW - 1)),
            len(errors) / total,
            sum(a == b for a, b in pairwise(errors)) / total,
            sum(one.empty for one in rounds) / total,
            (len(spoken) - len(set(spoken))) / size,
            sum(not one.calls for one in rounds) / size,
            since / WINDOW,
        ]

    def _judge(self, signs: Sequence[float], seen: RoundSeen) -> Finding | None:
        config = self._config
        risk = config.probability(signs)
        if risk < config.note_at or len(self._rounds) < 2:
            return None
        parts = {
            name: config.weights[name] * value
            for name, value in zip(FEATURES, signs, strict=True)
            if value
        }
        heaviest = sorted(parts, key=lambda name: -parts[name])[:3]
        nudges = config.nudge_at <= risk and config.nudge_at < 1
        tools = Counter(seen.tools)
        return Finding(
            family="stagnation",
            rule="loop_risk",
            key=f"risk:{seen.agent}",
            level=Severity.NUDGE if nudges else Severity.NONE,
            count=int(100 * risk),
            limit=int(100 * (config.nudge_at if nudges else config.note_at)),
            onset_step=self._rounds[0].step,
            step=seen.step,
            agent=seen.agent,
            subject=tools.most_common(1)[0][0] if tools else None,
            cause=_CAUSES.get(heaviest[0], "same_sequence"),
            hard=False,
            evidence={"probability": round(risk, 3), "signs": ", ".join(heaviest)},
        )

    def forget(self, agent: str | None) -> None:
        self._rounds.clear()

    def dump(self) -> object:
        opened = [[agent, *_written(one)] for agent, one in self._open.items()]
        return [[_written(one) for one in self._rounds], opened]

    def load(self, data: object) -> None:
        rounds, opened = row(data, 2)
        self._rounds = deque(map(_round, sequence(rounds)), maxlen=WINDOW)
        self._open.clear()
        for item in sequence(opened):
            agent, *parts = sequence(item)
            self._open[text(agent)] = _round(parts)


def _written(one: _Round) -> list[object]:
    calls = [key + result for key, result in one.calls]
    return [one.step, calls, list(one.errors), one.empty, one.words, one.worked]


def _round(item: object) -> _Round:
    step, calls, errors, empty, words, worked = row(item, 6)
    pairs = tuple((pair[:_KEY], pair[_KEY:]) for pair in texts(calls))
    return _Round(whole(step), pairs, tuple(texts(errors)), whole(empty), text(words), flag(worked))

"""patience: one number from 0 to 1 that scales every count after which a guard speaks or acts.

At 0.5 (the default) all counts are what the rules document; towards 0 they shrink to half, to 1
they double. Numbers that were set by hand are kept: who wrote `Repeats(nudge=6)` meant 6. What is
scaled are the counts of rules (`nudge`, `block`, `stop` and their kin) and of the breaker
(`trial_rounds`, `persist_rounds`, `refused_rounds`), never windows, sizes or seconds.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import MISSING, fields, is_dataclass, replace
from typing import Final, TypeAlias, cast

from shearpin.core.breaker import BreakerSettings
from shearpin.core.detectors.base import Detector
from shearpin.errors import ConfigError

__all__ = ["LEVELS", "Patience", "patience_value", "patient", "patient_breaker"]

Patience: TypeAlias = float | str
"""A number from 0 to 1, or one of the names in `LEVELS`."""

LEVELS: Final[dict[str, float]] = {
    "minimal": 0.0,
    "low": 0.25,
    "medium": 0.5,
    "high": 0.75,
    "maximal": 1.0,
}
_SPREAD: Final = 4.0
"""Counts at patience 1, in counts at patience 0."""
_ENDINGS: Final = ("nudge", "block", "stop")
_COUNTS: Final = frozenset({"undone", "backwards", "forwards", "sustained", "stale"})
_BREAKER: Final = ("trial_rounds", "persist_rounds", "refused_rounds")
_LEAST_SOFT: Final = 3
"""A rule that may only nudge never speaks before the third time."""


def patience_value(patience: Patience) -> float:
    """The number that a patience stands for.

    Raises:
        ConfigError: it is no number from 0 to 1 and no name of a level.

    Example:
        >>> patience_value("high")
        0.75
    """
    value = LEVELS.get(patience) if isinstance(patience, str) else patience
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise ConfigError(
            f"patience must be a number from 0 to 1 or one of {', '.join(LEVELS)}, not {patience!r}"
        )
    return float(value)


def patient(detectors: Iterable[Detector], patience: Patience) -> tuple[Detector, ...]:
    """The rules with their default counts scaled; numbers set by hand are kept.

    A count never falls below 2 (3 for rules that may only nudge), and a later threshold never below
    an earlier one.

    Raises:
        ConfigError: the patience is none.

    Example:
        >>> from shearpin.core.detectors.repeat import Repeats
        >>> patient([Repeats()], 1.0)[0].nudge
        6
    """
    factor = _factor(patience)
    return tuple(detector if factor == 1 else _scaled(detector, factor) for detector in detectors)


def patient_breaker(breaker: BreakerSettings, patience: Patience) -> BreakerSettings:
    """The breaker's settings with their default counts scaled; numbers set by hand are kept."""
    factor = _factor(patience)
    if factor == 1:
        return breaker
    changed: dict[str, int] = {}
    for spec in fields(breaker):
        if spec.name in _BREAKER:
            value = cast("int", getattr(breaker, spec.name))
            if value == spec.default:
                changed[spec.name] = max(1, _rounded(value * factor))
    return replace(breaker, **changed)


def _factor(patience: Patience) -> float:
    return _SPREAD ** (patience_value(patience) - 0.5)


def _scaled(detector: Detector, factor: float) -> Detector:
    if not is_dataclass(detector):
        return detector
    names = [
        spec.name
        for spec in fields(detector)
        if spec.name in _COUNTS or spec.name.rpartition("_")[2] in _ENDINGS
    ]
    hard = any(name.rpartition("_")[2] in ("block", "stop") for name in names)
    defaults = {spec.name: spec.default for spec in fields(detector) if spec.default is not MISSING}
    changed: dict[str, int] = {}
    for name in names:
        value: object = getattr(detector, name)
        if type(value) is int and value == defaults.get(name):
            least = 2 if hard and name not in _COUNTS else min(_LEAST_SOFT, value)
            changed[name] = max(least, _rounded(value * factor))
    _raise_to_earlier(detector, changed)
    return cast("Detector", replace(detector, **changed))  # pyright: ignore[reportUnknownArgumentType]


def _raise_to_earlier(detector: Detector, changed: dict[str, int]) -> None:
    """Thresholds rise from nudge to block to stop, also where only some of them were scaled."""
    for name in list(changed):
        prefix, _, ending = name.rpartition("_")
        if ending not in ("block", "stop"):
            continue
        earlier = ("nudge",) if ending == "block" else ("nudge", "block")
        for other in earlier:
            for place in (f"{prefix}_{other}" if prefix else other, other):
                value: object = changed.get(place, getattr(detector, place, None))
                if type(value) is int:
                    changed[name] = max(changed[name], value)


def _rounded(value: float) -> int:
    return int(value + 0.5)

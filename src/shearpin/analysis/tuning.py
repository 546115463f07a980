"""Finding settings from recorded runs, and an honest estimate of how good they are elsewhere.

The search is small on purpose: one change at a time (the patience, the breaker, each rule off,
sooner or later), then the best few together. What is chosen is judged on sources that had no part
in the choice (leave one source out): one model's habits make most of the difference between
sources, so a number from the same sources says little.

Sources count alike, however many runs they hold.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Final, NamedTuple, cast

from shearpin.analysis.quality import Judged, Score, score
from shearpin.core.breaker import BreakerSettings
from shearpin.core.detectors import Detector
from shearpin.core.patience import patient
from shearpin.core.settings import Settings

__all__ = [
    "FEW",
    "Change",
    "Fold",
    "Rows",
    "Target",
    "apply",
    "choose",
    "combined",
    "cross_validate",
    "singles",
    "supported",
    "worth",
]

PATIENCE_GRID: Final = (0.0, 0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875, 1.0)
_TOGETHER: Final = 4
FEW: Final = 100
"""Successful runs below which no extreme patience is chosen: none of fewer wrongly stopped is still
compatible with 4 % and more."""
_MODERATE: Final = (0.25, 0.75)


class Target(NamedTuple):
    """What may go wrong, as shares of successful runs: ended for nothing, spoken to for nothing."""

    stops: float = 0.002
    nudges: float = 0.006


class Change(NamedTuple):
    """One difference from the settings that the search began with.

    Attributes:
        axis: changes on the same axis exclude each other.
        name: shown to people.
        patience: the new patience; None where it is not about that.
        off: a family of rules that is taken out.
        rules: rules that replace those of the same family.
        breaker: fields of the breaker with their new values.
    """

    axis: str
    name: str
    patience: float | None = None
    off: str | None = None
    rules: tuple[Detector, ...] = ()
    breaker: tuple[tuple[str, int], ...] = ()


def singles(settings: Settings, families: Iterable[str]) -> list[Change]:
    """Every single change that is tried, for rules of these families."""
    changes = [
        Change("patience", f"patience {value:g}", patience=value)
        for value in PATIENCE_GRID
        if value != settings.patience
    ]
    changes += [
        Change(name, f"{name} {value}", breaker=((name, value),))
        for name, values in (("persist_rounds", (2, 3, 6)), ("trial_rounds", (1, 3)))
        for value in values
        if getattr(settings.limits, name) != value
    ]
    wanted = set(families)
    for rule in settings.detectors:
        if rule.family in wanted:
            changes += _of_rule(rule)
    return changes


def _of_rule(rule: Detector) -> list[Change]:
    family = rule.family
    others = (("sooner", patient([rule], 0.25)[0]), ("later", patient([rule], 0.75)[0]))
    return [
        Change(family, f"{family} off", off=family),
        *(
            Change(family, f"{family} {name}", rules=(other,))
            for name, other in others
            if other != rule
        ),
    ]


def apply(settings: Settings, changes: Sequence[Change]) -> Settings:
    """The settings with these changes."""
    rules = list(settings.detectors)
    breaker, patience = settings.breaker, settings.patience
    for change in changes:
        rules = [rule for rule in rules if rule.family != change.off]
        own = {rule.family: rule for rule in change.rules}
        rules = [own.get(rule.family, rule) for rule in rules]
        breaker = replace(breaker, **dict(change.breaker))
        patience = patience if change.patience is None else change.patience
    return replace(settings, detectors=tuple(rules), breaker=breaker, patience=patience)


def worth(rows: Iterable[Judged], target: Target) -> tuple[float, float, float]:
    """How good a guard is on these runs: what it breaks too often first, then what it achieves.

    The mean over sources of: wrong stops above the target, wrong nudges above it, and labelled
    loops caught plus steps saved on failed runs (less twice the wrong nudges).
    """
    scores = list(_by_source(rows).values())
    stops = _mean([one.wrong_stops for one in scores])
    nudges = _mean([one.wrong_nudges for one in scores])
    gain = _mean([one.recall for one in scores]) + _mean([one.saved_steps for one in scores])
    return (
        -max(0.0, stops - target.stops),
        -max(0.0, nudges - target.nudges),
        round(gain - 2 * nudges, 6),
    )


def _by_source(rows: Iterable[Judged]) -> dict[str, Score]:
    grouped: defaultdict[str, list[Judged]] = defaultdict(list)
    for row in rows:
        grouped[row.source].append(row)
    return {source: score(group) for source, group in grouped.items()}


def _mean(values: Sequence[float | None]) -> float:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else 0.0


Rows = Mapping[tuple[Change, ...], Sequence[Judged]]
"""The rows of each candidate: a candidate is the changes it makes, none for what one began with."""


def supported(rows: Rows) -> Rows:
    """The candidates that these runs can speak for: with few that succeeded, no extreme patience.

    Example:
        >>> rows = {(): [], (Change("patience", "patience 0", patience=0.0),): []}
        >>> list(supported(rows))
        [()]
    """
    if sum(row.good for row in rows[()]) >= FEW:
        return rows
    low, high = _MODERATE
    return {
        changes: kept
        for changes, kept in rows.items()
        if all(one.patience is None or low <= one.patience <= high for one in changes)
    }


def choose(rows: Rows, target: Target, sources: frozenset[str]) -> tuple[Change, ...]:
    """The best candidate on these sources; the fewest changes where several are as good."""
    return max(
        rows,
        key=lambda changes: (
            worth((row for row in rows[changes] if row.source in sources), target),
            -len(changes),
        ),
    )


def combined(rows: Rows, target: Target, sources: frozenset[str]) -> list[tuple[Change, ...]]:
    """The changes that help by themselves on these sources, put together: two, three and four."""

    def of(changes: tuple[Change, ...]) -> tuple[float, float, float]:
        return worth((row for row in rows[changes] if row.source in sources), target)

    start = of(())
    helping: dict[str, tuple[tuple[float, float, float], Change]] = {}
    for changes in rows:
        if len(changes) == 1 and (value := of(changes)) > start:
            axis = changes[0].axis
            if axis not in helping or value > helping[axis][0]:
                helping[axis] = (value, changes[0])
    best = [
        change for _, change in sorted(helping.values(), key=lambda item: item[0], reverse=True)
    ]
    # The patience goes first: numbers that are set by hand are not scaled.
    return [
        tuple(sorted(best[:size], key=lambda change: change.axis != "patience"))
        for size in range(2, min(_TOGETHER, len(best)) + 1)
    ]


class Fold(NamedTuple):
    """One source held out: what was chosen without it, and how that does on it."""

    source: str
    chosen: tuple[Change, ...]
    rows: tuple[Judged, ...]
    before: tuple[Judged, ...]


def cross_validate(rows: Rows, target: Target) -> list[Fold]:
    """For each source: choose on all the others, judge on this one."""
    start = rows[()]
    sources = frozenset(row.source for row in start)
    folds: list[Fold] = []
    for source in sorted(sources):
        others = sources - {source}
        chosen = choose(rows, target, others) if others else ()
        folds.append(
            Fold(
                source,
                chosen,
                tuple(row for row in rows[chosen] if row.source == source),
                tuple(row for row in start if row.source == source),
            )
        )
    return folds


def written(settings: Settings, defaults: Settings | None = None) -> dict[str, object]:
    """What differs from the defaults, as the data of a configuration file."""
    base = defaults or Settings()
    data: dict[str, object] = {}
    if settings.patience != base.patience:
        data["patience"] = settings.patience
    detectors: dict[str, dict[str, object]] = {}
    own = {rule.family: rule for rule in settings.detectors}
    for rule in base.detectors:
        other = own.get(rule.family)
        differs: dict[str, object] = {"enabled": False}
        if other is not None:
            differs = _differing(rule, other)
        if differs:
            detectors[rule.family] = differs
    if detectors:
        data["detectors"] = detectors
    breaker = _differing(base.breaker, settings.breaker)
    if breaker:
        data["breaker"] = breaker
    return data


def _differing(
    rule: Detector | BreakerSettings, other: Detector | BreakerSettings
) -> dict[str, object]:
    if not is_dataclass(rule) or type(rule) is not type(other):
        return {}
    found: dict[str, object] = {}
    for spec in fields(rule):
        value = cast("object", getattr(other, spec.name))
        if value != getattr(rule, spec.name):
            label = getattr(value, "label", None)
            found[spec.name] = value if label is None else label
    return found

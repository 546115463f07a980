"""Presets: settings for the situations that cause most false alarms.

Contract: a preset only makes the guard more patient, and only where its situation calls for it. The
same call with the same result still ends a run, later (except for tools that are asked for a state:
those are only ever remarked on). What a guard is given besides goes before the
preset: its own overrides are asked first, its own detectors and patience replace the preset's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from shearpin.core.breaker import BreakerSettings
from shearpin.core.detectors import (
    Cycles,
    Echoes,
    ErrorStreaks,
    Monologues,
    PingPongs,
    Repeats,
)
from shearpin.core.overrides import Override
from shearpin.core.patience import Patience
from shearpin.errors import ConfigError
from shearpin.findings import Severity

__all__ = ["PRESETS", "Preset", "preset_named"]


@dataclass(frozen=True, slots=True)
class Preset:
    """Settings for one situation.

    Attributes:
        purpose: one sentence: for which agents.
        patience: of the whole guard.
        breaker: how long a loop may go on once it was spoken of.
        overrides: other thresholds for the tools that this situation is about.
    """

    purpose: str
    patience: Patience = 0.5
    breaker: BreakerSettings = field(default_factory=BreakerSettings)
    overrides: tuple[Override, ...] = ()


_STATUS = tuple("*status* *state* *poll* *progress* *job* *queue* check_* wait* *_wait".split())
_SCREEN = tuple(
    "*click* *scroll* *press* *key* *type* *screenshot* *snapshot* *navigate* *hover* *tap* "
    "*swipe* *browser* *page* computer*".split()
)
_SHELL = tuple(
    "*bash* *shell* *exec* *terminal* *command* run* *test* *build* *lint* *python*".split()
)
_SEARCH = tuple(
    "*search* *find* *lookup* *query* *fetch* *retriev* *browse* *read* *scrape*".split()
)

PRESETS: Final[Mapping[str, Preset]] = {
    "polling": Preset(
        "agents that start jobs and ask for their state until it changes",
        overrides=(
            Override(
                tools=_STATUS,
                detectors=(
                    Repeats(nudge=10, block=30, stop=None, error_stop=30, ceiling=Severity.NUDGE),
                    Cycles(nudge=10, block=None, stop=None, ceiling=Severity.NUDGE),
                ),
                off=("stagnation", "insistence", "dead_end_drift", "revisits"),
            ),
        ),
    ),
    "browser": Preset(
        "agents that step through pages, forms and screens",
        breaker=BreakerSettings(persist_rounds=8, trial_rounds=3),
        overrides=(
            Override(
                tools=_SCREEN,
                detectors=(
                    Repeats(nudge=6, block=12, stop=20, window=30, error_stop=12),
                    Cycles(nudge=6, block=12, stop=20),
                    ErrorStreaks(nudge=6, block=10),
                ),
                off=("stagnation", "insistence", "dead_end_drift", "paging", "litany"),
            ),
        ),
    ),
    "coding": Preset(
        "agents that edit, run tests and edit again",
        overrides=(
            Override(
                tools=_SHELL,
                detectors=(
                    Repeats(nudge=4, block=6, stop=10, error_stop=7),
                    ErrorStreaks(nudge=6, block=8),
                ),
                off=("insistence", "litany"),
            ),
        ),
    ),
    "research": Preset(
        "agents that search widely, where most searches find nothing",
        overrides=(
            Override(
                tools=_SEARCH,
                detectors=(ErrorStreaks(nudge=8, block=14),),
                off=("stagnation", "guesses", "paging", "dead_end_drift"),
            ),
        ),
    ),
    "batch": Preset(
        "agents that do the same to thousands of things",
        overrides=(
            Override(
                tools=("*",),
                detectors=(ErrorStreaks(nudge=8, block=16),),
                off=("stagnation", "litany", "paging", "dead_end_drift", "guesses", "velocity"),
            ),
        ),
    ),
    "negotiation": Preset(
        "agents that talk to each other at length, with few tools",
        breaker=BreakerSettings(persist_rounds=6),
        overrides=(
            Override(
                nodes=("*",),
                detectors=(
                    Monologues(nudge=6, stop=12),
                    Echoes(nudge=6),
                    PingPongs(nudge=8, block=14, stop=20),
                    Cycles(nudge=6, block=10, stop=16),
                ),
                off=("litany", "small_talk"),
            ),
        ),
    ),
}  # fmt: skip
"""All presets by name."""


def preset_named(name: str) -> Preset:
    """A preset by its name.

    Raises:
        ConfigError: there is none of this name; names them all.

    Example:
        >>> preset_named("coding").purpose
        'agents that edit, run tests and edit again'
    """
    found = PRESETS.get(name)
    if found is None:
        raise ConfigError(f"preset must be one of {', '.join(PRESETS)}, not {name!r}")
    return found

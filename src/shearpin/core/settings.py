"""The pure part of a guard's recipe: everything a session needs to judge, checked when built."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Literal

from shearpin.core.breaker import BreakerSettings
from shearpin.core.choosing import Chooses
from shearpin.core.detectors import DEFAULT_DETECTORS, Detector
from shearpin.core.messages import CAUSES, RULES
from shearpin.core.modes import MODES, Mode, check_modes
from shearpin.core.overrides import Override
from shearpin.core.patience import Patience, patient, patient_breaker
from shearpin.core.tools import IGNORED_ARGUMENTS, ToolFacts
from shearpin.core.wording import Own, check_words
from shearpin.errors import ConfigError

__all__ = ["MODES", "Mode", "Settings"]

_PLACES = ("node:", "model:")


@dataclass(frozen=True, slots=True)
class Settings:
    """How a session judges.

    Attributes:
        mode: `observe` records and never acts, `warn` nudges at most, `enforce` acts.
        detectors: the rules, each a frozen config; at most one of each kind.
        breaker: patience of the circuit breaker.
        patience: from 0 to 1, or `minimal`, `low`, `medium`, `high`, `maximal`: scales the counts
            of rules and breaker that were not set by hand.
        overrides: other thresholds for some tools or nodes; the first that matches counts.
        tools: what is known of tools, by name; see `ToolFacts`.
        ignored_arguments: argument names that are commentary, not part of a call's identity, unless
            a tool's facts say otherwise.
        language: of nudges and final messages, `en` or `zh`.
        modes: other modes by place: `node:` or `tool:` and a name, in which `*` and `?` stand for
            any characters.
        exclude: nodes (likewise patterns) of which nothing is seen and in which nothing is done.
        messages: templates in place of the guard's own words, by name.
        on_loop: what is done about a loop before the run ends over it: `rollback`,
            `without_tool`, `node:` and the name of the node to go on at, or `model:` and the name
            of the model to go on with.
        choices: what chooses between wordings, refusals and ways out; None: the fixed ladder.
        rules: the detectors under this patience; made from the fields above.
        limits: the breaker's settings under this patience; likewise.
    """

    mode: Mode = "enforce"
    detectors: tuple[Detector, ...] = DEFAULT_DETECTORS
    breaker: BreakerSettings = field(default_factory=BreakerSettings)
    patience: Patience = 0.5
    overrides: tuple[Override, ...] = ()
    tools: Mapping[str, ToolFacts] = field(default_factory=dict[str, ToolFacts])
    ignored_arguments: frozenset[str] = IGNORED_ARGUMENTS
    language: Literal["en", "zh"] = "en"
    modes: Mapping[str, Mode] = field(default_factory=dict[str, Mode])
    exclude: tuple[str, ...] = ()
    messages: Own = field(default_factory=dict[str, str])
    on_loop: str | None = None
    choices: Chooses | None = field(default=None, repr=False)
    rules: tuple[Detector, ...] = field(init=False, repr=False, compare=False)
    limits: BreakerSettings = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise ConfigError(f"mode must be one of {', '.join(MODES)}, not {self.mode!r}")
        if self.language not in ("en", "zh"):
            raise ConfigError(f"language must be 'en' or 'zh', not {self.language!r}")
        seen: set[str] = set()
        for detector in self.detectors:
            family = getattr(detector, "family", None)
            if not isinstance(family, str) or isinstance(detector, type):
                raise ConfigError(
                    f"detectors must hold detector configs such as Repeats(), not {detector!r}"
                )
            if family in seen:
                raise ConfigError(f"detectors holds two {family!r} rules; keep one of them")
            seen.add(family)
        _check_families(self.overrides, seen)
        object.__setattr__(self, "rules", patient(self.detectors, self.patience))
        object.__setattr__(self, "limits", patient_breaker(self.breaker, self.patience))
        check_modes(self.modes)
        check_words(self.messages, sorted(RULES | seen), sorted(CAUSES))
        if self.choices is not None and not callable(getattr(self.choices, "choose", None)):
            raise ConfigError(f"choices must be Choices(...), not {self.choices!r}")
        if isinstance(self.exclude, str):
            raise ConfigError("exclude must be a tuple of node names, not one text")
        way = self.on_loop
        if way not in (None, "rollback", "without_tool") and not (way or "").startswith(_PLACES):
            raise ConfigError(
                "on_loop must be None, 'rollback', 'without_tool', 'node:' and the name of a "
                f"node, or 'model:' and the name of a model, not {way!r}"
            )
        for name, facts in self.tools.items():
            if not isinstance(facts, ToolFacts):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise ConfigError(f"tools[{name!r}] must be ToolFacts(...), not {facts!r}")


def _check_families(overrides: tuple[Override, ...], families: set[str]) -> None:
    known = families | {detector.family for detector in DEFAULT_DETECTORS}
    for override in overrides:
        for family in (*override.off, *(detector.family for detector in override.detectors)):
            if family not in known:
                close = get_close_matches(family, known, n=1)
                hint = f"did you mean {close[0]!r}?" if close else f"known are {sorted(known)}"
                raise ConfigError(f"an override names the unknown rule {family!r}; {hint}")

"""The part of a guard that learns from runs: what it is given, and what it makes of that.

Contract: nothing here acts on a run. What learns is told of each run that is over; what was learnt
comes in when the next conversation begins.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Protocol, cast

from shearpin.core.detectors import Detector
from shearpin.core.modes import Mode
from shearpin.core.settings import Settings
from shearpin.errors import ConfigError

if TYPE_CHECKING:
    from shearpin.analysis.adaptive import Adaptive
    from shearpin.analysis.choices import Choices
    from shearpin.analysis.kept import Place
    from shearpin.report.model import Report

__all__ = ["Learner", "Learns"]


class Learner(Protocol):
    """Learns from runs that are over.

    Attributes:
        blocking: whether it may wait for a disk or a network.
    """

    @property
    def blocking(self) -> bool: ...
    def learn(self, report: Report) -> object: ...


class Learns:
    """What a guard has besides its fields, because it may learn."""

    @property
    def learners(self) -> tuple[Learner, ...]:
        """What learns from each run that is over."""
        held = self.__dict__
        both = (cast("Choices | None", held["choices"]), cast("Adaptive | None", held["_adaptive"]))
        return tuple(one for one in both if one is not None)

    def fitted(self, settings: Settings) -> Settings:
        """Settings with the patience that was learnt, where the guard is adaptive."""
        adaptive = cast("Adaptive | None", self.__dict__["_adaptive"])
        if adaptive is None or adaptive.patience == settings.patience:
            return settings
        return replace(settings, patience=adaptive.patience)


def adaptive_of(
    given: Adaptive | Place | bool, mode: Mode, name: str | None, *, by_hand: bool
) -> Adaptive | None:
    """What a guard's patience follows, if anything.

    Args:
        given: by the user.
        mode: of the guard; `observe` adapts unless it is told not to.
        name: of the guard, and so of the workflow.
        by_hand: whether a patience was set by the user.

    Raises:
        ConfigError: it cannot be used, or both were given.
    """
    if given is False or (given is None and (mode != "observe" or by_hand)):
        return None
    from shearpin.analysis.adaptive import Adaptive

    if by_hand:
        raise ConfigError("adaptive follows a patience of its own; drop patience and preset")
    if given is None or given is True:
        return Adaptive(workflow=name or "default")
    return given if isinstance(given, Adaptive) else Adaptive(given, workflow=name or "default")


def with_early_nudges(detectors: tuple[Detector, ...], early: bool | float) -> tuple[Detector, ...]:
    """The rules, and the loop probability that may nudge before them, where it is asked for."""
    if early is False:
        return detectors
    if not isinstance(early, int | float):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ConfigError(f"early_nudges must be True, False or a bound up to 1, not {early!r}")
    from shearpin.analysis.risk import early_rule

    return (*detectors, early_rule() if early is True else early_rule(early))

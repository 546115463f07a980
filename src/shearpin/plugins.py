"""Rules that other packages bring along, through the entry point group `shearpin.detectors`.

Contract: nothing is loaded by itself. A guard uses what its `detectors` name; this module only
finds and builds. An entry point is a detector, or a class or function that makes one without
arguments.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import EntryPoint, entry_points
from typing import cast

from shearpin.core.detectors import Detector
from shearpin.errors import ConfigError

__all__ = ["GROUP", "plugin_detector", "plugin_names"]

GROUP = "shearpin.detectors"


def plugin_names() -> tuple[str, ...]:
    """Names of the rules that installed packages offer, sorted."""
    return tuple(sorted({point.name for point in _points()}))


def plugin_detector(name: str) -> Detector:
    """The rule that an installed package offers under this name.

    Raises:
        ConfigError: no package offers it, loading it failed, or it is no rule.
    """
    for point in _points():
        if point.name == name:
            return _built(point)
    offered = ", ".join(plugin_names()) or "none"
    raise ConfigError(f"no installed package offers the detector {name!r}; offered: {offered}")


def _points() -> Iterable[EntryPoint]:
    return entry_points(group=GROUP)


def _built(point: EntryPoint) -> Detector:
    try:
        found: object = point.load()
        if isinstance(found, type) or not hasattr(found, "probe"):
            if not callable(found):
                raise TypeError(f"{point.value} is neither a detector nor makes one")
            found = found()
    except Exception as error:  # foreign code may raise anything
        raise ConfigError(f"the detector plug-in {point.name!r} cannot be used: {error}") from error
    missing = [part for part in ("family", "watches", "probe") if not hasattr(found, part)]
    if missing:
        raise ConfigError(
            f"the detector plug-in {point.name!r} gave {type(found).__name__}, which lacks "
            f"{', '.join(missing)}"
        )
    return cast("Detector", found)

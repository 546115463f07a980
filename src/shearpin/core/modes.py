"""Which mode counts where: a guard's own, or another one for some nodes and tools.

Contract: a place that is named gets the mode that is named for it. Where both its tool and its node
are named, the one that acts less counts; of several patterns for one name, the first.
"""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Final, Literal, TypeAlias

from shearpin.errors import ConfigError

__all__ = ["MODES", "Mode", "Modes", "check_modes"]

Mode: TypeAlias = Literal["observe", "warn", "enforce"]
MODES: Final[tuple[Mode, ...]] = ("observe", "warn", "enforce")

_MOST_KNOWN: Final = 256
_KINDS: Final = ("node:", "tool:")


class Modes:
    """The mode of each place, remembered; the memory is bounded, as names come from models."""

    __slots__ = ("_default", "_known", "_named")

    def __init__(self, default: Mode, named: Mapping[str, Mode]) -> None:
        self._default: Mode = default
        self._named = named
        self._known: dict[tuple[str, str], Mode] = {}

    def at(self, tool: str, node: str) -> Mode:
        """The mode for what a tool (empty: no tool) does at a node."""
        if not self._named:
            return self._default
        place = (tool, node)
        found = self._known.get(place)
        if found is None:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            found = self._known[place] = self._find(tool, node)
        return found

    def _find(self, tool: str, node: str) -> Mode:
        by_tool, by_node = self._of("tool:", tool), self._of("node:", node)
        if by_tool is None or by_node is None:
            return by_tool or by_node or self._default
        return by_tool if MODES.index(by_tool) <= MODES.index(by_node) else by_node

    def _of(self, kind: str, name: str) -> Mode | None:
        for pattern, mode in self._named.items():
            if pattern.startswith(kind) and fnmatchcase(name, pattern.removeprefix(kind)):
                return mode
        return None


def check_modes(modes: Mapping[str, Mode]) -> None:
    """Refuse what names no node or tool, or no mode.

    Raises:
        ConfigError: names the entry and the fix.

    Example:
        >>> check_modes({"node:planner": "observe", "tool:charge_*": "warn"})
    """
    for place, mode in modes.items():
        if not place.startswith(_KINDS) or place in _KINDS:
            raise ConfigError(
                f"modes: {place!r} must be 'node:' or 'tool:' and a name, such as 'tool:{place}'"
            )
        if mode not in MODES:
            raise ConfigError(f"modes[{place!r}] must be one of {', '.join(MODES)}, not {mode!r}")

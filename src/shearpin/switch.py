"""The kill switch: turns every guard of this process off while it runs, and on again.

Contract: while it is thrown, guarded graphs behave as if they were not guarded: nothing is judged,
said, held or stopped, and runs that begin are not watched at all. It is thrown by a call of
`disable`, by the environment variable `SHEARPIN_DISABLED` (`1`, `true`, `yes` or `on`), or while
the file exists that `SHEARPIN_DISABLED_FILE` names. A call counts at once; variables and file are
looked at when a run starts and at most every 250 ms, so that a step costs nothing.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from shearpin import clock

__all__ = ["SWITCH", "Switch", "disable", "enable"]

VARIABLE: Final = "SHEARPIN_DISABLED"
FILE_VARIABLE: Final = "SHEARPIN_DISABLED_FILE"
LOOK_SECONDS: Final = 0.25

_YES: Final = frozenset({"1", "true", "yes", "on"})


class Switch:
    """One kill switch; the process has one, tests have others."""

    def __init__(self, now: clock.Clock = clock.monotonic) -> None:
        self._now = now
        self._called = False
        self._outside = False
        self._looked = float("-inf")

    def throw(self, off: bool) -> None:
        """Turn guards off, or on again as far as this switch is concerned."""
        self._called = off

    def look(self) -> bool:
        """Whether guards are off, looking at the environment and the file now."""
        self._looked = self._now()
        named = os.environ.get(VARIABLE, "").strip().lower() in _YES
        path = "" if named else os.environ.get(FILE_VARIABLE, "")
        self._outside = named or bool(path and Path(path).exists())
        return self._called or self._outside

    def is_off(self) -> bool:
        """Whether guards are off, as of the last look, if that was just now."""
        if self._called:
            return True
        if self._now() - self._looked >= LOOK_SECONDS:
            return self.look()
        return self._outside


SWITCH: Final = Switch()
"""The switch of this process."""


def disable() -> None:
    """Turn every guard of this process off, at once, also in runs that are going on.

    A run that was stopped already but not yet ended goes on, too.

    Example:
        >>> disable()
        >>> enable()
    """
    SWITCH.throw(True)


def enable() -> None:
    """Take back `disable`. What the environment or the file switched off stays off."""
    SWITCH.throw(False)

"""Every error that Shearpin raises on purpose, on one screen.

`ShearpinError`
├── `ConfigError`            a setting is wrong; raised when it is built, names field and fix
├── `TraceError`             a recorded run cannot be read; names file, line and field
├── `LedgerError`            a store of holds and spend failed
├── `StoreError`             a store of records failed; names the place and the fix
├── `EffectRefusedError`     an effect was not to happen again, and nobody could answer instead
├── `PriceUnknownError`      a dollar cap is set and a model has no known price
└── `TrippedError`           the guard stopped the run (only with `on_stop="raise"`)
    ├── `LoopDetectedError`
    ├── `BudgetExceededError`
    └── `CircuitOpenError`   a call was made after the stop

All are `Exception`s, pickle, and say what happened, with which numbers, and what to do.
"""

from __future__ import annotations

from collections.abc import Mapping

__all__ = [
    "BudgetExceededError",
    "CircuitOpenError",
    "ConfigError",
    "EffectRefusedError",
    "LedgerError",
    "LoopDetectedError",
    "PriceUnknownError",
    "ShearpinError",
    "StoreError",
    "TraceError",
    "TrippedError",
]


class ShearpinError(Exception):
    """Base of every error that Shearpin raises on purpose."""


class ConfigError(ShearpinError, ValueError):
    """A setting is wrong. The message names the field, the value and the fix."""


class TraceError(ShearpinError, ValueError):
    """A recorded run cannot be read. The message names file, line and field."""


class LedgerError(ShearpinError):
    """A store of holds and spend failed or refused to answer."""


class StoreError(ShearpinError):
    """A store of records failed or refused to answer. The message names the place and the fix."""


class EffectRefusedError(ShearpinError):
    """A tool was called whose effect was not to happen again, where no answer could be given in its
    place. The tool was not run.

    Attributes:
        reason: `done`, `in_progress`, `outcome_unknown`, `too_soon`, `too_many`, or `store` where
            the records could not be read.
        output: what came of the effect, where it is `done`.
    """

    def __init__(self, message: str, reason: str = "done", output: object = None) -> None:
        super().__init__(message)
        self.reason = reason
        self.output = output

    def __reduce__(self) -> tuple[type[EffectRefusedError], tuple[str, str, object]]:
        return (type(self), (str(self.args[0]), self.reason, self.output))


class PriceUnknownError(ShearpinError, LookupError):
    """A dollar cap is set and the model has no known price."""


class TrippedError(ShearpinError):
    """The guard stopped the run.

    Attributes:
        reason: machine-readable, e.g. `loop:repeat`.
        evidence: the numbers behind it.
    """

    def __init__(
        self, message: str, reason: str = "stopped", evidence: Mapping[str, object] | None = None
    ) -> None:
        super().__init__(message)
        self.reason = reason
        self.evidence: dict[str, object] = dict(evidence or {})

    def __reduce__(self) -> tuple[type[TrippedError], tuple[str, str, dict[str, object]]]:
        return (type(self), (str(self.args[0]), self.reason, self.evidence))


class LoopDetectedError(TrippedError):
    """The run went round in circles and was stopped."""


class BudgetExceededError(TrippedError):
    """A hard cap was reached."""


class CircuitOpenError(TrippedError):
    """A call was made in a run that has been stopped already."""

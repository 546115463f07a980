"""What a rule about a kind of exception says, and how much weight it has.

Contract: data only. A family lists exceptions by class name; the module that a class comes from is
compared by prefix, so that a provider that is not installed costs nothing and nothing is imported.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

from shearpin.boundary.categories import ErrorCategory

__all__ = ["Family", "Kind", "Weight", "degradable", "fatal", "retryable"]


class Weight(IntEnum):
    """How much a class says about what went wrong; of a chain, the one that says most decides."""

    NOTHING = 0
    """`Exception`, `RuntimeError`: whatever lies beneath says more."""
    MISTAKE = 1
    """A programming error; beneath an exception that was raised on purpose it counts for little."""
    SPOKEN = 2
    """Raised on purpose, in words: `ValueError`, `ToolException`."""
    BROAD = 3
    """A failed exchange, of which what lies beneath may say more: `APIConnectionError`."""
    NARROW = 4
    """No connection was made; why, what lies beneath may say."""
    EXACT = 5
    """What happened, exactly: a status, a code, a refused connection."""


class Kind(NamedTuple):
    """What is known of a kind of exception.

    Attributes:
        category: what it calls for.
        error_type: what it is called in results and reports.
        safe: whether the other side certainly did not act on the request.
        weight: how much the class says.
    """

    category: ErrorCategory
    error_type: str
    safe: bool = False
    weight: Weight = Weight.EXACT


@dataclass(frozen=True)
class Family:
    """The exceptions of one provider or library.

    Attributes:
        modules: prefixes of the modules that its classes come from.
        kinds: what is known by class name.
        codes: what is known by the provider's own code or type, in lower case; these come first.
        model: whether it is a model provider's: there a request that is wrong, refused or about
            what does not exist is fatal; anywhere else that is an answer to react to.
    """

    modules: tuple[str, ...]
    kinds: Mapping[str, Kind] = field(default_factory=dict[str, Kind])
    codes: Mapping[str, Kind] = field(default_factory=dict[str, Kind])
    model: bool = False

    def owns(self, module: str) -> bool:
        """Whether a class of this module belongs to the family."""
        return any(module == name or module.startswith(f"{name}.") for name in self.modules)


def retryable(error_type: str, *, safe: bool = False, weight: Weight = Weight.EXACT) -> Kind:
    """It may pass by itself."""
    return Kind(ErrorCategory.RETRYABLE, error_type, safe, weight)


def degradable(error_type: str, *, weight: Weight = Weight.EXACT) -> Kind:
    """Something else may help."""
    return Kind(ErrorCategory.DEGRADABLE, error_type, False, weight)


def fatal(error_type: str, *, weight: Weight = Weight.EXACT) -> Kind:
    """Nothing that an agent does will help."""
    return Kind(ErrorCategory.FATAL, error_type, False, weight)

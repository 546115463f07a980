"""Shearpin: a shear pin for LLM agents.

    import shearpin

    app = shearpin.guard(graph)   # a LangGraph graph or LangChain agent; behaves as before ...
    app.invoke(inputs)            # ... until it goes round in circles: then it ends the normal way
    app.report()                  # and says why

Importing this package loads no third-party module; each name below loads on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shearpin.core.breaker import BreakerSettings as BreakerSettings
    from shearpin.core.budget import Budget as Budget
    from shearpin.core.detectors import Cycles as Cycles
    from shearpin.core.detectors import Monologues as Monologues
    from shearpin.core.detectors import Repeats as Repeats
    from shearpin.core.detectors import UnknownTools as UnknownTools
    from shearpin.core.overrides import Override as Override
    from shearpin.core.tools import ToolFacts as ToolFacts
    from shearpin.errors import BudgetExceededError as BudgetExceededError
    from shearpin.errors import CircuitOpenError as CircuitOpenError
    from shearpin.errors import ConfigError as ConfigError
    from shearpin.errors import LoopDetectedError as LoopDetectedError
    from shearpin.errors import ShearpinError as ShearpinError
    from shearpin.errors import TraceError as TraceError
    from shearpin.errors import TrippedError as TrippedError
    from shearpin.recipe import Guard as Guard
    from shearpin.recipe import guard as guard
    from shearpin.report.model import Report as Report
    from shearpin.switch import disable as disable
    from shearpin.switch import enable as enable

_HOME = {
    "BreakerSettings": "shearpin.core.breaker",
    "Budget": "shearpin.core.budget",
    "BudgetExceededError": "shearpin.errors",
    "CircuitOpenError": "shearpin.errors",
    "ConfigError": "shearpin.errors",
    "Cycles": "shearpin.core.detectors",
    "Guard": "shearpin.recipe",
    "LoopDetectedError": "shearpin.errors",
    "Monologues": "shearpin.core.detectors",
    "Override": "shearpin.core.overrides",
    "Repeats": "shearpin.core.detectors",
    "Report": "shearpin.report.model",
    "ShearpinError": "shearpin.errors",
    "ToolFacts": "shearpin.core.tools",
    "TraceError": "shearpin.errors",
    "TrippedError": "shearpin.errors",
    "UnknownTools": "shearpin.core.detectors",
    "disable": "shearpin.switch",
    "enable": "shearpin.switch",
    "guard": "shearpin.recipe",
}

__version__ = "0.1.0"
__all__ = [
    "BreakerSettings",
    "Budget",
    "BudgetExceededError",
    "CircuitOpenError",
    "ConfigError",
    "Cycles",
    "Guard",
    "LoopDetectedError",
    "Monologues",
    "Override",
    "Repeats",
    "Report",
    "ShearpinError",
    "ToolFacts",
    "TraceError",
    "TrippedError",
    "UnknownTools",
    "__version__",
    "disable",
    "enable",
    "guard",
]


def __getattr__(name: str) -> object:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'shearpin' has no attribute {name!r}")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)

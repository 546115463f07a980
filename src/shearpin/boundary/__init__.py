"""The error boundary: failures become structured results that an agent can reason about.

    from shearpin import guard
    from shearpin.boundary import Boundary

    app = guard(graph, boundary=Boundary(alternative={"search": "answer_from_memory"}))

Each name below loads on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shearpin.adapters.langgraph.retrying import retry_policy as retry_policy
    from shearpin.boundary.boundary import Boundary as Boundary
    from shearpin.boundary.boundary import Failure as Failure
    from shearpin.boundary.categories import Classification as Classification
    from shearpin.boundary.categories import ErrorCategory as ErrorCategory
    from shearpin.boundary.classification import Rule as Rule
    from shearpin.boundary.classification import classify as classify
    from shearpin.boundary.resilience import resilient as resilient
    from shearpin.boundary.results import ToolResult as ToolResult
    from shearpin.boundary.settings import Answers as Answers
    from shearpin.boundary.settings import Availability as Availability
    from shearpin.boundary.settings import Cached as Cached
    from shearpin.boundary.settings import Effects as Effects
    from shearpin.boundary.settings import Retries as Retries
    from shearpin.boundary.settings import Static as Static
    from shearpin.boundary.settings import ToolPolicy as ToolPolicy
    from shearpin.errors import EffectRefusedError as EffectRefusedError

_HOME = {
    "Answers": "shearpin.boundary.settings",
    "Availability": "shearpin.boundary.settings",
    "Boundary": "shearpin.boundary.boundary",
    "Cached": "shearpin.boundary.settings",
    "Classification": "shearpin.boundary.categories",
    "EffectRefusedError": "shearpin.errors",
    "Effects": "shearpin.boundary.settings",
    "ErrorCategory": "shearpin.boundary.categories",
    "Failure": "shearpin.boundary.boundary",
    "Retries": "shearpin.boundary.settings",
    "Rule": "shearpin.boundary.classification",
    "Static": "shearpin.boundary.settings",
    "ToolPolicy": "shearpin.boundary.settings",
    "ToolResult": "shearpin.boundary.results",
    "classify": "shearpin.boundary.classification",
    "resilient": "shearpin.boundary.resilience",
    "retry_policy": "shearpin.adapters.langgraph.retrying",
}

__all__ = [
    "Answers",
    "Availability",
    "Boundary",
    "Cached",
    "Classification",
    "EffectRefusedError",
    "Effects",
    "ErrorCategory",
    "Failure",
    "Retries",
    "Rule",
    "Static",
    "ToolPolicy",
    "ToolResult",
    "classify",
    "resilient",
    "retry_policy",
]


def __getattr__(name: str) -> object:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'shearpin.boundary' has no attribute {name!r}")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)

"""Fallbacks that ask for more than the model gives are refused at once, and all others work."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Annotated, Any

import pytest
from langchain.tools import ToolRuntime
from langchain_core.tools import InjectedToolArg, InjectedToolCallId, tool
from langgraph.prebuilt import InjectedState, InjectedStore

from shearpin.boundary import Cached, Static, ToolPolicy
from shearpin.boundary.injected import injected_into
from shearpin.errors import ConfigError


@tool
def of_runtime(q: str, runtime: ToolRuntime) -> str:
    """Answer."""
    return q


@tool
def of_state(q: str, state: Annotated[dict[str, Any], InjectedState]) -> str:
    """Answer."""
    return q


@tool
def of_store(q: str, store: Annotated[Any, InjectedStore()]) -> str:
    """Answer."""
    return q


@tool
def of_user(q: str, user: Annotated[str, InjectedToolArg]) -> str:
    """Answer."""
    return q


@tool
def of_id(q: str, call: Annotated[str, InjectedToolCallId]) -> str:
    """Answer."""
    return q


@tool
def with_default(q: str, state: Annotated[dict[str, Any] | None, InjectedState] = None) -> str:
    """Answer."""
    return q


@tool
def plain(q: str, limit: int = 3) -> str:
    """Answer."""
    return q


def function(q: str) -> str:
    return q


@pytest.mark.parametrize(
    ("fallback", "asked"),
    [(of_runtime, "runtime"), (of_state, "state"), (of_store, "store"), (of_user, "user")],
)
def test_a_fallback_that_needs_what_only_the_host_has_is_refused(fallback: Any, asked: str) -> None:
    with pytest.raises(ConfigError, match=f"'{fallback.name}' needs {asked}"):
        ToolPolicy(fallbacks=[Static("no"), fallback])


@pytest.mark.parametrize(
    "fallback", [of_id, with_default, plain, function, Cached(), Static(1), SimpleNamespace]
)
def test_all_others_are_taken(fallback: Any) -> None:
    assert ToolPolicy(fallbacks=[fallback]).fallbacks == (fallback,)


@pytest.mark.parametrize(
    "odd",
    [
        object(),
        SimpleNamespace(args={}, get_input_schema=lambda: object()),
        SimpleNamespace(args=None, get_input_schema=lambda: object()),
    ],
)
def test_what_has_no_such_schema_asks_for_nothing(odd: object) -> None:
    assert injected_into(odd) == []

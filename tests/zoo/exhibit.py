"""What an exhibit of the zoo is: how to build a graph, and what to do with it.

Every exhibit is deterministic but for ids and times, and is built anew for each run, so that two
runs of it may be compared line by line.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import metadata
from typing import Any, TypeAlias

import pytest

Graph: TypeAlias = Any
Act: TypeAlias = Callable[[Graph, dict[str, Any]], object]
"""Something done to a graph between two turns, such as `update_state`; gets the thread's config."""

LANGGRAPH = tuple(int(part) for part in metadata.version("langgraph").split(".")[:2])


@dataclass(frozen=True)
class Exhibit:
    """One graph and its turns.

    A turn is an input, a `Command`, None to go on after a pause, or an `Act`. What is `parallel`
    runs things at the same time whatever the settings: the order of its events is an accident.
    What becomes `broken` ends up with a history that real providers refuse, which a guard mends
    unless it is told not to.
    """

    name: str
    build: Callable[[], Graph]
    turns: tuple[Any, ...]
    config: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    only_async: bool = False
    parallel: bool = False
    broken: bool = False
    needs: str | None = None
    since: tuple[int, int] = (1, 0)

    def require(self) -> None:
        """Skip the test where the installed host cannot show this exhibit."""
        if self.since > LANGGRAPH:
            pytest.skip(f"needs langgraph {'.'.join(map(str, self.since))}")
        if self.needs is not None:
            pytest.importorskip(self.needs)

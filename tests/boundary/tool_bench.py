"""A runner of tool calls with a clock that only moves when it waits, in threads and event loops."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import pytest

from shearpin.boundary import Availability, Retries, ToolPolicy, ToolResult, classify
from shearpin.boundary.availability import AvailabilityBreaker
from shearpin.boundary.calls import CallInfo, Hooks
from shearpin.boundary.runner import ToolCallRunner
from shearpin.boundary.tally import RunErrors
from shearpin.core.tools import ToolFacts
from shearpin.stores import MemoryStore, Store
from shearpin.testing import ManualClock

HOW = ("sync", "async")
PRICES = pytest.mark.skipif(
    find_spec("genai_prices") is None, reason="budgets need genai-prices, which is not installed"
)
READ = ToolFacts(read_only=True)
START = 1_700_000_000.0


class Outcomes:
    """A tool that raises or gives back what it is told, in order; the last of it for ever."""

    def __init__(self, *outcomes: object) -> None:
        self.outcomes = list(outcomes)
        self.calls = 0
        self.seen: list[dict[str, Any]] = []

    def __call__(self, **args: Any) -> Any:
        self.calls += 1
        self.seen.append(args)
        outcome = self.outcomes[min(self.calls, len(self.outcomes)) - 1]
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome


class Bench:
    """Runs calls as a host would.

    Args:
        how: `sync` or `async`.
        options: of the runner.
    """

    def __init__(self, how: str, store: Store | None = None, **options: Any) -> None:
        self.how = how
        self.clock = ManualClock(START)
        self.waits: list[float] = []
        self.store = MemoryStore(self.clock) if store is None else store
        self.tally = RunErrors()
        self.faults: list[tuple[str, BaseException]] = []
        settings: dict[str, Any] = {
            "tally": self.tally,
            "breaker": self._breaker,
            "now": self.clock,
            "epoch": self.clock,
            "sleep": self._wait,
            "asleep": self._await,
            "uniform": lambda low, high: high,
            "fault": lambda where, error: self.faults.append((where, error)),
        }
        settings["classify"] = classify
        self.runner = ToolCallRunner(self.store, **{**settings, **options})

    def __call__(
        self,
        tool: Callable[..., Any],
        args: dict[str, Any] | None = None,
        *,
        name: str = "search",
        call: str = "c1",
        thread: str = "t",
        facts: ToolFacts | None = None,
        policy: ToolPolicy | None = None,
        hooks: Hooks | None = None,
    ) -> ToolResult:
        given = args or {}
        info = CallInfo(name, given, call, thread, facts)
        how = (policy or ToolPolicy(), hooks or Hooks())
        if self.how == "sync":
            return self.runner.run(info, lambda: tool(**given), *how)

        async def execute() -> Any:
            await asyncio.sleep(0)
            return tool(**given)

        return asyncio.run(self.runner.arun(info, execute, *how))

    def _wait(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.clock.advance(seconds)

    async def _await(self, seconds: float) -> None:
        self._wait(seconds)
        await asyncio.sleep(0)

    def _breaker(self, name: str, settings: Availability) -> AvailabilityBreaker:
        return AvailabilityBreaker(self.store, name, settings, self.clock)


FEW = Retries(attempts=3, base_seconds=1.0, cap_seconds=10.0)

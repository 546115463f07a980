"""How something was made resilient, and one call of it.

Contract: what the calls share (a store of its own) is opened by the first that needs it, and does
not travel when it is pickled. A call that the host gives no identity is a call of its own.
"""

from __future__ import annotations

import functools
import itertools
import os
import random
import threading
import weakref
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from shearpin import clock
from shearpin.boundary.calls import CallInfo, Hooks, recorded
from shearpin.boundary.classification import Rule, classify
from shearpin.boundary.inner import WITHIN, Inner, attempt_within, calls_within
from shearpin.boundary.results import ToolResult
from shearpin.boundary.runner import ToolCallRunner
from shearpin.boundary.settings import Availability, ToolPolicy
from shearpin.boundary.surroundings import Surroundings, surroundings
from shearpin.core.tools import ToolFacts
from shearpin.stores.base import Store
from shearpin.stores.opening import open_store

if TYPE_CHECKING:
    from shearpin.boundary.availability import AvailabilityBreaker

__all__ = ["Making", "Resilience"]

_NUMBERS = itertools.count(1)


@dataclass(frozen=True)
class Resilience:
    """How one tool or function is made resilient, and what its calls share.

    Attributes:
        policy: what is done about failures.
        facts: what is declared of it.
        rules: classifications of the user's.
        store: None: the guarded run's, else one in memory.
        language: None: the guarded run's, else English.
        now: monotonic seconds. sleep, asleep: waits. uniform: the source of jitter.
    """

    policy: ToolPolicy
    facts: ToolFacts | None = None
    rules: Sequence[Rule] = ()
    store: str | Store | None = None
    language: Literal["en", "zh"] | None = None
    now: clock.Clock = clock.monotonic
    epoch: clock.Clock = clock.epoch
    sleep: Callable[[float], object] = clock.sleep
    asleep: Callable[[float], Awaitable[object]] = clock.asleep
    uniform: Callable[[float, float], float] = random.uniform
    _opened: list[Store] = field(default_factory=list["Store"], compare=False, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, compare=False, repr=False)

    def runner(self, around: Surroundings) -> ToolCallRunner:
        """What runs a call in these surroundings."""
        store = self._store(around)
        return ToolCallRunner(
            store,
            lambda error: classify(error, self.rules),
            tally=around.tally,
            breaker=functools.partial(_breaker, store),
            now=self.now,
            epoch=self.epoch,
            sleep=self.sleep,
            asleep=self.asleep,
            uniform=self.uniform,
            fault=around.fault,
        )

    def call(
        self, tool: str, args: Mapping[str, object], around: Surroundings, call_id: str = ""
    ) -> CallInfo:
        """A call, with an identity of its own where the host gives it none."""
        if around.task:
            identity = f"{around.task}:{call_id}"
        else:
            identity = f"once:{os.getpid()}:{self.epoch()}:{next(_NUMBERS)}"
        return CallInfo(tool, args, identity, around.thread, self.facts)

    def hooks(self, tool: str, around: Surroundings, inner: Inner) -> Hooks:
        """What the surroundings add to a call; `inner` tells what goes on within its attempts."""
        return Hooks(
            admit=functools.partial(around.admit, tool),
            composite=lambda: inner.calls > 0,
            waiting=around.waiting,
        )

    def _store(self, around: Surroundings) -> Store:
        if self.store is None and around.store is not None:
            return around.store
        with self._lock:
            if not self._opened:
                opened = open_store("memory:" if self.store is None else self.store)
                self._opened.append(opened)
                if opened is not self.store:
                    weakref.finalize(self, opened.close)
            return self._opened[0]

    def __reduce__(self) -> tuple[type[Resilience], tuple[object, ...]]:
        given = (self.policy, self.facts, self.rules, self.store, self.language)
        return (Resilience, (*given, self.now, self.epoch, self.sleep, self.asleep, self.uniform))


class Making:
    """One call of something resilient, where it is made.

    Args:
        how: it was made resilient.
        name: of what is called.
        args: of the call, by name.
        call_id: that a model gave it; empty where there is none.
        record: name under which its records are kept; empty for its own.
        changed: gives the hooks a host's own.
        read: the arguments as the tool reads them, for its records; None where nobody can tell.
    """

    def __init__(
        self,
        how: Resilience,
        name: str,
        args: Mapping[str, object],
        call_id: str = "",
        record: str = "",
        changed: Callable[[Hooks, Inner], Hooks] | None = None,
        read: Mapping[str, object] | None = None,
    ) -> None:
        outer = WITHIN.get()
        calls_within()  # of the tool call that this one is made in, if there is one
        once_more = outer is not None and outer.recorded == name  # the run records it already
        self._around = around = surroundings()
        self._made = 0
        self._call = replace(how.call(name, args, around, call_id), record=record, read=read)
        self._policy = how.policy
        if once_more:
            self._call = replace(self._call, call_id="")
            self._policy = replace(how.policy, effect=None)
        effect = once_more or recorded(self._call, self._policy) is not None
        self._inner = Inner(name if effect else "")
        hooks = how.hooks(name, around, self._inner)
        self._hooks = hooks if changed is None else changed(hooks, self._inner)
        self._runner = how.runner(around)
        self.language: Literal["en", "zh"] = how.language or around.language or "en"

    @contextmanager
    def attempt(self) -> Generator[None]:
        """One attempt."""
        self._made += 1
        with attempt_within(self._inner):
            yield

    def run(self, execute: Callable[[], object]) -> ToolResult:
        """Make the call."""
        try:
            return self._told(self._runner.run(self._call, execute, self._policy, self._hooks))
        finally:
            self._around.settle(self._made)

    async def arun(self, execute: Callable[[], Awaitable[object]]) -> ToolResult:
        """Make the call, in an event loop."""
        try:
            result = await self._runner.arun(self._call, execute, self._policy, self._hooks)
            return self._told(result)
        finally:
            self._around.settle(self._made)

    @staticmethod
    def _told(result: ToolResult) -> ToolResult:
        outer = WITHIN.get()
        if outer is not None:
            outer.given = result
        return result


def _breaker(store: Store, name: str, settings: Availability) -> AvailabilityBreaker:
    from shearpin.boundary.availability import AvailabilityBreaker

    return AvailabilityBreaker(store, name, settings)

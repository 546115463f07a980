"""Functions and tools that answer with a result instead of raising.

Contract: the wrapped thing keeps its name, description, signature and schema; a function gives a
`ToolResult` back, a tool of LangChain what it gave before, or a `ToolMessage` with the status
`error`. Control flow leaves it untouched. What cannot be wrapped is refused when it is wrapped.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import os
import random
import sys
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Literal, ParamSpec, Protocol, TypedDict, Unpack, cast, overload

from shearpin import clock
from shearpin.boundary.calls import CallInfo, Hooks
from shearpin.boundary.classification import Rule, classify
from shearpin.boundary.results import ToolResult
from shearpin.boundary.runner import ToolCallRunner
from shearpin.boundary.settings import Availability, Effects, Fallback, Retries, ToolPolicy
from shearpin.boundary.surroundings import Surroundings, surroundings
from shearpin.core.tools import ToolFacts
from shearpin.errors import ConfigError
from shearpin.stores.base import Store
from shearpin.stores.opening import open_store

if TYPE_CHECKING:
    from langchain_core.tools import BaseTool

    from shearpin.boundary.availability import AvailabilityBreaker

__all__ = ["Resilience", "resilient"]

P = ParamSpec("P")

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

    def hooks(self, tool: str, around: Surroundings) -> Hooks:
        """What the surroundings add to a call."""
        return Hooks(admit=functools.partial(around.admit, tool), waiting=around.waiting)

    def _store(self, around: Surroundings) -> Store:
        if self.store is None and around.store is not None:
            return around.store
        with self._lock:
            if not self._opened:
                self._opened.append(open_store("memory:" if self.store is None else self.store))
            return self._opened[0]

    def __reduce__(self) -> tuple[type[Resilience], tuple[object, ...]]:
        given = (self.policy, self.facts, self.rules, self.store, self.language)
        return (Resilience, (*given, self.now, self.epoch, self.sleep, self.asleep, self.uniform))


def _breaker(store: Store, name: str, settings: Availability) -> AvailabilityBreaker:
    from shearpin.boundary.availability import AvailabilityBreaker

    return AvailabilityBreaker(store, name, settings)


class Options(TypedDict, total=False):
    """The options of `resilient`, all of them optional; it says what they are."""

    policy: ToolPolicy | None
    retries: Retries | None
    fallbacks: Sequence[Fallback]
    never_degrade: bool
    effect: Effects | None
    availability: Availability | None
    facts: ToolFacts | None
    rules: Sequence[Rule]
    store: str | Store | None
    language: Literal["en", "zh"] | None


class Wraps(Protocol):
    """What `resilient` with options alone gives: a decorator."""

    @overload
    def __call__(self, target: BaseTool) -> BaseTool: ...
    @overload
    def __call__(  # pyright: ignore[reportOverlappingOverload] - the narrower one is meant
        self, target: Callable[P, Awaitable[object]]
    ) -> Callable[P, Awaitable[ToolResult]]: ...
    @overload
    def __call__(self, target: Callable[P, object]) -> Callable[P, ToolResult]: ...


@overload
def resilient(target: BaseTool, **options: Unpack[Options]) -> BaseTool: ...
@overload
def resilient(  # pyright: ignore[reportOverlappingOverload] - the narrower one is meant
    target: Callable[P, Awaitable[object]], **options: Unpack[Options]
) -> Callable[P, Awaitable[ToolResult]]: ...
@overload
def resilient(
    target: Callable[P, object], **options: Unpack[Options]
) -> Callable[P, ToolResult]: ...
@overload
def resilient(target: None = ..., **options: Unpack[Options]) -> Wraps: ...
def resilient(
    target: object = None,
    *,
    policy: ToolPolicy | None = None,
    retries: Retries | None = None,
    fallbacks: Sequence[Fallback] = (),
    never_degrade: bool = False,
    effect: Effects | None = None,
    availability: Availability | None = None,
    facts: ToolFacts | None = None,
    rules: Sequence[Rule] = (),
    store: str | Store | None = None,
    language: Literal["en", "zh"] | None = None,
) -> object:
    """A tool or function that answers with a result instead of raising; also as a decorator.

    Args:
        target: a function, plain or `async`, or a tool of LangChain. None: a decorator is returned.
        policy: what is done about failures; excludes the next five.
        retries: how often and how far apart; None: three attempts.
        fallbacks: what takes its place where it fails for good.
        never_degrade: nothing ever takes its place.
        effect: its effect happens at most once.
        availability: when it counts as down.
        facts: what it does; only tools declared `read_only` or `idempotent` are called again where
            the first call may have taken effect. MCP annotations of a tool count as declared.
        rules: your own classifications, asked before ours.
        store: where effects and results are kept. None: with the guarded run, else in memory.
        language: of what models read. None: the guarded run's, else English.

    Returns:
        A function with the same signature that gives back a `ToolResult`, or a tool of the same
        name, description and schema.

    Raises:
        ConfigError: it is neither, or the options contradict each other.

    Example:
        >>> @resilient(facts=ToolFacts(read_only=True))
        ... def search(query: str) -> str:
        ...     raise ValueError(f"no index for {query}")
        >>> result = search("shoes")
        >>> result.success, result.attempts, result.error_detail
        (False, 1, 'no index for shoes')
    """
    options = ToolPolicy(retries, tuple(fallbacks), never_degrade, effect, availability)
    if policy is not None and options != ToolPolicy():
        raise ConfigError("resilient() takes a policy or its fields, not both; leave one out")
    how = Resilience(policy or options, facts, tuple(rules), store, language)
    if target is None:
        return functools.partial(_made, how=how)
    return _made(target, how)


def _made(target: object, how: Resilience) -> object:
    if "langchain_core.tools" in sys.modules:
        tools = import_module("shearpin.adapters.langchain.tools")
        if tools.is_tool(target):
            return tools.resilient_tool(target, how)
    if not callable(target) or isinstance(target, type) or hasattr(target, "invoke"):
        raise ConfigError(
            f"resilient() takes a function or a tool of LangChain, not {target!r}; make a tool of "
            "it, or guard the graph that it is part of with boundary=True"
        )
    if inspect.isgeneratorfunction(target) or inspect.isasyncgenfunction(target):
        raise ConfigError(
            f"resilient() cannot wrap {target!r}, which yields: there is no one moment at which it "
            "has succeeded; let it return what it collects"
        )
    return resilient_function(target, how)


def resilient_function(function: Callable[..., object], how: Resilience) -> Callable[..., object]:
    """A function that answers with a `ToolResult`."""
    name = str(getattr(function, "__name__", None) or type(function).__name__)
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError) as error:  # some built-in functions do not tell
        raise ConfigError(f"resilient() cannot read the signature of {function!r}") from error

    def prepared(
        args: tuple[object, ...], kwargs: dict[str, object]
    ) -> tuple[ToolCallRunner, CallInfo, ToolPolicy, Hooks]:
        around = surroundings()
        call = how.call(name, _named(signature, args, kwargs), around)
        return how.runner(around), call, how.policy, how.hooks(name, around)

    if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004 - the question is not whether it has one
    ):

        @functools.wraps(function)
        async def aresilient(*args: object, **kwargs: object) -> ToolResult:
            runner, call, policy, hooks = prepared(args, kwargs)

            async def execute() -> object:
                return await cast("Awaitable[object]", function(*args, **kwargs))

            return await runner.arun(call, execute, policy, hooks)

        return _telling(aresilient, signature)

    @functools.wraps(function)
    def plain(*args: object, **kwargs: object) -> ToolResult:
        runner, call, policy, hooks = prepared(args, kwargs)
        return runner.run(call, lambda: function(*args, **kwargs), policy, hooks)

    return _telling(plain, signature)


def _telling(
    function: Callable[..., object], signature: inspect.Signature
) -> Callable[..., object]:
    """The function, with what it gives back in its signature."""
    function.__annotations__ = {**function.__annotations__, "return": ToolResult}
    vars(function)["__signature__"] = signature.replace(return_annotation=ToolResult)
    return function


def _named(
    signature: inspect.Signature, args: tuple[object, ...], kwargs: dict[str, object]
) -> dict[str, object]:
    """The arguments of a call by name, defaults included.

    Raises:
        TypeError: the function cannot be called so. That is the caller's mistake, not a failure.
    """
    bound = signature.bind(*args, **kwargs)
    bound.apply_defaults()
    named: dict[str, object] = {}
    for name, value in bound.arguments.items():
        kind = signature.parameters[name].kind
        if kind is inspect.Parameter.VAR_KEYWORD:
            named.update(cast("Mapping[str, object]", value))
        elif name not in ("self", "cls"):
            named[name] = value
    return named

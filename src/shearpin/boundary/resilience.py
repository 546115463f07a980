"""Functions and tools that answer with a result instead of raising.

Contract: the wrapped thing keeps its name, description, signature and schema; a function gives a
`ToolResult` back, a tool of LangChain what it gave before, or a `ToolMessage` with the status
`error`. Control flow leaves it untouched. What cannot be wrapped is refused when it is wrapped.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Literal, ParamSpec, Protocol, TypedDict, Unpack, cast, overload

from shearpin.boundary.classification import Rule
from shearpin.boundary.effect_pages import check_key
from shearpin.boundary.making import Making, Resilience
from shearpin.boundary.results import ToolResult
from shearpin.boundary.settings import (
    Availability,
    Cached,
    Effects,
    Fallback,
    Retries,
    ToolPolicy,
)
from shearpin.core.tools import ToolFacts
from shearpin.errors import ConfigError
from shearpin.stores.base import Store

if TYPE_CHECKING:
    from langchain_core.tools import BaseTool

__all__ = ["Options", "Wraps", "resilient"]

P = ParamSpec("P")


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
        self, target: Callable[P, Coroutine[object, object, object]]
    ) -> Callable[P, Coroutine[object, object, ToolResult]]: ...
    @overload
    def __call__(self, target: Callable[P, object]) -> Callable[P, ToolResult]: ...


@overload
def resilient(target: BaseTool, **options: Unpack[Options]) -> BaseTool: ...
@overload
def resilient(  # pyright: ignore[reportOverlappingOverload] - the narrower one is meant
    target: Callable[P, Coroutine[object, object, object]], **options: Unpack[Options]
) -> Callable[P, Coroutine[object, object, ToolResult]]: ...
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
    options = ToolPolicy(retries, fallbacks, never_degrade, effect, availability)
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
    inner: object = function
    while isinstance(inner, functools.partial):
        inner = inner.func
    name = str(getattr(inner, "__name__", None) or type(inner).__name__)
    record = f"{getattr(inner, '__module__', '')}:{getattr(inner, '__qualname__', name)}"
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError) as error:  # some built-in functions do not tell
        raise ConfigError(f"resilient() cannot read the signature of {function!r}") from error
    kinds = {each.kind for each in signature.parameters.values()}
    if inspect.Parameter.VAR_KEYWORD not in kinds:
        check_key(name, how.policy.effect, set(signature.parameters) - {"self", "cls"})
    if next(iter(signature.parameters), "") == "self":
        _check_method(name, how)

    if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004 - the question is not whether it has one
    ):

        @functools.wraps(function)
        async def aresilient(*args: object, **kwargs: object) -> ToolResult:
            made = Making(how, name, _named(signature, args, kwargs), record=record)

            async def execute() -> object:
                with made.attempt():
                    return await cast("Awaitable[object]", function(*args, **kwargs))

            return await made.arun(execute)

        return _telling(aresilient, signature)

    @functools.wraps(function)
    def plain(*args: object, **kwargs: object) -> ToolResult:
        made = Making(how, name, _named(signature, args, kwargs), record=record)

        def execute() -> object:
            with made.attempt():
                return function(*args, **kwargs)

        return made.run(execute)

    return _telling(plain, signature)


def _check_method(name: str, how: Resilience) -> None:
    """Whose method it is is no part of a call's arguments, so that nobody could tell whose effect
    or result is meant."""
    effect = how.policy.effect
    if effect is not None and effect.key is None:
        raise ConfigError(
            f"resilient() cannot tell the effects of the method {name!r} of one object from those "
            "of another: say with Effects(key=...) which arguments make two calls the same"
        )
    if any(isinstance(each, Cached) for each in how.policy.fallbacks):
        raise ConfigError(
            f"resilient() cannot tell the results of the method {name!r} of one object from those "
            "of another: leave Cached(...) out, or make it a function"
        )


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

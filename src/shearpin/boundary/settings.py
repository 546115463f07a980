"""What an error boundary does about failures: immutable settings.

Contract: values are checked when they are built; a `ConfigError` names the field and the fix.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Final, Literal, TypeAlias, cast

from shearpin.boundary.injected import injected_into
from shearpin.core.checks import flag, instance, instances, one_of, texts, whole
from shearpin.errors import ConfigError

__all__ = [
    "Answers",
    "Availability",
    "Cached",
    "Effects",
    "Fallback",
    "Retries",
    "Static",
    "ToolPolicy",
]


@dataclass(frozen=True)
class Retries:
    """How a failed call is tried again: exponential back-off with full jitter.

    Attributes:
        attempts: in all, the first one included; 1 never tries again. Default 3.
        base_seconds: the first wait is drawn from 0 to this. Default 0.5.
        cap_seconds: no wait is longer; where the other side asks for more, that ends the
            attempts. Default 30.
        deadline_seconds: no attempt begins later than this after the first. None: no deadline.
            Default 120.
        per_run: retries that all calls of a run may make together. None: no bound. Default 20.

    Source: full jitter, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015.

    Raises:
        ConfigError: a value is out of range.
    """

    attempts: int = 3
    base_seconds: float = 0.5
    cap_seconds: float = 30.0
    deadline_seconds: float | None = 120.0
    per_run: int | None = 20

    def __post_init__(self) -> None:
        whole("attempts", self.attempts, 1)
        _seconds("base_seconds", self.base_seconds)
        _seconds("cap_seconds", self.cap_seconds)
        if self.deadline_seconds is not None:
            _seconds("deadline_seconds", self.deadline_seconds)
        if self.per_run is not None:
            whole("per_run", self.per_run, 0)


@dataclass(frozen=True)
class Effects:
    """A tool whose effect must happen at most once: an e-mail, a refund, an order.

    Attributes:
        key: what makes two calls the same effect: argument names, or a function of the arguments.
            None: all arguments.
        expiry_seconds: how long a finished effect is remembered. Default one day.
        lease_seconds: how long a call that is under way keeps others out; after that its outcome
            counts as unknown. Default 300.
        min_interval_seconds: the least time between two effects of the tool in a thread. Default 0.
        at_most: effects of the tool in a thread within `expiry_seconds`. None: no bound.
        on_fault: what follows where the store of records fails: `refuse` (default) does not run the
            tool, because at most once is at most once; `run` runs it.

    Raises:
        ConfigError: a value is out of range.
    """

    key: tuple[str, ...] | Callable[[Mapping[str, object]], object] | None = None
    expiry_seconds: float = 86_400.0
    lease_seconds: float = 300.0
    min_interval_seconds: float = 0.0
    at_most: int | None = None
    on_fault: Literal["refuse", "run"] = "refuse"

    def __post_init__(self) -> None:
        if self.key is not None and not callable(self.key):
            names = texts("Effects.key", self.key, "order_id")
            if not names:
                raise ConfigError(
                    "Effects.key must name an argument, not (): every call of the tool would be "
                    "the same effect; None takes all arguments"
                )
            object.__setattr__(self, "key", names)
        one_of("Effects.on_fault", self.on_fault, ("refuse", "run"))
        _seconds("expiry_seconds", self.expiry_seconds, above=True)
        _seconds("lease_seconds", self.lease_seconds, above=True)
        _seconds("min_interval_seconds", self.min_interval_seconds)
        if self.at_most is not None:
            whole("at_most", self.at_most, 0)


@dataclass(frozen=True)
class Availability:
    """When a tool or model counts as down, so that nobody waits for it.

    Attributes:
        failure_ratio: share of failed calls, above 0 and up to 1, that opens it. Default 0.5.
        window_seconds: calls of this long ago and younger count. Default 60.
        min_calls: with fewer calls in the window it stays closed. Default 5.
        open_seconds: how long it refuses before one probe is let through. Default 30.
        probe_lease_seconds: how long that probe keeps others out. Default 30.

    Raises:
        ConfigError: a value is out of range.
    """

    failure_ratio: float = 0.5
    window_seconds: float = 60.0
    min_calls: int = 5
    open_seconds: float = 30.0
    probe_lease_seconds: float = 30.0

    def __post_init__(self) -> None:
        ratio: object = self.failure_ratio
        if type(ratio) not in (int, float) or not 0 < self.failure_ratio <= 1:
            raise ConfigError(
                f"failure_ratio must be above 0 and at most 1, not {self.failure_ratio!r}"
            )
        whole("min_calls", self.min_calls, 1)
        _seconds("window_seconds", self.window_seconds, above=True)
        _seconds("open_seconds", self.open_seconds, above=True)
        _seconds("probe_lease_seconds", self.probe_lease_seconds, above=True)


@dataclass(frozen=True)
class Answers:
    """What is done about a model's answer that is of no use, and a request that is too long.

    Attributes:
        again: how often a model is asked again for an answer that is empty, cannot be read, was
            cut off or withheld by a filter; for the last two, where the same request hardly helps,
            at most once. 0 takes every answer as it is. Default 2.
        too_long: what is done where the provider says that the request is too long, once for each
            model: `trim` (default) leaves out what is oldest, but for the system message, and keeps
            calls together with their answers; a function of yours takes the messages and gives
            back fewer or shorter ones, such as a summary; None does nothing.
        restart_streams: whether a call is made again although parts of its answer were streamed to
            someone already, who then sees the beginning twice. Off by default: such an answer ends
            where it broke off, and says so.

    Raises:
        ConfigError: a value is wrong.
    """

    again: int = 2
    too_long: Literal["trim"] | Callable[..., object] | None = "trim"
    restart_streams: bool = False

    def __post_init__(self) -> None:
        whole("again", self.again, 0)
        flag("Answers.restart_streams", self.restart_streams)
        if self.too_long not in ("trim", None) and not callable(self.too_long):
            raise ConfigError(f"too_long must be 'trim', a function or None, not {self.too_long!r}")


@dataclass(frozen=True)
class Cached:
    """Fall back on the last good result of the same call.

    Attributes:
        max_age_seconds: an older one is not used. Default one hour.
        shared: whether results of other threads may be used, too: only for tools whose answer
            depends on nothing but the arguments, and so not on whose thread it is. Default: no.
    """

    max_age_seconds: float = 3600.0
    shared: bool = False

    def __post_init__(self) -> None:
        _seconds("max_age_seconds", self.max_age_seconds, above=True)
        flag("Cached.shared", self.shared)


@dataclass(frozen=True)
class Static:
    """Fall back on a fixed answer.

    Attributes:
        value: the answer.
    """

    value: object


Fallback: TypeAlias = Cached | Static | Callable[..., object]
"""What takes a failed tool's place: a cached or fixed answer, or another tool or function that is
called with the same arguments."""


def _takes_the_models_arguments(fallback: object) -> None:
    if asked := injected_into(fallback):
        name = getattr(fallback, "name", type(fallback).__name__)
        raise ConfigError(
            f"the fallback {name!r} needs {', '.join(asked)}, which only the host can give it, and "
            "fallbacks get the model's arguments alone; use a tool that needs no state, store or "
            "runtime"
        )


@dataclass(frozen=True)
class ToolPolicy:
    """What the boundary does about one tool.

    Attributes:
        retries: None: as the boundary says.
        fallbacks: tried in order where the tool fails for good.
        never_degrade: no fallback ever takes its place, e.g. for payments; excludes `fallbacks`.
        effect: its effect happens at most once. None: nothing is recorded.
        availability: None: as the boundary says.

    Raises:
        ConfigError: a value is wrong, a fallback needs arguments that only the host can inject,
            or `never_degrade` and `fallbacks` contradict each other.
    """

    retries: Retries | None = None
    fallbacks: Sequence[Fallback] = ()
    never_degrade: bool = False
    effect: Effects | None = None
    availability: Availability | None = None

    def __post_init__(self) -> None:
        flag("ToolPolicy.never_degrade", self.never_degrade)
        for name, kind in _PARTS.items():
            value: object = getattr(self, name)
            if value is not None:
                instance(f"ToolPolicy.{name}", value, kind, f"{kind.__name__}(...) or None")
        fallbacks = instances("ToolPolicy.fallbacks", self.fallbacks, object, "Cached()")
        for fallback in fallbacks:
            if isinstance(fallback, (Cached, Static)):
                continue
            if callable(fallback) or callable(getattr(fallback, "invoke", None)):
                _takes_the_models_arguments(fallback)
                continue
            raise ConfigError(
                "fallbacks must hold tools, functions, Cached(...) or Static(...), "
                f"not {fallback!r}"
            )
        if self.never_degrade and fallbacks:
            raise ConfigError("never_degrade excludes fallbacks; leave one of them out")
        object.__setattr__(self, "fallbacks", cast("tuple[Fallback, ...]", fallbacks))


_PARTS: Final[dict[str, type]] = {
    "retries": Retries,
    "effect": Effects,
    "availability": Availability,
}


def _seconds(name: str, value: object, *, above: bool = False) -> None:
    good = type(value) in (int, float) and isfinite(float(str(value)))
    if not good or float(str(value)) < 0 or (above and float(str(value)) == 0):
        least = "more than 0" if above else "0 or more"
        raise ConfigError(f"{name} must be {least} seconds, not {value!r}")

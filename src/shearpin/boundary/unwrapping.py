"""What lies beneath an exception: causes, contexts, members of groups, and what wrappers carry.

Contract: the exception itself comes first and each layer is followed by what it wraps; every
exception comes once, cycles and endless chains end. A context counts only where it is not
suppressed (`raise ... from None`) and the exception is not the operating system's. Control flow,
the printed traceback that process pools put in the place of a cause, and whatever lies beneath
them, are left out.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import NamedTuple, cast

from shearpin.boundary.reading import called, name_of, origins_of, read

__all__ = ["Layer", "as_group", "carried_by", "layers_of", "members_of", "root_of"]

_DEEPEST = 64
"""Layers looked at; chains of tens are real (retry layers), of thousands a mistake."""
_WIDEST = 64
"""Members of a group looked at, those of nested groups included."""
_GROUPS = 1_000
"""Nested groups looked into."""

_CARRIERS: dict[str, tuple[str, ...]] = {
    "ToolInvocationError": ("source",),
    "StructuredOutputValidationError": ("source",),
    "NodeError": ("error",),
    "URLError": ("reason",),
    "MaxRetryError": ("reason",),
    "ClientConnectorError": ("os_error",),
    "ClientConnectorCertificateError": ("certificate_error",),
    "DBAPIError": ("orig",),
    "RayTaskError": ("cause",),
}
"""Wrappers that keep what they wrap under a name of their own."""

_PRINTED = frozenset({"_RemoteTraceback", "RemoteTraceback", "_ExceptionWithTraceback"})


class Layer(NamedTuple):
    """One exception of a chain.

    Attributes:
        error: the exception.
        wrapped: whether all that lies above it are mere wrappers.
    """

    error: BaseException
    wrapped: bool


def layers_of(
    error: BaseException,
    stops: Callable[[BaseException], bool],
    wraps: Callable[[BaseException], bool],
) -> list[Layer]:
    """The exception and what lies beneath it, from outside in.

    Args:
        error: where to begin.
        stops: whether an exception is control flow.
        wraps: whether an exception is a mere wrapper, which says nothing of its own.
    """
    found: list[Layer] = []
    seen: set[int] = set()
    waiting: list[Layer] = [Layer(error, True)]
    while waiting and len(found) < _DEEPEST:
        layer = waiting.pop(0)
        if id(layer.error) in seen:
            continue
        seen.add(id(layer.error))
        found.append(layer)
        transparent = layer.wrapped and wraps(layer.error)
        waiting.extend(
            Layer(inner, transparent)
            for inner in _beneath(layer.error)
            if id(inner) not in seen and not stops(inner)
        )
    return found


def as_group(error: BaseException) -> BaseExceptionGroup[BaseException] | None:
    """The exception where it is a group of them."""
    if isinstance(error, BaseExceptionGroup):
        return cast("BaseExceptionGroup[BaseException]", error)
    return None


def members_of(group: BaseExceptionGroup[BaseException]) -> list[BaseException]:
    """The members of a group that are no groups themselves, nested ones included."""
    found: list[BaseException] = []
    seen: set[int] = {id(group)}
    waiting = deque(group.exceptions)
    while waiting and len(found) < _WIDEST and len(seen) < _GROUPS:
        error = waiting.popleft()
        if id(error) in seen:
            continue
        seen.add(id(error))
        inner = as_group(error)
        if inner is None:
            found.append(error)
        else:
            waiting.extend(inner.exceptions)
    return found


def root_of(error: BaseException, stops: Callable[[BaseException], bool]) -> BaseException:
    """The exception at the end of the causes that were given on purpose."""
    seen = {id(error)}
    while len(seen) < _DEEPEST:
        carried = next(carried_by(error), None)
        beneath = carried or _cause(error)
        if beneath is None or id(beneath) in seen or stops(beneath):
            return error
        seen.add(id(beneath))
        error = beneath
    return error


def _beneath(error: BaseException) -> Iterator[BaseException]:
    yield from carried_by(error)
    cause = _cause(error)
    if cause is not None:
        yield cause
    if isinstance(error, OSError) and origins_of(error)[0].module == "builtins":
        return  # the system's own word: no wrapper of what happened before it
    context = read(error, "__context__")
    if read(error, "__suppress_context__") is False and isinstance(context, BaseException):
        yield context


def _cause(error: BaseException) -> BaseException | None:
    cause = read(error, "__cause__")
    if not isinstance(cause, BaseException) or name_of(cause) in _PRINTED:
        return None
    return cause


def carried_by(error: BaseException) -> Iterator[BaseException]:
    """What a wrapper keeps under a name of its own, besides cause and context."""
    for origin in origins_of(error):
        for name in _CARRIERS.get(origin.name, ()):
            inner = read(error, name)
            if isinstance(inner, BaseException):
                yield inner
    attempt = read(error, "last_attempt")  # tenacity, and what is built on it
    if attempt is not None and called(attempt, "done") is True:
        inner = called(attempt, "exception")
        if isinstance(inner, BaseException):
            yield inner

"""Functions that hold something of ours to replace: agents that they call, or the model they ask.

Contract: a function stays the same code with the same defaults, free variables and globals; only
what is to be replaced is another object, in a copy of the function. The function itself, its module
and everything else that it holds stay as they are. Looked into: free variables, defaults, names of
the function's module (as they are at each moment), functions of the same module that it names,
functions that it holds, partials, bindings and sequences of runnables, and lists, tuples and
dictionaries that hold nothing else. Attributes of objects, and what a function only makes when it
is called, are out of reach.
"""

from __future__ import annotations

import copy
import dis
import functools
import sys
from collections.abc import Callable, Iterator, Mapping
from types import CellType, CodeType, FunctionType
from typing import Any, Final, NamedTuple, cast

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import Runnable, RunnableSequence
from langchain_core.runnables.base import RunnableBindingBase

__all__ = ["Twin", "bound_with", "held_by", "twin_of", "variables_of"]

Wanted = Callable[[object], bool]

_MOST: Final = 512
_WIDEST: Final = 64
_OPAQUE: Final = frozenset({"globals", "locals", "vars", "exec", "eval"})
_REBINDS: Final = frozenset({"STORE_GLOBAL", "DELETE_GLOBAL"})
_CONTAINERS: Final = (dict, list, tuple)
_MORE: Final = (
    ("__annotate__", "__type_params__")
    if sys.version_info >= (3, 14)
    else ("__annotations__", "__type_params__")
)
_CHAINS: Final = (RunnableSequence, RunnableBindingBase, BaseChatModel)
_FUNCTIONS: Final = ("func", "afunc")


class Twin(NamedTuple):
    """A copy of a function, and what it was made from.

    Attributes:
        function: the copy.
        held: variables and containers that were looked into, with what they held then.
    """

    function: Callable[..., Any]
    held: tuple[tuple[object, tuple[object, ...]], ...]

    def is_current(self) -> bool:
        """Whether the function still holds what it held when it was copied."""
        return all(
            len(now := _members(place)) == len(then)
            and all(a is b for a, b in zip(now, then, strict=True))
            for place, then in self.held
        )


def twin_of(function: object, wanted: Wanted, other: Callable[[Any], object]) -> Twin | None:
    """A copy of a function that holds other objects; None where there is nothing to replace.

    Args:
        function: a plain function, or a partial one; of anything else there is no copy.
        wanted: whether an object is to be replaced.
        other: what takes its place.
    """
    if type(function) not in (FunctionType, functools.partial):
        return None
    reached = _Reached(function, wanted)
    if id(function) not in reached.ids:
        return None
    copied = _Copies(reached, other)
    twin = cast("Callable[..., Any]", copied.of(function))
    return Twin(twin, tuple((place, _members(place)) for place in copied.places))


def bound_with(
    bound: Any, wanted: Wanted, other: Callable[[Any], object]
) -> Runnable[Any, Any] | None:
    """A copy of a node's main part that holds other objects; None where nothing is to be replaced.

    It may be a function in whatever wrapper LangGraph and LangChain have for one, or a chain.
    """
    if isinstance(bound, _CHAINS):
        reached = _Reached(cast("object", bound), wanted)
        if id(cast("object", bound)) not in reached.ids:
            return None
        return cast("Runnable[Any, Any]", _Copies(reached, other).of(cast("object", bound)))
    twins = {name: twin_of(getattr(bound, name, None), wanted, other) for name in _FUNCTIONS}
    if not any(twins.values()):
        return None
    copied = copy.copy(bound)
    for name, twin in twins.items():
        if twin is not None:
            setattr(copied, name, twin.function)
    return copied


def held_by(thing: object, wanted: Wanted) -> list[object]:
    """What a node's main part, or a tool, holds of a certain kind.

    What such objects hold themselves is left out.
    """
    if isinstance(thing, _CHAINS):
        return _Reached(cast("object", thing), wanted).leaves
    names = (*_FUNCTIONS, "coroutine")
    functions = [function for name in names if (function := getattr(thing, name, None)) is not None]
    found = {id(it): it for function in functions for it in _Reached(function, wanted).leaves}
    return list(found.values())


def variables_of(function: object) -> list[object]:
    """What the free variables of a function hold."""
    if not isinstance(function, FunctionType):
        return []
    return [_content(cell) for cell in function.__closure__ or ()]


class _Reached:
    """Which objects lead from a function to something that is to be replaced."""

    def __init__(self, root: object, wanted: Wanted) -> None:
        self.leaves: list[object] = []
        self.parts: dict[int, list[object]] = {}
        self.ids: set[int] = set()
        self._kept: list[object] = []
        containers: set[int] = set()
        waiting: list[object] = [root]
        while waiting and len(self._kept) < _MOST:
            value = waiting.pop()
            if id(value) in self.parts:
                continue
            self._kept.append(value)
            if wanted(value):
                self.parts[id(value)] = []
                self.ids.add(id(value))
                self.leaves.append(value)
                continue
            parts = self.parts[id(value)] = list(_parts(value))
            if type(value) in _CONTAINERS:
                containers.add(id(value))
            waiting.extend(parts)
        self._spread(containers)

    def _spread(self, containers: set[int]) -> None:
        """From what is replaced to what holds it; a container must hold nothing else."""
        grows = bool(self.ids)
        while grows:
            grows = False
            for place, parts in self.parts.items():
                if place in self.ids or not parts:
                    continue
                found = [id(part) in self.ids for part in parts]
                if all(found) if place in containers else any(found):
                    self.ids.add(place)
                    grows = True


class _Copies:
    """Copies of what leads to something that is to be replaced; each is made once."""

    def __init__(self, reached: _Reached, other: Callable[[Any], object]) -> None:
        self._reached = reached
        self._made = other
        self._leaves = {id(leaf) for leaf in reached.leaves}
        self._known: dict[int, object] = {}
        self.places: list[object] = []

    def of(self, value: object) -> object:
        """The copy of an object; the object itself where it leads to nothing."""
        if id(value) not in self._reached.ids:
            return value
        if id(value) not in self._known:
            if id(value) in self._leaves:
                self._known[id(value)] = self._made(value)
            elif isinstance(value, FunctionType):
                self._function(value)
            else:
                self._known[id(value)] = self._other(value)
        return self._known[id(value)]

    def _function(self, function: FunctionType) -> None:
        cells = function.__closure__ or ()
        told = [id(_content(cell)) in self._reached.ids for cell in cells]
        fresh = tuple(
            CellType() if changed else cell for cell, changed in zip(cells, told, strict=True)
        )
        names = {
            name: value
            for name, value in _named(function)
            if id(value) in self._reached.ids and value is not function
        }
        instead: dict[str, tuple[object, object]] = {}
        space = _Names(function.__globals__, instead) if names else function.__globals__
        twin = FunctionType(
            function.__code__, space, function.__name__, function.__defaults__, fresh
        )
        for name in _MORE:
            if hasattr(function, name):
                setattr(twin, name, getattr(function, name))
        twin.__doc__, twin.__qualname__ = function.__doc__, function.__qualname__
        twin.__module__ = function.__module__
        twin.__dict__.update(function.__dict__)
        self._known[id(function)] = twin  # before what it holds, which may lead back to it
        for cell, new, changed in zip(cells, fresh, told, strict=True):
            if changed:
                self.places.append(cell)
                new.cell_contents = self.of(_content(cell))
        instead.update((name, (value, self.of(value))) for name, value in names.items())
        if function.__defaults__:
            twin.__defaults__ = tuple(self.of(value) for value in function.__defaults__)
        if function.__kwdefaults__:
            twin.__kwdefaults__ = {
                name: self.of(value) for name, value in function.__kwdefaults__.items()
            }

    def _other(self, value: object) -> object:
        if isinstance(value, functools.partial):
            parts = cast("functools.partial[object]", value)
            keywords = {name: self.of(item) for name, item in parts.keywords.items()}
            function = cast("Callable[..., object]", self.of(parts.func))
            return functools.partial(function, *map(self.of, parts.args), **keywords)
        if isinstance(value, RunnableBindingBase):
            binding = cast("RunnableBindingBase[Any, Any]", value)
            return binding.model_copy(update={"bound": self.of(binding.bound)})
        if isinstance(value, RunnableSequence):
            chain = cast("RunnableSequence[Any, Any]", value)
            middle = [self.of(step) for step in chain.middle]
            ends = {"first": self.of(chain.first), "last": self.of(chain.last)}
            return chain.model_copy(update={**ends, "middle": middle})
        self.places.append(value)
        if isinstance(value, dict):
            held = cast("dict[object, object]", value)
            return {key: self.of(item) for key, item in held.items()}
        items = [self.of(item) for item in cast("list[object]", value)]
        return tuple(items) if isinstance(value, tuple) else items


class _Names(dict[str, Any]):
    """A module's names, as they are at each moment, but for some objects that others stand for.

    The interpreter asks a subclass of `dict` through `__getitem__`.
    """

    def __init__(
        self, real: Mapping[str, Any], instead: Mapping[str, tuple[object, object]]
    ) -> None:
        super().__init__(real)  # for code that reads past `__getitem__`, such as class bodies
        self._real = real
        self._instead = instead

    def __getitem__(self, name: str) -> Any:
        value = self._real[name]
        held = self._instead.get(name)
        return held[1] if held is not None and held[0] is value else value


def _parts(value: object) -> Iterator[object]:
    """What an object holds, as far as it can be copied."""
    if isinstance(value, FunctionType):
        yield from (_content(cell) for cell in value.__closure__ or ())
        yield from value.__defaults__ or ()
        yield from (value.__kwdefaults__ or {}).values()
        yield from (found for _, found in _named(value))
    elif isinstance(value, functools.partial):
        parts = cast("functools.partial[object]", value)
        yield from (parts.func, *parts.args, *parts.keywords.values())
    elif isinstance(value, RunnableBindingBase):
        yield cast("RunnableBindingBase[Any, Any]", value).bound
    elif isinstance(value, RunnableSequence):
        yield from cast("RunnableSequence[Any, Any]", value).steps
    elif type(value) in _CONTAINERS and len(members := _members(value)) <= _WIDEST:
        yield from members


def _members(place: object) -> tuple[object, ...]:
    """What a variable or a container holds."""
    if isinstance(place, CellType):
        return (_content(place),)
    if isinstance(place, dict):
        return tuple(cast("dict[object, object]", place).values())
    return tuple(cast("list[object]", place))


def _content(cell: CellType) -> object:
    try:
        return cell.cell_contents
    except ValueError:  # not assigned yet
        return None


def _named(function: FunctionType) -> Iterator[tuple[str, object]]:
    """The names of its module that a function uses; of functions, those of the same module only."""
    space = function.__globals__
    for name in _global_names(function.__code__):
        value = space.get(name)
        if isinstance(value, FunctionType) and value.__globals__ is not space:
            continue
        if value is not None and not isinstance(value, (type, str, int, float)):
            yield name, value


@functools.lru_cache(maxsize=1024)
def _global_names(code: CodeType) -> tuple[str, ...]:
    """The names a piece of code may look up in its module; none where it may also write there."""
    names: list[str] = []
    waiting = [code]
    while waiting:
        current = waiting.pop()
        if _OPAQUE.intersection(current.co_names):
            return ()
        if any(step.opname in _REBINDS for step in dis.get_instructions(current)):
            return ()
        names.extend(current.co_names)
        waiting.extend(part for part in current.co_consts if isinstance(part, CodeType))
    return tuple(dict.fromkeys(names))

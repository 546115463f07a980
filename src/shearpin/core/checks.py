"""Checks of settings, shared by all that are built from them.

Contract: a check returns the value in the form in which it is kept, or raises a `ConfigError` that
names the field, the value and what it may be. A truth value is one: nothing else counts as yes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final, TypeVar, cast

from shearpin.errors import ConfigError
from shearpin.findings import Severity

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

__all__ = [
    "check_kinds",
    "flag",
    "instance",
    "instances",
    "known_options",
    "mapping",
    "one_of",
    "text",
    "texts",
    "whole",
]

T = TypeVar("T")

_KINDS: Final[dict[str, tuple[tuple[type, ...], str]]] = {
    "bool": ((bool,), "True or False"),
    "int": ((int,), "a whole number"),
    "float": ((int, float), "a number"),
    "Severity": ((Severity,), "a Severity, such as Severity.BLOCK"),
}


def check_kinds(config: DataclassInstance) -> None:
    """Refuse fields that are annotated as numbers, truth values or levels, and are none.

    What is compared afterwards can then be compared; ranges are for the config itself to check.
    """
    for spec in fields(config):
        names = str(spec.type).split(" | ")
        kinds, what = _KINDS.get(names[0], ((), ""))
        value: object = getattr(config, spec.name)
        if not kinds or (value is None and "None" in names):
            continue
        truth = isinstance(value, bool) and bool not in kinds
        if not isinstance(value, kinds) or truth or value != value:
            raise ConfigError(
                f"{type(config).__name__}.{spec.name} must be {what}"
                f"{' or None' if 'None' in names else ''}, not {value!r}"
            )


def known_options(there_is_no: str, given: Iterable[str], known: Sequence[str]) -> None:
    """Refuse an option that there is not, and name the one that may have been meant.

    `there_is_no` begins the sentence, e.g. `guard() has no option`.
    """
    for name in given:
        if name not in known:
            close = get_close_matches(name, known, n=1)
            may = f"did you mean {close[0]!r}?" if close else f"it may be one of {', '.join(known)}"
            raise ConfigError(f"{there_is_no} {name!r}; {may}")


def flag(field: str, value: object, *, or_none: bool = False) -> None:
    """Refuse what is not `True` or `False`: the text "no" would count as yes."""
    if type(value) is not bool and not (or_none and value is None):
        choices = "True, False or None" if or_none else "True or False"
        raise ConfigError(f"{field} must be {choices}, not {value!r}")


def text(field: str, value: object, example: str) -> None:
    """Refuse what is no text, or an empty one."""
    if not isinstance(value, str) or not value:
        raise ConfigError(f"{field} must be a text such as {example!r}, not {value!r}")


def texts(field: str, value: object, example: str = "name") -> tuple[str, ...]:
    """Several names; one text by itself is refused, because it would be taken letter by letter."""
    if isinstance(value, str):
        raise ConfigError(f"{field} must be a tuple of names, not one text: write ({value!r},)")
    items = _items(field, value, f"a tuple of names such as ({example!r},)")
    for item in items:
        if not isinstance(item, str) or not item:
            raise ConfigError(
                f"{field} must hold names such as {example!r}, not {item!r}; take it out"
            )
    return cast("tuple[str, ...]", items)


def mapping(field: str, value: object, example: str) -> dict[str, object]:
    """A mapping by name."""
    if not isinstance(value, Mapping):
        raise ConfigError(f"{field} must be a mapping such as {example}, not {value!r}")
    found = dict(cast("Mapping[object, object]", value))
    for key in found:
        if not isinstance(key, str) or not key:
            raise ConfigError(f"{field} must be keyed by names, as in {example}, not by {key!r}")
    return cast("dict[str, object]", found)


def instance(field: str, value: object, kind: type[T], example: str) -> None:
    """Refuse what is not of a class."""
    if not isinstance(value, kind):
        raise ConfigError(f"{field} must be {example}, not {value!r}")


def instances(field: str, value: object, kind: type[T], example: str) -> tuple[T, ...]:
    """Several objects of a class; a single one is refused."""
    items = _items(field, value, f"a tuple such as ({example},)")
    for item in items:
        if not isinstance(item, kind):
            raise ConfigError(f"{field} must hold {example}, not {item!r}")
    return cast("tuple[T, ...]", items)


def one_of(field: str, value: object, choices: Iterable[str]) -> None:
    """Refuse what is none of some names."""
    names = tuple(choices)
    if not isinstance(value, str) or value not in names:
        raise ConfigError(f"{field} must be one of {', '.join(names)}, not {value!r}")


def whole(field: str, value: object, least: int) -> None:
    """Refuse what is no whole number, or one below a bound."""
    if type(value) is not int or value < least:
        raise ConfigError(f"{field} must be a whole number, {least} or more, not {value!r}")


def _items(field: str, value: object, what: str) -> tuple[object, ...]:
    if isinstance(value, (str, Mapping)) or not isinstance(value, Iterable):
        raise ConfigError(f"{field} must be {what}, not {value!r}")
    return tuple(cast("Iterable[object]", value))

"""The public names and their signatures as text, one a line; the snapshot beside it is reviewed.

After a wanted change: python -m tests.repo.public_api > tests/repo/public_api.txt
"""

from __future__ import annotations

import dataclasses
import enum
import inspect
import typing
from collections.abc import Iterator

import shearpin
import shearpin.boundary


def describe(name: str, value: object) -> Iterator[str]:
    """One line for the name, and one for each public method and property of a class."""
    if inspect.isclass(value):
        bases = ", ".join(base.__name__ for base in value.__bases__ if base is not object)
        signature = "" if issubclass(value, enum.Enum) else _signature(value)
        yield f"class {name}({bases}){signature}"
        for member, raw in sorted(vars(value).items()):
            if not member.startswith("_") and not _is_field(value, member):
                yield from _member(f"{name}.{member}", raw)
    elif typing.get_origin(value) is not None:
        yield f"{name}: a type"
    elif callable(value):
        yield f"def {name}{_signature(value)}"
    else:
        yield f"{name}: {type(value).__name__}"


def _is_field(owner: type, member: str) -> bool:
    fields = getattr(owner, "_fields", None) or (
        [field.name for field in dataclasses.fields(owner)]
        if dataclasses.is_dataclass(owner)
        else []
    )
    return member in fields


def _member(name: str, raw: object) -> Iterator[str]:
    if isinstance(raw, property):
        returns = inspect.signature(raw.fget).return_annotation if raw.fget else "?"
        yield f"  {name}: {returns}"
    elif isinstance(raw, classmethod | staticmethod):
        yield f"  {type(raw).__name__} {name}{_signature(raw.__func__)}"
    elif inspect.isfunction(raw):
        yield f"  def {name}{_signature(raw)}"
    else:
        yield f"  {name} = {raw!r}"


def _signature(value: object) -> str:
    try:
        signature = inspect.signature(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return ""
    short = [
        parameter.replace(default=_Shown(parameter.default))
        if parameter.default is not parameter.empty
        else parameter
        for parameter in signature.parameters.values()
    ]
    return str(signature.replace(parameters=short))


class _Shown:
    """A default value, shown only where it is short: sets have no order, rules have many fields."""

    def __init__(self, value: object) -> None:
        self.text = repr(value)

    def __repr__(self) -> str:
        return self.text if len(self.text) <= 40 else "..."


def snapshot() -> str:
    """The whole public API."""
    lines = [
        line
        for module, prefix in ((shearpin, ""), (shearpin.boundary, "boundary."))
        for name in sorted(module.__all__)
        for line in describe(prefix + name, getattr(module, name))
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(snapshot(), end="")

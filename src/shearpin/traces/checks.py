"""Checks of single values in a recorded run, and the error they raise."""

from __future__ import annotations

from typing import Final, NoReturn

__all__ = ["ShapeError", "flag", "optional_text", "tokens", "wrong"]

_KINDS: Final[dict[type, str]] = {dict: "an object", list: "a list"}


class ShapeError(ValueError):
    """A value does not fit the trace format.

    Attributes:
        field: path of the value, e.g. `steps[3].calls[0].name`; empty for the run itself.
        problem: what is wrong with it.
    """

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}" if field else problem)
        self.field = field
        self.problem = problem

    def __reduce__(self) -> tuple[type[ShapeError], tuple[str, str]]:
        return (type(self), (self.field, self.problem))

    def under(self, prefix: str) -> ShapeError:
        """The same error, seen from the enclosing object."""
        return ShapeError(f"{prefix}.{self.field}" if self.field else prefix, self.problem)


def tokens(field: str, value: object) -> int:
    """A count of tokens; absent counts as 0."""
    if value is None:
        return 0
    if type(value) is not int or value < 0:
        wrong(field, value, "a whole number of tokens, 0 or more")
    return value


def optional_text(field: str, value: object) -> str | None:
    """Text or nothing."""
    if value is not None and type(value) is not str:
        wrong(field, value, "text")
    return value


def flag(field: str, value: object) -> bool | None:
    """True, false or nothing."""
    if value is not None and type(value) is not bool:
        wrong(field, value, "true or false")
    return value


def wrong(field: str, value: object, wanted: str, *, missing: bool = False) -> NoReturn:
    """Raises the `ShapeError` for `value`, saying what was wanted instead."""
    if missing:
        raise ShapeError(field, f"is missing; it must be {wanted}")
    kind = _KINDS.get(type(value))
    if value is None:
        shown = "null"
    elif kind is None:
        shown = repr(value)
        shown = shown if len(shown) <= 60 else shown[:57] + "..."
    else:
        shown = kind
    raise ShapeError(field, f"must be {wanted}, not {shown}")

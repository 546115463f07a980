"""What one exception says of itself, without what lies beneath it.

Contract: in this order: the provider's code, a class that tells exactly what happened, a status,
the operating system's number, a class that tells less, and words where there is nothing else. What
is fatal for a model's request (wrong, refused, about what does not exist) is an answer to react to
where a tool asked: the agent may have chosen the page, the file, the city.
"""

from __future__ import annotations

from shearpin.boundary.categories import ErrorCategory
from shearpin.boundary.codes import by_code, by_status, is_models, status_of
from shearpin.boundary.known import kinds_of
from shearpin.boundary.known.builtins import ERRNO
from shearpin.boundary.known.kinds import Kind, Weight, degradable
from shearpin.boundary.reading import name_of, origins_of, read, text_of, whole_number
from shearpin.boundary.useless import UselessAnswer
from shearpin.boundary.words import refused_for, status_in_words

__all__ = ["kind_of", "says_nothing"]

_REACTED_TO = {
    "invalid_request": "invalid_arguments",
    "not_found": "not_found",
    "permission": "permission",
}
_PLAIN = frozenset({"Exception", "RuntimeError", "ExceptionGroup", "BaseExceptionGroup"})
_WORDY = frozenset({"Exception", "RuntimeError", "OSError", "ToolException"})
_UNKNOWN = degradable("unknown", weight=Weight.NOTHING)


def kind_of(error: BaseException) -> Kind:
    """What an exception says of itself."""
    if isinstance(error, UselessAnswer):
        return degradable(error.error_type)
    coded = by_code(error)
    kinds = kinds_of(error)
    kind = coded if coded is not None and coded.weight is Weight.EXACT else None
    if kind is None:
        kind = next((known for known in kinds if known.weight is Weight.EXACT), None)
    if kind is None:
        status = status_of(error)
        kind = None if status is None else _of_status(error, status)
    kind = kind or coded
    if kind is None:
        nearest = kinds[0] if kinds else _UNKNOWN
        kind = _of_number(error, nearest) or _of_words(error, nearest)
    return _softened(error, kind)


def says_nothing(error: BaseException) -> bool:
    """Whether an exception is a mere wrapper around what lies beneath it."""
    return kind_of(error).weight is Weight.NOTHING


def _of_status(error: BaseException, status: int) -> Kind:
    kind = by_status(status)
    if status == 400:
        return refused_for(error) or kind
    if is_models(error):
        return kind
    if status == 409:
        return degradable("conflict")
    return degradable("invalid_arguments") if status in (413, 414) else kind


def _of_number(error: BaseException, nearest: Kind) -> Kind | None:
    if not isinstance(error, OSError):
        return None
    number = whole_number(read(error, "errno"))
    known = ERRNO.get(number) if number is not None else None
    return None if known is None else known._replace(safe=known.safe or nearest.safe)


def _of_words(error: BaseException, nearest: Kind) -> Kind:
    """The nearest class that is known; for a class of somebody's own, that it was raised."""
    name = name_of(error)
    if isinstance(error, SyntaxError):
        # Code that was made at run time has no file: it is an agent's, not the program's.
        if text_of(read(error, "filename")).startswith("<"):
            return degradable("invalid_arguments", weight=Weight.SPOKEN)
        return nearest
    if name in _WORDY:
        status = status_in_words(text_of(error))
        if status is not None:
            kind = _of_status(error, status)
            return kind._replace(safe=False, weight=Weight.SPOKEN)
    if nearest.weight is Weight.NOTHING and name not in _PLAIN:
        own = not any(origin.root == "tenacity" for origin in origins_of(error))
        return nearest._replace(weight=Weight.SPOKEN) if own else nearest
    return nearest


def _softened(error: BaseException, kind: Kind) -> Kind:
    reacted_to = _REACTED_TO.get(kind.error_type)
    if kind.category is not ErrorCategory.FATAL or reacted_to is None or is_models(error):
        return kind
    return kind._replace(category=ErrorCategory.DEGRADABLE, error_type=reacted_to)

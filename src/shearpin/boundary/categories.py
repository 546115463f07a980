"""What kind of failure an exception is, and what may be done about it.

Contract: a classification is a value; it holds the root exception for reports and nothing of the
host. Control flow (interrupts, commands, cancellation, draining) is a category of its own, so that
nobody takes it for an error.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

__all__ = ["ERROR_TYPES", "WHOLE_RUN", "Classification", "ErrorCategory"]

ERROR_TYPES: Final = frozenset(
    "authentication bad_output cancelled certificate configuration conflict content_filter "
    "context_length cut_off empty_answer invalid_arguments invalid_request ledger limit network "
    "not_found overloaded permission programming quota rate_limit recursion_limit redirects "
    "refusal refused resources server_error timeout tool_error unavailable unknown "
    "validation".split()
)
"""All that `classify` tells apart, where no rules of the user's are asked."""

WHOLE_RUN: Final = frozenset(
    {"authentication", "permission", "configuration", "ledger", "resources"}
)
"""Fatal failures that concern the whole run, and not only the one tool or node that had them."""


class ErrorCategory(StrEnum):
    """What a failure calls for."""

    RETRYABLE = "retryable"
    """It may pass by itself: rate limit, overload, network, timeout."""
    DEGRADABLE = "degradable"
    """The same thing again will not help, something else may: context too long, tool unavailable,
    bad output, quota used up."""
    FATAL = "fatal"
    """Nothing that an agent does will help: authentication, invalid request, programming error."""
    CONTROL = "control"
    """No error: an interrupt, a command, a cancellation, draining. Never touched."""


@dataclass(frozen=True, slots=True)
class Classification:
    """What is known of a failure.

    Attributes:
        category: what it calls for.
        error_type: what it is, e.g. `rate_limit`, `timeout`, `context_length`, `authentication`.
        retry_after: seconds that the other side asked to wait, None where it did not say.
        safe_to_retry: whether the other side certainly did not act on the request, so that doing it
            again cannot do it twice. False also where that is not known.
        root: the exception at the bottom of all wrappers.
        message: one short line of it, with secrets masked and no stack trace.
    """

    category: ErrorCategory
    error_type: str
    retry_after: float | None
    safe_to_retry: bool
    root: BaseException
    message: str

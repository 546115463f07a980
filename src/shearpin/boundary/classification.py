"""What kind of failure an exception is.

Contract: `classify` never raises, whatever an exception's attributes do, and imports nothing that
is not imported already. It goes by types, statuses and codes; words count only where there is
nothing else (see words.py). Rules of users are asked first.

How it decides. Of an exception and what lies beneath it, the one that says most decides, the outer
one where two say as much: a status, a code or a refused connection over a class that only tells of
a failed exchange, that over words raised on purpose (`ValueError`, `ToolException`), those over a
programming error beneath them, and that over an exception that says nothing (`RuntimeError`). A
programming error on the outside decides at once: it happened while something else was handled.
Of a group, the gravest member decides. A timeout or reset stays ambiguous, whatever failed before
it and is still to be seen as its context.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeAlias, cast

from shearpin.boundary.categories import Classification, ErrorCategory
from shearpin.boundary.judging import kind_of, says_nothing
from shearpin.boundary.known.hosts import CONTROL, STOPS
from shearpin.boundary.known.kinds import Kind, Weight
from shearpin.boundary.reading import name_of, origins_of, read
from shearpin.boundary.unwrapping import as_group, carried_by, layers_of, members_of, root_of
from shearpin.boundary.waits import headers_of, requested_wait
from shearpin.boundary.words import line_of

__all__ = ["OnFault", "Rule", "classify", "is_control"]

Rule: TypeAlias = Callable[[BaseException], Classification | ErrorCategory | None]
"""A user's rule: what an exception calls for, or None to leave it to the next."""
OnFault: TypeAlias = Callable[[Exception], None]
"""Told of a rule that raised."""

_DEEPEST_GROUP = 8
_GRAVITY = {
    ErrorCategory.CONTROL: 3,
    ErrorCategory.FATAL: 2,
    ErrorCategory.DEGRADABLE: 1,
    ErrorCategory.RETRYABLE: 0,
}


class _Judged(NamedTuple):
    """What decides, and how much it says."""

    found: Classification
    weight: Weight


def classify(
    error: BaseException, rules: Sequence[Rule] = (), *, on_fault: OnFault | None = None
) -> Classification:
    """What kind of failure an exception is, and what may be done about it.

    Args:
        error: what was raised.
        rules: asked in order, each about the exception first and then about what lies beneath it,
            from outside in; the first answer counts. A rule that raises is passed over. Control
            flow is never put to a rule.
        on_fault: told of each rule that raised. None: nobody is.

    Returns:
        Its classification. Where a rule gives a category, the rest is as found without it.

    Example:
        >>> found = classify(TimeoutError("no answer"))
        >>> found.category.value, found.error_type, found.safe_to_retry
        ('retryable', 'timeout', False)
    """
    try:
        return _judge(error, rules, on_fault, 0).found
    except Exception as broken:  # foreign metaclasses and the like: a boundary must not fail here
        return Classification(
            category=ErrorCategory.DEGRADABLE,
            error_type="unknown",
            retry_after=None,
            safe_to_retry=False,
            root=error,
            message=f"{name_of(error)}, which cannot be read ({name_of(broken)})",
        )


def is_control(error: BaseException) -> bool:
    """Whether an exception is control flow: interrupts, commands, cancellation, draining, stops.

    What is no `Exception` is control flow (`CancelledError`, `KeyboardInterrupt`, `GeneratorExit`,
    `SystemExit`). A group is where one of its members is.
    """
    group = as_group(error)
    if group is not None:
        return any(is_control(member) for member in members_of(group))
    kinds = {(origin.root, origin.name) for origin in origins_of(error)}
    if not isinstance(error, Exception):
        return ("pyo3_runtime", "PanicException") not in kinds
    # A resume value that does not fit is refused so that the interrupt can be answered again.
    return not kinds.isdisjoint(CONTROL) or read(error, "_langgraph_invalid_resume") is True


def _judge(
    error: BaseException, rules: Sequence[Rule], on_fault: OnFault | None, depth: int
) -> _Judged:
    steering = _steering(error)
    if steering is not None:
        return _Judged(_control(steering), Weight.EXACT)
    layers = layers_of(error, is_control, says_nothing)
    ruled = _asked([layer.error for layer in layers], rules, on_fault)
    if isinstance(ruled, Classification):
        return _Judged(ruled, Weight.EXACT)
    best: _Judged | None = None
    unsent, wait = False, None
    for layer in layers:
        group = as_group(layer.error)
        if group is not None:
            judged = _of_group(group, rules, on_fault, depth)
        else:
            kind = kind_of(layer.error)
            judged = _Judged(_settled(layer.error, kind), kind.weight)
            if kind.weight is Weight.MISTAKE and layer.wrapped:
                best = judged
                break
            wait = judged.found.retry_after if wait is None else wait
        if best is None or judged.weight > best.weight:
            # What lies beneath may only say why there was no connection, not that there was one.
            unsent = best is not None and best.weight is Weight.NARROW
            best = judged
    return _finished(error, cast("_Judged", best), ruled, unsent, wait)


def _finished(
    error: BaseException,
    best: _Judged,
    ruled: ErrorCategory | None,
    unsent: bool,
    wait: float | None,
) -> _Judged:
    """With what the layers around the one that decides add to it."""
    found = best.found
    if found.retry_after is None and found.category is not ErrorCategory.FATAL:
        found = replace(found, retry_after=wait)
    if unsent and found.category is ErrorCategory.RETRYABLE:
        found = replace(found, safe_to_retry=True)
    if found.message == name_of(found.root) and found.root is not error:
        found = replace(found, message=line_of(error))
    found = replace(found, root=root_of(found.root, is_control))
    if ruled is not None:
        return _Judged(replace(found, category=ruled), Weight.EXACT)
    return best._replace(found=found)


def _of_group(
    group: BaseExceptionGroup[BaseException],
    rules: Sequence[Rule],
    on_fault: OnFault | None,
    depth: int,
) -> _Judged:
    """The gravest member; safe only where all are, after the longest wait that one asks for."""
    if depth >= _DEEPEST_GROUP:
        return _Judged(_settled(group, kind_of(group)), Weight.NOTHING)
    judged = [_judge(member, rules, on_fault, depth + 1) for member in members_of(group)]
    if not judged:  # a group of groups of groups, too many to look at
        return _Judged(_settled(group, kind_of(group)), Weight.NOTHING)
    gravest = max(judged, key=lambda each: _GRAVITY[each.found.category])
    waits = [wait for each in judged if (wait := each.found.retry_after) is not None]
    hopeless = gravest.found.category is ErrorCategory.FATAL
    found = replace(
        gravest.found,
        safe_to_retry=all(each.found.safe_to_retry for each in judged),
        retry_after=None if hopeless or not waits else max(waits),
    )
    return gravest._replace(found=found)


def _settled(error: BaseException, kind: Kind) -> Classification:
    """A kind, with what this exception tells of waiting."""
    category, safe = kind.category, kind.safe
    wait = None
    if category is not ErrorCategory.FATAL:
        wait = requested_wait(error, limited=kind.error_type == "rate_limit")
    if category is ErrorCategory.RETRYABLE:
        safe = safe or (kind.error_type == "overloaded" and wait is not None)
        if headers_of(error).get("x-should-retry", "").strip().lower() == "false":
            category, safe = ErrorCategory.DEGRADABLE, False
    return Classification(category, kind.error_type, wait, safe, error, line_of(error))


def _steering(error: BaseException) -> BaseException | None:
    """The control flow that an exception is or carries, or the stop of a guard beneath it."""
    if is_control(error):
        return error
    steering: list[BaseException] = [held for held in carried_by(error) if is_control(held)]

    def note(beneath: BaseException) -> bool:
        control = is_control(beneath)
        if control and any(
            origin.name in STOPS and origin.root == "shearpin" for origin in origins_of(beneath)
        ):
            steering.append(beneath)
        return control

    layers_of(error, note, says_nothing)
    return steering[0] if steering else None


def _control(error: BaseException) -> Classification:
    return Classification(ErrorCategory.CONTROL, "control", None, False, error, name_of(error))


def _asked(
    errors: Sequence[BaseException], rules: Sequence[Rule], on_fault: OnFault | None
) -> Classification | ErrorCategory | None:
    """What the first rule says that says anything."""
    for rule in rules:
        for error in errors:
            try:
                said = cast("object", rule(error))
                if isinstance(said, str):
                    said = ErrorCategory(said)
            except Exception as fault:
                if on_fault is not None:
                    on_fault(fault)
                continue
            if isinstance(said, Classification | ErrorCategory):
                return said
    return None

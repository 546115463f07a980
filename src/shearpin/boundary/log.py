"""What the boundary writes to the log: failures that end a run, and failures that were answered.

Contract: nothing that the boundary deals with is lost to whoever reads the log of the program. A
failure that ends a run is a warning with the original exception, which would have left the run
without us; a failure that was answered is told at DEBUG, by type and place alone. No line of ours
holds arguments or results, and what it quotes of an error is masked.
"""

from __future__ import annotations

import logging

from shearpin.boundary.classification import classify
from shearpin.boundary.reading import name_of
from shearpin.boundary.results import ToolResult

__all__ = ["log_answered", "log_end", "log_misconfigured"]

logger = logging.getLogger("shearpin")

_LONGEST_NAME = 100


def log_end(reason: str, place: str, error: BaseException | None) -> None:
    """A run is ended over a failure.

    Args:
        reason: of its end, e.g. `failures:timeout`.
        place: the node or call in which it is ended; empty where that is not known.
        error: the failure; its stack trace is logged. None: nobody has kept it.
    """
    where = f" in {_shown(place)}" if place else ""
    if error is None:
        logger.warning("shearpin: the run is ended (%s)%s", reason, where)
        return
    logger.warning(
        "shearpin: the run is ended (%s)%s: %s: %s",
        reason,
        where,
        name_of(error),
        classify(error).message,
        exc_info=(type(error), error, error.__traceback__),
    )


def log_answered(result: ToolResult) -> None:
    """A failed tool call has been answered, by a text or by something in the tool's place."""
    if result.error_type is None or not logger.isEnabledFor(logging.DEBUG):
        return
    logger.debug(
        "shearpin: the tool %s has failed and was answered: %s%s",
        _shown(result.tool_name),
        result.error_type,
        "" if result.error is None else f" ({name_of(result.error)})",
    )


def log_misconfigured(tool: str, message: str) -> None:
    """A tool could not be run because of a setting; `message` is masked."""
    logger.warning("shearpin: the tool %s was not run: %s", _shown(tool), message)


def _shown(name: str) -> str:
    """A name on one line: a model may have made it up."""
    return repr(name[:_LONGEST_NAME])

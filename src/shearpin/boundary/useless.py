"""An answer of a model that is of no use, where an exception has to stand for it.

Contract: it says of which type the failure is, so that whoever meets it further out need not guess.
"""

from __future__ import annotations

__all__ = ["UselessAnswer"]


class UselessAnswer(Exception):  # noqa: N818 - an answer that came, and is of no use
    """Stands for an answer that is of no use, where an exception is needed.

    Attributes:
        error_type: as in `Classification`, e.g. `content_filter` or `empty_answer`.
    """

    def __init__(self, message: str, error_type: str = "bad_output") -> None:
        super().__init__(message)
        self.error_type = error_type

"""Keeps LangChain from warning about each refused call."""

from __future__ import annotations

import logging

__all__ = ["quieten"]

_OURS = ("CallLayer", "_Innermost")


class _Quiet(logging.Filter):
    """Keeps LangChain from warning about each refused call."""

    def filter(self, record: logging.LogRecord) -> bool:
        args = record.args
        return not (isinstance(args, tuple) and args and str(args[0]).endswith(_OURS))


def quieten() -> None:
    """From now on a refusal of ours is no warning in LangChain's log."""
    logging.getLogger("langchain_core.callbacks.manager").addFilter(_Quiet())

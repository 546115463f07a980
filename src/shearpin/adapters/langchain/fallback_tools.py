"""Tools of LangChain that take another tool's place.

Contract: called with the arguments that the model gave, under the id of the call that failed, so
that whatever they answer is the answer to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from langchain_core.runnables.config import var_child_runnable_config
from langchain_core.tools import BaseTool

from shearpin.boundary.steps import Perform

__all__ = ["called_instead"]


def called_instead(
    fallback: object, args: Mapping[str, object], call: str, *, loop: bool
) -> Perform | None:
    """How to call a tool in another one's place; None where it is no tool of LangChain."""
    if not isinstance(fallback, BaseTool):
        return None
    given: Any = dict(args)
    if call:
        given = {"type": "tool_call", "name": fallback.name, "args": given, "id": call}
    invoke = fallback.ainvoke if loop else fallback.invoke
    return Perform(lambda: invoke(given, cast("Any", var_child_runnable_config.get())))

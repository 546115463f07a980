"""LangGraph's own step limit, where an agent that another one called has run into it.

LangGraph's error does not say which graph it comes from. The error stays as it is; a note of ours
says it (PEP 678), added where the error leaves the agent: in the tool or node that called it.

*Source*: langchain-ai/deepagents#1698.
"""

from __future__ import annotations

import re

from langgraph.errors import GraphRecursionError

__all__ = ["name_the_child"]

_LIMIT = re.compile(r"limit of (\d+)")
_MARK = "shearpin: "


def name_the_child(error: BaseException, what: str) -> None:
    """Say in an error which agent ran into LangGraph's step limit, and which limit was in force.

    Args:
        error: any; others are left alone.
        what: the tool or node that called the agent.
    """
    if not isinstance(error, GraphRecursionError):
        return
    notes: list[str] = getattr(error, "__notes__", [])
    if any(note.startswith(_MARK) for note in notes):
        return  # named where it came from, further down
    found = _LIMIT.search(str(error))
    limit = f"of {found[1]} supersteps " if found is not None else ""
    error.add_note(
        f"{_MARK}the agent that {what} calls ran into LangGraph's recursion_limit {limit}that is "
        'in force for it; give it another with {"recursion_limit": N} where it is called, and '
        "limit the work itself with a budget, which holds for the whole tree"
    )

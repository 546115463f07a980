"""The arguments of a call as its tool will read them, however a model has spelt them.

Contract: validated with the tool's schema: types coerced, defaults filled in, and what the tool
does not take left out. A default that is made anew each time (an id, a time) says nothing of what
was asked for, and is left out. Where the arguments do not fit, or there is no schema of
Pydantic's, nothing is known. Never raises.
"""

from __future__ import annotations

from collections.abc import Mapping

from langchain_core.tools import BaseTool
from pydantic import BaseModel

__all__ = ["as_read"]

_EMPTY = (list, dict, set, tuple)


def as_read(tool: object, args: Mapping[str, object]) -> dict[str, object] | None:
    """The arguments as JSON values; None where nobody can tell."""
    if not isinstance(tool, BaseTool):
        return None
    try:
        schema: object = tool.tool_call_schema
        if not isinstance(schema, type) or not issubclass(schema, BaseModel):
            return None
        read = schema.model_validate(dict(args))
        made = {
            name
            for name, spec in schema.model_fields.items()
            if name not in read.model_fields_set
            and spec.default_factory is not None
            and spec.default_factory not in _EMPTY
        }
        return read.model_dump(mode="json", exclude=made)
    except Exception:  # a schema is anybody's code; the call then counts as it was spelt
        return None

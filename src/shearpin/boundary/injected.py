"""Arguments of a tool that only its host can fill in.

Contract: read by shape, without importing a host; what has no such schema asks for nothing. The id
of the call is not among them: it is given to whatever stands in for a tool.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

__all__ = ["injected_into"]

_GIVEN = "InjectedToolCallId"


def injected_into(tool: object) -> list[str]:
    """Names of arguments that a tool needs and its model does not give: state, store, runtime.

    Args:
        tool: a tool of a host, or a function.
    """
    schema_of = getattr(tool, "get_input_schema", None)
    # older hosts' `args` has the injected ones too
    shown: object = getattr(getattr(tool, "tool_call_schema", None), "model_fields", None)
    if not callable(schema_of) or not isinstance(shown, Mapping):
        return []
    fields: object = getattr(schema_of(), "model_fields", None)
    if not isinstance(fields, Mapping):
        return []
    known = cast("Mapping[str, Any]", fields)
    return [
        name
        for name, field in known.items()
        if name not in shown and field.is_required() and not _is_call_id(field)
    ]


def _is_call_id(field: Any) -> bool:
    marks = cast("list[object]", field.metadata)
    return any(
        getattr(mark, "__name__", type(mark).__name__) == _GIVEN
        for mark in (field.annotation, *marks)
    )

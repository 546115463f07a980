# pyright: reportMissingTypeStubs=false
"""What people have said to pauses, where only a running task can be asked: for a middleware alone.

Contract: read from what LangGraph keeps of a task that was paused: its scratchpad, and its writes
on the checkpoints just before. Where these are not as they are known to be, nothing was said.
Verified on LangGraph 1.0.10 to 1.2.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

from langchain_core.messages import ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple

from shearpin.adapters.langgraph.compat import configurable

__all__ = ["Said", "asaid_before", "invocation_of", "said_before", "said_to"]

Said = list[tuple[object, list[ToolMessage]]]
"""Answers of people, each with the answers to tool calls that its task has written then."""

_RESUME: Final = "__resume__"
_RUNTIME: Final = "__pregel_runtime"
_SCRATCHPAD: Final = "__pregel_scratchpad"
_LOOK_BACK: Final = 4


def invocation_of(config: Mapping[str, Any]) -> object:
    """An object that is another one in each run of the outermost graph; None outside of any."""
    return getattr(configurable(config).get(_RUNTIME), "stream_writer", None)


def said_to(config: Mapping[str, Any]) -> list[object]:
    """What was said to the pauses of the task that is running."""
    found: object = getattr(configurable(config).get(_SCRATCHPAD), "resume", None)
    return list(cast("list[object]", found)) if isinstance(found, list) else []


def said_before(config: Mapping[str, Any]) -> Said:
    """What was said to the pauses of the few steps before this one, as far as it is saved."""
    saver, place, latest = _place(config)
    said: Said = []
    for turn in range(_LOOK_BACK if saver is not None else 0):
        held = None if place is None else cast("Any", saver).get_tuple(place)
        if held is None and turn == 0:
            held = cast("Any", saver).get_tuple(latest)
        said.extend(_said_in(held))
        place = held.parent_config if held is not None else None
    return said


async def asaid_before(config: Mapping[str, Any]) -> Said:
    """`said_before`, for asynchronous agents."""
    saver, place, latest = _place(config)
    said: Said = []
    for turn in range(_LOOK_BACK if saver is not None else 0):
        held = None if place is None else await cast("Any", saver).aget_tuple(place)
        if held is None and turn == 0:
            held = await cast("Any", saver).aget_tuple(latest)
        said.extend(_said_in(held))
        place = held.parent_config if held is not None else None
    return said


def _place(
    config: Mapping[str, Any],
) -> tuple[BaseCheckpointSaver[Any] | None, RunnableConfig, RunnableConfig]:
    """The checkpointer, the checkpoint that the running step has started from, and the latest.

    The first of these may not be saved yet: with `durability="async"` that is done meanwhile.
    """
    values = configurable(config)
    namespace = str(values.get("checkpoint_ns", "")).rpartition("|")[0]
    head = cast("Mapping[str, str]", values.get("checkpoint_map") or {}).get(namespace)
    saver = values.get("__pregel_checkpointer")
    latest = {"thread_id": values.get("thread_id"), "checkpoint_ns": namespace}
    known = isinstance(saver, BaseCheckpointSaver) and head is not None
    return (
        cast("BaseCheckpointSaver[Any]", saver) if known else None,
        {"configurable": {**latest, "checkpoint_id": head}},
        {"configurable": latest},
    )


def _said_in(held: CheckpointTuple | None) -> Iterator[tuple[object, list[ToolMessage]]]:
    writes = (held.pending_writes or ()) if held is not None else ()
    for task, channel, value in writes:
        if channel != _RESUME or not isinstance(value, list):
            continue  # what was said to all tasks is kept with each task as well, as a list
        answers = [
            message
            for other, _, written in writes
            if other == task and isinstance(written, list)
            for message in cast("list[object]", written)
            if isinstance(message, ToolMessage)
        ]
        yield from ((said, answers) for said in cast("list[object]", value))

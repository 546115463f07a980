"""Everything that a user can see of a graph, as plain data without ids and times.

Ids are replaced by the order of their first appearance, so that two observations are equal exactly
if the graphs behaved the same.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any

from langchain_core.messages import BaseMessage
from pydantic import BaseModel

from tests.zoo.exhibit import Exhibit, Graph

MODES = ["values", "updates", "custom", "messages", "checkpoints", "tasks", "debug"]

_IDS = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|\b[0-9a-f]{32}\b|0x[0-9a-f]{6,}"
)
_TIMES = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?([+-]\d\d:\d\d|Z)?")


class Normaliser:
    """Turns host objects into plain data; one per observation, for it numbers the ids.

    Where the order of things is an accident, so are the numbers: `numbered=False` hides the ids.
    """

    def __init__(self, *, numbered: bool = True) -> None:
        self._ids: dict[str, str] = {}
        self._numbered = numbered

    def __call__(self, value: Any) -> Any:
        """Plain data for any value."""
        if value is None or isinstance(value, bool | int | float):
            return value
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, Mapping):
            return {self._text(str(k)): self(v) for k, v in value.items() if k != "ts"}
        if isinstance(value, tuple) and hasattr(value, "_asdict"):
            return {"type": type(value).__name__, **self(value._asdict())}
        if isinstance(value, list | tuple):
            return [type(value).__name__, *map(self, value)]
        if isinstance(value, set | frozenset):
            return [type(value).__name__, *sorted(map(str, map(self, value)))]
        return self._object(value)

    def _text(self, text: str) -> str:
        text = _TIMES.sub("<time>", text)
        return _IDS.sub(lambda found: self._number(found.group()), text)

    def _number(self, id: str) -> str:
        if not self._numbered:
            return "<id>"
        return self._ids.setdefault(id, f"<id-{len(self._ids) + 1}>")

    def _object(self, value: Any) -> Any:
        kind = type(value).__name__
        if isinstance(value, BaseException):
            return {"type": kind, "text": self._text(str(value))}
        if isinstance(value, Enum):
            return f"{kind}.{value.name}"
        if isinstance(value, BaseMessage) and (value.id is None or _IDS.search(value.id)):
            # The host sets a missing id in place, sometimes after a saver's thread has seen it.
            return {"type": kind, **self(dict(value)), "id": "<id>"}
        if isinstance(value, BaseMessage | BaseModel):
            return {"type": kind, **self(dict(value))}
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            fields = {f.name: getattr(value, f.name, None) for f in dataclasses.fields(value)}
            return {"type": kind, **self(fields)}
        slots = getattr(type(value), "__slots__", None)
        if slots and type(value).__module__.startswith("langgraph"):
            return {"type": kind, **{s: self(getattr(value, s, None)) for s in slots}}
        return self._text(repr(value))


def unordered(turns: list[list[Any]]) -> list[list[str]]:
    """The items of each turn's stream as sorted text."""
    return [sorted(repr(item) for item in turn) for turn in turns]


def settings(exhibit: Exhibit, *, eager: bool = False) -> dict[str, Any]:
    """The thread's config; one task at a time, so that the order of a stream is no accident.

    A synchronous stream that is `eager` (messages, custom or nested) needs a worker for its own.
    """
    given = dict(exhibit.config)
    configurable = {"thread_id": "1", **given.pop("configurable", {})}
    return {"max_concurrency": 2 if eager else 1, "configurable": configurable, **given}


def each_turn(
    exhibit: Exhibit,
    graph: Graph,
    run: Callable[[Any, dict[str, Any]], Any],
    *,
    eager: bool = False,
) -> Any:
    """Take the turns one after the other; an error is what a turn gave, and the next follows."""
    config = settings(exhibit, eager=eager)
    normalise = Normaliser(numbered=not eager)
    seen: list[Any] = []
    for turn in exhibit.turns:
        try:
            seen.append(normalise(turn(graph, config) if callable(turn) else run(turn, config)))
        except Exception as error:
            seen.append(normalise(error))
    return seen


async def each_turn_async(
    exhibit: Exhibit, graph: Graph, run: Callable[..., Any], *, numbered: bool = True
) -> Any:
    """The same, for coroutines."""
    config = settings(exhibit)
    normalise = Normaliser(numbered=numbered)
    seen: list[Any] = []
    for turn in exhibit.turns:
        try:
            given = turn(graph, config) if callable(turn) else await run(turn, config)
            seen.append(normalise(given))
        except Exception as error:
            seen.append(normalise(error))
    return seen


def collect(stream: Any, into: list[Any]) -> list[Any]:
    """All items of a stream, kept in `into` if it breaks."""
    into.extend(stream)
    return into


def history(exhibit: Exhibit, graph: Graph) -> Any:
    """All checkpoints of the thread, and the present state with its subgraphs."""
    if not graph.checkpointer:
        return None
    config = settings(exhibit)
    normalise = Normaliser()
    seen: list[Any] = []
    try:
        seen.append(normalise(graph.get_state(config, subgraphs=True)))
        seen.extend(map(normalise, graph.get_state_history(config)))
    except Exception as error:
        seen.append(normalise(error))
    return seen


def stored(exhibit: Exhibit, graph: Graph) -> Any:
    """What the saver holds: checkpoints, metadata, versions and parents in all namespaces."""
    if not graph.checkpointer:
        return None
    normalise = Normaliser()
    rows = []
    for row in graph.checkpointer.list(None):
        checkpoint = dict(row.checkpoint)
        checkpoint["channel_versions"] = sorted(checkpoint["channel_versions"])
        checkpoint["versions_seen"] = sorted(map(str, checkpoint["versions_seen"]))
        rows.append(normalise([row.config, checkpoint, row.metadata, row.parent_config]))
    return rows


def drawing(graph: Graph) -> Any:
    """The graph as mermaid and JSON; some hand-made graphs cannot be drawn."""
    normalise = Normaliser()
    try:
        deep = graph.get_graph(xray=True)
        return normalise([graph.get_graph().draw_mermaid(), deep.draw_mermaid(), deep.to_json()])
    except Exception as error:
        return normalise(error)


def outside(graph: Graph) -> dict[str, Any]:
    """Drawing, schemas and attributes: all there is to see without a run."""
    return {
        "name": graph.name,
        "class": (type(graph).__module__, type(graph).__qualname__),
        "nodes": list(graph.nodes),
        "channels": {name: type(channel).__name__ for name, channel in graph.channels.items()},
        "streamed": graph.stream_channels_list,
        "input_channels": graph.input_channels,
        "output_channels": graph.output_channels,
        "input": graph.get_input_jsonschema(),
        "output": graph.get_output_jsonschema(),
        "context": graph.get_context_jsonschema(),
        "drawing": drawing(graph),
        "subgraphs": sorted(name for name, _ in graph.get_subgraphs(recurse=True)),
        "interrupts": (list(graph.interrupt_before_nodes), list(graph.interrupt_after_nodes)),
    }

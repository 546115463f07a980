# pyright: reportMissingTypeStubs=false
# (LangGraph's sub-packages carry their types inline, without a marker of their own.)
"""Every touch of LangGraph's private parts, but for tool nodes (`compat_tools`).

Nothing else in Shearpin knows them.
Used: `PregelNode.copy`, `.node` (a cached property: what is executed), `.bound`, `.writers`, and
the `bound` of a node that does nothing; `Pregel.nodes` and `.channels`; the names of four keys in a
task's configuration. `self_test` proves on the graph at
hand that they still work; where it fails, guarding falls back on public parts alone (callbacks see
and refuse; a refusal pauses the run). Verified on LangGraph 1.0.10 to 1.2.
"""

from __future__ import annotations

import copy
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, Protocol, TypeVar, cast

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.config import set_config_context, var_child_runnable_config
from langgraph import types
from langgraph.channels.base import BaseChannel
from langgraph.channels.binop import BinaryOperatorAggregate
from langgraph.channels.last_value import LastValue
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.func import entrypoint
from langgraph.graph import StateGraph
from langgraph.graph.message import REMOVE_ALL_MESSAGES as REMOVE_ALL
from langgraph.prebuilt import ToolNode
from langgraph.pregel import Pregel

__all__ = [
    "PREVIOUS",
    "REMOVE_ALL",
    "AnyGraph",
    "AnyNode",
    "AnyRunnable",
    "Pregel",
    "Returned",
    "StateGraph",
    "ToolNode",
    "adds_messages",
    "ambient",
    "configurable",
    "entrypoint",
    "executable_with",
    "install",
    "is_idle",
    "is_nested",
    "is_sent",
    "message_channel",
    "overwriting",
    "read_channel",
    "reducers",
    "returned_by",
    "saver_of",
    "self_test",
    "started_from",
    "stream_writer",
    "with_cache",
    "with_nodes",
    "within",
]


AnyRunnable = Runnable[Any, Any]
T = TypeVar("T")

try:
    from langgraph.pregel._read import DEFAULT_BOUND

    _idle: AnyRunnable | None = DEFAULT_BOUND
except ImportError:  # `self_test` tells
    _idle = None

Overwrite = cast("Callable[[object], object] | None", getattr(types, "Overwrite", None))

Returned = Literal["text", "message"]

PREVIOUS = "__previous__"
"""The channel in which an entrypoint saves what it wants to find again."""

_CONFIGURABLE = "configurable"
_READ = "__pregel_read"
_CHECKPOINTER = "__pregel_checkpointer"
_TASK = "__pregel_task_id"
_DURABILITY = "__pregel_durability"
_RUNTIME = "__pregel_runtime"
_PUSHED = "__pregel_push"


class AnyNode(Protocol):
    """What is used of a `PregelNode`."""

    bound: Any
    writers: list[Any]
    subgraphs: Sequence[Any]
    cache_policy: Any

    @property
    def node(self) -> Any: ...
    def copy(self, update: dict[str, Any]) -> AnyNode: ...


class AnyGraph(Protocol):
    """What is used of a compiled graph."""

    nodes: dict[str, AnyNode]
    channels: dict[str, Any]
    checkpointer: Any
    cache: Any
    cache_policy: Any
    config: Any

    def get_name(self) -> str: ...
    def copy(self, update: dict[str, Any] | None = None) -> AnyGraph: ...
    def clear_cache(self, nodes: Sequence[str] | None = None) -> None: ...
    async def aclear_cache(self, nodes: Sequence[str] | None = None) -> None: ...
    def stream(self, input: Any, config: Any = None, **kwargs: Any) -> Iterator[Any]: ...
    def astream(self, input: Any, config: Any = None, **kwargs: Any) -> AsyncIterator[Any]: ...


# -- nodes --------------------------------------------------------------------------------------


def is_idle(node: AnyNode) -> bool:
    """Whether a node only passes values on (`__start__`), so that there is nothing to guard."""
    return node.bound is _idle


def executable_with(
    node: AnyNode, bound: AnyRunnable | None, *, first_writer: bool = False
) -> AnyRunnable | None:
    """What LangGraph executes for a node, with `bound` in place of its main part where given.

    `first_writer` leaves out the writers of static edges.
    """
    if bound is None:
        return node.node
    writers = {"writers": node.writers[:1]} if first_writer else {}
    return node.copy({"bound": bound, **writers}).node


def install(node: AnyNode, runnable: AnyRunnable) -> AnyNode:
    """A copy of a node that executes `runnable` and is the same in all other respects."""
    twin = node.copy({})
    vars(twin)["node"] = runnable
    return twin


def with_nodes(graph: AnyGraph, cls: type[AnyGraph], nodes: Mapping[str, AnyNode]) -> AnyGraph:
    """A shallow copy of a graph, of class `cls`, with other nodes; private attributes stay."""
    twin = cls.__new__(cls)
    vars(twin).update(vars(graph))
    twin.nodes = dict(nodes)
    return twin


def with_cache(graph: AnyGraph, parent: AnyGraph) -> AnyGraph | None:
    """A graph with its own cache or the one that a parent lent it; None where there is none."""
    if graph.cache is not None:
        return graph
    twin = copy.copy(graph)
    twin.cache = parent.cache
    return twin if twin.cache is not None else None


def self_test(graph: AnyGraph) -> str | None:
    """What does not work as it should on this graph; None if everything does."""
    marker = _idle
    if marker is None:
        return "langgraph.pregel._read.DEFAULT_BOUND is gone"
    try:
        for name, node in graph.nodes.items():
            twin = install(node, marker)
            if twin.node is not marker or twin.bound is not node.bound:
                return f"node {name!r} does not keep a replaced executable"
            if twin.writers is not node.writers or twin.subgraphs is not node.subgraphs:
                return f"node {name!r} does not keep its writers or subgraphs when copied"
    except Exception as error:
        return f"nodes cannot be copied: {type(error).__name__}: {error}"
    return None


# -- state --------------------------------------------------------------------------------------


def reducers(graph: AnyGraph) -> frozenset[str]:
    """The channels into which updates are merged, so that an equal update may be progress."""
    return frozenset(
        name
        for name, channel in graph.channels.items()
        if isinstance(channel, BaseChannel)
        and not name.startswith(("branch:", "join:", "__pregel"))
        and not isinstance(channel, LastValue)
    )


def message_channel(graph: AnyGraph) -> tuple[str, bool] | None:
    """The channel that holds the conversation, and whether a reducer merges updates into it."""
    merged: dict[str, Any] = {
        name: cast("Any", channel).operator
        for name, channel in graph.channels.items()
        if isinstance(channel, BinaryOperatorAggregate)
    }
    if "messages" in graph.channels:
        return "messages", not isinstance(graph.channels["messages"], LastValue)
    for name, operator in merged.items():
        inner = getattr(operator, "func", operator)
        if "add_messages" in getattr(inner, "__name__", ""):
            return name, True
    return ("__root__", "__root__" in merged) if "__root__" in graph.channels else None


def adds_messages(graph: AnyGraph, name: str) -> bool:
    """Whether a channel takes messages by id, so that all of them can be replaced by an update."""
    operator = getattr(graph.channels.get(name), "operator", None)
    return "add_messages" in getattr(getattr(operator, "func", operator), "__name__", "")


def returned_by(graph: AnyGraph) -> Returned | None:
    """What an entrypoint declares to return, if that is a text or a message."""
    if PREVIOUS not in graph.channels:
        return None
    declared = getattr(graph.channels.get("__end__"), "typ", None)
    if declared is str:
        return "text"
    is_message = isinstance(declared, type) and issubclass(declared, BaseMessage)
    return "message" if is_message and issubclass(AIMessage, cast("type", declared)) else None


def read_channel(config: RunnableConfig, channel: str) -> object:
    """The value of a channel as a running task sees it, with the task's own writes."""
    values = cast("Mapping[str, Any]", config.get(_CONFIGURABLE) or {})
    return values[_READ](channel, True)


def overwriting(value: object) -> object | None:
    """An update that takes the place of a merged channel's value; None where there is none."""
    return None if Overwrite is None else Overwrite(value)


# -- tasks --------------------------------------------------------------------------------------


def is_sent(config: RunnableConfig) -> bool:
    """Whether a task was sent with an input of its own, instead of being led to by an edge."""
    metadata = cast("Mapping[str, Any]", config.get("metadata") or {})
    return _PUSHED in (metadata.get("langgraph_triggers") or ())


def stream_writer(config: RunnableConfig) -> Callable[[Any], None]:
    """What writes to the stream of mode `custom` from a running task."""
    values = cast("Mapping[str, Any]", config.get(_CONFIGURABLE) or {})
    return cast("Callable[[Any], None]", values[_RUNTIME].stream_writer)


def within(config: RunnableConfig, act: Callable[[], T]) -> T:
    """Do something as the code of a running task would."""
    with set_config_context(config) as context:
        return context.run(act)


# -- configuration ------------------------------------------------------------------------------


def configurable(*configs: Mapping[str, Any] | None) -> dict[str, Any]:
    """The `configurable` parts of several configurations in one; later ones win."""
    merged: dict[str, Any] = {}
    for config in configs:
        if config:
            merged.update(config.get(_CONFIGURABLE) or {})
    return merged


def ambient() -> Mapping[str, Any] | None:
    """The configuration of the code that is running, inside a node or runnable."""
    return cast("Mapping[str, Any] | None", var_child_runnable_config.get())


def started_from(config: Mapping[str, Any]) -> str | None:
    """The root checkpoint that a task's step started from; None where it must not be touched."""
    values = configurable(config)
    if values.get(_DURABILITY) == "exit":
        return None
    return cast("Mapping[str, str]", values.get("checkpoint_map") or {}).get("")


def is_nested(values: Mapping[str, Any]) -> bool:
    """Whether these `configurable` values belong to a task of another graph."""
    return _TASK in values


def saver_of(graph: AnyGraph, values: Mapping[str, Any]) -> BaseCheckpointSaver[Any] | None:
    """The checkpointer that a run will use; None where it uses none."""
    for saver in (values.get(_CHECKPOINTER), graph.checkpointer):
        if isinstance(saver, BaseCheckpointSaver):
            return cast("BaseCheckpointSaver[Any]", saver)
    return None

"""What is used of a running task of LangGraph beyond its public interface: its writes, its retries.

Contract: each function works on LangGraph 1.0 to 1.2 and says so where it does not: `written` and
`rerun` give None where a task is not built as they know it, and then nothing of a failed node is
done again.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.types import RetryPolicy

from shearpin.adapters.langgraph.compat import AnyGraph, AnyNode

__all__ = [
    "has_handler",
    "has_policy",
    "leads_on",
    "policy_for",
    "rerun",
    "supersteps_left",
    "written",
]

_CONFIGURABLE = "configurable"
_LEADING = ("branch:to:", "join:", "__pregel_tasks")
_READ = "__pregel_read"
_RESUMING = "__pregel_resuming"
_RUNTIME = "__pregel_runtime"
_SCRATCHPAD = "__pregel_scratchpad"


def written(config: RunnableConfig) -> Any | None:
    """What a task has written so far: a queue that can be cleared. None where it cannot be found.

    It is the one from which the task's own reads are answered; what a task sends its writes to may
    be wrapped by a time limit.
    """
    read = _values(config).get(_READ)
    for argument in reversed(read.args if isinstance(read, partial) else ()):
        queue = getattr(argument, "writes", None)
        if callable(getattr(queue, "clear", None)):
            return queue
    return None


def rerun(config: RunnableConfig, attempt: int) -> RunnableConfig | None:
    """The configuration for running a node once more, as LangGraph's own retries make it.

    Subgraphs go on where they were, and so does an entrypoint: its finished tasks give back what
    they gave. `interrupt` counts from the first again, and the runtime says which attempt this is.
    The task's writes are cleared. None where that cannot be done.
    """
    queue = written(config)
    if queue is None:
        return None
    queue.clear()
    values = _values(config)
    changed: dict[str, Any] = {**values, _RESUMING: True}
    scratchpad = values.get(_SCRATCHPAD)
    if dataclasses.is_dataclass(scratchpad) and not isinstance(scratchpad, type):
        changed[_SCRATCHPAD] = _counting_anew(scratchpad)
    runtime = values.get(_RUNTIME)
    if getattr(runtime, "execution_info", None) is not None:
        changed[_RUNTIME] = cast("Any", runtime).patch_execution_info(node_attempt=attempt)
    return cast("RunnableConfig", {**config, _CONFIGURABLE: changed})


def _counting_anew(scratchpad: Any) -> Any:
    """What a task counts by, from the first again: what it has done already is found by number."""
    calls = scratchpad.call_counter  # LangGraph reads this one from the task itself
    if hasattr(calls, "_counter"):
        calls._counter = None
    kind = cast("Callable[[], Any]", type(scratchpad.interrupt_counter))
    return dataclasses.replace(scratchpad, interrupt_counter=kind(), subgraph_counter=kind())


def supersteps_left(config: RunnableConfig) -> int | None:
    """How many supersteps the graph may still make, this one included; None: it does not say."""
    scratchpad = _values(config).get(_SCRATCHPAD)
    step, stop = getattr(scratchpad, "step", None), getattr(scratchpad, "stop", None)
    return stop - step if isinstance(step, int) and isinstance(stop, int) else None


def leads_on(channel: object) -> bool:
    """Whether a write to a channel makes a node run in the next superstep."""
    return isinstance(channel, str) and channel.startswith(_LEADING)


def policy_for(graph: AnyGraph, node: AnyNode, error: Exception) -> RetryPolicy | None:
    """LangGraph's own retry policy that holds for an error of a node."""
    held: object = getattr(node, "retry_policy", None) or getattr(graph, "retry_policy", None)
    if not held:
        return None
    policies = [held] if isinstance(held, RetryPolicy) else cast("Sequence[RetryPolicy]", held)
    return next((policy for policy in policies if _retries(policy, error)), None)


def has_policy(graph: AnyGraph, node: AnyNode) -> bool:
    """Whether the author of the graph has said how a node is to be retried."""
    return bool(getattr(node, "retry_policy", None) or getattr(graph, "retry_policy", None))


def has_handler(node: AnyNode) -> bool:
    """Whether the graph itself goes on at a handler of its own where the node fails."""
    return getattr(node, "error_handler_node", None) is not None


def _retries(policy: RetryPolicy, error: Exception) -> bool:
    on: Any = policy.retry_on
    if isinstance(on, type):
        return isinstance(error, on)
    if isinstance(on, Sequence):
        return isinstance(error, tuple(cast("Sequence[type[Exception]]", on)))
    return bool(cast("Callable[[Exception], bool]", on)(error))


def _values(config: RunnableConfig) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", config.get(_CONFIGURABLE) or {})

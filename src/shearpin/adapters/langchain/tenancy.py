"""Which run a middleware's call belongs to, where no guarded graph has opened one.

A middleware that adds no step of its own is never told that a run begins or ends. A turn begins, as
far as it can tell, when a model is asked right after a user's message that does not follow the
answer to a tool call; the conversation is known by its thread id, or else by its first message.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any, cast

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langgraph.config import get_config

from shearpin import clock
from shearpin.adapters.boundary.bounds import open_bounds
from shearpin.adapters.judge import ThreadState
from shearpin.adapters.money.metering import open_spending, orders_in
from shearpin.adapters.run import Run
from shearpin.adapters.ways import Ways
from shearpin.recipe import Guard

__all__ = ["Tenancy", "ambient_config"]

_MOST = 1024


def ambient_config() -> Mapping[str, Any]:
    """The configuration of the node that is running; empty outside one."""
    try:
        return cast("Mapping[str, Any]", get_config())
    except RuntimeError:
        return {}


class Tenancy:
    """The open run of each conversation, the least recently used forgotten first."""

    def __init__(self, guard: Guard, most: int = _MOST) -> None:
        self._guard = guard
        self._most = most
        self._runs: OrderedDict[str, Run] = OrderedDict()
        self._asked: dict[str, str] = {}
        self._latest: Run | None = None
        self._lock = threading.Lock()

    def of_model_call(self, messages: Sequence[BaseMessage], config: Mapping[str, Any]) -> Run:
        """The run that a model call belongs to; a new one where a new turn begins."""
        key = _key(messages, config)
        question = _opening(messages)
        with self._lock:
            run = self._runs.get(key)
            if run is None or (question is not None and self._asked.get(key) != question):
                run = self._begin(key, run, config)
            if question is not None:
                self._asked[key] = question
            self._runs.move_to_end(key)
            while len(self._runs) > self._most:
                gone, _ = self._runs.popitem(last=False)
                self._asked.pop(gone, None)
            return run

    def of_tool_call(self, state: object, config: Mapping[str, Any]) -> Run | None:
        """The run that a tool call belongs to; None where no model call has opened one."""
        held = (
            cast("Mapping[str, Any]", state).get("messages")
            if isinstance(state, Mapping)
            else getattr(state, "messages", None)
        )
        with self._lock:
            return self._runs.get(_key(held or (), config))

    def latest(self, thread: str | None) -> Run | None:
        """The latest run of a thread, or of all."""
        with self._lock:
            return self._latest if thread is None else self._runs.get(f"thread:{thread}")

    def _begin(self, key: str, last: Run | None, config: Mapping[str, Any]) -> Run:
        if last is None:
            settings = self._guard.fitted(self._guard.settings)
            state = ThreadState.fresh(settings, clock.monotonic)
        else:
            last.end("completed")
            state = last.state
        values = cast("Mapping[str, Any]", config.get("configurable") or {})
        metadata = cast("Mapping[str, Any]", config.get("metadata") or {})
        thread = values.get("thread_id")
        name = self._guard.name or str(metadata.get("lc_agent_name") or "agent")
        run = Run(name, None if thread is None else str(thread), state)
        run.repair, run.ways = self._guard.repair, Ways(self._guard)
        run.begin(new_turn=True)
        open_spending(run, self._guard, orders_in(values), new_turn=True)
        open_bounds(run, self._guard)
        self._runs[key] = self._latest = run
        return run


def _key(messages: Sequence[BaseMessage], config: Mapping[str, Any]) -> str:
    values = cast("Mapping[str, Any]", config.get("configurable") or {})
    path = [part.partition(":")[0] for part in str(values.get("checkpoint_ns", "")).split("|")[:-1]]
    thread = values.get("thread_id")
    if thread is not None:
        return "|".join([f"thread:{thread}", *path])
    first = messages[0].id if messages else None
    return "|".join([f"first:{first}", *path])


def _opening(messages: Sequence[BaseMessage]) -> str | None:
    """The identity of the user's message that opens a turn here; None in the middle of one."""
    if not messages or not isinstance(messages[-1], HumanMessage):
        return None
    for message in reversed(messages):
        if isinstance(message, HumanMessage):
            continue
        if not isinstance(message, AIMessage) or message.tool_calls:
            return None
        break
    return f"{len(messages)}:{messages[-1].id}"

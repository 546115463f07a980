"""The state goes back to what it was before a loop began, with a note of what was tried.

Contract: the old values are written forward, as a node's own update, so that it works with and
without a checkpointer, streams go on, and the thread's history keeps what really happened. What was
spent and what the guard has said do not go back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any, cast

from langchain_core.messages import RemoveMessage
from langchain_core.runnables import RunnableConfig
from langgraph.types import Command
from pydantic import BaseModel

from shearpin.adapters.langgraph.compat import (
    REMOVE_ALL,
    adds_messages,
    overwriting,
    read_channel,
    reducers,
)
from shearpin.adapters.lastwords import rollback_message
from shearpin.adapters.messages import is_messages
from shearpin.adapters.run import Run
from shearpin.adapters.ways import Seen
from shearpin.verdicts import Rollback

if TYPE_CHECKING:
    from shearpin.adapters.langgraph.nodes import NodePlan

__all__ = ["rewound"]


def rewound(
    run: Run,
    plan: NodePlan,
    seen: Seen,
    due: Rollback,
    config: RunnableConfig,
    *,
    bare: bool = False,
) -> Command[Any] | None:
    """The command that takes the graph back to a visit; None where that cannot be said.

    `bare` also takes back a state without a conversation, in which nothing can be noted.
    """
    channel = plan.endings.channel
    old = _values(seen.input)
    speaks = channel is not None and channel in old and is_messages(old[channel])
    if not speaks and not (bare and old):
        return None
    merged = reducers(plan.graph)
    update: dict[str, Any] = {}
    for name, value in old.items():
        if name not in plan.graph.channels or (speaks and name == channel):
            continue
        if _same(read_channel(config, name), value):
            continue
        written = overwriting(value) if name in merged else value
        if name in merged and written is None:
            return None
        update[name] = written
    if not speaks or channel is None:
        return Command(update=update, goto=seen.node)
    told = [*old[channel], rollback_message(run.id, due)]
    if adds_messages(plan.graph, channel):
        update[channel] = [RemoveMessage(id=REMOVE_ALL), *told]
    elif channel in merged:
        update[channel] = overwriting(told)
        if update[channel] is None:
            return None
    else:
        update[channel] = told
    return Command(update=update, goto=seen.node)


def _values(state: object) -> Mapping[str, Any]:
    if isinstance(state, Mapping):
        return cast("Mapping[str, Any]", state)
    if isinstance(state, BaseModel):
        return {name: getattr(state, name) for name in type(state).model_fields}
    if is_dataclass(state) and not isinstance(state, type):
        return {field.name: getattr(state, field.name) for field in fields(state)}
    return {}


def _same(now: object, then: object) -> bool:
    if now is then:
        return True
    try:
        return bool(now == then)
    except Exception:  # arrays and the like: written again, which is harmless
        return False

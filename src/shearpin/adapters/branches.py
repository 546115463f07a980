"""Parallel branches of a fan-out: one agent several times at once, each with a name of its own.

Contract: branches that `Send` starts side by side do equal work on purpose; what they say and ask
for counts for each of them, never for all together. A branch keeps its name over the rounds of a
run (its place in the fan-out), so a loop within one is seen. The first branch is the agent itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from shearpin.adapters.places import namespace_of
from shearpin.events import (
    Fact,
    HistoryCompacted,
    NodeEntered,
    NodeLeft,
    RunEnded,
    RunStarted,
    SignalReceived,
    ThoughtEmbedded,
    TurnStarted,
)

__all__ = ["Branches"]

_PUSH = "__pregel_push"
_TASK = 36
_MOST = 4096


class Branches:
    """Which node executions of a run belong to which branch."""

    __slots__ = ("_names", "_within")

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._within: dict[str, str] = {}

    def enter(self, task: str, metadata: Mapping[str, object], tools: bool) -> None:
        """A node starts: note the branch that it opens or belongs to, if any.

        A node that runs `tools` opens a branch for the agents in them; its calls stay its agent's.
        """
        path = metadata.get("langgraph_path")
        opened = ""
        if isinstance(path, tuple):
            steps = cast("tuple[object, ...]", path)
            if len(steps) > 1 and steps[0] == _PUSH and type(steps[1]) is int and steps[1] > 0:
                opened = f"#{steps[1]}"
        if not opened and not self._within:
            return
        above = self._above(metadata)
        _note(self._within, task, above + opened)
        _note(self._names, task, above if tools else above + opened)

    def _above(self, metadata: Mapping[str, object]) -> str:
        """The branch that the graph around a node runs in."""
        for part in reversed(namespace_of(metadata).split("|")[:-1]):
            found = self._within.get(part.rpartition(":")[2])
            if found is not None:
                return found
        return ""

    def of(self, task: str) -> str:
        """What is added to the agent's name for a node execution, mostly nothing."""
        return self._names.get(task, "") if self._names else ""

    def named(self, fact: Fact) -> Fact:
        """A fact under the name of its branch."""
        if not self._names or isinstance(
            fact, (HistoryCompacted, RunEnded, RunStarted, SignalReceived, TurnStarted)
        ):
            return fact
        if isinstance(fact, ThoughtEmbedded):
            return fact
        # a call's id begins with that of the node execution
        of_node = isinstance(fact, (NodeEntered, NodeLeft))
        name = self._names.get(fact.task if of_node else fact.call[:_TASK])
        return fact if name is None else fact._replace(agent=fact.agent + name)


def _note(names: dict[str, str], task: str, name: str) -> None:
    if name:
        if len(names) >= _MOST:
            del names[next(iter(names))]
        names[task] = name

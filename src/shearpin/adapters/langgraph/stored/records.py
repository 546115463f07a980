"""A stored conversation, and a change of it.

Contract: a change makes a new checkpoint on top of the newest; no earlier one is touched. It holds
the changed channel, its version, and what follows from that; all else is as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple, Protocol

from langgraph.checkpoint.base.id import uuid6

from shearpin.errors import ShearpinError

__all__ = ["Change", "Changed", "Head", "Stored", "Threads", "UnreadableError", "Write", "changed"]


class UnreadableError(ShearpinError):
    """A conversation is stored in a form that cannot be mended here; the message says why."""


class Head(NamedTuple):
    """Where a conversation stands.

    Attributes:
        thread: its id.
        namespace: of a subgraph with a memory of its own; empty for the graph itself.
        checkpoint: id of the newest checkpoint.
    """

    thread: str
    namespace: str
    checkpoint: str


class Write(NamedTuple):
    """What a task of an unfinished step has written already."""

    task: str
    channel: str
    value: Any


@dataclass(frozen=True, slots=True)
class Stored:
    """A conversation's newest checkpoint, with stored values left as they are.

    Attributes:
        head: where it is.
        checkpoint: all but the values.
        values: of the channels.
        metadata: of the checkpoint.
        writes: of tasks of the step that follows it.
    """

    head: Head
    checkpoint: Mapping[str, Any]
    values: Mapping[str, Any]
    metadata: Mapping[str, Any]
    writes: Sequence[Write]


class Change(NamedTuple):
    """What is to be changed.

    Attributes:
        channel: that holds the conversation.
        items: its new value, stored messages.
        clear: channels that name what was to be done next, and is not any more.
    """

    channel: str
    items: list[Any]
    clear: tuple[str, ...]


class Changed(NamedTuple):
    """The checkpoint that a change leads to."""

    checkpoint: dict[str, Any]
    metadata: dict[str, Any]
    versions: dict[str, Any]


class Threads(Protocol):
    """The tables of a checkpointer."""

    name: str

    def heads(self, threads: Sequence[str]) -> list[Head]:
        """The newest checkpoint of each conversation, or of those of some threads."""
        ...

    def read(self, head: Head) -> Stored:
        """A conversation.

        Raises:
            UnreadableError: it is stored in another form.
        """
        ...

    def failures(self, head: Head, most: int) -> list[Head]:
        """Earlier checkpoints of a conversation whose step failed, the latest first."""
        ...

    def write(self, stored: Stored, change: Change) -> Head | None:
        """Put a changed checkpoint on top; None where somebody else has put one meanwhile."""
        ...

    def close(self) -> None:
        """Let go of the connection."""
        ...


def changed(stored: Stored, change: Change, next_version: Callable[[Any, None], Any]) -> Changed:
    """The checkpoint that a change leads to, and the versions that are new in it."""
    before = stored.checkpoint
    step = int(stored.metadata.get("step", 0)) + 1
    identity = str(uuid6(clock_seq=step))
    if identity <= stored.head.checkpoint:
        raise UnreadableError(
            "its newest checkpoint is dated in the future; set the clock of this machine right"
        )
    versions = dict(before["channel_versions"])
    newest = next_version(max(versions.values()), None)
    current = versions.get(change.channel)
    new = dict.fromkeys((change.channel, *change.clear), newest)
    # Whoever has seen the conversation as it was has nothing new to do because it is mended.
    seen = {
        node: {
            channel: newest if channel == change.channel and version == current else version
            for channel, version in known.items()
        }
        for node, known in before["versions_seen"].items()
    }
    values = {name: value for name, value in stored.values.items() if name not in change.clear}
    values[change.channel] = change.items
    checkpoint = {
        **before,
        "id": identity,
        "ts": datetime.now(UTC).isoformat(),
        "channel_values": values,
        "channel_versions": {**versions, **new},
        "versions_seen": seen,
    }
    metadata = {**stored.metadata, "source": "update", "step": step}
    return Changed(checkpoint, metadata, new)

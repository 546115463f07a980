"""What a node streams, kept as far as it can be its output."""

from __future__ import annotations

from typing import Any

__all__ = ["Chunks"]


class Chunks:
    """What a streaming node gave: its output if that came in one piece."""

    __slots__ = ("count", "value")

    def __init__(self) -> None:
        self.count = 0
        self.value: Any = None

    def keep(self, chunk: Any) -> Any:
        """Take note of a chunk, and give it back."""
        self.count += 1
        self.value = chunk if self.count == 1 else self
        return chunk

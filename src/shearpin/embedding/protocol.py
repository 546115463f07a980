"""What an embedder is: texts in, one vector of the same length each out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeAlias, runtime_checkable

__all__ = ["AsyncEmbedder", "Embedder", "Vector"]

Vector: TypeAlias = Sequence[float]


@runtime_checkable
class Embedder(Protocol):
    """Turns a batch of texts into vectors. Called from one background thread, never from a run."""

    def embed(self, texts: Sequence[str]) -> Sequence[Vector]:
        """One vector per text, in order, all of the same length."""
        ...


@runtime_checkable
class AsyncEmbedder(Protocol):
    """The same for embedders that are asynchronous only; it gets an event loop of its own."""

    async def aembed(self, texts: Sequence[str]) -> Sequence[Vector]:
        """One vector per text, in order, all of the same length."""
        ...

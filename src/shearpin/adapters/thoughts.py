"""What agents say, to an embedder and back: in the background, for runs that have a rule for it.

Contract: nothing in here waits. A vector that is late is told to the core at the next model call of
its agent; an embedder that fails, or is missing, is reported once and the run goes on without.
"""

from __future__ import annotations

from collections.abc import Hashable
from threading import Lock

from shearpin.core.detectors import SemanticOscillations
from shearpin.core.settings import Settings
from shearpin.embedding import AsyncEmbedder, Embedder, EmbeddingWorker, HashedEmbedder, Vector
from shearpin.errors import ConfigError

__all__ = ["Thoughts", "thoughts_of"]

_workers: dict[int, tuple[Embedder | AsyncEmbedder, EmbeddingWorker]] = {}
_lock = Lock()
_default: list[Embedder] = []


class Thoughts:
    """The thoughts of one run's agents on their way to vectors."""

    __slots__ = ("_owner", "_told", "_worker")

    def __init__(self, worker: EmbeddingWorker) -> None:
        self._worker = worker
        self._owner = object()
        self._told = False

    def hand_in(self, agent: str, text: str) -> None:
        """Have a thought embedded, some time."""
        self._worker.submit(self._key(agent), text)

    def come_in(self, agent: str) -> list[Vector]:
        """The vectors of this agent's thoughts that are there by now."""
        return self._worker.take(self._key(agent))

    def trouble(self) -> str | None:
        """Why there will be no more vectors: said once, None otherwise."""
        if self._told or self._worker.active:
            return None
        self._told = True
        return self._worker.fault or "the embedding worker was closed"

    def _key(self, agent: str) -> Hashable:
        return (self._owner, agent)


def thoughts_of(settings: Settings) -> Thoughts | None:
    """What embeds for runs with these settings; None where no rule asks for it.

    Raises:
        ConfigError: a rule asks for it, names no embedder, and numpy is not installed.
    """
    for rule in settings.detectors:
        if isinstance(rule, SemanticOscillations):
            return Thoughts(_worker_of(rule.embedder))
    return None


def _worker_of(embedder: object | None) -> EmbeddingWorker:
    """One worker for each embedder, shared by all runs of the process."""
    with _lock:
        if embedder is None:
            if not _default:
                _default.append(HashedEmbedder())
            embedder = _default[0]
        found = _workers.get(id(embedder))
        if found is None:
            if not isinstance(embedder, (Embedder, AsyncEmbedder)):
                raise ConfigError(f"{type(embedder).__name__} is no embedder")
            found = _workers[id(embedder)] = (embedder, EmbeddingWorker(embedder))
        return found[1]

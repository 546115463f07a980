"""A background thread that embeds what is handed in, in batches.

Contract: `submit` and `take` never wait, never raise what the embedder raised, and use bounded
memory. A vector that is late is there at the next `take`; one that never comes is never missed.
After `failures_allowed` failed batches in a row the worker stops asking, and says why in `fault`.
"""

from __future__ import annotations

import asyncio
import weakref
from collections import OrderedDict, deque
from collections.abc import Hashable, Sequence
from threading import Condition, Thread

from shearpin.core.canonical import digest_text
from shearpin.embedding.protocol import AsyncEmbedder, Embedder, Vector
from shearpin.errors import ConfigError

__all__ = ["EmbeddingWorker"]


class EmbeddingWorker:
    """Embeds texts for any number of runs. Thread-safe; its thread starts with the first text.

    Args:
        embedder: what makes the vectors.
        batch: texts embedded at once, at most (1 or more).
        waiting: texts that wait, at most; then the oldest is dropped (1 or more).
        cache: vectors kept by the digest of their text (0 or more).
        failures_allowed: failed batches in a row until the worker gives up (1 or more).

    Raises:
        ConfigError: a number is out of range, or `embedder` is none.

    Example:
        >>> class Lengths:
        ...     def embed(self, texts):
        ...         return [[float(len(text))] for text in texts]
        >>> worker = EmbeddingWorker(Lengths())
        >>> worker.submit("run 1", "hello")
        True
        >>> worker.settle(5.0)
        True
        >>> worker.take("run 1")
        [[5.0]]
        >>> worker.close()
    """

    def __init__(
        self,
        embedder: Embedder | AsyncEmbedder,
        *,
        batch: int = 32,
        waiting: int = 256,
        cache: int = 512,
        failures_allowed: int = 3,
    ) -> None:
        if not isinstance(embedder, (Embedder, AsyncEmbedder)):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigError(
                f"{type(embedder).__name__} has neither embed(texts) nor aembed(texts)"
            )
        for name, value, least in (
            ("batch", batch, 1),
            ("waiting", waiting, 1),
            ("cache", cache, 0),
            ("failures_allowed", failures_allowed, 1),
        ):
            if value < least:
                raise ConfigError(f"EmbeddingWorker: {name} must be {least} or more, not {value!r}")
        self._state = _State(embedder, batch, waiting, cache, failures_allowed)
        self._thread: Thread | None = None

    @property
    def fault(self) -> str | None:
        """Why the worker gave up, or what failed last; None if nothing did."""
        return self._state.fault

    @property
    def active(self) -> bool:
        """False once the worker was closed or has given up."""
        return not self._state.closed

    def submit(self, owner: Hashable, text: str) -> bool:
        """Hand in a text. Its vector goes to `owner`; False if it will not be embedded."""
        state = self._state
        with state.changed:
            if state.closed or not text or text.isspace():
                return False
            if self._thread is None:
                self._thread = Thread(
                    target=_work, args=(state,), name="shearpin-embed", daemon=True
                )
                self._thread.start()
                weakref.finalize(self, state.close)
            if len(state.waiting) >= state.most_waiting:
                state.waiting.popleft()
            state.waiting.append((owner, text))
            state.changed.notify_all()
        return True

    def take(self, owner: Hashable) -> list[Vector]:
        """The vectors that have come for `owner` since the last time, oldest first."""
        with self._state.changed:
            return self._state.done.pop(owner, [])

    def settle(self, seconds: float) -> bool:
        """Wait until all that was handed in is done, at most `seconds`: for tests, at the end."""
        state = self._state
        with state.changed:
            return state.changed.wait_for(lambda: state.closed or state.idle(), seconds)

    def close(self) -> None:
        """Stop. What waits is dropped."""
        self._state.close()


class _State:
    """What the worker's owner and its thread share, under one lock."""

    def __init__(
        self,
        embedder: Embedder | AsyncEmbedder,
        batch: int,
        waiting: int,
        cache: int,
        failures_allowed: int,
    ) -> None:
        self.embedder = embedder
        self.batch = batch
        self.most_waiting = waiting
        self.most_cached = cache
        self.failures_allowed = failures_allowed
        self.failures = 0
        self.fault: str | None = None
        self.closed = False
        self.busy = False
        self.changed = Condition()
        self.waiting: deque[tuple[Hashable, str]] = deque()
        self.done: OrderedDict[Hashable, list[Vector]] = OrderedDict()
        self.cache: OrderedDict[str, Vector] = OrderedDict()

    def idle(self) -> bool:
        return not self.waiting and not self.busy

    def close(self) -> None:
        with self.changed:
            self.closed = True
            self.waiting.clear()
            self.changed.notify_all()

    def next_batch(self) -> list[tuple[Hashable, str]]:
        """The texts to embed next; empty when the worker was closed. Waits for them."""
        with self.changed:
            self.busy = False
            self.changed.notify_all()
            self.changed.wait_for(lambda: self.closed or self.waiting)
            self.busy = bool(self.waiting)
            return [self.waiting.popleft() for _ in range(min(self.batch, len(self.waiting)))]

    def deliver(self, batch: Sequence[tuple[Hashable, str]], new: dict[str, Vector]) -> None:
        with self.changed:
            self.failures = 0
            self.cache.update(new)
            for owner, text in batch:
                vector = self.cache.get(digest_text(text))
                if vector is not None:
                    self.done.setdefault(owner, []).append(vector)
                    del self.done[owner][: -self.batch]
            while len(self.done) > self.most_waiting:
                self.done.popitem(last=False)
            while len(self.cache) > self.most_cached:
                self.cache.popitem(last=False)

    def failed(self, error: Exception) -> None:
        with self.changed:
            self.failures += 1
            self.fault = f"{type(error).__name__}: {error}"[:200]
            if self.failures >= self.failures_allowed:
                self.closed = True
                self.waiting.clear()


def _work(state: _State) -> None:
    while batch := state.next_batch():
        texts = {digest_text(text): text for _, text in batch}
        missing = {key: text for key, text in texts.items() if key not in state.cache}
        try:
            new = _embed_all(state.embedder, missing)
        except Exception as error:  # a foreign embedder may raise anything
            state.failed(error)
            continue
        state.deliver(batch, new)


def _embed_all(embedder: Embedder | AsyncEmbedder, missing: dict[str, str]) -> dict[str, Vector]:
    if not missing:
        return {}
    texts = list(missing.values())
    if isinstance(embedder, Embedder):
        vectors = embedder.embed(texts)
    else:
        vectors = asyncio.run(_gather(embedder, texts))
    return dict(zip(missing, vectors, strict=True))


async def _gather(embedder: AsyncEmbedder, texts: list[str]) -> Sequence[Vector]:
    return await embedder.aembed(texts)

"""The worker: never waits, never raises, bounded, and late vectors are not lost."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Event
from typing import Any

import pytest

from shearpin.embedding import EmbeddingWorker
from shearpin.errors import ConfigError


class Lengths:
    """An embedder that counts what it is asked and can be made to wait or to fail."""

    def __init__(self) -> None:
        self.go = Event()
        self.go.set()
        self.batches: list[list[str]] = []
        self.error: Exception | None = None

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        assert self.go.wait(10)
        self.batches.append(list(texts))
        if self.error is not None:
            raise self.error
        return [[float(len(text))] for text in texts]


def test_vectors_come_in_order_to_their_owner() -> None:
    worker = EmbeddingWorker(Lengths())
    for owner, text in (("a", "1"), ("b", "22"), ("a", "333")):
        assert worker.submit(owner, text)
    assert worker.settle(10)
    assert worker.take("a") == [[1.0], [3.0]]
    assert worker.take("a") == []
    assert worker.take("b") == [[2.0]]
    worker.close()


def test_a_slow_embedder_delays_nothing_and_its_vectors_come_later() -> None:
    slow = Lengths()
    slow.go.clear()
    worker = EmbeddingWorker(slow)
    assert worker.submit("a", "late")
    assert worker.take("a") == []
    slow.go.set()
    assert worker.settle(10)
    assert worker.take("a") == [[4.0]]
    worker.close()


def test_texts_are_batched_cached_and_the_oldest_is_dropped() -> None:
    slow = Lengths()
    slow.go.clear()
    worker = EmbeddingWorker(slow, batch=4, waiting=6)
    worker.submit("a", "first")
    for n in range(20):
        worker.submit("a", "x" * (n + 1))
    slow.go.set()
    assert worker.settle(10)
    assert max(map(len, slow.batches)) <= 4
    assert worker.take("a")[-1] == [20.0]
    asked = sum(map(len, slow.batches))
    assert asked <= 1 + 4 + 6
    worker.submit("a", "x" * 20)
    assert worker.settle(10)
    assert worker.take("a") == [[20.0]]
    assert sum(map(len, slow.batches)) == asked
    worker.close()


def test_a_failing_embedder_is_given_up_and_says_why() -> None:
    broken = Lengths()
    broken.error = RuntimeError("no network")
    worker = EmbeddingWorker(broken, failures_allowed=2)
    assert worker.submit("a", "one")
    assert worker.settle(10)
    assert worker.active
    assert worker.submit("a", "two")
    assert worker.settle(10)
    assert not worker.active
    assert worker.fault == "RuntimeError: no network"
    assert not worker.submit("a", "three")
    assert worker.take("a") == []


def test_one_failure_is_forgiven() -> None:
    shaky = Lengths()
    worker = EmbeddingWorker(shaky, failures_allowed=2)
    for n in range(4):
        shaky.error = ValueError("odd") if n % 2 else None
        worker.submit("a", "x" * (n + 1))
        assert worker.settle(10)
    assert worker.active
    assert worker.take("a") == [[1.0], [3.0]]
    worker.close()


def test_too_few_vectors_are_a_failure() -> None:
    class Short:
        def embed(self, texts: Sequence[str]) -> list[list[float]]:
            return []

    worker = EmbeddingWorker(Short(), failures_allowed=1)
    worker.submit("a", "one")
    assert worker.settle(10)
    assert worker.fault is not None


def test_an_asynchronous_embedder_has_a_loop_of_its_own() -> None:
    class Async:
        async def aembed(self, texts: Sequence[str]) -> list[list[float]]:
            return [[float(len(text))] for text in texts]

    worker = EmbeddingWorker(Async())
    worker.submit("a", "four")
    assert worker.settle(10)
    assert worker.take("a") == [[4.0]]
    worker.close()


def test_blank_texts_and_closed_workers_take_nothing() -> None:
    worker = EmbeddingWorker(Lengths())
    assert not worker.submit("a", " \n")
    worker.close()
    assert not worker.submit("a", "text")
    assert not worker.active


def test_many_owners_do_not_pile_up() -> None:
    worker = EmbeddingWorker(Lengths(), waiting=8, cache=4)
    for n in range(50):
        worker.submit(n, f"text {n}")
        assert worker.settle(10)
    assert len(worker._state.done) <= 8
    assert len(worker._state.cache) <= 4
    worker.close()


@pytest.mark.parametrize("wrong", [{"batch": 0}, {"waiting": 0}, {"cache": -1}])
def test_numbers_out_of_range_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        EmbeddingWorker(Lengths(), **wrong)
    with pytest.raises(ConfigError, match="neither"):
        EmbeddingWorker(object())  # type: ignore[arg-type]

"""Embedders: what they give, and what they say when they cannot."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from types import ModuleType

import pytest

from shearpin.embedding import (
    Embedder,
    HashedEmbedder,
    LangChainEmbedder,
    SentenceTransformerEmbedder,
)
from shearpin.errors import ConfigError


def cosine(a: Sequence[float], b: Sequence[float]) -> float:
    return sum(x * y for x, y in zip(a, b, strict=True))


def test_the_default_tells_near_from_far_in_english_and_chinese() -> None:
    embed = HashedEmbedder().embed
    for near, again, far in (
        ("I will read the file again.", "I will read that file again.", "Prices rose by a third."),
        ("我要再读一遍这个文件。", "我要再读一次这个文件。", "价格上涨了三分之一。"),
    ):
        a, b, c = embed([near, again, far])
        assert cosine(a, a) == pytest.approx(1.0)
        assert cosine(a, b) > 0.6 > 0.4 > cosine(a, c)


def test_the_default_is_the_same_in_every_process_and_takes_any_text() -> None:
    program = (
        "from shearpin.embedding import HashedEmbedder as H; "
        "print(sum(v * n for n, v in enumerate(H().embed(['a stable text'])[0])))"
    )
    (vector,) = HashedEmbedder().embed(["a stable text"])
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert float(done.stdout) == pytest.approx(sum(v * n for n, v in enumerate(vector)))
    odd = HashedEmbedder(64).embed(["", " ", "x", "\ud800", "long " * 9999, "👩‍🚀"])
    assert [len(v) for v in odd] == [64] * 6
    assert odd[0] == [0.0] * 64


def test_importing_the_package_loads_no_numpy() -> None:
    program = "import sys, shearpin.embedding; print('numpy' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"


def test_without_numpy_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shearpin.embedding.hashed.find_spec", lambda name: None)
    assert not HashedEmbedder.available()
    with pytest.raises(ConfigError, match="pip install numpy"):
        HashedEmbedder()


@pytest.mark.parametrize("dimensions", [0, 32, 100, 255])
def test_odd_dimensions_are_refused(dimensions: int) -> None:
    with pytest.raises(ConfigError):
        HashedEmbedder(dimensions)


def test_langchain_embeddings_are_embedders() -> None:
    from langchain_core.embeddings import DeterministicFakeEmbedding

    embedder = LangChainEmbedder(DeterministicFakeEmbedding(size=8))
    assert isinstance(embedder, Embedder)
    assert [len(vector) for vector in embedder.embed(["a", "b"])] == [8, 8]
    with pytest.raises(ConfigError, match="embed_documents"):
        LangChainEmbedder(object())  # type: ignore[arg-type]


class _Array(list[list[float]]):
    def tolist(self) -> list[list[float]]:
        return list(self)


class _Encoder:
    def __init__(self, name: str = "") -> None:
        self.name = name

    def encode(self, sentences: list[str], *, normalize_embeddings: bool) -> _Array:
        assert normalize_embeddings
        return _Array([1.0, 0.0] for _ in sentences)


def test_sentence_transformers_are_loaded_on_first_use(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("sentence_transformers")
    module.SentenceTransformer = _Encoder  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "sentence_transformers", module)
    monkeypatch.setattr("shearpin.embedding.adapters.find_spec", lambda name: object())
    embedder = SentenceTransformerEmbedder("a-model")
    assert embedder.embed(["a", "b"]) == [[1.0, 0.0], [1.0, 0.0]]
    assert SentenceTransformerEmbedder(_Encoder()).embed(["a"]) == [[1.0, 0.0]]


def test_sentence_transformers_missing_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("shearpin.embedding.adapters.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match="pip install sentence-transformers"):
        SentenceTransformerEmbedder("a-model")

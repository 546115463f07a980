"""Other people's embedding models as embedders; their packages are imported on use only."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Protocol, cast

from shearpin.errors import ConfigError

__all__ = ["LangChainEmbedder", "SentenceTransformerEmbedder"]


class _Embeddings(Protocol):
    def embed_documents(self, texts: list[str]) -> list[list[float]]: ...


class _Encoder(Protocol):
    def encode(self, sentences: list[str], *, normalize_embeddings: bool) -> object: ...


class _Array(Protocol):
    def tolist(self) -> list[list[float]]: ...


class LangChainEmbedder:
    """Any LangChain `Embeddings` object.

    Args:
        embeddings: what has `embed_documents`, e.g. `OpenAIEmbeddings()`.

    Raises:
        ConfigError: it has no `embed_documents`.
    """

    def __init__(self, embeddings: _Embeddings) -> None:
        if not callable(getattr(embeddings, "embed_documents", None)):
            raise ConfigError(f"{type(embeddings).__name__} has no embed_documents(texts)")
        self._embeddings = embeddings

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """One vector per text, as the model gives it."""
        return self._embeddings.embed_documents(list(texts))


class SentenceTransformerEmbedder:
    """A model of the sentence-transformers package, loaded on first use, in the background.

    Args:
        model: a name or folder that `SentenceTransformer` understands, or such an object.

    Raises:
        ConfigError: a name is given and the package is not installed.
    """

    def __init__(self, model: str | _Encoder) -> None:
        if isinstance(model, str) and find_spec("sentence_transformers") is None:
            raise ConfigError(
                "SentenceTransformerEmbedder needs a package: pip install sentence-transformers"
            )
        self._model = model

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """One unit vector per text."""
        model = self._model
        if isinstance(model, str):
            maker = import_module("sentence_transformers").SentenceTransformer
            model = self._model = cast("_Encoder", maker(model))
        return cast("_Array", model.encode(list(texts), normalize_embeddings=True)).tolist()

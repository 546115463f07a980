"""Vectors for what agents say, made off the hot path: see `EmbeddingWorker`.

Contract: nothing in here delays or breaks a run. Importing this package loads no third-party
    module.
"""

from __future__ import annotations

from shearpin.embedding.adapters import LangChainEmbedder, SentenceTransformerEmbedder
from shearpin.embedding.hashed import HashedEmbedder
from shearpin.embedding.protocol import AsyncEmbedder, Embedder, Vector
from shearpin.embedding.worker import EmbeddingWorker

__all__ = [
    "AsyncEmbedder",
    "Embedder",
    "EmbeddingWorker",
    "HashedEmbedder",
    "LangChainEmbedder",
    "SentenceTransformerEmbedder",
    "Vector",
]

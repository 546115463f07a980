"""The default embedder: hashed character 1- to 3-grams and words; no model, no download."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec

from shearpin.errors import ConfigError

__all__ = ["HashedEmbedder"]


class HashedEmbedder:
    """Hashed character 1- to 3-grams plus words, log-scaled counts, unit length.

    As good as a small neural model at telling "the same again in other words" from "the next
    thing", which is not very good (AUC .66 to .70 on real pairs): that is why no finding rests on
    it alone. Works for Chinese as for English, 0.1 ms a text.

    Args:
        dimensions: length of the vectors, a power of two of at least 64.

    Raises:
        ConfigError: numpy is not installed, or `dimensions` is no such number.

    *Source*: Weinberger et al., "Feature hashing for large scale multitask learning" (2009).

    Example:
        >>> a, b = HashedEmbedder().embed(["look again", "look again"])
        >>> round(sum(x * y for x, y in zip(a, b)), 3)
        1.0
    """

    def __init__(self, dimensions: int = 256) -> None:
        if dimensions < 64 or dimensions & (dimensions - 1):
            raise ConfigError(
                f"dimensions must be a power of two of at least 64, not {dimensions!r}"
            )
        if not self.available():
            raise ConfigError("HashedEmbedder needs numpy: pip install numpy")
        self.dimensions = dimensions

    @staticmethod
    def available() -> bool:
        """Whether numpy is installed; without it semantic rules stay off, and say so."""
        return find_spec("numpy") is not None

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """One unit vector per text; all zeros for a blank one."""
        from shearpin.embedding.ngrams import vector_of  # numpy, on first use only

        return [vector_of(text, self.dimensions) for text in texts]

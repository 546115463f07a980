"""A few numbers that tell whether two texts say nearly the same.

A sketch holds the smallest 16-bit hashes of a text's words (bottom-k sketch): order of words, times
and references such as `e17` make no difference. Only head and tail of a long text are read.
"""

from __future__ import annotations

import re
from zlib import crc32

from shearpin.core.masking import EDGE, mask

__all__ = ["SKETCH_SIZE", "similarity", "sketch"]

SKETCH_SIZE = 20
"""Hashes kept of one text: the error of the estimated similarity is about 0.1."""

_TOKEN = re.compile(r"[A-Za-z]+|\d+|[\u4e00-\u9fff]")
_REFERENCE = re.compile(r"\b(?=\w*\d)(?=\w*[A-Za-z])\w{2,}\b")


def sketch(text: str) -> tuple[int, ...]:
    """The sketch of a text, ascending; empty where it has no words."""
    if len(text) > 4 * EDGE:
        text = text[: 2 * EDGE] + text[-2 * EDGE :]
    words = set(_TOKEN.findall(_REFERENCE.sub("§", mask(text))))
    return tuple(sorted({crc32(word.encode()) & 0xFFFF for word in words})[:SKETCH_SIZE])


def similarity(a: tuple[int, ...], b: tuple[int, ...]) -> float:
    """Estimated share of words that two texts have in common, 0 to 1.

    *Source*: Broder, "On the resemblance and containment of documents" (1997).
    """
    if not a or not b:
        return 0.0
    union = sorted({*a, *b})[:SKETCH_SIZE]
    both = {*a} & {*b}
    return sum(1 for value in union if value in both) / len(union)

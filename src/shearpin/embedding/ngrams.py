"""Hashed n-grams in numpy. Imported by `HashedEmbedder` on first use only."""

from __future__ import annotations

import re
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

__all__ = ["vector_of"]

_WORD = re.compile(r"\w+")
_SPACE = re.compile(r"\s+")
_LONGEST = 2000
_WORD_WEIGHT = 2.0
_PRIME = np.uint64(0x100000001B3)
_STEP = np.uint64(0x9E3779B9)
_MULTIPLIERS = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9))


def vector_of(text: str, dimensions: int) -> list[float]:
    """A unit vector for a text, zeros for a blank one; `dimensions` is a power of two."""
    if len(text) > _LONGEST:
        text = text[: _LONGEST // 2] + text[-_LONGEST // 2 :]
    text = _SPACE.sub(" ", text).strip().lower()
    if not text:
        return [0.0] * dimensions
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4").astype(np.uint64)
    pairs = _mix(codes[:-1], codes[1:])
    triples = _mix(pairs[:-1], codes[2:])
    words = np.array([crc32(word.encode()) for word in _WORD.findall(text)], dtype=np.uint64)
    grams = np.concatenate((codes + np.uint64(1), pairs, triples))
    keys = np.concatenate((grams, words ^ _STEP))
    weights = np.ones(len(keys))
    weights[len(grams) :] = _WORD_WEIGHT
    return _project(keys, weights, dimensions)


def _mix(left: NDArray[np.uint64], right: NDArray[np.uint64]) -> NDArray[np.uint64]:
    return (left * _PRIME) ^ (right + _STEP)


def _project(
    keys: NDArray[np.uint64], weights: NDArray[np.float64], dimensions: int
) -> list[float]:
    hashed = keys * _MULTIPLIERS[0]
    hashed ^= hashed >> np.uint64(29)
    hashed *= _MULTIPLIERS[1]
    places = (hashed >> np.uint64(40)).astype(np.int64) & (dimensions - 1)
    signs = np.where(hashed & np.uint64(1 << 20), 1.0, -1.0)
    sums = np.bincount(places, weights=signs * weights, minlength=dimensions)
    damped = np.sign(sums) * np.log1p(np.abs(sums))
    length = float(np.sqrt(np.sum(damped * damped)))
    scaled = damped / length if length else damped
    return [float(value) for value in scaled]

"""Canonical JSON and digests: what means the same has the same digest, and nothing raises."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterator, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shearpin.core.canonical import DIGEST_LENGTH, canonical_json, digest, digest_text

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text()
    | st.text(alphabet="aée\u0301ñ한ﬁ", max_size=6)
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4)
    ),
    max_leaves=20,
)


def shuffled(value: object, draw: st.DrawFn) -> object:
    """The same value, written differently: key order, number type, unicode form."""
    if isinstance(value, dict):
        keys = draw(st.permutations(list(value)))
        return {unicodedata.normalize("NFD", key): shuffled(value[key], draw) for key in keys}
    if isinstance(value, list):
        items = [shuffled(item, draw) for item in value]
        return tuple(items) if draw(st.booleans()) else items
    if isinstance(value, str):
        return unicodedata.normalize("NFD", value)
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**53:
        return float(value)
    return value


@st.composite
def pairs(draw: st.DrawFn) -> tuple[object, object]:
    value = draw(VALUES)
    return value, shuffled(value, draw)


@given(pairs())
def test_the_same_value_written_differently_has_the_same_digest(
    pair: tuple[object, object],
) -> None:
    # two keys that differ in unicode form only are one key: keep to values where that cannot happen
    value, other = pair
    assert digest(value) == digest(other)


@given(VALUES)
def test_digests_are_short_and_the_same_each_time(value: object) -> None:
    assert digest(value) == digest(value)
    assert len(digest(value)) == DIGEST_LENGTH
    assert int(digest(value), 16) >= 0


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"a": 1}, {"a": 1.0}),
        ({"n": 10**16}, {"n": 1e16}),
        ({"n": 0.0}, {"n": -0.0}),
        ({"a": 1, "b": {"c": 2, "d": [1, 2]}}, {"b": {"d": [1.0, 2.0], "c": 2.0}, "a": 1}),
        ({"name": "caf\u00e9"}, {"name": "cafe\u0301"}),
        ({1: "x"}, {1.0: "x"}),
        ({1: "x"}, {"1": "x"}),
        ([1, 2], (1, 2)),
        ({"s": {3, 1, 2}}, {"s": {2, 3, 1}}),
        ({"b": b"xy"}, {"b": bytearray(b"xy")}),
    ],
)
def test_equal(one: object, other: object) -> None:
    assert digest(one) == digest(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"a": True}, {"a": 1}),
        ({"a": False}, {"a": 0}),
        ({"a": None}, {"a": "null"}),
        ({"a": 1}, {"a": "1"}),
        ({"a": 1}, {"a": 2}),
        ({"a": 1.5}, {"a": 1}),
        ([1, 2], [2, 1]),
        ([[1], 2], [1, [2]]),
        ({}, []),
        ("", None),
        ({"a": b"x"}, {"a": "x"}),
        ({"a": {"b": 1}}, {"a": {"c": 1}}),
    ],
)
def test_different(one: object, other: object) -> None:
    assert digest(one) != digest(other)


class Opaque:
    """Has no state and a repr with an address."""

    __slots__ = ()


class Point:
    def __init__(self, x: int) -> None:
        self.x = x


class Hostile(Mapping[str, object]):
    """Everything about it fails."""

    def __getitem__(self, key: str) -> object:
        raise RuntimeError("no")

    def __iter__(self) -> Iterator[str]:
        raise RuntimeError("no")

    def __len__(self) -> int:
        raise RuntimeError("no")

    def __repr__(self) -> str:
        raise RuntimeError("no")


def test_objects_are_told_by_type_and_state_not_by_address() -> None:
    assert digest({"o": Opaque()}) == digest({"o": Opaque()})
    assert digest(object()) == digest(object())
    assert digest(Point(1)) == digest(Point(1))
    assert digest(Point(1)) != digest(Point(2))


def test_nothing_raises() -> None:
    nested: list[object] = []
    for _ in range(100_000):
        nested = [nested]
    circular: dict[str, object] = {}
    circular["me"] = circular
    odd: list[object] = [
        nested,
        circular,
        Hostile(),
        {"deep": Hostile()},
        10**6000,
        {"long": 10**6000},
        float("inf"),
        {"nan": float("nan")},
        "\ud800 lone",
        {"\ud800": "\udfff"},
        {("a", 1): {2}},
        type,
        ...,
    ]
    for value in odd:
        assert len(digest(value)) == DIGEST_LENGTH
        assert isinstance(canonical_json(value), str)


def test_text_digests_are_of_the_text_as_it_stands() -> None:
    assert digest_text("caf\u00e9") != digest_text("cafe\u0301")
    assert digest_text("") == digest_text("")


@given(st.dictionaries(st.text(max_size=8), st.none() | st.booleans() | st.integers() | st.text()))
def test_plain_arguments_are_written_as_json_has_them(value: dict[str, object]) -> None:
    """The short way for plain arguments gives what the long way gives."""
    plain = {
        unicodedata.normalize("NFC", key): unicodedata.normalize("NFC", item)
        if isinstance(item, str)
        else item
        for key, item in value.items()
    }
    expected = json.dumps(plain, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    assert canonical_json(plain) == expected
    assert canonical_json({"in": plain}) == f'{{"in":{expected}}}'

"""A change of the public API is a reviewed change of public_api.txt."""

from __future__ import annotations

from pathlib import Path

import pytest

import shearpin
from tests.repo.public_api import snapshot


def test_public_api_is_the_reviewed_one() -> None:
    reviewed = (Path(__file__).parent / "public_api.txt").read_text(encoding="utf-8")
    assert snapshot() == reviewed, (
        "wanted? python -m tests.repo.public_api > tests/repo/public_api.txt"
    )


def test_all_is_complete_and_sorted() -> None:
    assert list(shearpin.__all__) == sorted(shearpin.__all__)
    assert set(shearpin.__all__) <= set(dir(shearpin))


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no_such_name"):
        shearpin.no_such_name  # noqa: B018

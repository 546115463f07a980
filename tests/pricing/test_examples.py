"""The examples in the docstrings run."""

from __future__ import annotations

import doctest
import importlib

import pytest


@pytest.mark.parametrize("name", ["catalogue", "model", "policy", "reading"])
def test_examples(name: str) -> None:
    module = importlib.import_module(f"shearpin.pricing.{name}")
    names = {**vars(module), **vars(importlib.import_module("shearpin.pricing"))}
    result = doctest.testmod(module, extraglobs=names)
    assert result.attempted and not result.failed

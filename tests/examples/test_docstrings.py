"""The examples in docstrings run, and show what they say."""

from __future__ import annotations

import doctest
import pkgutil
from importlib import import_module

import pytest

import shearpin

MODULES = sorted(
    found.name
    for found in pkgutil.walk_packages(shearpin.__path__, "shearpin.")
    if not found.name.endswith("__main__")
)


@pytest.mark.parametrize("name", ["shearpin", *MODULES])
def test_examples_in_docstrings(name: str) -> None:
    try:
        module = import_module(name)
    except ModuleNotFoundError as missing:
        if missing.name is None or missing.name.startswith("shearpin"):
            raise
        pytest.skip(f"{name} needs {missing.name}")
    assert doctest.testmod(module, optionflags=doctest.ELLIPSIS).failed == 0

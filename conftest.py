"""Runs the Python blocks of README and docs as tests, each document from top to bottom.

Later blocks of a document use names of earlier ones, so they need one process: no `-n` for these.
"""

from __future__ import annotations

from sybil import Sybil
from sybil.parsers.myst import PythonCodeBlockParser, SkipParser

pytest_collect_file = Sybil(
    parsers=[PythonCodeBlockParser(), SkipParser()],
    patterns=["*.md"],
    excludes=["CHANGELOG.md"],
).pytest()

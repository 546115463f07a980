"""Every example is a whole program that runs offline without warnings and says what it should."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
SAYS = {
    "guard_a_plain_chain": ["Outcome: stopped, reason: loop:", "instead of 100"],
    "read_the_report": ["loop:unknown_tool", '"version": 1', "If this was legitimate"],
    "tools_that_fail": [
        "search: three hits for shear pins",
        "this is its answer from",
        "Verify with a read before trying again",
        "Messages sent at most: 1",
        "Next turn: Yes",
    ],
    "stop_a_runaway_agent": ["went round in circles", "Next turn: Thank you", "completed"],
}


def test_every_example_is_tested() -> None:
    assert sorted(path.stem for path in EXAMPLES.glob("*.py")) == sorted(SAYS)


@pytest.mark.parametrize("name", sorted(SAYS))
def test_example_runs(name: str) -> None:
    if name in ("stop_a_runaway_agent", "tools_that_fail"):
        pytest.importorskip("langchain")
    ran = subprocess.run(
        [sys.executable, "-W", "error", EXAMPLES / f"{name}.py"],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    for words in SAYS[name]:
        assert words in ran.stdout

"""A process that is killed around a mail: it is sent once, whatever happens."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]

if not hasattr(os, "fork"):
    pytest.skip("needs os.fork", allow_module_level=True)


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    path = os.pathsep.join(["src", ".", os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-m", "tests.boundary.tool_kill", str(tmp_path_factory.mktemp("kill"))],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


@pytest.mark.parametrize("how", ["sync", "async"])
@pytest.mark.parametrize(
    ("when", "sent", "told"),
    [
        # Nobody knows whether a call that was cut off has acted: not sent here, and said so.
        ("before", 0, "Verify with a read"),
        ("after", 1, "Verify with a read"),
        ("later", 1, "sent to ann"),
    ],
)
def test_a_mail_is_sent_at_most_once(
    killed: dict[str, Any], when: str, sent: int, told: str, how: str
) -> None:
    found = killed[f"{how} {when}"]
    assert found["sent"] == sent
    (text,) = found["told"]
    assert told in text
    if when == "later":  # to the call that is carried out again, the first result is the result
        assert text == told

"""`import shearpin` is quick and brings nothing along."""

from __future__ import annotations

import json
import subprocess
import sys

LIMIT_SECONDS = 0.060
PROGRAM = """
import json, sys, time
before = set(sys.modules)
began = time.perf_counter()
import shearpin
took = time.perf_counter() - began
new = {name.partition(".")[0] for name in set(sys.modules) - before}
print(json.dumps([took, sorted(new - set(sys.stdlib_module_names))]))
"""


def measure() -> tuple[float, list[str]]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True
    )
    took, loaded = json.loads(done.stdout)
    return took, loaded


def test_import_loads_no_third_party_module() -> None:
    _, loaded = measure()
    assert loaded == ["shearpin"]


def test_import_is_quick() -> None:
    fastest = min(measure()[0] for _ in range(7))
    assert fastest < LIMIT_SECONDS

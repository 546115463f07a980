"""The behaviour cases distilled from public reports, one test each.

They are shared between working copies and live beside the repository; without them this is skipped.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from shearpin.analysis import judge, replay_run
from shearpin.core.settings import Settings
from shearpin.traces import TraceRun, read_runs

CASES = Path(__file__).parents[3] / "shared" / "cases"
FILES = ("loop.jsonl", "legit.jsonl", "mixed.jsonl")


def cases() -> list[object]:
    """Every case with its id; one skipped stand-in where a file is not there."""
    found: list[object] = []
    for name in FILES:
        path = CASES / name
        if path.is_file():
            found += [pytest.param(run, id=run.run) for run in read_runs(path)]
        else:
            reason = f"the behaviour cases are not here: no ../shared/cases/{name}"
            found.append(pytest.param(None, id=name, marks=pytest.mark.skip(reason)))
    return found


@pytest.mark.parametrize("run", cases())
def test_case(run: TraceRun) -> None:
    assert run.expect is not None, "a behaviour case says what is expected of it"
    replay = replay_run(run, Settings())
    assert judge(run.expect, replay) == []
    assert replay.faults == ()

"""A process that is killed between two steps: with `save_every=1` the verdicts are the same."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver

import shearpin
from shearpin.adapters.langgraph.state import CHANNEL
from shearpin.errors import ConfigError
from tests.adapters.builds import HELLO, THREAD, polite, react, saver

ROOT = Path(__file__).resolve().parents[2]


def killed(
    folder: Path, save_every: int, how: str, stride: int, place: str = "auto"
) -> dict[str, Any]:
    arguments = [str(folder), str(save_every), how, str(stride), place]
    done = subprocess.run(
        [sys.executable, "-m", "tests.adapters.killing", *arguments],
        capture_output=True,
        cwd=ROOT,
        check=True,
        timeout=300,
    )
    return json.loads(done.stdout)


def verdicts(told: dict[str, Any]) -> Any:
    """What was decided, without the results that a block quotes: those live in memory only."""
    spend = {key: told["spend"][key] for key in ("model_calls", "tool_calls")}
    messages = [
        [kind, text.partition(" The earlier result was")[0].partition(" The answer will")[0], calls]
        for kind, text, calls in told["messages"]
    ]
    return told["outcome"], told["reason"], spend, messages


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
@pytest.mark.parametrize(
    ("how", "stride", "place"),
    [("sync", 3, "auto"), ("async", 7, "auto"), ("sync", 5, "store"), ("async", 9, "store")],
)
def test_killed_between_two_steps(tmp_path: Path, how: str, stride: int, place: str) -> None:
    told = killed(tmp_path, 1, how, stride, place)
    assert (told["whole"]["outcome"], told["whole"]["reason"]) == ("stopped", "loop:repeat")
    assert len(told["killed"]) >= 28 // stride
    for limit, late, outcome in told["killed"]:
        assert verdicts(outcome) == verdicts(told["whole"]), (limit, late)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_without_saving_in_mid_run_a_kill_forgets(tmp_path: Path) -> None:
    """The default: what the last run counted is lost with its process, and the loop goes on."""
    told = killed(tmp_path, 0, "sync", 9)
    assert all(outcome["reason"] == "loop:repeat" for _, _, outcome in told["killed"])
    calls = [outcome["spend"]["model_calls"] for _, _, outcome in told["killed"]]
    assert max(calls[1:]) < told["whole"]["spend"]["model_calls"]


def snapshots(checkpointer: InMemorySaver) -> int:
    found = (w for writes in checkpointer.writes.values() for w in writes.values())
    return sum(channel == CHANNEL for _, channel, _, _ in found)


@pytest.mark.parametrize(
    ("every", "durability", "expected"),
    [(0, "sync", 1), (1, "sync", 6), (1, "async", 6), (2, "sync", 3), (1, "exit", 1)],
)
@pytest.mark.parametrize("how", ["invoke", "ainvoke"])
async def test_how_often_it_is_saved(every: int, durability: Any, expected: int, how: str) -> None:
    checkpointer = saver()
    app: Any = shearpin.guard(react(polite(), checkpointer), save_every=every)
    if how == "invoke":
        app.invoke(HELLO, THREAD, durability=durability)
    else:
        await app.ainvoke(HELLO, THREAD, durability=durability)
    assert snapshots(checkpointer) == expected
    assert app.report(THREAD).faults == ()


@pytest.mark.parametrize("value", [-1, 1.5, "1", True])
def test_a_wrong_interval_is_refused(value: Any) -> None:
    with pytest.raises(ConfigError, match="save_every"):
        shearpin.Guard(save_every=value)

"""A process that is killed in the middle of a call: with `save_every="call"` a cap is a cap."""

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
from tests.budget.dying import CAP, MOST_LIVES
from tests.budget.paying import HELLO, Paid
from tests.budget.test_guarded import asking, guarded, thread

ROOT = Path(__file__).resolve().parents[2]


def killed(folder: Path, save_every: object, how: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.budget.dying", str(folder), str(save_every), how],
        capture_output=True,
        cwd=ROOT,
        check=True,
        timeout=300,
    )
    return json.loads(done.stdout)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
@pytest.mark.parametrize("how", ["sync", "async"])
def test_a_cap_holds_through_any_number_of_kills(tmp_path: Path, how: str) -> None:
    """Three calls in each life, the last one cut short: three lives, and no tenth call."""
    found = killed(tmp_path, "call", how)
    assert found["told"] == ["budget:model_calls", CAP, []]
    assert (found["calls"], found["lives"]) == (CAP, 4)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_saving_after_nodes_alone_forgets_the_calls_of_a_node_that_never_ends(
    tmp_path: Path,
) -> None:
    """Why there is `"call"`: each life makes its calls anew, and nothing ever counts them."""
    found = killed(tmp_path, 1, "sync")
    assert found["lives"] == MOST_LIVES
    assert found["calls"] > 2 * CAP


def test_what_is_set_aside_for_calls_under_way_counts_in_what_is_saved() -> None:
    """Another process would see a call that it cannot know the end of as made."""
    saver = InMemorySaver()
    seen: list[int] = []

    def script(messages: Any, number: int) -> str:
        head = saver.get_tuple(thread("1"))
        assert head is not None
        saved = [v for _, channel, v in head.pending_writes or () if channel == "__shearpin__"]
        newest = max((json.loads(text) for text in saved), key=lambda data: data["sequence"])
        _, spent, _ = newest["funds"]["books"]["run"]
        seen.append(spent["model_calls"])
        return f"thought {number}"

    app = guarded(asking(Paid(script), saver), "5 calls", save_every="call")
    app.invoke(HELLO, thread("1"), durability="sync")
    assert seen == [1, 2]
    assert not app.report(thread("1")).faults


def test_a_checkpointer_that_cannot_save_refuses_the_call() -> None:
    class Broken(InMemorySaver):
        def put_writes(self, config: Any, writes: Any, *args: Any) -> None:
            if any(channel == "__shearpin__" for channel, _ in writes):
                raise OSError("the disk is full")
            super().put_writes(config, writes, *args)

    for faults, calls in (("stop", 0), ("go_on", 2)):
        model = Paid(lambda messages, number: f"thought {number}")
        app = guarded(asking(model, Broken()), "5 calls", save_every="call", budget_faults=faults)
        app.invoke(HELLO, thread("1"), durability="sync")
        assert model.calls == calls
        assert any("the disk is full" in fault for fault in app.report(thread("1")).faults)
        assert (app.report(thread("1")).reason == "budget:unavailable") == (faults == "stop")


def test_without_a_budget_there_is_nothing_to_save_before_a_call() -> None:
    model = Paid(lambda messages, number: f"thought {number}")
    app: Any = shearpin.guard(asking(model, InMemorySaver()), save_every="call")
    app.invoke(HELLO, thread("1"))
    assert model.calls == 2
    assert not app.report(thread("1")).faults

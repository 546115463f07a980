"""Recordings made of conversations: what is in the messages, and only that, is read again."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)

from shearpin import ConfigError
from shearpin.analysis import replay_run
from shearpin.core.settings import Settings
from shearpin.testing import asks_for
from shearpin.traces import read_runs, trace_of, write_runs


def talk() -> list[Any]:
    asked = asks_for(("look", {"n": 1}), ("look", {"n": 2}), text="I look.")
    asked.usage_metadata = {"input_tokens": 7, "output_tokens": 3, "total_tokens": 10}
    first, second = (call["id"] for call in asked.tool_calls)
    return [
        SystemMessage("be brief"),
        HumanMessage("find it"),
        asked,
        ToolMessage("gone", tool_call_id=second, status="error"),
        ToolMessage("here", tool_call_id=first),
        AIMessageChunk(content=[{"type": "text", "text": "Found"}, {"type": "image"}, " it."]),
        HumanMessage("and now?"),
        AIMessage("", name="helper", tool_calls=[{"name": "look", "args": {}, "id": "lost"}]),
    ]


def test_messages_become_steps() -> None:
    run = trace_of(talk(), run="r", outcome="fail", source="s", tools={"look": {"polling": True}})
    first, second, third = run.steps
    assert [(c.args, c.result, c.status, c.answered) for c in first.calls] == [
        ({"n": 1}, "here", "success", True),
        ({"n": 2}, "gone", "error", True),
    ]
    assert first.usage is not None
    assert (first.text, first.usage.input_tokens, first.usage.output_tokens) == ("I look.", 7, 3)
    assert (second.text, second.calls, second.usage) == ("Found it.", (), None)
    assert [step.turn for step in run.steps] == [1, 1, 2]
    assert (third.agent, third.calls[0].answered) == ("helper", False)
    assert (run.run, run.outcome, run.raw["source"]) == ("r", "fail", "s")
    assert run.tools == {"look": {"polling": True}}


def test_arguments_that_were_no_json_are_kept_as_text() -> None:
    call = {"name": "look", "args": "{n: 1", "id": "c", "error": "no JSON"}
    run = trace_of([AIMessage("", invalid_tool_calls=[call])], run="r")
    assert run.steps[0].calls[0].args == "{n: 1"


@pytest.mark.parametrize("name", ["runs.jsonl", "runs.jsonl.gz"])
def test_what_was_written_is_read_again(tmp_path: Path, name: str) -> None:
    runs = [trace_of(talk(), run=f"r{n}", outcome="success") for n in range(3)]
    path = tmp_path / name
    assert write_runs(path, iter(runs)) == 3
    assert (path.read_bytes()[:2] == b"\x1f\x8b") is name.endswith(".gz")
    assert [run._replace(origin="") for run in read_runs(path)] == runs
    data = gzip.decompress(path.read_bytes()) if name.endswith(".gz") else path.read_bytes()
    assert json.loads(data.splitlines()[0])["steps"][0]["text"] == "I look."


def test_a_recorded_loop_is_seen_in_the_replay() -> None:
    messages: list[Any] = [HumanMessage("go")]
    for _ in range(9):
        asked = asks_for(("look", {"n": 1}))
        messages += [asked, ToolMessage("gone", tool_call_id=asked.tool_calls[0]["id"])]
    assert replay_run(trace_of(messages, run="r"), Settings()).worst.label == "stop"


def test_what_is_no_conversation_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"messages\[1\] is no message: int"):
        trace_of([HumanMessage("hi"), 3], run="r")
    with pytest.raises(ConfigError, match="name of the run"):
        trace_of([], run="")
    with pytest.raises(ConfigError, match="success, fail, unknown, not 'good'"):
        trace_of([], run="r", outcome="good")  # type: ignore[arg-type]
    assert trace_of([], run="r").steps == ()

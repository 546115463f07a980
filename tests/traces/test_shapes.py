"""The shape of recorded runs: what is taken, and how a wrong value is named."""

from __future__ import annotations

import copy
import pickle

import pytest

from shearpin.events import Usage
from shearpin.findings import Severity
from shearpin.traces import ShapeError, TraceExpect, parse_run

FULL: dict[str, object] = {
    "run": "A27",
    "title": "runs the same test for ever",
    "class": "loop",
    "outcome": "fail",
    "tools": {"read_output": {"polling": True, "read_only": None, "colour": "red"}},
    "steps": [
        {
            "turn": 1,
            "at": 12.5,
            "agent": "main",
            "node": "agent",
            "text": "prose",
            "calls": [
                {
                    "id": "c1",
                    "name": "run_tests",
                    "args": {"path": "t"},
                    "result": "1 failed",
                    "status": "success",
                    "args_digest": "aa",
                    "result_digest": "bb",
                }
            ],
            "usage": {"input_tokens": 1200, "output_tokens": 60},
            "compacted": False,
            "parent": None,
        }
    ],
    "expect": {
        "nudge_by": 3,
        "block_by": 5,
        "stop_by": None,
        "quiet": False,
        "never": ["stop"],
        "finding": "repeat",
        "findings": ["repeat", "cycle"],
        "why": "because",
    },
}


def test_a_full_run_is_taken_as_it_is() -> None:
    run = parse_run(FULL, "file:1")
    assert (run.run, run.title, run.outcome, run.origin) == ("A27", FULL["title"], "fail", "file:1")
    assert run.tools == {"read_output": {"polling": True, "read_only": None}}
    assert run.raw["class"] == "loop", "unknown keys are kept"
    (step,) = run.steps
    assert (step.turn, step.at, step.agent, step.node, step.text) == (
        1,
        12.5,
        "main",
        "agent",
        "prose",
    )
    assert step.usage == Usage(1200, 60)
    (call,) = step.calls
    assert call == ("c1", "run_tests", {"path": "t"}, "1 failed", "success", True, "aa", "bb")
    assert run.expect == TraceExpect(
        3, 5, None, False, (Severity.STOP,), ("repeat", "cycle"), "because"
    )


def test_everything_but_run_steps_and_names_may_be_absent() -> None:
    run = parse_run({"run": "r", "steps": [{}, {"calls": [{"name": "ls"}]}]})
    first, second = run.steps
    assert (first.turn, first.at, first.agent, first.calls, first.usage) == (
        1,
        1.0,
        "main",
        (),
        None,
    )
    assert second.at == 2.0, "the step index, where no time was recorded"
    (call,) = second.calls
    assert (call.args, call.result, call.status, call.answered) == ({}, None, "success", False)
    assert run.expect is None


def test_a_recorded_null_is_an_answer_and_a_missing_result_is_not() -> None:
    calls = [{"name": "a", "result": None}, {"name": "a", "result_digest": "x"}, {"name": "a"}]
    (step,) = parse_run({"run": "r", "steps": [{"calls": calls}]}).steps
    assert [call.answered for call in step.calls] == [True, True, False]


def test_arguments_that_were_not_json_are_the_raw_text() -> None:
    calls = [
        {"name": "a", "args": {"_unparsed": "{oops"}},
        {"name": "a", "args": "{oops"},
        {"name": "a", "args": {"_unparsed": "{oops", "b": 1}},
        {"name": "a", "args": None},
        {"name": "a", "args": ["ls", "-l"]},
    ]
    (step,) = parse_run({"run": "r", "steps": [{"calls": calls}]}).steps
    assert [call.args for call in step.calls] == [
        "{oops",
        "{oops",
        calls[2]["args"],
        {},
        {"": ["ls", "-l"]},
    ]


def test_the_expected_finding_counts_where_findings_is_absent() -> None:
    run = parse_run({"run": "r", "steps": [], "expect": {"nudge_by": 1, "finding": "cycle"}})
    assert run.expect is not None
    assert run.expect.findings == ("cycle",)


def test_all_usage_is_read() -> None:
    usage = {"input_tokens": 9, "cache_read_tokens": 4, "reasoning_tokens": 1, "estimated": True}
    (step,) = parse_run({"run": "r", "steps": [{"usage": usage}]}).steps
    assert step.usage == Usage(9, 0, 4, 0, 1, True)


@pytest.mark.parametrize(
    ("path", "value", "field", "problem"),
    [
        ("run", 5, "run", "must be non-empty text, not 5"),
        ("run", "", "run", "non-empty"),
        ("steps", {}, "steps", "must be a list of steps, not an object"),
        ("title", 1, "title", "must be text"),
        ("steps.0", [], "steps[0]", "must be an object, not a list"),
        ("steps.0.turn", -1, "steps[0].turn", "0 or more"),
        ("steps.0.turn", True, "steps[0].turn", "whole number"),
        ("steps.0.at", "soon", "steps[0].at", "seconds"),
        ("steps.0.at", float("nan"), "steps[0].at", "finite"),
        ("steps.0.agent", 1, "steps[0].agent", "text"),
        ("steps.0.node", 1, "steps[0].node", "text"),
        ("steps.0.text", ["a"], "steps[0].text", "must be text, not a list"),
        ("steps.0.parent", 1, "steps[0].parent", "text or null"),
        ("steps.0.compacted", 1, "steps[0].compacted", "true or false"),
        ("steps.0.calls", {}, "steps[0].calls", "a list"),
        ("steps.0.calls.0", None, "steps[0].calls[0]", "must be an object, not null"),
        ("steps.0.calls.0.id", 7, "steps[0].calls[0].id", "text"),
        ("steps.0.calls.0.name", "", "steps[0].calls[0].name", "non-empty"),
        ("steps.0.calls.0.args", 7, "steps[0].calls[0].args", "an object, a list, or text"),
        ("steps.0.calls.0.status", "great", "steps[0].calls[0].status", "one of bad_args"),
        ("steps.0.calls.0.args_digest", 1, "steps[0].calls[0].args_digest", "text or null"),
        ("steps.0.calls.0.result_digest", 1, "steps[0].calls[0].result_digest", "text or null"),
        ("steps.0.usage", 5, "steps[0].usage", "an object or null"),
        ("steps.0.usage.input_tokens", -1, "steps[0].usage.input_tokens", "0 or more"),
        ("steps.0.usage.output_tokens", 1.5, "steps[0].usage.output_tokens", "whole number"),
        ("tools", [], "tools", "tool name"),
        ("tools.read_output", True, "tools.read_output", "an object"),
        ("tools.read_output.polling", "yes", "tools.read_output.polling", "true or false"),
        (
            "tools.read_output",
            {"read_only": True, "destructive": True},
            "tools.read_output",
            "read_only or destructive",
        ),
        ("expect", [], "expect", "an object"),
        ("expect.nudge_by", 0, "expect.nudge_by", "1 or more"),
        ("expect.quiet", "no", "expect.quiet", "true or false"),
        ("expect.never", "stop", "expect.never", "a list of words"),
        ("expect.never", ["halt"], "expect.never", "nudge, block, stop"),
        ("expect.findings", [1], "expect.findings", "words"),
    ],
)
def test_a_wrong_value_is_named(path: str, value: object, field: str, problem: str) -> None:
    raw: object = copy.deepcopy(FULL)
    node = raw
    *parents, last = path.split(".")
    for key in parents:
        node = node[int(key)] if isinstance(node, list) else node[key]  # type: ignore[index]
    node[int(last) if isinstance(node, list) else last] = value  # type: ignore[index]
    with pytest.raises(ShapeError) as caught:
        parse_run(raw)
    assert caught.value.field == field
    assert problem in caught.value.problem


@pytest.mark.parametrize("key", ["run", "steps"])
def test_a_missing_key_is_named(key: str) -> None:
    raw = {name: value for name, value in FULL.items() if name != key}
    with pytest.raises(ShapeError, match=f"^{key}: is missing"):
        parse_run(raw)


@pytest.mark.parametrize("raw", [[], "run", None, 3])
def test_what_is_not_an_object_is_not_a_run(raw: object) -> None:
    with pytest.raises(ShapeError, match="must be a JSON object"):
        parse_run(raw)


def test_long_values_are_cut_in_the_message() -> None:
    with pytest.raises(ShapeError) as caught:
        parse_run({"run": "r", "steps": "x" * 1000})
    assert len(str(caught.value)) < 200


def test_the_error_pickles() -> None:
    error = ShapeError("steps[0].at", "must be a number")
    again = pickle.loads(pickle.dumps(error))
    assert (again.field, again.problem, str(again)) == (error.field, error.problem, str(error))

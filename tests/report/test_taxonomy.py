"""Each confirmed loop has a kind with a likely cause, in reports and in the totals of a replay."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from shearpin.analysis import kind_of_run, replay_run
from shearpin.cli import main
from shearpin.core.detectors import DEFAULT_DETECTORS
from shearpin.core.messages import _ADVICE  # pyright: ignore[reportPrivateUsage]
from shearpin.core.session import Session
from shearpin.core.settings import Settings
from shearpin.report.model import RunInfo, build_report
from shearpin.report.taxonomy import KINDS, Signs, kind_of
from shearpin.traces import parse_run


def step(
    name: str = "search", result: str = "ten results", args: object = None, **more: object
) -> dict[str, object]:
    return {
        "text": "I look again.",
        "calls": [{"name": name, "args": args or {}, "result": result}],
        **more,
    }


CASES: dict[str, list[dict[str, object]]] = {
    "answer_not_used": [step()] * 8,
    "error_not_understood": [step("book", "Error: invalid date")] * 8,
    "empty_taken_for_failure": [step(result="[]")] * 8,
    "outage": [step(result="Error: 503 service unavailable")] * 20,
    "verifier_never_satisfied": [step("run_tests", "2 failed: test_a, test_b")] * 8,
    "waiting_without_waiting": [step("get_build", "status: running")] * 8,
    "wrong_tool_name": [step("serch", "Error: serch is not a valid tool, try one of [search]")] * 8,
    "forced_tool_choice": [{**step(), "text": ""}] * 8,
    "no_final_answer": [{"text": "Shall I go on with the next part of it?"}] * 8,
    "broken_tool_layer": [
        step("search", "service reached, all is well", {"q": f"topic {n}"}) for n in range(12)
    ],
    "context_lost": [
        step(args={"q": "a"}), step(args={"q": "b"}), {**step(args={"q": "a"}), "compacted": True},
        *[step(args={"q": "a"})] * 6,
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(CASES))
def test_a_loop_is_told_by_its_kind(name: str) -> None:
    run = parse_run({"run": "r", "steps": CASES[name]})
    kind = kind_of_run(run, replay_run(run, Settings()))
    assert kind is not None
    assert kind.name == name


def test_a_check_behind_a_shell_is_a_verifier() -> None:
    evidence = {"cause": "answer_not_used", "tool": "bash"}
    kind = kind_of("repeat", evidence, Signs(command="/usr/bin/pytest"))
    assert kind is not None
    assert kind.name == "verifier_never_satisfied"
    plain = kind_of("repeat", evidence, Signs(command="ls"))
    assert plain is not None
    assert plain.name == "answer_not_used"


def test_names_that_only_contain_a_checking_word_are_no_verifiers() -> None:
    for tool in ("latest_news", "make_up_story_attested", "checkout"):
        kind = kind_of("repeat", {"cause": "answer_not_used", "tool": tool})
        assert kind is not None
        if tool != "make_up_story_attested":
            assert kind.name == "answer_not_used"


def test_tools_that_all_fail_are_a_broken_layer() -> None:
    steps = [step(f"tool_{n % 4}", "Error: connection pool closed", {"n": n}) for n in range(20)]
    steps += [step("tool_0", "Error: connection pool closed", {"n": 1})] * 8
    run = parse_run({"run": "r", "steps": steps})
    kind = kind_of_run(run, replay_run(run, Settings()))
    assert kind is not None


def test_what_is_no_loop_has_no_kind() -> None:
    assert kind_of(None, {}) is None
    assert kind_of("budget", {"cause": "budget_usd"}) is None
    run = parse_run({"run": "r", "steps": [step()]})
    assert kind_of_run(run, replay_run(run, Settings())) is None


def test_every_cause_that_rules_give_has_a_kind() -> None:
    for cause in _ADVICE["en"]:
        rules = ["constant_result", *(rule.family for rule in DEFAULT_DETECTORS)]
        assert any(kind_of(rule, {"cause": cause}) for rule in rules), cause
    assert set(_ADVICE["en"]) == set(_ADVICE["zh"])


def test_every_kind_says_what_to_do() -> None:
    for name, kind in KINDS.items():
        assert kind.name == name
        assert kind.cause.endswith(".")
        assert kind.advice.endswith(".")


def test_a_session_remembers_a_summary_over_dump_and_load() -> None:
    settings = Settings()
    from shearpin.events import HistoryCompacted, ModelReturned, ToolRequest, ToolReturned

    session = Session(settings)
    for number in range(6):
        asked = ToolRequest(f"c{number}", "search", {"q": "x"})
        session.after(ModelReturned(float(number), f"m{number}", "main", "agent", "", (asked,)))
        session.after(
            ToolReturned(float(number), f"c{number}", "search", {"q": "x"}, "ten", "success")
        )
        if number == 0:
            session.after(HistoryCompacted(0.5, "main"))
            session = Session.load(settings, session.dump())
    report = build_report(session, session.drain(), run=RunInfo())
    assert report.kind is not None
    assert report.kind.name == "context_lost"
    data = json.loads(json.dumps(report.to_json()))
    assert data["kind"]["name"] == "context_lost"
    assert data["evidence"]["steps_since_compaction"] <= 12


def test_the_summary_counts_kinds_with_causes_and_advice(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    path.write_text(
        "\n".join(json.dumps({"run": name, "steps": steps}) for name, steps in CASES.items())
    )
    shown = CliRunner().invoke(main, ["replay", str(path), "--summary"])
    assert shown.exit_code == 0
    for name in CASES:
        assert name in shown.output
    quiet = tmp_path / "quiet.jsonl"
    quiet.write_text(json.dumps({"run": "r", "steps": [step()]}))
    shown = CliRunner().invoke(main, ["replay", str(quiet), "--summary"])
    assert "every run was quiet" in shown.output


def test_every_kind_is_in_the_documentation() -> None:
    page = (Path(__file__).parent.parent.parent / "docs" / "tuning.md").read_text(encoding="utf-8")
    for kind in KINDS.values():
        assert f"| `{kind.name}` | {kind.cause} | {kind.advice} |" in page

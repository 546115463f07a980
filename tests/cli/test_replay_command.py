"""`shearpin replay` from the outside: output, exit codes, errors, shared behaviour cases."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from shearpin.cli import main

ROOT = Path(__file__).parent.parent.parent
SHARED = Path(os.environ.get("SHEARPIN_SHARED", ROOT.parent / "shared"))
CASES = SHARED / "cases"
CORPUS = SHARED / "corpus"

CALL = {"name": "run_tests", "args": {"path": "t"}, "result": "1 failed"}
USAGE = {"input_tokens": 100, "output_tokens": 10}
LOOP: dict[str, Any] = {"run": "loop", "steps": [{"calls": [CALL], "usage": USAGE}] * 12}
QUIET: dict[str, Any] = {"run": "quiet", "steps": [{"text": "done"}], "outcome": "success"}


def replay(*args: str | Path, stdin: bytes | None = None) -> Result:
    return CliRunner().invoke(main, ["replay", *map(str, args)], input=stdin)


def runs(path: Path, *raw: object, zipped: bool = False) -> Path:
    data = "".join(json.dumps(run) + "\n" for run in raw).encode()
    path.write_bytes(gzip.compress(data) if zipped else data)
    return path


def test_json_is_one_object_per_run_in_input_order(tmp_path: Path) -> None:
    first = runs(tmp_path / "a.jsonl", LOOP, QUIET)
    second = runs(tmp_path / "b.jsonl.gz", {**QUIET, "run": "跑"}, zipped=True)
    result = replay(first, second, "--json")
    assert result.exit_code == 0
    loop, quiet, last = map(json.loads, result.stdout.splitlines())
    assert [loop["run"], quiet["run"], last["run"]] == ["loop", "quiet", "跑"]
    assert list(loop) == ["run", "steps", "state", "worst", "verdicts", "spend"]
    assert (loop["steps"], loop["state"], loop["worst"]) == (12, "open", "stop")
    assert loop["spend"] == {
        "model_calls": 12,
        "tool_calls": 12,
        "input_tokens": 1200,
        "output_tokens": 120,
        "usd": None,
    }
    nudge = loop["verdicts"][0]
    assert list(nudge) == [
        "step",
        "verdict",
        "severity",
        "finding",
        "rule",
        "evidence",
        "message",
    ]
    assert (nudge["step"], nudge["verdict"], nudge["severity"]) == (3, "nudge", "nudge")
    assert (nudge["finding"], nudge["rule"]) == ("repeat", "repeat")
    assert nudge["evidence"]["tool"] == "run_tests"
    assert nudge["evidence"]["count"] == nudge["evidence"]["limit"] == 3
    assert nudge["evidence"]["onset_step"] == 1
    assert loop["verdicts"][-1]["severity"] == "stop"
    assert quiet["verdicts"] == []


def test_standard_input_is_a_file(tmp_path: Path) -> None:
    data = runs(tmp_path / "a.gz", QUIET, zipped=True).read_bytes()
    result = replay("-", "--json", stdin=data)
    assert json.loads(result.stdout)["run"] == "quiet"


def test_people_get_a_table_and_totals(tmp_path: Path) -> None:
    result = replay(runs(tmp_path / "a.jsonl", LOOP, QUIET))
    assert result.exit_code == 0
    assert "2 with 13 steps" in result.stdout
    assert "nudge@3 repeat" in " ".join(result.stdout.split())
    assert "quiet" in result.stdout


def test_check_names_each_failed_expectation_and_counts_runs(tmp_path: Path) -> None:
    path = runs(
        tmp_path / "a.jsonl",
        {**LOOP, "run": "good", "expect": {"nudge_by": 3, "stop_by": 8, "findings": ["repeat"]}},
        {**LOOP, "run": "bad", "expect": {"nudge_by": 2, "never": ["stop"]}},
        {**LOOP, "run": "claims nothing"},
    )
    result = replay(path, "--check", "--json")
    assert result.exit_code == 1
    assert len(result.stdout.splitlines()) == 3, "standard output stays machine-readable"
    lines = result.stderr.splitlines()
    assert lines[0].startswith(f"FAILED bad ({path}:2): nudge by step 2 expected")
    assert lines[1].startswith(f"FAILED bad ({path}:2): less than a stop expected")
    assert lines[2:] == ["1 passed, 1 failed"]


def test_check_succeeds_where_all_holds(tmp_path: Path) -> None:
    result = replay(runs(tmp_path / "a.jsonl", {**QUIET, "expect": {"quiet": True}}), "--check")
    assert result.exit_code == 0
    assert result.stderr.splitlines() == ["1 passed, 0 failed"]


def test_without_check_expectations_do_not_count(tmp_path: Path) -> None:
    result = replay(runs(tmp_path / "a.jsonl", {**LOOP, "expect": {"quiet": True}}))
    assert (result.exit_code, result.stderr) == (0, "")


def test_a_bad_line_ends_it_with_file_line_and_field(tmp_path: Path) -> None:
    path = runs(tmp_path / "a.jsonl", QUIET, {"run": "x", "steps": [{"turn": "two"}]}, QUIET)
    result = replay(path, "--json")
    assert result.exit_code == 2
    assert len(result.stdout.splitlines()) == 1
    assert result.stderr == (
        f"Error: {path}:2: steps[0].turn: must be a whole number, 0 or more, not 'two'\n"
    )


def test_skip_bad_goes_on_and_counts(tmp_path: Path) -> None:
    path = runs(tmp_path / "a.jsonl", QUIET, {"run": 1}, "nothing", LOOP)
    result = replay(path, "--json", "--skip-bad")
    assert result.exit_code == 0
    assert len(result.stdout.splitlines()) == 2
    assert result.stderr.splitlines()[-1] == "2 bad line(s) skipped"


def test_html_report(tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    result = replay(runs(tmp_path / "a.jsonl", LOOP, QUIET), "--report", page, "--json")
    assert result.exit_code == 0
    assert "<title>Shearpin" in page.read_text(encoding="utf-8")


def test_a_report_that_cannot_be_written_is_bad_input(tmp_path: Path) -> None:
    page = tmp_path / "no" / "such" / "folder.html"
    result = replay(runs(tmp_path / "a.jsonl", QUIET), "--report", page)
    assert result.exit_code == 2
    assert "folder.html" in result.stderr
    assert "Traceback" not in result.output


def test_config_decides(tmp_path: Path) -> None:
    config = tmp_path / "guard.toml"
    config.write_text('mode = "observe"\n', encoding="utf-8")
    result = replay(runs(tmp_path / "a.jsonl", LOOP), "--config", config, "--json")
    assert result.exit_code == 0
    verdicts = json.loads(result.stdout)["verdicts"]
    assert verdicts
    assert all(verdict["acted"] is False for verdict in verdicts)


def test_a_config_with_a_typo_is_a_clear_error(tmp_path: Path) -> None:
    config = tmp_path / "guard.toml"
    config.write_text('moode = "observe"\n', encoding="utf-8")
    result = replay(runs(tmp_path / "a.jsonl", LOOP), "--config", config)
    assert result.exit_code == 2
    assert "moode" in result.stderr
    assert "mode" in result.stderr


@pytest.mark.parametrize("args", [[], ["gone.jsonl"], ["--no-such-option"]])
def test_wrong_usage(args: list[str]) -> None:
    assert replay(*args).exit_code == 2


def families(path: Path) -> dict[str, set[str]]:
    with path.open(encoding="utf-8") as lines:
        cases = [json.loads(line) for line in lines]
    return {case["run"]: set(case["expect"]["findings"]) for case in cases}


@pytest.mark.skipif(
    not CASES.is_dir(), reason="the shared behaviour cases are not beside this checkout"
)
@pytest.mark.parametrize("name", ["loop", "legit", "mixed"])
def test_the_shared_behaviour_cases_hold(name: str) -> None:
    path = CASES / f"{name}.jsonl"
    result = replay(path, "--check", "--json")
    failures = [line for line in result.stderr.splitlines() if line.startswith("FAILED")]
    watched = {"repeat", "cycle", "unknown_tool", "monologue"}
    claims = families(path)
    due = [line for line in failures if name == "legit" or claims[line.split()[1]] & watched]
    assert due == []
    assert len(result.stdout.splitlines()) == len(claims)


@pytest.mark.skipif(not CORPUS.is_dir(), reason="the shared corpus is not beside this checkout")
def test_recorded_runs_are_read_to_the_end() -> None:
    path = CORPUS / "tau_airline_gpt4o.jsonl.gz"
    result = replay(path, "--json")
    assert result.exit_code == 0
    replayed = [json.loads(line) for line in result.stdout.splitlines()]
    assert len(replayed) == 100
    assert sum(run["steps"] for run in replayed) == 1254


def test_keys_that_are_not_read_are_named_once_per_file(tmp_path: Path) -> None:
    odd = {
        "run": "r",
        "outcom": "fail",
        "owner": "billing team",
        "tools": {"look": {"poling": True}},
        "steps": [{"cals": [CALL]}, {"calls": [{**CALL, "arg": {}}], "usage": {"tokens": 3}}],
    }
    path = runs(tmp_path / "a.jsonl", odd, odd)
    result = replay(path, "--json")
    assert result.exit_code == 0
    (said,) = result.stderr.splitlines()
    assert said == (
        f"Warning: {path}: unknown keys are not read: outcom (outcome?), "
        "tools.look.poling (polling?), steps[].cals (calls?), steps[].usage.tokens, "
        "steps[].calls[].arg (args?)"
    )
    assert replay(runs(tmp_path / "b.jsonl", LOOP, QUIET), "--json").stderr == ""


def test_a_check_without_expectations_is_an_error(tmp_path: Path) -> None:
    result = replay(runs(tmp_path / "a.jsonl", LOOP, QUIET), "--check")
    assert result.exit_code == 2
    assert "none of 2 runs carries `expect`" in result.stderr


def test_risk_without_json_is_refused(tmp_path: Path) -> None:
    result = replay(runs(tmp_path / "a.jsonl", LOOP), "--risk")
    assert result.exit_code == 2
    assert "--json" in result.stderr


def test_a_wrong_budget_names_the_file(tmp_path: Path) -> None:
    config = tmp_path / "guard.toml"
    config.write_text('budget = "plenty"')
    result = replay(runs(tmp_path / "a.jsonl", LOOP), "--config", config)
    assert result.exit_code == 2
    assert f"Error: {config}: " in result.stderr
    assert result.stderr.count(str(config)) == 1

"""`shearpin tune` and `shearpin compare`, from files to files."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from shearpin import ConfigError, Guard
from shearpin.analysis.arms import arm
from shearpin.cli import main
from shearpin.cli.toml_text import toml_text
from shearpin.configuration import guard_options


def record(name: str, outcome: str, repeats: int, steps: int) -> dict[str, object]:
    made = [
        {"calls": [{"name": "read", "args": {"n": n}, "result": f"line {n} of the book"}]}
        for n in range(steps - repeats)
    ]
    same = {"calls": [{"name": "read", "args": {"n": "x"}, "result": "no such line in it"}]}
    return {"run": name, "outcome": outcome, "steps": [*made, *[same] * repeats]}


@pytest.fixture
def traces(tmp_path: Path) -> list[str]:
    paths: list[str] = []
    for source in ("left", "right"):
        runs = [record(f"{source}/good{n}", "success", 3, 12) for n in range(8)]
        runs += [record(f"{source}/bad{n}", "fail", 9, 20) for n in range(8)]
        path = tmp_path / f"{source}.jsonl"
        path.write_text("".join(json.dumps(run) + "\n" for run in runs))
        paths.append(str(path))
    return paths


@pytest.fixture
def labels(tmp_path: Path) -> str:
    path = tmp_path / "labels.jsonl"
    lines = [{"run": f"{s}/bad0", "loop": True, "onset_step": 13} for s in ("left", "right")]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return str(path)


def shearpin(*arguments: str) -> Result:
    runner = CliRunner(env={"COLUMNS": "200"})
    return runner.invoke(main, list(arguments), catch_exceptions=False)


def test_what_is_found_is_written_and_holds_on_sources_left_out(
    traces: list[str], labels: str, tmp_path: Path
) -> None:
    config, page = tmp_path / "guard.toml", tmp_path / "tune.html"
    made = shearpin(
        "tune", *traces, "--labels", labels, "-o", str(config), "--report", str(page),
        "--usd-per-million-tokens", "2.5",
    )  # fmt: skip
    assert made.exit_code == 0
    assert "dollars saved" in made.output
    assert "all, held out" in made.output
    settings = Guard.from_file(config).settings
    assert settings != Guard().settings
    text = page.read_text()
    assert "<svg" in text
    assert "<script" not in text
    assert "left" in text


def test_without_an_output_the_configuration_is_printed(traces: list[str]) -> None:
    made = shearpin("tune", *traces)
    assert made.exit_code == 0
    data = tomllib.loads(made.output.partition("Configuration:")[2])
    assert Guard(**guard_options(data, "test"))


def test_a_start_is_kept_in_what_is_written(traces: list[str], tmp_path: Path) -> None:
    start, config = tmp_path / "start.toml", tmp_path / "guard.toml"
    start.write_text('name = "mine"\n[tools.read]\nread_only = true\n')
    made = shearpin(
        "tune", *traces, "--config", str(start), "--preset", "coding", "-o", str(config)
    )
    assert made.exit_code == 0
    guard = Guard.from_file(config)
    assert (guard.name, guard.preset) == ("mine", "coding")
    assert guard.tools["read"].read_only


@pytest.mark.parametrize("option", ["--preset=none", "--labels={labels}"])
def test_a_mistake_is_an_error_with_a_name(traces: list[str], tmp_path: Path, option: str) -> None:
    wrong = tmp_path / "wrong.jsonl"
    wrong.write_text('{"run": "a"}\n')
    made = shearpin("tune", *traces, option.format(labels=wrong))
    assert made.exit_code == 2
    assert made.output.startswith("Error: ")


def test_traces_without_runs_are_an_error(tmp_path: Path) -> None:
    empty = tmp_path / "empty.jsonl"
    empty.write_text("")
    assert shearpin("tune", str(empty)).exit_code == 2


def test_bad_lines_are_counted_where_asked_for(traces: list[str], tmp_path: Path) -> None:
    bad = tmp_path / "bad.jsonl"
    bad.write_text("{}\n")
    assert shearpin("tune", *traces, str(bad)).exit_code == 2
    made = shearpin("tune", *traces, str(bad), "--skip-bad")
    assert made.exit_code == 0
    assert "1 bad line(s) skipped" in made.output


def test_a_comparison_marks_what_is_more_than_chance(
    traces: list[str], labels: str, tmp_path: Path
) -> None:
    now, tuned = tmp_path / "now.toml", tmp_path / "tuned.toml"
    now.write_text("")
    tuned.write_text('patience = "maximal"\n')
    made = shearpin("compare", str(now), str(tuned), *traces, "--labels", labels)
    assert made.exit_code == 0
    assert "wrong nudges" in made.output
    assert "*" in made.output
    data = json.loads(
        shearpin("compare", str(now), str(tuned), *traces, "--labels", labels, "--json").output
    )
    found = {measure["measure"]: measure for measure in data}
    assert found["wrong nudges"]["first"]["value"] == 1.0
    assert found["wrong nudges"]["difference"]["value"] == -1.0
    assert found["wrong nudges"]["certain"]
    assert found["loops caught"]["runs"] == 2


def test_the_same_configuration_differs_in_nothing(traces: list[str], tmp_path: Path) -> None:
    now = tmp_path / "now.toml"
    now.write_text("")
    made = shearpin("compare", str(now), str(now), *traces, "--json")
    for measure in json.loads(made.output):
        assert measure["difference"]["value"] == 0
        assert not measure["certain"]


def test_a_wrong_configuration_is_named(traces: list[str], tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.toml"
    wrong.write_text("mdoe = 1")
    made = shearpin("compare", str(wrong), str(wrong), *traces)
    assert made.exit_code == 2
    assert "mode" in made.output


def test_toml_comes_back_as_it_was() -> None:
    data = {
        "patience": 0.25,
        "ignored_arguments": ["why", 'a "quoted" one'],
        "breaker": {"trial_rounds": 1},
        "tools": {"my tool": {"polling": True}},
        "overrides": [
            {"tools": ["a*"], "off": ["litany"], "detectors": {"repeat": {"nudge": 4}}},
            {"nodes": ["x"]},
        ],
    }
    assert tomllib.loads(toml_text(data)) == data
    assert toml_text({}) == ""


def test_a_key_keeps_its_arm_and_shares_are_kept() -> None:
    keys = [f"thread-{n}" for n in range(4000)]
    dealt = [arm(key, ["a", "b"], experiment="one", shares=[3, 1]) for key in keys]
    assert dealt == [arm(key, ["a", "b"], experiment="one", shares=[3, 1]) for key in keys]
    assert 0.72 < dealt.count("a") / len(dealt) < 0.78
    assert dealt != [arm(key, ["a", "b"], experiment="two", shares=[3, 1]) for key in keys]
    with pytest.raises(ConfigError, match="arm"):
        arm("k", [])
    with pytest.raises(ConfigError, match="share"):
        arm("k", ["a", "b"], shares=[1])


@pytest.mark.parametrize("command", ["tune", "compare"])
def test_runs_that_do_not_say_how_they_ended_are_refused(command: str, tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    lines = [json.dumps({**record(f"r{n}", "", 9, 20), "outcom": "success"}) for n in range(3)]
    path.write_text("\n".join(lines))
    empty = tmp_path / "empty.toml"
    empty.write_text("")
    configs = [str(empty), str(empty)] if command == "compare" else []
    made = shearpin(command, *configs, str(path))
    assert made.exit_code == 2
    assert "outcom (outcome?)" in made.stderr
    assert "there is: none" in made.stderr
    assert made.stdout == ""


def test_few_runs_are_said_to_be_few_and_choose_no_extreme(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    runs = [record(f"a/good{n}", "success", 0, 12) for n in range(8)]
    runs += [record(f"b/bad{n}", "fail", 9, 20) for n in range(8)]
    path.write_text("".join(json.dumps(run) + "\n" for run in runs))
    made = shearpin("tune", str(path))
    assert made.exit_code == 0
    assert "0 of 8 successful runs stopped" in made.output
    assert "compatible with up to 32.4 % of them" in made.output
    assert "do not show that the target of 0.2 % is met" in made.output
    found = tomllib.loads(made.output.partition("Configuration:")[2])
    assert 0.25 <= found.get("patience", 0.5) <= 0.75
    many = [record(f"a/more{n}", "success", 0, 12) for n in range(100)]
    path.write_text("".join(json.dumps(run) + "\n" for run in [*runs, *many]))
    made = shearpin("tune", str(path))
    assert tomllib.loads(made.output.partition("Configuration:")[2])["patience"] == 0.0

"""The command that runs the hosts' suites finds what a guard breaks, and only that."""

from __future__ import annotations

import sys
from pathlib import Path
from textwrap import dedent

import pytest

from benchmarks import host_suites
from benchmarks.host_suites import Outcome, Run, compare, differing, gist, parse, run_tests

MINIATURE = """
    from langgraph.func import entrypoint
    from langgraph.graph import START, StateGraph
    from langgraph.graph.state import CompiledStateGraph
    from langgraph.pregel import NodeBuilder, Pregel
    from langgraph.channels import LastValue

    def build():
        builder = StateGraph(dict)
        builder.add_node("a", lambda state: {"a": 1})
        builder.add_edge(START, "a")
        return builder.compile()

    def test_same():
        assert build().invoke({"a": 0}) == {"a": 1}

    def test_fails_anyway():
        assert build().invoke({"a": 0}) == {"a": 2}

    def test_sees_the_guard():
        assert type(build()) is CompiledStateGraph

    def test_entrypoint():
        @entrypoint()
        def twice(number: int) -> int:
            return 2 * number
        assert twice.invoke(2) == 4

    def test_by_hand():
        node = NodeBuilder().subscribe_only("a").do(len).write_to("b")
        channels = {"a": LastValue(str), "b": LastValue(int)}
        graph = Pregel(
            nodes={"one": node}, channels=channels, input_channels="a", output_channels="b"
        )
        assert isinstance(graph, Pregel)
        assert graph.invoke("four") == 4
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    tests = tmp_path / "tests"
    tests.mkdir()
    (tests / "test_miniature.py").write_text(dedent(MINIATURE))
    (tmp_path / "pyproject.toml").write_text("[tool.pytest.ini_options]\n")
    return tmp_path


def test_a_suite_is_run_both_ways_and_compared(home: Path) -> None:
    options = parse(["--state", "memory", "--jobs", "1"])
    plain = run_tests(home, ["tests"], "off", 1)
    guarded = run_tests(home, ["tests"], "memory", 1)
    assert plain.guarded == 0
    assert guarded.guarded == 5
    assert plain.summary().startswith("1 failed, 4 passed")
    found = compare(home, plain, guarded, options)
    assert found.new == ["tests/test_miniature.py::test_sees_the_guard"]
    assert found.known == found.flaky == found.changed == []


def stubbed(
    monkeypatch: pytest.MonkeyPatch, alone: dict[str, dict[str, str]], detail: str = ""
) -> None:
    """Let re-runs give prepared outcomes, by mode and test."""

    def run(home: Path, tests: list[str], guard: str, jobs: int) -> Run:
        return Run({test: Outcome(alone[guard][test], detail) for test in tests}, 1, 0.0)

    monkeypatch.setattr(host_suites, "run_tests", run)


def test_known_failures_are_only_known_where_state_is_kept_in_the_saver(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = tmp_path / "known.txt"
    known.write_text("# why\ntests/test_x.py::test_raw  # because\n")
    monkeypatch.setattr(host_suites, "KNOWN", known)
    test = "tests/test_x.py::test_raw[sqlite]"
    outcomes = {"auto": {test: "failed"}, "memory": {test: "failed"}, "off": {test: "passed"}}
    stubbed(monkeypatch, outcomes, "E  assert saved.pending_writes == []")
    plain = Run({test: Outcome("passed", "")}, 0, 0.0)
    guarded = Run({test: Outcome("failed", "")}, 1, 0.0)
    found = compare(tmp_path, plain, guarded, parse(["--state", "auto"]))
    assert (found.known, found.new) == ([test], [])
    found = compare(tmp_path, plain, guarded, parse(["--state", "memory"]))
    assert (found.known, found.new) == ([], [test])
    stubbed(monkeypatch, outcomes, "E  KeyError: 'messages'")
    found = compare(tmp_path, plain, guarded, parse(["--state", "auto"]))
    assert (found.known, found.new) == ([], [test])


@pytest.mark.parametrize(
    ("guarded_alone", "plain_alone"), [("passed", "passed"), ("failed", "failed")]
)
def test_what_does_not_fail_again_or_fails_plain_too_is_flaky(
    guarded_alone: str, plain_alone: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stubbed(monkeypatch, {"memory": {"t": guarded_alone}, "off": {"t": plain_alone}})
    plain = Run({"t": Outcome("passed", "")}, 0, 0.0)
    guarded = Run({"t": Outcome("error", "")}, 1, 0.0)
    found = compare(tmp_path, plain, guarded, parse([]))
    assert (found.flaky, found.new) == (["t"], [])


def test_a_test_that_is_not_run_guarded_differs() -> None:
    plain = Run({"a": Outcome("passed", ""), "b": Outcome("failed", "E no")}, 0, 0.0)
    assert differing(plain, Run({}, 0, 0.0)) == ["a"]
    assert differing(plain, Run({"a": Outcome("skipped", "")}, 0, 0.0)) == ["a"]


def test_two_failures_are_told_apart_by_how_they_begin() -> None:
    one = Outcome("failed", "x\nE   ValueError: 1\nE   more")
    assert gist(one) == gist(Outcome("failed", "E   ValueError: 1"))
    assert gist(one) != gist(Outcome("failed", "E   KeyError: 1"))


def test_a_suite_that_cannot_be_run_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def unpack(suite: object, cache: Path) -> Path:
        raise host_suites.SuiteError("no archive")

    monkeypatch.setattr(host_suites, "unpack", unpack)
    monkeypatch.setattr(sys, "argv", ["host_suites.py", "--cache", str(tmp_path)])
    assert host_suites.main() == 2
    assert "no archive" in capsys.readouterr().err

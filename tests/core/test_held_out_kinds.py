"""Kinds that a blind set of behaviour cases showed to be judged wrongly, and their opposites."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from shearpin.core.session import Session
from shearpin.core.settings import Settings
from shearpin.events import ModelReturned, ToolCalled, ToolRequest, ToolReturned
from shearpin.findings import Severity

Step = tuple[str, dict[str, object], str]


def worst(steps: list[Step], status: str = "success") -> list[Severity]:
    """The strongest verdict of each step, in open loop."""
    session = Session(Settings())
    out: list[Severity] = []
    for n, (tool, args, result) in enumerate(steps, 1):
        at, call = 5.0 * n, f"c{n}"
        session.after(ModelReturned(at, f"m{n}", requests=(ToolRequest(call, tool, args),)))
        before = session.before(ToolCalled(at, call, tool, args))
        after = session.after(ToolReturned(at, call, tool, args, result, status))  # type: ignore[arg-type]
        out.append(max(before.severity, after.severity))
    return out


def bash(command: str, result: str) -> Step:
    return ("bash", {"command": command}, result)


def pytest_output(n: int) -> str:
    lines = [f"src/module_{i}.py::test_{i} PASSED" for i in range(30)]
    lines[15] = f"E  assert <Money object at 0x7f{n:010x}>.value == 3"
    return "\n".join(lines)


LOOPS: dict[str, Callable[[int], Step]] = {
    "an address in the middle of a long output": lambda n: bash("pytest", pytest_output(n)),
    "a log file named after the time": lambda n: bash(
        "npm ci", f"npm error code 1\nlog in logs/2025-11-04T10_0{n}_03_34{n}Z-debug-0.log"
    ),
}


@pytest.mark.parametrize("name", LOOPS)
def test_the_same_result_is_seen_through_what_varies(name: str) -> None:
    said = worst([LOOPS[name](n) for n in range(1, 9)])
    assert said[2] == Severity.NUDGE
    assert max(said) == Severity.STOP


def test_one_error_from_different_commands_of_a_tool_is_one_streak() -> None:
    error = "sudo: a terminal is required to read the password"
    commands = [
        "sudo apt-get update",
        "sudo bash -c x",
        "sudo apt install y",
        "sudo snap install y",
    ]
    assert worst([bash(command, error) for command in commands])[3] == Severity.NUDGE


def test_an_echoed_path_does_not_make_an_error_new() -> None:
    paths = [
        "/etc/nginx/nginx.conf",
        "/var/a/b/nginx.conf",
        "/usr/local/x.conf",
        "/var/ops/n.conf",
    ]
    steps: list[Step] = [
        ("read_text", {"path": path}, f"Access denied - outside allowed: {path} not in /srv/share")
        for path in paths
    ]
    assert worst(steps, "error")[3] == Severity.NUDGE


def test_thoughts_between_pieces_of_work_are_no_loop_and_thoughts_alone_are() -> None:
    logged = "Your thought has been logged."
    thoughts: list[Step] = [("think", {"thought": f"idea {n}"}, logged) for n in range(6)]
    work = [bash(f"sed -n {n}p parse.c", f"line {n} of the parser") for n in range(6)]
    mixed = [step for pair in zip(thoughts, work, strict=True) for step in pair]
    assert max(worst(mixed)) == Severity.NONE
    assert max(worst(thoughts)) >= Severity.NUDGE


def test_waiting_in_the_command_or_before_it_is_waiting() -> None:
    lock = "E: Could not get lock /var/lib/dpkg/lock-frontend"
    assert max(worst([bash("sleep 30; apt-get install -y jq", lock)] * 6)) == Severity.NUDGE
    spinner = "RootWebArea 'Report', focused\n\t[3] progressbar\n\t[4] StaticText 'One moment'"
    steps: list[Step] = []
    for n in range(9):
        steps += [("browser_wait_for", {"time": n}, "waited"), ("browser_snapshot", {}, spinner)]
    assert max(worst(steps)) == Severity.NUDGE


def test_measuring_after_each_edit_never_adds_up_to_a_stop() -> None:
    steps: list[Step] = []
    for n in range(6):
        steps.append(("edit_file", {"path": "lib.rs", "lanes": n}, f"1 replacement, lanes {n}"))
        steps += [bash("cargo bench", f"mix time: {30 - n}.1 µs")] * 3
    assert max(worst(steps)) == Severity.NUDGE

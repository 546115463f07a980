"""The command itself: it teaches, it answers at once, and it says what is installed."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import version

import pytest
from click.testing import CliRunner

from shearpin.cli import main


@pytest.mark.parametrize("command", [[], ["demo"], ["replay"], ["version"]])
def test_every_command_explains_itself(command: list[str]) -> None:
    result = CliRunner().invoke(main, [*command, "--help"])
    assert result.exit_code == 0
    assert "Usage:" in result.output
    if command in (["demo"], ["replay"]):
        assert "Exit codes:" in result.output


def test_without_a_command_it_explains_itself() -> None:
    assert "shearpin demo" in CliRunner().invoke(main, []).output


def test_an_unknown_command_is_wrong_usage() -> None:
    assert CliRunner().invoke(main, ["guard"]).exit_code == 2


def test_version_names_the_hosts() -> None:
    lines = CliRunner().invoke(main, ["version"]).output.splitlines()
    found = dict(line.split(maxsplit=1) for line in lines)
    assert found["langgraph"] == version("langgraph")
    assert "shearpin" in found
    assert found["python"].startswith(f"{sys.version_info.major}.{sys.version_info.minor}")


def test_help_loads_nothing_heavy() -> None:
    code = (
        "import sys; from shearpin.cli import main\n"
        "main(['--help'], standalone_mode=False)\n"
        "heavy = {'langgraph', 'langchain_core', 'rich', 'jinja2', 'orjson', 'genai_prices'}\n"
        "sys.exit(', '.join(heavy & set(sys.modules)) or 0)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr


def test_the_module_is_the_command() -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "shearpin", "replay", "--help"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "COLUMNS": "90"},
    )
    assert ran.returncode == 0
    assert "Usage: shearpin replay" in ran.stdout

"""`shearpin prices`: for people and for programs, with exit codes that tell."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from shearpin.cli import main


def run(*args: str) -> Result:
    return CliRunner().invoke(main, ["prices", *args])


def test_a_model_is_shown_with_and_without_the_word_show() -> None:
    bare, spelt = run("gpt-4o"), run("show", "gpt-4o")
    assert bare.exit_code == spelt.exit_code == 0
    assert bare.output == spelt.output
    assert "openai/gpt-4o" in bare.output
    assert "genai-prices" in bare.output


def test_json_is_exact_text() -> None:
    found = json.loads(run("gemini-2.5-pro", "--json", "--at", "2026-01-01").output)
    assert found["usd_per_million_tokens"]["input"] == "1.25"
    assert found["tiers"][0]["above_input_tokens"] == 200_000
    assert found["source"].startswith("genai-prices") and found["date"]


def test_unknown_says_what_to_do() -> None:
    result = run("gpt-4o-mimi", "--provider", "openai")
    assert result.exit_code == 1
    assert "no price is known for model 'gpt-4o-mimi'" in result.stderr
    assert "gpt-4o-mini" in result.stderr and '[models."gpt-4o-mimi"]' in result.stderr
    assert not result.stdout


def test_list() -> None:
    result = run("list", "gpt-4o", "--provider", "openai")
    assert result.exit_code == 0
    assert "gpt-4o-mini" in result.output and "claude" not in result.output
    assert json.loads(run("list", "gpt-4o-mini", "--provider", "openai", "--json").stdout)[0] == {
        "provider": "openai", "model": "ft:gpt-4o-mini"
    }  # fmt: skip
    assert run("list", "no-such-model").exit_code == 1


def test_explain(tmp_path: Path) -> None:
    path = tmp_path / "prices.toml"
    path.write_text(
        'date = 2026-01-01\n[models.m]\ninput = "3"\noutput = "15"\ncache_read = "0.30"\n'
        'cache_write = "3.75"\n'
    )
    args = ["explain", "m", "--input", "1000", "--cached", "200", "--written", "700",
            "--output", "50", "--file", str(path)]  # fmt: skip
    result = run(*args)
    assert result.exit_code == 0
    assert "$0.003735" in result.output
    document = json.loads(run(*args, "--json").output)
    assert document["usd"] == "0.003735" and document["complete"]
    assert [line["what"] for line in document["lines"]] == [
        "input", "cache_read", "cache_write_5m", "output"
    ]  # fmt: skip
    assert document["hold_micro_usd"] == 4500
    tier = run(*args, "--tier", "flex")
    assert "standard price was taken" in tier.output


def test_explain_refuses_parts_larger_than_the_whole() -> None:
    assert run("explain", "gpt-4o", "--input", "1", "--cached", "2").exit_code == 2
    assert run("explain", "gpt-4o", "--output", "1", "--reasoning", "2").exit_code == 2
    assert run("explain", "no-such-model").exit_code == 1


def test_check(tmp_path: Path) -> None:
    path = tmp_path / "prices.toml"
    path.write_text('[models.m]\ninput = "1"\noutput = "1"\ndate = 2999-01-01\n')
    assert run("check", str(path)).exit_code == 0
    path.write_text(
        'date = 2020-01-01\n[models.m]\ninput = "1"\noutput = "1"\n'
        '[models.nobody]\nfactor = "0.5"\n[aliases]\nd = "openai/nothing"\n'
    )
    old = run("check", str(path))
    assert old.exit_code == 1
    assert 'models."m" is' in old.output and "confirm its date" in old.output
    assert 'models."nobody" is a factor' in old.output
    assert "aliases.\"d\" stands for 'openai/nothing'" in old.output
    path.write_text('date = 2999-01-01\n[models."gpt-*"]\nfactor = "85"\n')
    factor = run("check", str(path))
    assert factor.exit_code == 1
    assert "1 price, 0 aliases" in factor.output and "85 times the list price" in factor.output
    path.write_text("[models.m]\ninput = 1.5\n")
    wrong = run("check", str(path))
    assert wrong.exit_code == 2
    assert str(path) in wrong.stderr


def test_explain_without_tokens_says_so() -> None:
    assert "--input and --output" in run("explain", "gpt-4o").stderr
    assert not run("explain", "gpt-4o", "--input", "1").stderr


def test_help_tells_exit_codes() -> None:
    assert "Exit codes" in run("--help").output


@pytest.mark.parametrize("command", [["show"], ["explain", "--input", "10"]])
def test_a_provider_that_is_none_is_an_error(command: list[str]) -> None:
    shown = run(*command, "gpt-4o", "--provider", "nosuch")
    assert (shown.exit_code, shown.stdout) == (1, "")
    assert "'nosuch' is no provider of the catalogue; shearpin prices list" in shown.stderr


def test_an_unknown_model_is_explained_without_the_repository() -> None:
    shown = run("nosuch")
    assert shown.exit_code == 1
    assert "docs/" not in shown.stderr

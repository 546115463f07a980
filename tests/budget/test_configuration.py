"""Budgets from a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from shearpin import Budget, ConfigError, Guard


@pytest.mark.parametrize(
    ("text", "budgets"),
    [
        ('budget = "$0.50"', (Budget(usd="0.50"),)),
        ('budget = ["$0.50", "$5 per thread"]', (Budget(usd="0.50"), Budget(usd=5, per="thread"))),
        (
            '[budget]\nusd = "0.50"\nexempt = ["ask_user"]\n[budget.per_tool]\nsearch = 3',
            (Budget(usd="0.50", exempt=("ask_user",), per_tool={"search": 3}),),
        ),
        (
            '[[budget]]\ntool_calls = 5\n[[budget]]\nper = "call"\ntokens = 900',
            (Budget(tool_calls=5), Budget(per="call", tokens=900)),
        ),
    ],
)
def test_budgets(text: str, budgets: tuple[Budget, ...], tmp_path: Path) -> None:
    path = tmp_path / "guard.toml"
    path.write_text(text)
    assert Guard.from_file(path).budgets == budgets


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[budget]\nusd = 0.5", "Budget.usd must be a Decimal or a string"),
        ("[budget]\nmodel_call = 5", "unknown key 'model_call'; did you mean 'model_calls'"),
        ('budget = "a lot"', "cannot read 'a lot'"),
        ("budget = 5", "must be a table, not 5"),
        ('unknown_price = "free"', "unknown_price must be"),
    ],
)
def test_mistakes_are_named(text: str, complaint: str, tmp_path: Path) -> None:
    path = tmp_path / "guard.toml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=complaint):
        Guard.from_file(path)


def test_a_price_for_unknown_models(tmp_path: Path) -> None:
    path = tmp_path / "guard.toml"
    path.write_text('unknown_price = { input = "3", output = "15" }\nbudget = "$1"')
    found = Guard.from_file(path).pricing.find("our-own", usd_capped=True)
    assert found.price is not None

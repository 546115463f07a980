"""A budget is right once it exists, and says what is wrong otherwise."""

from __future__ import annotations

import pickle
from decimal import Decimal

import pytest

from shearpin.core.budget import Budget, describe, to_micros
from shearpin.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "limits", "seconds", "per"),
    [
        ("$0.50", {"usd": 500_000}, None, "run"),
        ("0.02 USD", {"usd": 20_000}, None, "run"),
        ("$1,000.50", {"usd": 1_000_500_000}, None, "run"),
        ("40 calls, 5 min", {"model_calls": 40}, 300.0, "run"),
        ("40 calls,500 tokens", {"model_calls": 40, "tokens": 500}, None, "run"),
        ("12 tool calls and 90 s", {"tool_calls": 12}, 90.0, "run"),
        ("100k tokens", {"tokens": 100_000}, None, "run"),
        ("1.5m input tokens; 2k output tokens", {"input_tokens": 1_500_000, "output_tokens": 2_000},
         None, "run"),
        ("20 steps + 2 h", {"steps": 20}, 7200.0, "run"),
        ("5m", {}, 300.0, "run"),
        ("2M tokens", {"tokens": 2_000_000}, None, "run"),
        ("40 model calls", {"model_calls": 40}, None, "run"),
        ("1 model call, 3 tool calls", {"model_calls": 1, "tool_calls": 3}, None, "run"),
        ("2k model_calls", {"model_calls": 2_000}, None, "run"),
        ("$5 per thread", {"usd": 5_000_000}, None, "thread"),
        ("$0.05, 4k tokens per call", {"usd": 50_000, "tokens": 4_000}, None, "call"),
        ("1 call", {"model_calls": 1}, None, "run"),
        ("2k rounds", {"steps": 2_000}, None, "run"),
    ],
)  # fmt: skip
def test_short_form(text: str, limits: dict[str, int], seconds: float | None, per: str) -> None:
    budget = Budget.parse(text)
    assert (budget.limits, budget.seconds, budget.per) == (limits, seconds, per)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "limits nothing"),
        ("50", "a number without a unit"),
        ("fish", "cannot read 'fish'"),
        ("$0.5.1", r"cannot read '\$0.5.1'"),
        ("-5 calls", "cannot read '-5 calls'"),
        ("1.5 calls", "must be a whole number"),
        ("$5, $6", "limits usd twice"),
        ("5 apples", "the unit 'apples'"),
        ("$5 calls", r"cannot read '\$5 calls'"),
        ("1,00 calls", "cannot read"),
        ("$0.0000001", "millionths of a dollar"),
        ("5 calls per call", "model_calls cannot be per call"),
        ("$5k", r"cannot read '\$5k'"),
        ("40 modelcalls", "the unit 'modelcalls'"),
        ("$5 per thread, 3 calls", r"'per thread' goes at the end .* are a list, such as \["),
    ],
)
def test_unreadable_short_forms_say_what_to_write(text: str, complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        Budget.parse(text)


def test_the_short_form_is_a_string() -> None:
    with pytest.raises(ConfigError, match="is a string, not 5"):
        Budget.parse(5)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"usd": 0.5}, "Budget.usd must be a Decimal or a string .* not 0.5: money is exact"),
        ({"usd": True}, "Budget.usd must be a Decimal or a string"),
        ({"usd": "cheap"}, "must be an amount such as"),
        ({"usd": "-1"}, "0 or more dollars"),
        ({"usd": Decimal("NaN")}, "0 or more dollars"),
        ({"usd": Decimal("Infinity")}, "0 or more dollars"),
        ({"tokens": -1}, "Budget.tokens must be 0 or more, not -1; None is no limit"),
        ({"model_calls": 2.0}, "Budget.model_calls must be a whole number, not 2.0"),
        ({"steps": True}, "Budget.steps must be a whole number"),
        ({"seconds": -0.1}, "Budget.seconds must be 0 or more seconds"),
        ({"seconds": float("inf")}, "None is no limit"),
        ({"working_seconds": "5"}, "Budget.working_seconds must be a number of seconds"),
        ({"per_tool": {"a": -1}}, r"Budget.per_tool\['a'\] must be 0 or more"),
        ({"per_tool": {"a": None}}, "leave the tool out for no limit"),
        ({"per_tool": ["a"]}, "Budget.per_tool must be a mapping such as"),
        ({"soft": 0}, "Budget.soft must be above 0 and at most 1"),
        ({"soft": 1.5}, "Budget.soft"),
        ({"soft": "80%"}, "Budget.soft"),
        ({"exempt": "ask_user"}, r"must be a tuple of names, not one text: write \('ask_user',\)"),
        ({"max_concurrency": 0}, "1 or more: 0 would wait for ever"),
        ({"max_concurrency": -2}, "Budget.max_concurrency must be 0 or more"),
        ({"per": "day"}, "'call', 'run' or 'thread'"),
        ({"per": "call", "steps": 3}, "Budget.steps cannot be per call"),
        ({"per": "call", "per_tool": {"a": 1}}, "Budget.per_tool cannot be per call"),
    ],
)
def test_wrong_settings_fail_when_built(arguments: dict[str, object], complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        Budget(**arguments)  # type: ignore[arg-type]


def test_money_is_whole_millionths() -> None:
    assert Budget(usd="$0.50").limits == Budget(usd=Decimal("0.500000")).limits == {"usd": 500_000}
    assert Budget(usd=2).dollars == Decimal(2)
    assert Budget(usd=Decimal("-0")).dollars == 0
    assert Budget().dollars is None
    assert to_micros(Decimal("0.0000001")) == 1
    assert to_micros(Decimal("0.000002")) == 2


def test_zero_is_a_limit_and_none_is_not() -> None:
    assert Budget(usd=0, tool_calls=0).limits == {"usd": 0, "tool_calls": 0}
    assert Budget().limits == {}


def test_a_budget_is_frozen_and_pickles() -> None:
    budget = Budget(usd="1", per_tool={"search": 3}, exempt=["ask_user"])  # type: ignore[arg-type]
    assert pickle.loads(pickle.dumps(budget)) == budget
    assert budget.exempt == ("ask_user",)
    assert budget.limits["tool:search"] == 3
    with pytest.raises(TypeError):
        budget.per_tool["search"] = 9  # type: ignore[index]
    with pytest.raises(AttributeError):
        budget.tokens = 5  # type: ignore[misc]


@pytest.mark.parametrize(
    ("limit", "soft", "threshold"),
    [(25, 0.8, 20), (10, 0.7, 7), (3, 0.8, 3), (100_000, 0.8, 80_000), (1, 0.1, 1), (7, 1.0, 7)],
)
def test_threshold(limit: int, soft: float, threshold: int) -> None:
    assert Budget(soft=soft).threshold(limit) == threshold


@pytest.mark.parametrize(
    ("dimension", "amount", "text"),
    [
        ("usd", 500_000, "$0.50"),
        ("usd", 1, "$0.000001"),
        ("usd", 12_345_600, "$12.3456"),
        ("usd", 0, "$0.00"),
        ("model_calls", 1, "1 model call"),
        ("tool_calls", 40, "40 tool calls"),
        ("tokens", 100_000, "100,000 tokens"),
        ("seconds", 2.5, "2.5 seconds"),
        ("working_seconds", 300.0, "300 seconds of work"),
        ("tool:search", 3, "3 calls of `search`"),
    ],
)
def test_amounts_read_like_prose(dimension: str, amount: float, text: str) -> None:
    assert describe(dimension, amount) == text

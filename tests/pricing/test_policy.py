"""Where a price is unknown or old: refuse, warn once, or stand in. Unknown is never 0."""

from __future__ import annotations

import copy
import pickle
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from shearpin import Guard
from shearpin.errors import ConfigError, PriceUnknownError
from shearpin.pricing import Catalogue, ModelPrice, Overrides, Priced, Pricing

TODAY = date(2026, 11, 1)


def pricing(**options: Any) -> Pricing:
    return Pricing(day=lambda: TODAY, **options)


def test_with_a_dollar_cap_an_unknown_price_is_refused_with_name_and_fix() -> None:
    with pytest.raises(PriceUnknownError) as raised:
        pricing().find("gpt-4o-mimi", "openai", usd_capped=True)
    said = str(raised.value)
    for part in ("'gpt-4o-mimi' of 'openai'", '[models."gpt-4o-mimi"]', "[aliases]",
                 "unknown_price=", 'Guard(prices="prices.toml")', "gpt-4o-mini"):  # fmt: skip
        assert part in said
    assert str(pickle.loads(pickle.dumps(raised.value))) == said


def test_names_that_are_not_much_alike_are_not_offered() -> None:
    with pytest.raises(PriceUnknownError) as raised:
        pricing().find("curry", "openai", usd_capped=True)
    assert "spelt alike" not in str(raised.value)


def test_without_a_cap_it_is_unknown_and_said_once() -> None:
    policy = pricing()
    first = policy.find("mystery", usd_capped=False)
    assert first.price is None
    assert "totals are marked incomplete" in first.warnings[0]
    assert policy.find("mystery", usd_capped=False) == Priced(None)
    assert policy.find("another", usd_capped=False).warnings


def test_warn_goes_on_under_a_cap() -> None:
    found = pricing(unknown_price="warn").find("mystery", usd_capped=True)
    assert found.price is None and found.warnings


@pytest.mark.parametrize(
    "given", [{"input": "3", "output": Decimal(15)}, ModelPrice.of("x", input="3", output="15")]
)
def test_a_given_price_stands_in(given: Any) -> None:
    found = pricing(unknown_price=given).find("mystery", usd_capped=True)
    assert found.price is not None and found.price.rates.output == Decimal(15)
    known = pricing(unknown_price=given).find("gpt-4o", usd_capped=True).price
    assert known is not None and known.model == "openai/gpt-4o"


def test_a_model_without_a_name_is_unknown() -> None:
    with pytest.raises(PriceUnknownError, match="does not name"):
        pricing().find(None, usd_capped=True)


def test_a_free_model_goes_on_under_a_cap() -> None:
    found = pricing().find("llama3", "ollama", usd_capped=True)
    assert found.price is not None and found.price.free and not found.warnings


@pytest.mark.parametrize("wrong", ["ignore", 0.5, {"input": "1"}, {"input": 0.1, "output": "1"}])
def test_a_wrong_policy_is_refused_when_built(wrong: Any) -> None:
    with pytest.raises(ConfigError):
        pricing(unknown_price=wrong)
    with pytest.raises(ConfigError):
        pricing(stale_after_days=-1)


def test_one_warning_about_age_and_the_override_wins() -> None:
    """P08.x: the built-in table is older than its stale-after date, one price is overridden."""
    later = date(2027, 8, 1)
    own = ModelPrice.of("gpt-4o", input="1", output="1", source="contract", at=date(2027, 7, 30))
    behind = Catalogue(day=lambda: later)
    policy = Pricing(Overrides({"gpt-4o": own}, behind), day=lambda: later)
    overridden = policy.find("gpt-4o", "openai", usd_capped=True)
    assert overridden == Priced(own)
    first = policy.find("gpt-4o-mini", "openai", usd_capped=True)
    assert first.price is not None and first.price.date is not None
    assert len(first.warnings) == 1 and "days old" in first.warnings[0]
    assert first.price.source in first.warnings[0]
    assert not policy.find("gpt-4.1", "openai", usd_capped=True).warnings


def test_the_age_is_an_option() -> None:
    old = ModelPrice.of("m", input="1", output="1", source="s", at=date(2026, 10, 1))
    book = Overrides({"m": old}, Catalogue(day=lambda: TODAY))
    assert not pricing(book=book).find("m", usd_capped=True).warnings
    assert pricing(book=book, stale_after_days=30).find("m", usd_capped=True).warnings
    own = Overrides({"m": old}, Catalogue(), stale_after_days=7)
    assert pricing(book=own).find("m", usd_capped=True).warnings


def test_a_guard_with_prices_can_be_sent_elsewhere(tmp_path: Path) -> None:
    path = tmp_path / "prices.toml"
    path.write_text('date = 2026-07-01\n[models.ours]\ninput = "3"\noutput = "15"\n')
    for prices in (None, path):
        recipe = Guard(budget="$1", prices=prices)
        recipe.pricing.find("gpt-4o", "openai", usd_capped=True)
        for twin in (pickle.loads(pickle.dumps(recipe)), copy.deepcopy(recipe)):
            found = twin.pricing.find("gpt-4o", "openai", usd_capped=True).price
            assert found == recipe.pricing.find("gpt-4o", "openai", usd_capped=True).price
    assert twin.pricing.find("ours", usd_capped=True).price.rates.output == 15

"""Costs are exact, never negative, never fall as usage rises, and never exceed their hold."""

from __future__ import annotations

import pickle
from decimal import Decimal, localcontext
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shearpin.errors import ConfigError
from shearpin.pricing import (
    KINDS,
    Catalogue,
    Cost,
    ModelPrice,
    Rates,
    Tier,
    TokenUsage,
    cost,
    dollars,
    micros,
    total,
    worst_case,
)
from shearpin.pricing.cost import worst_cases

PRICE = ModelPrice.of(
    "m",
    input="3",
    output="15",
    cache_read="0.30",
    cache_write="3.75",
    tiers=((200_000, {"input": "6", "output": "22.50"}),),
    per_request="0.001",
)
COUNTS = st.integers(0, 3_000_000)
RATE = st.decimals(0, 1000, places=4)


@st.composite
def prices(draw: st.DrawFn) -> ModelPrice:
    """Prices whose tiers are never cheaper than what lies below them."""
    base = {kind: draw(st.none() | RATE) for kind in KINDS} | {"input": draw(RATE)}
    base["output"] = draw(RATE)
    factor = draw(st.integers(1, 5))
    above = sorted(draw(st.sets(st.integers(0, 2_000_000), max_size=3)))
    tiers = tuple(
        Tier(
            each,
            Rates(**{k: None if v is None else v * (factor + i) for k, v in base.items()}),
        )
        for i, each in enumerate(above)
    )
    return ModelPrice("m", Rates(**base), tiers, per_request=draw(RATE))


@st.composite
def usages(draw: st.DrawFn) -> TokenUsage:
    return TokenUsage(**{kind: draw(COUNTS) for kind in KINDS})


@given(usages(), prices())
def test_a_cost_is_complete_exact_and_not_negative(usage: TokenUsage, price: ModelPrice) -> None:
    with localcontext(prec=4):
        # The caller's decimal context must not reach the sums.
        paid = cost(usage, price)
    assert paid.complete and paid.usd is not None and paid.micros is not None
    assert paid.usd >= 0
    with localcontext(prec=100):
        assert 0 <= paid.micros - paid.usd * 10**6 < 1


@given(usages(), st.sampled_from(KINDS), st.integers(1, 10**6), prices())
def test_more_tokens_never_cost_less(
    usage: TokenUsage, kind: str, more: int, price: ModelPrice
) -> None:
    counts = dict(zip(KINDS, usage.counts, strict=True))
    counts[kind] += more
    before, after = cost(usage, price).usd, cost(TokenUsage(**counts), price).usd
    assert before is not None and after is not None and after >= before


@given(usages(), prices(), st.integers(0, 10**6), st.integers(0, 10**6))
def test_the_worst_case_bounds_every_usage_within_it(
    usage: TokenUsage, price: ModelPrice, spare_in: int, spare_out: int
) -> None:
    usage = TokenUsage(
        input=usage.input,
        cache_write_5m=usage.cache_write_5m,
        cache_write_1h=usage.cache_write_1h,
        audio_input=usage.audio_input,
        image_input=usage.image_input,
        output=usage.output,
        reasoning=usage.reasoning,
        audio_output=usage.audio_output,
        image_output=usage.image_output,
    )
    bound = worst_case(
        price,
        usage.prompt_tokens + spare_in,
        usage.answer_tokens + spare_out,
        audio=True,
        images=True,
    )
    paid = cost(usage, price).micros
    assert bound is not None and paid is not None and paid <= bound


def test_a_tier_starts_strictly_above_and_holds_for_the_whole_request() -> None:
    at = cost(TokenUsage(input=200_000, output=1), PRICE).usd
    above = cost(TokenUsage(input=200_001, output=1), PRICE).usd
    assert at == Decimal("0.601015")
    assert above == Decimal("1.2010285")
    # Cached tokens count towards the threshold; a rate that the tier leaves out stays.
    cached = cost(TokenUsage(cache_read=200_001), PRICE).usd
    assert cached == Decimal("0.0610003")
    # A rate that neither has follows the input rate in force.
    audio = cost(TokenUsage(audio_input=200_001), PRICE).usd
    assert audio == Decimal("1.201006")


def test_the_highest_tier_that_applies_wins_in_any_order() -> None:
    price = ModelPrice.of(
        "m",
        input="1",
        output="1",
        tiers=((1000, {"input": "3"}), (100, {"input": "2", "output": "9"})),
    )
    assert cost(TokenUsage(input=100), price).micros == 100
    assert cost(TokenUsage(input=101), price).micros == 202
    assert cost(TokenUsage(input=1001, output=1), price).micros == 3004


def test_a_cheaper_tier_does_not_lower_a_hold() -> None:
    price = ModelPrice.of("m", input="10", output="10", tiers=((100, {"input": "1"}),))
    assert worst_case(price, 101, 0) == 1010


def test_fallbacks() -> None:
    price = ModelPrice.of("m", input="2", output="10")
    assert {kind: price.rates.rate(kind) for kind in KINDS} == {
        **dict.fromkeys(KINDS[:8], Decimal(2)),
        **dict.fromkeys(KINDS[8:], Decimal(10)),
    }
    written = ModelPrice.of("m", input="3", output="15", cache_write="3.75")
    assert written.rates.rate("cache_write_1h") == Decimal("3.75")


def test_holds_know_cache_writes() -> None:
    price = ModelPrice.of("m", input="3", output="15", cache_write="3.75", cache_write_1h="6")
    assert worst_case(price, 100, 0, cache_writes="none") == 300
    assert worst_case(price, 100, 0, cache_writes="5m") == 375
    assert worst_case(price, 100, 0) == 600


def test_unknown_is_never_zero() -> None:
    assert cost(TokenUsage(input=1), None) == Cost(None, None, complete=False)
    assert worst_case(None, 1, 1) is None
    embedding = ModelPrice.of("e", input="0.02")
    assert cost(TokenUsage(input=50), embedding).micros == 1
    partly = cost(TokenUsage(input=50, output=1), embedding)
    assert partly.usd == Decimal("0.000001") and not partly.complete
    assert cost(TokenUsage(output=1), embedding).usd is None
    assert worst_case(embedding, 50, 1) is None
    assert worst_case(embedding, 50, 0) == 1


def test_free_is_zero_and_complete() -> None:
    free = ModelPrice("local", free=True)
    assert cost(TokenUsage(input=10**9, output=5, tools={"x": 1}), free) == Cost(Decimal(0), 0)
    assert worst_case(free, 10**9, 10**9, tools={"x": 1}) == 0


def test_a_service_tier_has_its_own_price_or_is_marked() -> None:
    flex = ModelPrice.of("m (flex)", input="1", output="5")
    price = ModelPrice("m", Rates.of(input="2", output="10"), variants={"flex": flex})
    assert cost(TokenUsage(input=10, service_tier="flex"), price).micros == 10
    assert cost(TokenUsage(input=10, service_tier="default"), price).micros == 20
    assert worst_case(price, 10, 0, service_tier="flex") == 10
    assert worst_case(price, 10, 0, service_tier="priority") == 20
    other = cost(TokenUsage(input=10, service_tier="priority"), price)
    assert other.micros == 20 and other.marks == ("service_tier_unpriced",)


def test_totals() -> None:
    known = Cost(Decimal("0.0000001"), 1, marks=("estimated",))
    assert total([known, known]) == Cost(Decimal("0.0000002"), 1, marks=("estimated",))
    assert total([]) == Cost(Decimal(0), 0)
    unknown = Cost(None, None, complete=False)
    assert total([known, unknown]).complete is False
    assert total([known, unknown]).usd == Decimal("0.0000001")
    assert total([unknown]) == unknown


@pytest.mark.parametrize(
    "wrong", [0.1, float("nan"), True, None, "a lot", "-1", Decimal("NaN"), "inf", -1]
)
def test_money_that_is_refused_at_the_door(wrong: object) -> None:
    with pytest.raises(ConfigError, match="rate input"):
        ModelPrice.of("m", input=wrong, output="1") if wrong is not None else dollars(
            None,
            "rate input",  # type: ignore[arg-type]
        )
    with pytest.raises(ConfigError):
        ModelPrice("m", Rates.of(input="1"), per_request=wrong)  # type: ignore[arg-type]


def test_a_float_is_told_how_to_be_exact() -> None:
    with pytest.raises(ConfigError, match=r'write "0\.1" in quotes'):
        Rates(input=0.1)  # type: ignore[arg-type]


def test_wrong_prices_are_refused_when_built() -> None:
    with pytest.raises(ConfigError, match="no rate 'inptu'"):
        ModelPrice.of("m", inptu="1")
    with pytest.raises(ConfigError, match="has no rate"):
        ModelPrice("m")
    with pytest.raises(ConfigError, match="same threshold"):
        ModelPrice.of("m", input="1", tiers=((5, {"input": "2"}), (5, {"input": "3"})))
    with pytest.raises(ConfigError, match="whole number"):
        Tier(True, Rates())


@pytest.mark.parametrize(
    ("amount", "expected"),
    [("0", 0), ("0.0000001", 1), ("0.000001", 1), ("1.0000010", 1_000_001), ("2E+1", 20_000_000)],
)
def test_micros_round_up(amount: str, expected: int) -> None:
    assert micros(Decimal(amount)) == expected


def test_prices_travel() -> None:
    copy = pickle.loads(pickle.dumps(PRICE))
    assert copy == PRICE
    usage = TokenUsage(input=5, output=7)
    assert cost(usage, copy) == cost(usage, PRICE)


@given(
    st.integers(0, 400_000),
    st.integers(0, 20_000),
    st.sampled_from(["none", "5m", "1h"]),
    st.sampled_from([None, "batch", "flex"]),
    st.sampled_from(["gpt-4o", "claude-sonnet-4-5", "gemini-2.5-pro", "free", "flat"]),
)
def test_the_worst_cases_of_a_price_are_its_worst_case(
    into: int, out: int, writes: Any, tier: str | None, model: str
) -> None:
    made = {
        "free": ModelPrice.of("m", free=True),
        "flat": ModelPrice.of("m", input="0.123", output="7.7", per_request="0.0003"),
    }
    price = made.get(model) or Catalogue().price(model)
    assert price is not None
    cases = worst_cases(price, cache_writes=writes, service_tier=tier)
    assert cases(into, out) == worst_case(price, into, out, cache_writes=writes, service_tier=tier)

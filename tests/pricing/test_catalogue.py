"""Names as hosts write them find their own price, and never that of another family."""

from __future__ import annotations

import subprocess
import sys
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pytest
from genai_prices import Usage, calc_price
from genai_prices.data_snapshot import DataSnapshot, get_snapshot
from genai_prices.types import (
    ClauseContains,
    ClauseEquals,
    ClauseStartsWith,
    ConditionalPrice,
    ModelInfo,
    Provider,
    StartDateConstraint,
    TieredPrices,
    TimeOfDateConstraint,
)
from genai_prices.types import ModelPrice as Listed
from genai_prices.types import Tier as ListedTier
from hypothesis import given
from hypothesis import strategies as st

from shearpin.pricing import Catalogue, ModelPrice, TokenUsage, cost
from shearpin.pricing.names import candidates, provider_id, spellings

DAY = date(2026, 11, 1)


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    return Catalogue(day=lambda: DAY)


SAME: list[tuple[str, str | None, str]] = [
    ("gpt-4o", None, "openai/gpt-4o"),
    ("GPT-4o", "OpenAI", "openai/gpt-4o"),
    ("openai/gpt-4o", None, "openai/gpt-4o"),
    ("openai:gpt-4o", None, "openai/gpt-4o"),
    ("litellm_proxy/openai/gpt-4o", "openai", "openai/gpt-4o"),
    ("gpt-4o-2024-11-20", "openai", "openai/gpt-4o"),
    ("gpt-4o-2024-05-13", "openai", "openai/gpt-4o-2024-05-13"),
    ("gpt-4", "openai", "openai/gpt-4"),
    ("gpt-4.1-mini-2025-04-14", "openai", "openai/gpt-4.1-mini"),
    ("o3", None, "openai/o3"),
    ("ft:gpt-4o-mini-2024-07-18:acme::abc", "openai", "openai/ft:gpt-4o-mini"),
    ("gpt-4o", "azure", "openai/gpt-4o"),
    ("azure/gpt-4o-mini", None, "openai/gpt-4o-mini"),
    ("claude-3-5-sonnet-latest", "anthropic", "anthropic/claude-3-5-sonnet"),
    ("anthropic/claude-3-5-sonnet-20241022", None, "anthropic/claude-3-5-sonnet"),
    ("claude-sonnet-4-5-20250929", "anthropic", "anthropic/claude-sonnet-4-5"),
    ("anthropic.claude-v2:1", "bedrock", "anthropic/claude-2"),
    ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "amazon_bedrock",
     "aws/regional.anthropic.claude-sonnet-4-5-20250929-v1:0"),
    ("eu.anthropic.claude-sonnet-4-5-20250929-v1:0", None,
     "aws/regional.anthropic.claude-sonnet-4-5-20250929-v1:0"),
    ("apac.anthropic.claude-sonnet-4-5-20250929-v1:0", None,
     "aws/regional.anthropic.claude-sonnet-4-5-20250929-v1:0"),
    ("global.anthropic.claude-sonnet-4-5-20250929-v1:0", "bedrock_converse",
     "aws/global.anthropic.claude-sonnet-4-5-20250929-v1:0"),
    ("bedrock/converse/us.amazon.nova-pro-v1:0", None, "aws/amazon.nova-pro-v1:0"),
    ("anthropic.claude-3-5-sonnet-20241022-v2:0:200k", None,
     "aws/regional.anthropic.claude-3-5-sonnet-20241022-v2:0"),
    ("publishers/google/models/gemini-2.5-pro", None, "google/gemini-2.5-pro"),
    ("projects/p/locations/l/publishers/google/models/gemini-2.5-pro", "google_vertexai",
     "google/gemini-2.5-pro"),
    ("publishers/anthropic/models/claude-sonnet-4-5@20250929", None, "google/claude-sonnet-4-5"),
    ("claude-sonnet-4-5@20250929", None, "google/claude-sonnet-4-5"),
    ("models/gemini-2.5-flash", "google_genai", "google/gemini-2.5-flash"),
    ("vertex_ai/gemini-2.5-flash", None, "google/gemini-2.5-flash"),
    ("gemini-1.5-pro-002", "google_genai", "google/gemini-1.5-pro"),
    ("gemini-2.5-pro@001", "google_vertexai", "google/gemini-2.5-pro"),
    ("gemini-2.5-pro-preview-05-06", None, "google/gemini-2.5-pro"),
    ("gemini-2.5-flash-preview-tts", None, "google/gemini-2.5-flash-tts"),
    ("anthropic/claude-sonnet-4.5:beta", "openrouter", "openrouter/anthropic/claude-sonnet-4.5"),
    ("openrouter/anthropic/claude-sonnet-4.5", None, "openrouter/anthropic/claude-sonnet-4.5"),
    ("deepseek/deepseek-r1:free", None, "openrouter/deepseek/deepseek-r1:free"),
    ("openai/gpt-oss-120b", "groq", "groq/openai/gpt-oss-120b"),
    ("mistral-large-latest", "mistralai", "mistral/mistral-large"),
    ("grok-4", "xai", "x-ai/grok-4-0709"),
    ("accounts/fireworks/models/kimi-k3", "fireworks", "fireworks/kimi-k3"),
    ("llama3.1:8b", "ollama", "local/llama3.1:8b"),
]  # fmt: skip

UNKNOWN: list[tuple[str, str | None]] = [
    ("gpt-4-mini", "openai"),
    ("gpt-4o-mini-tuned", "openai"),
    ("my-gpt-4o", None),
    ("gpt-4oo", None),
    ("gpt-4.1-mini-2", "openai"),
    ("gpt-4o-nano", None),
    ("o3-turbo", "openai"),
    ("claude-3-5-sonnet-finetuned", "anthropic"),
    ("claude", "anthropic"),
    ("gemini", "google_genai"),
    ("not-gemini-2.5-pro", "google_genai"),
    ("gemini-2.5", "google_genai"),
    ("deepseek-r1-distill-llama-70b", "deepseek"),
    ("ft:gpt-4.1-2025-04-14:acme::abc", "openai"),
    ("ft:o3:acme", "openai"),
    ("my-deployment", "azure"),
    ("arn:aws:bedrock:us-east-1:1:inference-profile/us.anthropic.claude-sonnet-4-5-20250929-v1:0",
     "amazon_bedrock"),
    ("arn:aws:bedrock:us-east-1::foundation-model/anthropic.claude-3-haiku-20240307-v1:0", None),
    ("us-gov.anthropic.claude-3-5-sonnet-20240620-v1:0", "bedrock"),
    ("projects/p/locations/l/endpoints/123", "google_vertexai"),
    ("tunedModels/gemini-2.5-pro-x", "google_genai"),
    ("https://example.com/gpt-4o", None),
    ("anthropic/claude-sonnet-4.5:online", "openrouter"),
    ("anthropic/claude-sonnet-4.5:nitro", "openrouter"),
    ("gpt-4o", "groq"),
    ("gpt-oss:120b-cloud", "ollama"),
    ("whisper-1", "openai"),
    ("", None),
    ("   ", None),
]  # fmt: skip


@pytest.mark.parametrize(("name", "provider", "found"), SAME)
def test_alias(catalogue: Catalogue, name: str, provider: str | None, found: str) -> None:
    price = catalogue.price(name, provider)
    assert price is not None
    assert price.model == found


@pytest.mark.parametrize(("name", "provider"), UNKNOWN)
def test_unknown_stays_unknown(catalogue: Catalogue, name: str, provider: str | None) -> None:
    assert catalogue.price(name, provider) is None


def test_families_keep_apart(catalogue: Catalogue) -> None:
    names = ["gpt-4", "gpt-4o", "gpt-4o-mini", "gpt-4.1", "gpt-4.1-mini", "gpt-4.1-nano"]
    found = [catalogue.price(name) for name in names]
    assert [price.model for price in found if price] == [f"openai/{name}" for name in names]
    assert len({price.rates.input for price in found if price}) == len(names)


@given(
    st.sampled_from(["gpt-4", "gpt-4o", "claude-3-5-sonnet", "gemini-2.5-pro", "o1", "grok-4"]),
    st.text("abcxyz", min_size=1, max_size=6),
    st.sampled_from(["before", "after", "joined"]),
)
def test_a_name_with_anything_around_it_is_another_model(name: str, more: str, how: str) -> None:
    changed = {"before": f"{more}-{name}", "after": f"{name}-zz{more}", "joined": f"{name}{more}q"}
    assert Catalogue(day=lambda: DAY).price(changed[how]) is None


@given(st.text(max_size=60), st.none() | st.text(max_size=12))
def test_names_are_few_and_nothing_raises(name: str, provider: str | None) -> None:
    assert len(candidates(name, provider)) <= 24
    assert spellings(name, provider)


def spelt(match: object) -> list[str]:
    own = getattr(match, "equals", None)
    inner = [name for clause in getattr(match, "or_", ()) for name in spelt(clause)]
    return [own, *inner] if isinstance(own, str) else inner


def test_every_name_that_the_catalogue_spells_out_has_its_own_price(catalogue: Catalogue) -> None:
    moment = datetime(DAY.year, DAY.month, DAY.day)
    providers = get_snapshot().providers
    checked = 0
    for provider in providers:
        for model in provider.models:
            listed_rate = vars(model.get_prices(moment)).get("input_mtok")
            if listed_rate is None:
                continue
            for name in spelt(model.match):
                # The catalogue takes the first entry that matches.
                first = provider.find_model(name.lower(), all_providers=providers)
                price = catalogue.price(name, provider.id)
                assert first is not None and price is not None, (provider.id, name)
                if "dearest" not in "".join(price.notes):
                    rate = first.get_prices(moment).input_mtok
                    assert price.rates.input == getattr(rate, "base", rate), (provider.id, name)
                checked += 1
    assert checked > 2000


def test_every_provider_of_the_catalogue_is_known_by_its_id() -> None:
    unknown = [p.id for p in get_snapshot().providers if provider_id(p.id) != p.id]
    assert unknown == []


def test_a_provider_that_is_not_known_is_no_reseller_of_open_models(catalogue: Catalogue) -> None:
    assert catalogue.price("meta-llama/llama-3.1-70b-instruct") is not None
    assert catalogue.price("meta-llama/llama-3.1-70b-instruct", "huggingface") is None


def test_assumptions_are_told(catalogue: Catalogue) -> None:
    dated = catalogue.price("gpt-4o-2031-01-01", "openai")
    assert dated is not None and dated.notes == ("found as 'gpt-4o': without its date",)
    exact = catalogue.price("gpt-4o", "openai")
    assert exact is not None and exact.notes == ()
    azure = catalogue.price("gpt-4o", "azure")
    assert azure is not None and "deployment" in azure.notes[0]
    stranger = catalogue.price("gpt-4o", "chatthing")
    assert stranger is not None and "'chatthing' is no provider" in stranger.notes[0]


def test_source_and_date(catalogue: Catalogue) -> None:
    price = catalogue.price("gpt-4o")
    assert price is not None
    assert price.source == catalogue.version
    assert price.date == catalogue.as_of
    assert price.date is not None and date(2025, 1, 1) < price.date <= DAY


def test_free_and_unknown_are_not_the_same(catalogue: Catalogue) -> None:
    free = catalogue.price("llama3", "ollama")
    assert free is not None and free.free
    assert cost(TokenUsage(input=5, output=5), free).usd == Decimal(0)
    # A catalogue entry without rates is no proof that the model is free.
    assert catalogue.price("qwen-3-coder-480b", "cerebras") is None


@pytest.mark.parametrize(
    ("provider", "name"),
    [
        ("openai", "gpt-4o"),
        ("openai", "gpt-5-mini"),
        ("anthropic", "claude-sonnet-4-5"),
        ("google", "gemini-2.5-pro"),
        ("x-ai", "grok-4"),
        ("mistral", "mistral-large-latest"),
    ],
)
@pytest.mark.parametrize("prompt", [10, 150_000, 200_000, 200_001, 400_000])
def test_sums_agree_with_the_catalogues_own(
    catalogue: Catalogue, provider: str, name: str, prompt: int
) -> None:
    price = catalogue.price(name, provider)
    assert price is not None
    usage = TokenUsage(input=prompt - 5, cache_read=5, output=321)
    theirs = calc_price(
        Usage(input_tokens=prompt, cache_read_tokens=5, output_tokens=321),
        name,
        provider_id=provider,
        genai_request_timestamp=datetime(DAY.year, DAY.month, DAY.day),
    )
    assert cost(usage, price).usd == theirs.total_price


def listed(**models: Any) -> DataSnapshot:
    infos = [
        ModelInfo(id=name, match=ClauseEquals(equals=name), prices=prices)
        for name, prices in models.items()
    ]
    return DataSnapshot(
        [Provider(id="openai", name="O", api_pattern="x", models=infos)], from_auto_update=False
    )


def one(snapshot: DataSnapshot, name: str, day: date = DAY) -> ModelPrice | None:
    return Catalogue(day=lambda: day, snapshot=snapshot).price(name, "openai")


def test_history_counts() -> None:
    now = ConditionalPrice(
        StartDateConstraint(date(2026, 6, 1)),
        prices=Listed(input_mtok=Decimal(1), output_mtok=Decimal(2)),
    )
    before = ConditionalPrice(prices=Listed(input_mtok=Decimal(9), output_mtok=Decimal(9)))
    snapshot = listed(m=[before, now])
    assert (one(snapshot, "m") or ModelPrice("", free=True)).rates.input == Decimal(1)
    old = one(snapshot, "m", date(2026, 5, 31))
    assert old is not None and old.rates.input == Decimal(9)
    new = one(snapshot, "m")
    assert new is not None and new.notes == ("in force since 2026-06-01",)


def test_a_price_that_changes_within_the_day_is_the_dearest() -> None:
    from datetime import time

    night = ConditionalPrice(prices=Listed(input_mtok=Decimal(1), output_mtok=Decimal(2)))
    noon = ConditionalPrice(
        TimeOfDateConstraint(time(10), time(16)),
        prices=Listed(input_mtok=Decimal(3), output_mtok=Decimal(6)),
    )
    price = one(listed(m=[night, noon]), "m")
    assert price is not None and price.rates.input == Decimal(3)
    assert "dearest" in price.notes[0]


def test_thresholds_are_the_entrys_own() -> None:
    tiered = TieredPrices(Decimal(2), [ListedTier(272_000, Decimal(4))])
    price = one(listed(m=Listed(input_mtok=tiered, output_mtok=Decimal(12))), "m")
    assert price is not None
    assert cost(TokenUsage(input=272_000), price).micros == 544_000
    assert cost(TokenUsage(input=272_001), price).micros == 1_088_004


def test_every_kind_has_its_rate_and_what_cannot_be_counted_is_unknown() -> None:
    full = Listed(
        input_mtok=Decimal(1),
        cache_read_mtok=Decimal(2),
        cache_write_mtok=Decimal(3),
        cache_write_1h_mtok=Decimal(4),
        input_audio_mtok=Decimal(5),
        cache_audio_read_mtok=Decimal(6),
        output_mtok=Decimal(7),
        output_reasoning_mtok=Decimal(8),
        output_audio_mtok=Decimal(9),
        requests_kcount=Decimal(10),
        web_searches_kcount=Decimal(11),
    )
    price = one(listed(m=full), "m")
    assert price is not None
    one_each = TokenUsage(1, 1, 1, 1, 1, 1, 0, 0, 1, 1, 1, 0, tools={"web_search": 1})
    assert cost(one_each, price).usd == Decimal("0.000045") + Decimal("0.010") + Decimal("0.011")
    assert one(listed(m=Listed(audio_hours=Decimal("0.36"))), "m") is None


def test_parts_of_names_in_the_catalogue_never_match() -> None:
    prices = Listed(input_mtok=Decimal(1), output_mtok=Decimal(1))
    infos = [
        ModelInfo(id="big", match=ClauseContains(contains="big"), prices=prices),
        ModelInfo(id="mid-x", match=ClauseStartsWith(starts_with="mid-"), prices=prices),
    ]
    snapshot = DataSnapshot(
        [Provider(id="openai", name="O", api_pattern="x", models=infos)], from_auto_update=False
    )
    assert one(snapshot, "big") is not None
    assert one(snapshot, "not-big-at-all") is None
    assert one(snapshot, "mid-x") is not None
    assert one(snapshot, "mid-y") is None


def test_answers_are_kept_known_or_not(catalogue: Catalogue) -> None:
    assert catalogue.price("gpt-4o", "openai") is catalogue.price("gpt-4o", "openai")
    for number in range(1100):
        assert catalogue.price(f"no-such-model-{number}", "openai") is None
    assert catalogue._cached.cache_info().currsize <= 1024


def test_suggestions_are_only_words(catalogue: Catalogue) -> None:
    assert "gpt-4o-mini" in catalogue.closest("gpt-4o-mimi", "openai")
    assert catalogue.price("gpt-4o-mimi", "openai") is None


def test_nothing_is_imported_before_the_first_lookup() -> None:
    code = (
        "import sys, shearpin.pricing as p; p.Pricing(); "
        "assert 'genai_prices' not in sys.modules and 'pydantic' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)

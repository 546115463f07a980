"""The same call reported in any form is the same bill; what does not add up is marked."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shearpin.events import Usage
from shearpin.pricing import KINDS, MARKS, ModelPrice, TokenUsage, cost, read_usage

CALL = TokenUsage(input=100, cache_read=2000, cache_write_5m=300, output=40, reasoning=10)
FORMS: dict[str, dict[str, Any]] = {
    "langchain": {
        "input_tokens": 2400,
        "output_tokens": 50,
        "total_tokens": 2450,
        "input_token_details": {"cache_read": 2000, "cache_creation": 300},
        "output_token_details": {"reasoning": 10},
    },
    "langchain_split": {
        "input_tokens": 2400,
        "output_tokens": 50,
        "total_tokens": 2450,
        "input_token_details": {
            "cache_read": 2000,
            "cache_creation": 0,
            "ephemeral_5m_input_tokens": 300,
            "ephemeral_1h_input_tokens": 0,
        },
        "output_token_details": {"reasoning": 10},
    },
    "anthropic": {
        "input_tokens": 100,
        "output_tokens": 50,
        "cache_read_input_tokens": 2000,
        "cache_creation_input_tokens": 300,
        "cache_creation": {"ephemeral_5m_input_tokens": 300, "ephemeral_1h_input_tokens": 0},
        "output_tokens_details": {"thinking_tokens": 10},
    },
    "bedrock_converse": {
        "inputTokens": 100,
        "outputTokens": 50,
        "totalTokens": 2450,
        "cacheReadInputTokens": 2000,
        "cacheWriteInputTokens": 300,
        "output_tokens_details": {"reasoning_tokens": 10},
    },
    "openai_chat": {
        "prompt_tokens": 2400,
        "completion_tokens": 50,
        "total_tokens": 2450,
        "prompt_tokens_details": {"cached_tokens": 2000, "cache_write_tokens": 300},
        "completion_tokens_details": {"reasoning_tokens": 10},
    },
    "openai_responses": {
        "input_tokens": 2400,
        "output_tokens": 50,
        "total_tokens": 2450,
        "input_tokens_details": {"cached_tokens": 2000, "cache_write_tokens": 300},
        "output_tokens_details": {"reasoning_tokens": 10},
    },
    "gateway_with_both_names": {
        "prompt_tokens": 2400,
        "completion_tokens": 50,
        "total_tokens": 2450,
        "cache_read_input_tokens": 2000,
        "cache_creation_input_tokens": 300,
        "completion_tokens_details": {"reasoning_tokens": 10},
    },
}


def test_counts_come_in_the_order_of_kinds() -> None:
    usage = TokenUsage(*range(1, 13))
    assert usage.counts == tuple(getattr(usage, kind) for kind in KINDS)
    assert usage.prompt_tokens == sum(range(1, 9)) == sum(usage.counts[: KINDS.index("output")])
    assert usage.answer_tokens == sum(range(9, 13))


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_the_same_call(form: str) -> None:
    assert read_usage(FORMS[form]) == CALL


def test_google_keeps_thoughts_and_tool_prompts_apart() -> None:
    raw = {
        "promptTokenCount": 1000,
        "cachedContentTokenCount": 400,
        "candidatesTokenCount": 60,
        "thoughtsTokenCount": 200,
        "toolUsePromptTokenCount": 50,
        "totalTokenCount": 1310,
        "promptTokensDetails": [
            {"modality": "TEXT", "tokenCount": 900},
            {"modality": "AUDIO", "tokenCount": 100},
        ],
    }
    assert read_usage({"usage_metadata": raw}) == TokenUsage(
        input=550, cache_read=400, audio_input=100, output=60, reasoning=200
    )


def test_deepseek_and_ollama() -> None:
    deepseek = {
        "prompt_tokens": 100,
        "completion_tokens": 5,
        "total_tokens": 105,
        "prompt_cache_hit_tokens": 64,
        "prompt_cache_miss_tokens": 36,
    }
    assert read_usage(deepseek) == TokenUsage(input=36, cache_read=64, output=5)
    assert read_usage({"prompt_eval_count": 7, "eval_count": 3}) == TokenUsage(input=7, output=3)


def test_service_tiers_are_recognised_in_langchains_names_and_in_raw_ones() -> None:
    usage = read_usage(
        {
            "input_tokens": 1000,
            "output_tokens": 90,
            "total_tokens": 1090,
            "input_token_details": {"priority_cache_read": 600, "priority": 400},
            "output_token_details": {"priority_reasoning": 30, "priority": 60},
        }
    )
    assert usage == TokenUsage(
        input=400, cache_read=600, output=60, reasoning=30, service_tier="priority"
    )
    raw = {"input_tokens": 5, "output_tokens": 1, "service_tier": "batch", "cache_creation": {}}
    assert (read_usage(raw) or TokenUsage()).service_tier == "batch"


def test_tools_of_the_provider_are_counted() -> None:
    raw = {
        "input_tokens": 5,
        "output_tokens": 1,
        "server_tool_use": {"web_search_requests": 3, "web_fetch_requests": 0},
    }
    usage = read_usage(raw)
    assert usage is not None and usage.tools == {"web_search": 3}
    price = ModelPrice.of("m", input="1", output="1", per_tool={"web_search": "0.01"})
    assert cost(usage, price).usd == Decimal("0.030006")
    bare = cost(usage, ModelPrice.of("m", input="1", output="1"))
    assert not bare.complete and bare.marks == ("tool_unpriced",)


@pytest.mark.parametrize(
    ("raw", "mark", "prompt", "answer"),
    [
        # U07: a proxy passes the exclusive form through under LangChain's names.
        ({"input_tokens": 19, "output_tokens": 2, "input_token_details": {"cache_read": 86}},
         "input_excludes_cache", 105, 2),
        # The total settles it even where the input count is the larger one.
        ({"input_tokens": 500, "output_tokens": 2, "total_tokens": 588,
          "input_token_details": {"cache_read": 86}}, "input_excludes_cache", 586, 2),
        # U08: thinking that only the total holds.
        ({"input_tokens": 41, "output_tokens": 5, "total_tokens": 389}, "hidden_output", 41, 348),
        ({"input_tokens": 41, "output_tokens": 5, "output_token_details": {"reasoning": 343}},
         "reasoning_exceeds_output", 41, 348),
        ({"input_tokens": 41, "output_tokens": 5, "total_tokens": 40}, "total_below_parts", 41, 5),
        ({"input_tokens": -3, "output_tokens": 5}, "invalid_count", 0, 5),
        ({"input_tokens": "many", "output_tokens": 5}, "invalid_count", 0, 5),
        ({"input_tokens": 10, "output_tokens": 5, "output_token_details": {"audio": 9}},
         "details_exceed_total", 10, 5),
    ],
)  # fmt: skip
def test_what_does_not_add_up_is_marked_and_billed_once(
    raw: dict[str, Any], mark: str, prompt: int, answer: int
) -> None:
    usage = read_usage(raw)
    assert usage is not None
    assert usage.marks == (mark,)
    assert mark in MARKS
    assert (usage.prompt_tokens, usage.answer_tokens) == (prompt, answer)


def test_thinking_that_equals_the_cache_is_still_thinking() -> None:
    usage = read_usage(
        {
            "input_tokens": 6000,
            "output_tokens": 400,
            "total_tokens": 6720,
            "input_token_details": {"cache_read": 320},
            "output_token_details": {"reasoning": 320},
        }
    )
    assert usage == TokenUsage(
        input=5680, cache_read=320, output=400, reasoning=320, marks=("hidden_output",)
    )


def test_audio_and_cache_may_overlap() -> None:
    usage = read_usage(
        {
            "input_tokens": 1000,
            "output_tokens": 1,
            "input_token_details": {"audio": 500, "cache_read": 900},
        }
    )
    assert usage is not None
    assert (usage.audio_input, usage.audio_cache_read) == (100, 400)
    assert (usage.cache_read, usage.input) == (500, 0)


def test_no_count_is_not_zero() -> None:
    assert read_usage(None) is None
    assert read_usage({}) is None
    assert read_usage({"model": "x"}) is None
    assert read_usage({"input_tokens": 0, "output_tokens": 0}) == TokenUsage()


def test_a_fact_carries_the_inclusive_form() -> None:
    fact = Usage(2400, 50, 2000, 300, 10)
    assert TokenUsage.from_fact(fact) == CALL
    estimate = TokenUsage.from_fact(Usage(10, 5, estimated=True))
    assert estimate.estimated
    assert "estimated" in cost(estimate, ModelPrice.of("m", input="1", output="1")).marks


COUNT = st.one_of(st.none(), st.integers(-5, 10**7), st.booleans(), st.text(max_size=2))


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "input_tokens": COUNT,
            "output_tokens": COUNT,
            "total_tokens": COUNT,
            "input_token_details": st.dictionaries(
                st.sampled_from(["cache_read", "cache_creation", "audio", "flex_cache_read",
                                 "ephemeral_5m_input_tokens", "ephemeral_1h_input_tokens"]),
                COUNT,
            ),
            "output_token_details": st.dictionaries(
                st.sampled_from(["reasoning", "audio", "flex_reasoning"]), COUNT
            ),
            "cache_read_input_tokens": COUNT,
            "cache_creation_input_tokens": COUNT,
        },
    )
)  # fmt: skip
def test_no_report_raises_or_gives_a_negative_count(raw: dict[str, Any]) -> None:
    usage = read_usage(raw)
    if usage is not None:
        assert min(usage.counts) >= 0
        assert set(usage.marks) <= set(MARKS)


@given(
    st.integers(0, 10**6), st.integers(0, 10**6), st.integers(0, 10**6), st.integers(0, 10**6),
    st.integers(0, 10**6), st.integers(0, 10**6),
)  # fmt: skip
def test_langchain_and_raw_anthropic_agree(
    plain: int, read: int, short: int, long: int, text: int, thinking: int
) -> None:
    outputs = text + thinking
    raw = {
        "input_tokens": plain,
        "output_tokens": outputs,
        "cache_read_input_tokens": read,
        "cache_creation_input_tokens": short + long,
        "cache_creation": {"ephemeral_5m_input_tokens": short, "ephemeral_1h_input_tokens": long},
        "output_tokens_details": {"thinking_tokens": thinking},
    }
    langchain = {
        "input_tokens": plain + read + short + long,
        "output_tokens": outputs,
        "total_tokens": plain + read + short + long + outputs,
        "input_token_details": {
            "cache_read": read,
            "cache_creation": 0 if short + long else None,
            "ephemeral_5m_input_tokens": short,
            "ephemeral_1h_input_tokens": long,
        },
        "output_token_details": {"reasoning": thinking},
    }
    assert read_usage(raw) == read_usage(langchain)

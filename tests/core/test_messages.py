"""The guard's own words: bounded, without secrets, in both languages, for every kind of finding."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shearpin.core.messages import block_text, halt_text, nudge_text, shorten
from shearpin.findings import Finding, Severity

FINDING = Finding(
    family="repeat",
    rule="repeat",
    key="k",
    level=Severity.NUDGE,
    count=3,
    limit=3,
    onset_step=1,
    step=3,
    subject="search",
    cause="answer_not_used",
    evidence={"period": 2},
)
RULES = [
    "repeat",
    "cycle",
    "unknown_tool",
    "bad_args",
    "monologue",
    "error_streak",
    "empty_streak",
    "duplicate_in_message",
    "constant_result",
    "of_a_plugin",
]


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("rule", RULES)
def test_every_rule_has_words(rule: str, language: str) -> None:
    finding = replace(FINDING, rule=rule, family=rule)
    for text in (
        nudge_text(finding, {"q": "x"}, "result", False, language),
        block_text(finding, "result", language),
        block_text(finding, None, language),
        halt_text(finding, language),
    ):
        assert text.strip()
        assert "{" not in text.replace('{"q":"x"}', "")
        assert len(text) < 1200
    if language == "en":
        assert "3" in nudge_text(finding, {"q": "x"}, "result", False, "en")


def test_a_second_word_is_firmer() -> None:
    mild = nudge_text(FINDING, {}, "r", False, "en")
    firm = nudge_text(FINDING, {}, "r", True, "en")
    assert firm.startswith(mild)
    assert len(firm) > len(mild)


def test_a_finding_without_subject_or_cause_has_words() -> None:
    bare = replace(FINDING, subject=None, cause=None)
    assert nudge_text(bare, "", "", False, "en")
    assert halt_text(bare, "en")


SECRETS = [
    "sk-abcdefghijklmnop",
    "ghp_0123456789abcdefghij",
    "AKIAABCDEFGHIJKLMNOP",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abcdefghijk",
    "Bearer abcdefgh12345678",
]


@pytest.mark.parametrize("secret", SECRETS)
def test_secrets_are_struck_out(secret: str) -> None:
    assert secret not in shorten(f"use {secret} now")
    assert secret not in shorten({"header": secret})


@pytest.mark.parametrize("name", ["password", "api_key", "apiKey", "token", "secret"])
def test_values_of_secret_names_are_struck_out(name: str) -> None:
    assert "hunter2" not in shorten({"user": "me", name: "hunter2"})
    assert "hunter2" not in shorten(f"user=me {name}=hunter2")


@given(st.text(max_size=900), st.integers(10, 200))
def test_quotations_are_one_bounded_line(text: str, limit: int) -> None:
    short = shorten(text, limit)
    assert len(short) <= limit
    assert "\n" not in short


def test_braces_in_quoted_text_are_only_text() -> None:
    assert "{tool}" in nudge_text(FINDING, "{tool}", "{count} {0}", False, "en")


def test_the_last_word_quotes_no_result_or_argument() -> None:
    assert "search" in halt_text(FINDING, "en")

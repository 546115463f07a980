"""Secrets are struck out of every text, ordinary words stay, and hostile text costs no time."""

from __future__ import annotations

from time import process_time
from typing import Any

import pytest

from shearpin.core.messages import nudge_text
from shearpin.core.secrets import without_secrets, without_values
from shearpin.findings import Finding, Severity

pytest.importorskip("hypothesis", reason="hypothesis is not installed")
from hypothesis import given
from hypothesis import strategies as st

VALUE = "Zx9kQw7Lm2Tr8YhPq3"
LONG = f"{VALUE}AbCdEf{VALUE}AbCdEf"
TOLD = [
    f"-----BEGIN PRIVATE KEY-----\n{LONG}\n{LONG}\n-----END PRIVATE KEY-----",
    f"cannot load: -----BEGIN RSA PRIVATE KEY----- {LONG}",
    f"-----BEGIN OPENSSH PRIVATE KEY-----\\n{LONG}",
    f"api key: {VALUE}",
    f"invalid api key '{VALUE}'",
    f"Incorrect API key provided: {VALUE}. See the docs",
    f"Cookie: session={VALUE}; path=/; csrf={VALUE}",
    f"Set-Cookie: sid={VALUE}",
    f"Authorization: ApiKey {VALUE}",
    f"Authorization: Basic {VALUE}=",
    f"Authorization: {VALUE}",
    f'Proxy-Authorization: Digest username="ann", response="{VALUE}"',
    f'{{"Authorization": "Token {VALUE}"}}',
    f"sent with Bearer {VALUE}",
    f"X-Auth-Token: {VALUE}",
    f"AccountKey={LONG}==;EndpointSuffix=core.windows.net",
    f"SharedAccessSignature sr=x&sig={VALUE}&se=1",
    f"curl -u admin:{VALUE} https://example.org",
    f"curl --user 'admin:{VALUE}' https://example.org",
    f"--password {VALUE}",
    f"--api-key={VALUE}",
    f"PASSWORD IS {VALUE}",
    f"login failed for password {VALUE}",
    f"密码: {VALUE}",
    f"密码是{VALUE}，请重试",
    f"口令：{VALUE}",
    f"postgresql://admin:p@ss/{VALUE}@db:5432/x",
    f"https://{VALUE}@example.org/x",
    f"https://example.org/?q=1&key={VALUE}",
    f"https://example.org/?sv=2020&sig={VALUE}",
    f"https://example.org/?X-Amz-Signature={VALUE}",
    f"https://example.org/?access_token={VALUE}#top",
    f"jdbc:mysql://h/db?user=a&password={VALUE}",
    f"Server=db;User Id=sa;Password={VALUE};",
    f"https://hooks.slack.com/services/T000/B000/{VALUE}",
    f"https://discord.com/api/webhooks/123/{VALUE}",
    f"https://api.telegram.org/bot123456789:AA{VALUE}/send",
    f"bot 123456789:AA{LONG}",
    f'{{"password": "two words {VALUE}"}}',
    f"{{'client_secret': '{VALUE}'}}",
    f'{{\\"refresh_token\\": \\"{VALUE}\\"}}',
    f"DB_PASSWORD={VALUE}",
    f"aws_secret_access_key = {VALUE}",
    f"secret {VALUE}",
]
PREFIXES = [
    *("sk-", "sk-ant-api03-", "sk_live_", "pk_live_", "rk_live_", "ghp_", "gho_", "github_pat_"),
    *("glpat-", "npm_", "pypi-", f"SG.{VALUE}.", "dop_v1_", "whsec_", "shpat_", "xai-", "pcsk_"),
    *("r8_", "tvly-", "lsv2_pt_", "lin_api_", "AIza", "hf_", "gsk_", "ya29.", "xoxa-", "xoxb-"),
    *("xoxp-", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0."),
]
ORDINARY = [
    *("password is required", "token limit exceeded", "12,000 tokens", "max_tokens=100"),
    *("key error: 'user_id'", "KeyError: 'api_key'", "secretary", "secretary: Jane Miller"),
    *("Basic authentication failed", "bearer token missing", "tokens: 12000 used, 8000 left"),
    *("max_tokens: 4,096", "Unexpected token } in JSON at position 12", "password: Field required"),
    *("api_key: missing", "invalid api key", "the token is expired", "token expired at 12:30"),
    *("password must contain 8 characters", "Authorization: missing", "cookie: not set"),
    *("Authorization header is missing", "sk-learn is missing", "npm_config_registry is unset"),
    *("hf_hub_download failed", "https://host:8080/path", "mail ann@example.org", "密码：不能为空"),
    *("https://example.org/search?q=cats&page=2", "docker run -u 1000:1000", "令牌数: 100"),
    *("option --password requires an argument", "token_limit: exceeded", "desk-1234567"),
    *("password_policy: strict", "tokenizer: failed to load", "password reset link sent"),
    *("monkey=banana", "{'token_count': 5}", "total_tokens=1234", "task-2024-11"),
]


@pytest.mark.parametrize("text", TOLD)
def test_what_stands_where_a_secret_stands_is_struck_out(text: str) -> None:
    told = without_secrets(text)
    assert VALUE not in told
    assert "•••" in told


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize("around", ["{}", "clone with {} failed", "x='{}'", "用{}登录"])
def test_keys_are_known_by_how_they_begin(prefix: str, around: str) -> None:
    assert VALUE not in without_secrets(around.format(prefix + LONG))


@pytest.mark.parametrize("key", ["AKIAIOSFODNN7EXAMPLE", "ASIAIOSFODNN7EXAMPLE"])
def test_access_keys_are_struck_out(key: str) -> None:
    assert without_secrets(f"no rights for {key}.") == "no rights for •••."


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_words_stay(text: str) -> None:
    assert without_secrets(text) == text


@pytest.mark.parametrize("text", [*TOLD, *ORDINARY])
def test_striking_out_twice_changes_nothing(text: str) -> None:
    once = without_secrets(text)
    assert without_secrets(once) == once


@given(st.text(max_size=400))
def test_any_text_is_taken(text: str) -> None:
    assert isinstance(without_secrets(text), str)
    assert isinstance(without_values(text, {"password": text}), str)


HOSTILE = {
    "keys begun": "-----BEGIN PRIVATE KEY-----" * 4_000,
    "blanks of a key": "-----BEGIN " + "A " * 50_000,
    "addresses": "a://" * 25_000,
    "addresses with users": "a://b:" * 16_000,
    "schemes": "a." * 50_000,
    "named": "password=" * 11_000,
    "words": "password " * 11_000,
    "backslashes": 'password="' + "\\" * 100_000,
    "quotes": '\\"' * 50_000,
    "headers": "authorization: " * 7_000,
    "blanks": "Authorization:" + " " * 100_000,
    "cookies": "cookie: a=b;" * 8_000,
    "crumbs": "cookie: " + "a;" * 50_000,
    "letters": "a" * 100_000,
    "dashes": "-" * 100_000,
    "options": "--" + "a-" * 50_000,
    "prefixes": "token_" * 16_000,
    "web tokens": "eyJaaaaaaaaaaa" * 7_000,
    "one web token": "eyJ" + "a" * 100_000,
    "many web tokens": ("-eyJ" + "a" * 20) * 4_000,
    "parameters": "&" + "a-" * 50_000,
    "users": "-u " * 33_000,
    "chinese": "密码：" * 33_000,
    "digits": "1" * 100_000,
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_time_is_linear_on_hostile_text(kind: str) -> None:
    began = process_time()
    without_secrets(HOSTILE[kind])
    assert process_time() - began < 0.5


# -- values of arguments ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "args",
    [
        {"user": "bob", "password": "hunter2!"},
        {"login": {"apiKey": "hunter2!"}},
        {"accounts": [{"client_secret": "hunter2!"}]},
        {"credentials": ["bob", "hunter2!"]},
        {"headers": {"Authorization": "Bearer hunter2!"}},
    ],
)
@pytest.mark.parametrize(
    "text", ["no login for bob/hunter2!", "({'hunter2!'})", "at ?x=hunter2%21"]
)
def test_the_values_of_secret_arguments_are_struck_out(text: str, args: dict[str, Any]) -> None:
    told = without_values(text, args)
    assert "hunter2" not in told
    assert "•••" in told


@pytest.mark.parametrize(
    "args", [{"query": "hunter2!"}, {"max_tokens": 4096}, {"password": "in"}, {}, "hunter2!", None]
)
def test_the_values_of_other_arguments_stay(args: object) -> None:
    text = "nothing in hunter2! with 4096"
    assert without_values(text, args) == text


def test_what_is_left_of_a_value_that_was_cut_off_is_struck_out() -> None:
    told = without_values("no login for hunter2Se…", {"password": "hunter2Secret"})
    assert told == "no login for •••…"


def test_a_nudge_quotes_no_value_of_a_secret_argument() -> None:
    finding = Finding("repeat", "repeat", "k", Severity.NUDGE, 3, 3, 1, 3, subject="login")
    args = {"user": "bob", "password": "hunter two"}
    words = nudge_text(finding, args, "bad login: bob, hunter two", False, "en")
    assert "bob" in words
    assert "hunter" not in words

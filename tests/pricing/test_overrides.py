"""A user's own prices win, and a wrong file says where and how to mend it."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest

from shearpin.errors import ConfigError
from shearpin.pricing import Factor, ModelPrice, Overrides, TokenUsage, cost, load_prices


class Listed:
    """A price book of two models."""

    def price(
        self, model: str, provider: str | None = None, at: date | None = None
    ) -> ModelPrice | None:
        if model in ("openai/gpt-4o", "gpt-4o", "gpt-4o-2024-08-06"):
            return ModelPrice.of("gpt-4o", input="2.50", output="10", source="list")
        if model.startswith("claude-"):
            return ModelPrice.of(
                model, input="3", output="15", tiers=((200_000, {"input": "6"}),), source="list"
            )
        return None


def load(tmp_path: Path, text: str) -> Overrides:
    path = tmp_path / "prices.toml"
    path.write_text(text, encoding="utf-8")
    return load_prices(path, Listed())


FILE = """
date = 2026-07-01
source = "contract 4711"
stale_after_days = 30

[models."gpt-4o"]
input = "2"
output = "8"
cache_read = "0.50"
per_request = "0.001"
per_tool = { web_search = "0.02" }
tiers = [{ above_input_tokens = 1000, input = "4" }]

[models."azure/gpt-4o"]
input = "1"
output = "1"
date = 2026-08-01
source = "azure contract"

[models."claude-*"]
factor = "0.80"

[models."claude-3-*"]
factor = "0.50"

[models."local/*"]
free = true

[aliases]
"my-deployment" = "openai/gpt-4o"
"arn:aws:bedrock:eu-west-1:1:application-inference-profile/abc" = "claude-3-haiku"
"""


def test_own_prices_win_and_say_where_they_come_from(tmp_path: Path) -> None:
    book = load(tmp_path, FILE)
    price = book.price("gpt-4o", "openai")
    assert price is not None
    assert (price.source, price.date) == ("contract 4711", date(2026, 7, 1))
    usage = TokenUsage(input=900, cache_read=101, output=10, tools={"web_search": 1})
    assert cost(usage, price).usd == Decimal("0.0247305")
    assert book.stale_after_days == 30


@pytest.mark.parametrize(
    ("name", "provider"),
    [
        ("gpt-4o", None),
        ("GPT-4o", "openai"),
        ("openai/gpt-4o", None),
        ("gpt-4o-2024-08-06", "openai"),
        ("gpt-4o-latest", "openai"),
    ],
)
def test_a_name_is_meant_however_the_host_writes_it(
    tmp_path: Path, name: str, provider: str | None
) -> None:
    price = load(tmp_path, FILE).price(name, provider)
    assert price is not None and price.source == "contract 4711"


def test_a_provider_in_the_name_is_for_that_provider(tmp_path: Path) -> None:
    price = load(tmp_path, FILE).price("gpt-4o", "azure")
    assert price is not None and price.source == "azure contract"


@pytest.mark.parametrize("name", ["gpt-4o-mini", "gpt-4", "my-gpt-4o", "gpt-4o-tuned"])
def test_a_name_is_not_part_of_a_name(tmp_path: Path, name: str) -> None:
    assert load(tmp_path, FILE).price(name) is None


def test_patterns_and_factors(tmp_path: Path) -> None:
    book = load(tmp_path, FILE)
    sonnet, haiku = book.price("claude-sonnet-4"), book.price("claude-3-haiku")
    assert sonnet is not None and haiku is not None
    assert sonnet.rates.input == Decimal("2.40")
    assert sonnet.tiers[0].rates.input == Decimal("4.80")
    assert haiku.rates.input == Decimal("1.50"), "the longest pattern wins"
    assert haiku.source == "contract 4711"
    assert haiku.notes == ("0.50 times the price of list",)
    own = book.price("whatever", "local")
    assert own is not None and own.free
    assert book.price("mystery") is None


def test_aliases_map_deployments_and_arns(tmp_path: Path) -> None:
    book = load(tmp_path, FILE)
    deployment = book.price("my-deployment", "azure")
    assert deployment is not None and deployment.source == "contract 4711"
    assert deployment.notes[0] == "'my-deployment' stands for 'openai/gpt-4o'"
    arn = "arn:aws:bedrock:eu-west-1:1:application-inference-profile/abc"
    profile = book.price(arn, "amazon_bedrock")
    assert profile is not None and profile.rates.input == Decimal("1.50")


def test_a_factor_of_nothing_is_unknown() -> None:
    factor = Factor(Decimal("0.5"), "x", date(2026, 1, 1))
    assert Overrides({"mystery": factor}, Listed()).price("mystery") is None


HEAD = "date = 2026-07-01\n"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('[models."m"]\ninput = "1"\noutput = "1"', 'models."m" has no date; add `date'),
        (HEAD + '[models."m"]\ninput = 0.1\noutput = "1"', 'models."m".input .*write "0.1" in q'),
        (HEAD + '[models."m"]\ninput = "x"\noutput = "1"', 'models."m".input must be an amount'),
        (HEAD + '[models."m"]\ninput = "-1"\noutput = "1"', "must be finite and not negative"),
        (HEAD + '[models."m"]\ninptu = "1"', 'models."m".inptu is not known; did you mean \'input'),
        (HEAD + '[models."m"]\ninput = "1"', 'has no output rate; add `output = "..."`'),
        (HEAD + '[models."m"]\noutput = "1"', "has no input rate"),
        (HEAD + '[models."m"]\nfree = true\ninput = "1"', "free cannot stand beside input"),
        (HEAD + '[models."m"]\nfree = "yes"', "free must be true or false"),
        (HEAD + '[models."m"]\nfactor = "0.5"\ninput = "1"', "cannot stand beside factor"),
        (HEAD + '[models."m"]\ninput="1"\noutput="1"\ncache_write="1"\ncache_write_5m="1"',
         "cache_write is cache_write_5m"),
        (HEAD + '[models."m"]\ninput="1"\noutput="1"\ntiers=[{input="2"}]',
         r"tiers\[0\].above_input_tokens must be the number"),
        (HEAD + '[models."m"]\ninput="1"\noutput="1"\ntiers=[{above_input_tokens=1,inpt="2"}]',
         r"tiers\[0\].inpt is not known; did you mean 'input'"),
        (HEAD + '[models."m"]\ninput="1"\noutput="1"\ntiers=[{above_input_tokens=1},'
         "{above_input_tokens=1}]", "two tiers with the same threshold"),
        (HEAD + '[models."m"]\ninput="1"\noutput="1"\ntiers="x"', "must be written as"),
        (HEAD + '[models."m"]\ninput="1"\noutput="1"\nper_tool={s=0.5}', "per_tool.s must be"),
        (HEAD + '[models]\nm = "1"', "must be a table"),
        (HEAD + "modles = 1", "modles is not known; did you mean 'models'"),
        ('date = "soon"', "date is no day"),
        ("date = 5", "date must be a day"),
        ("date = 2026-07-01T00:00:00", "date must be a day"),
        ("stale_after_days = 0", "stale_after_days must be a whole number of days"),
        ("[aliases]\na = 1", 'aliases."a" must be a text'),
        ('[aliases]\na = "b"\nb = "gpt-4o"', "stands for another alias"),
        ("[", "is no TOML"),
    ],
)  # fmt: skip
def test_a_wrong_file_names_file_key_and_fix(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says) as raised:
        load(tmp_path, text)
    assert str(raised.value).startswith(str(tmp_path / "prices.toml"))


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        load_prices(tmp_path / "none.toml")

"""Every row of the shared price cases, exactly, as Decimal."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from shearpin.pricing import ModelPrice, cost, explain, micros, read_usage

ROOT = Path(__file__).parent.parent.parent
CASES = ROOT.parent / "shared" / "cases" / "prices.jsonl"


def rows() -> list[dict[str, Any]]:
    if not CASES.exists():
        return []
    return [json.loads(line) for line in CASES.read_text(encoding="utf-8").splitlines() if line]


def price_of(rates: dict[str, Any] | None) -> ModelPrice | None:
    if rates is None:
        return None
    base = {kind: rate for kind, rate in rates.items() if kind != "tiers"}
    tiers = tuple(
        (tier["above_input_tokens"], {k: v for k, v in tier.items() if k != "above_input_tokens"})
        for tier in rates.get("tiers", [])
    )
    return ModelPrice.of("case", tiers=tiers, **base)


@pytest.mark.skipif(not CASES.exists(), reason="the shared cases are not beside this checkout")
@pytest.mark.parametrize("row", rows(), ids=lambda row: row["id"])
def test_row(row: dict[str, Any]) -> None:
    price = price_of(row["rates_per_million"])
    usage = read_usage(row["usage"])
    assert usage is not None
    paid = cost(usage, price)
    if row["expected_usd"] is None:
        assert paid.usd is None and paid.micros is None
        assert not paid.complete
        return
    assert price is not None
    assert paid.usd == Decimal(row["expected_usd"])
    assert paid.complete
    assert paid.micros == micros(Decimal(row["expected_usd"]))
    assert sum(line.usd or Decimal(0) for line in explain(usage, price)) == paid.usd

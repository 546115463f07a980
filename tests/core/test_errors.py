"""Errors: one hierarchy, each by whose fault it is, and all of them travel between processes."""

from __future__ import annotations

import copy
import pickle

import pytest

from shearpin import errors
from shearpin.errors import (
    BudgetExceededError,
    CircuitOpenError,
    ConfigError,
    EffectRefusedError,
    LedgerError,
    LoopDetectedError,
    PriceUnknownError,
    ShearpinError,
    StoreError,
    TraceError,
    TrippedError,
)


def test_every_error_is_a_shearpin_error() -> None:
    for name in errors.__all__:
        assert issubclass(getattr(errors, name), ShearpinError)
        assert issubclass(getattr(errors, name), Exception)


@pytest.mark.parametrize(
    "error",
    [
        ShearpinError("x"),
        ConfigError("mode: no"),
        TraceError("f:1: no"),
        LedgerError("gone"),
        StoreError("gone"),
        EffectRefusedError("refund was not run", "done", {"id": 17}),
        PriceUnknownError("gpt-9"),
    ],
    ids=lambda error: type(error).__name__,
)
@pytest.mark.parametrize("copied", [copy.copy, lambda error: pickle.loads(pickle.dumps(error))])
def test_plain_errors_pickle(error: Exception, copied: object) -> None:
    other = copied(error)  # type: ignore[operator]
    assert type(other) is type(error)
    assert other.args == error.args
    assert str(other) == str(error)


@pytest.mark.parametrize(
    "kind", [TrippedError, LoopDetectedError, BudgetExceededError, CircuitOpenError]
)
@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_stops_pickle_with_reason_and_evidence(kind: type[TrippedError], protocol: int) -> None:
    error = kind("stopped", "loop:repeat", {"count": 8})
    other = pickle.loads(pickle.dumps(error, protocol))
    assert type(other) is kind
    assert (str(other), other.reason, other.evidence) == ("stopped", "loop:repeat", {"count": 8})
    assert str(copy.copy(error)) == "stopped"


def test_configuration_errors_are_value_errors() -> None:
    assert issubclass(ConfigError, ValueError)
    assert issubclass(PriceUnknownError, LookupError)

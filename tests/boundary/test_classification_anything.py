"""Whatever exceptions come, in whatever chains and groups: what holds of every classification."""

from __future__ import annotations

import pytest

from shearpin.boundary import ErrorCategory, classify
from tests.boundary.test_classification import (
    HomelessError,
    HostileError,
    PropertyError,
    SearchFailedError,
    StatusError,
    raised,
)

pytest.importorskip("hypothesis", reason="hypothesis is not installed")
from hypothesis import given, settings
from hypothesis import strategies as st

HEADERS = st.dictionaries(
    st.sampled_from(["Retry-After", "retry-after-ms", "x-ratelimit-reset", "x-should-retry"]),
    st.text(max_size=8) | st.integers() | st.floats(),
)
LEAVES = st.one_of(
    st.sampled_from(
        [
            ValueError,
            KeyError,
            TypeError,
            TimeoutError,
            RuntimeError,
            OSError,
            Exception,
            SearchFailedError,
            HostileError,
            PropertyError,
            HomelessError,
            SyntaxError,
        ]
    ).flatmap(lambda kind: st.text(max_size=30).map(kind)),
    st.builds(StatusError, st.integers(0, 700) | st.text(max_size=5), st.none() | HEADERS),
    st.integers(1, 133).map(lambda number: OSError(number, "no")),
)


def grown(inner: st.SearchStrategy[Exception]) -> st.SearchStrategy[Exception]:
    links = st.sampled_from(["cause", "context", "suppressed"])
    chains = st.builds(lambda one, two, link: raised(one, two, link), inner, LEAVES, links)
    groups = st.lists(inner, min_size=1, max_size=3).map(lambda some: ExceptionGroup("g", some))
    return chains | groups


@settings(max_examples=200, deadline=None)
@given(st.recursive(LEAVES, grown, max_leaves=8))
def test_whatever_comes_is_classified(error: Exception) -> None:
    found = classify(error)
    assert isinstance(found.category, ErrorCategory)
    assert 0 < len(found.message) <= 200
    assert found.message == " ".join(found.message.split())
    assert isinstance(found.root, BaseException)
    assert found.retry_after is None or 0 <= found.retry_after <= 7 * 86_400
    if found.safe_to_retry:
        assert found.category is ErrorCategory.RETRYABLE
    if found.category is ErrorCategory.FATAL:
        assert found.retry_after is None
    wrapped = RuntimeError("the tool failed")
    wrapped.__cause__ = error
    again = classify(wrapped)
    assert (again.category, again.error_type) == (found.category, found.error_type)

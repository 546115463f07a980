"""The chaos run in small: a tenth of all exchanges is faulty, and the guarded runs end normally."""

from __future__ import annotations

import logging

import pytest

pytest.importorskip("langchain_openai")
pytest.importorskip("langchain_anthropic")

from benchmarks.chaos import no_waiting, run_all

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def test_what_ends_bare_runs_does_not_end_guarded_ones(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR, "shearpin")
    with no_waiting():
        found = run_all(100, 0.2, 0.1, 7, ("bare", "guarded"))["all"]
    bare, guarded = found["bare"], found["guarded"]
    assert bare.abnormal > 30, "the faults are there"
    assert bare.unanswered > 0
    assert (guarded.abnormal, guarded.reported) == (0, 0)
    assert guarded.unanswered == 0
    assert guarded.duplicates == 0
    assert guarded.answers["whole"] >= 95
    assert guarded.answers["none"] == 0

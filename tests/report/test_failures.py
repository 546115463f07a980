"""Failures in the report: what they say, and what they keep to themselves."""

from __future__ import annotations

import json
from dataclasses import replace

from rich.console import Console

from shearpin.core.session import Spend
from shearpin.findings import Severity
from shearpin.report.boundary import BoundaryReport, FailureReport, PlaceReport
from shearpin.report.html import render_report as render_page
from shearpin.report.model import Report, RunInfo
from shearpin.report.terminal import render_report

FAILURES = BoundaryReport(
    errors=3,
    retries=1,
    degraded=1,
    waited_seconds=2.5,
    categories={"retryable": 2, "fatal": 1},
    actions={"rollback": 1},
    places=(PlaceReport("tool", "search", errors=3, retries=1, types={"rate_limit": 3}),),
    failures=(FailureReport("tool", "search", "retryable", "rate_limit", "slow down, Ada"),),
    degradations=("tool search: cached 40 s ago for Ada",),
    faults=("on_failure: ValueError: no",),
    error_budget=3,
    exhausted=True,
    runs=400,
    abnormal_runs=1,
)
REPORT = Report(RunInfo(), "closed", Severity.NONE, 3, Spend(), boundary=FAILURES)


def test_a_report_holds_texts_of_errors_only_where_they_are_asked_for() -> None:
    assert "Ada" not in json.dumps(REPORT.to_json())
    data = REPORT.to_json(texts=True)["boundary"]
    assert "slow down, Ada" in json.dumps(data)
    assert "cached 40 s ago" in json.dumps(data)
    plain = REPORT.to_json()["boundary"]
    assert isinstance(plain, dict)
    assert plain["version"] == 1
    assert plain["places"] == [
        {
            "kind": "tool",
            "name": "search",
            "steps": 0,
            "errors": 3,
            "retries": 1,
            "degraded": 0,
            "refused": 0,
            "types": {"rate_limit": 3},
        }
    ]
    assert (plain["exhausted"], plain["abnormal"], plain["abnormal_runs"]) == (True, False, 1)


def test_a_report_without_a_boundary_says_nothing_of_one() -> None:
    bare = replace(REPORT, boundary=None)
    assert bare.to_json()["boundary"] is None
    console = Console(width=200)
    with console.capture() as said:
        console.print(render_report(bare))
    assert "Failures" not in said.get()


def test_a_terminal_shows_what_failed_and_how_the_guards_runs_have_ended() -> None:
    console = Console(width=200)
    with console.capture() as said:
        console.print(render_report(REPORT))
    text = said.get()
    assert "3 errors, 1 retry after 2.5 s, degraded once, rollback 1" in text
    assert "the error budget of 3 was reached" in text
    assert "tool search: 3 errors (rate_limit 3), 1 retry" in text
    assert "1 of 400 runs ended abnormally (0.2 %)" in text
    assert "Contained fault in the boundary: on_failure: ValueError: no" in text


def test_a_page_shows_the_run_and_its_failures_escaped_and_without_texts() -> None:
    odd = replace(FAILURES, places=(PlaceReport("tool", "<b>search</b>", errors=3),))
    page = render_page(replace(REPORT, boundary=odd))
    assert "&lt;b&gt;search&lt;/b&gt;" in page
    assert "<b>search" not in page
    assert "the error budget of 3 was reached" in page
    assert "1 of 400 runs of this guard ended abnormally" in page
    assert "Contained fault in the boundary: on_failure: ValueError: no" in page
    assert "Ada" not in page
    assert "<script" not in page
    assert "slow down, Ada" in render_page(replace(REPORT, boundary=odd), texts=True)
    assert "Failures" not in render_page(replace(REPORT, boundary=None))

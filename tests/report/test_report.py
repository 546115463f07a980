"""The audit report: what it holds, that it is bounded, and how it is shown."""

from __future__ import annotations

import io
import json
import os
from html.parser import HTMLParser
from pathlib import Path

import pytest
from rich.console import Console, RenderableType

from shearpin.core.journal import FaultRecord, NoteRecord, Record, TransitionRecord, VerdictRecord
from shearpin.core.session import Session
from shearpin.core.settings import Settings
from shearpin.events import ModelCalled, ModelReturned, Usage
from shearpin.findings import Severity
from shearpin.report.html import render_replays as page_of
from shearpin.report.model import Report, RunInfo, build_report
from shearpin.report.remedies import remedy_for
from shearpin.report.replays import ReplayTotals, RunRow, VerdictRow
from shearpin.report.terminal import render_replays, render_report

GOLDEN = Path(__file__).parent / "golden"
EVIDENCE = {"tool": "run_tests", "count": 3, "limit": 3, "onset_step": 1}


def golden(name: str, text: str) -> None:
    """Compare with a reviewed file; after a wanted change run once with UPDATE_GOLDEN=1."""
    path = GOLDEN / name
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


def verdict(step: int, severity: str, **changes: object) -> VerdictRecord:
    made = VerdictRecord(
        step=step,
        at=float(step),
        verdict="halt" if severity == "stop" else severity,
        severity=severity,
        finding="repeat",
        rule="repeat",
        key="k",
        agent="main",
        evidence=dict(EVIDENCE),
        message="You have called run_tests 3 times with the same result.",
        acted=True,
    )
    return made._replace(**changes)


RECORDS: list[Record] = [
    verdict(3, "nudge"),
    TransitionRecord(3, 3.0, "closed", "reflecting", "nudged"),
    NoteRecord(4, 4.0, "velocity", "swelling", "swelling:main", "main", {"count": 3, "limit": 3}),
    FaultRecord(4, 4.0, "detector cycle", "ValueError: oops"),
    verdict(5, "stop", evidence={**EVIDENCE, "count": 8, "limit": 8}, message="Stopped."),
    TransitionRecord(5, 5.0, "reflecting", "open", "persisted"),
]
INFO = RunInfo(
    run="run-1",
    thread="thread-1",
    graph="agent",
    started_at="2026-01-02T03:04:05+00:00",
    outcome="stopped",
    reason="loop:repeat",
    duration_seconds=1.25,
    faults=("checkpoint write: OSError: disk full",),
)


def report_of(records: list[Record], info: RunInfo = INFO) -> Report:
    session = Session(Settings())
    for number in (1, 2):
        session.before(ModelCalled(float(number), f"m{number}"))
        session.after(
            ModelReturned(float(number), f"m{number}", text=f"t{number}", usage=Usage(25, 5))
        )
    return build_report(session, records, run=info)


def shown(renderable: RenderableType, width: int = 100) -> str:
    console = Console(file=io.StringIO(), width=width, force_terminal=False, legacy_windows=False)
    console.print(renderable)
    assert isinstance(console.file, io.StringIO)
    return "\n".join(line.rstrip() for line in console.file.getvalue().splitlines()) + "\n"


def test_golden_json() -> None:
    golden("report.json", json.dumps(report_of(RECORDS).to_json(), indent=2) + "\n")


def test_a_report_keeps_the_words_to_itself_unless_asked() -> None:
    report = report_of([verdict(3, "nudge", message="the customer is Ada")])
    assert "Ada" not in json.dumps(report.to_json())
    assert "Ada" in json.dumps(report.to_json(texts=True))


def test_golden_terminal() -> None:
    golden("report.txt", shown(render_report(report_of(RECORDS))))


def test_printed_it_is_a_few_lines() -> None:
    report = report_of([verdict(3, "nudge"), verdict(5, "block", message="the customer is Ada")])
    said = str(report)
    assert said.splitlines()[:5] == [
        "Outcome     stopped (loop:repeat)",
        "Run         agent, thread thread-1, run run-1",
        "Steps       2 (breaker closed, worst none)",
        "Calls       2 model, 0 tool",
        "Tokens      50 in, 10 out",
    ]
    assert "Decided by  rule repeat at step 5: " in said
    assert "Faults      1 contained; see report.faults" in said
    assert "Ada" not in said and len(said.splitlines()) == 8
    assert len(str(report_of([], RunInfo())).splitlines()) == 4


def test_a_quiet_run_needs_no_more_than_its_facts() -> None:
    info = RunInfo()
    report = report_of([], info)
    assert (report.outcome, report.reason, report.decisive, report.remedy) == (
        "completed",
        None,
        None,
        None,
    )
    data = report.to_json()
    assert (data["finding"], data["evidence"], data["verdicts"], data["worst"]) == (
        None,
        {},
        [],
        "none",
    )
    text = shown(render_report(report))
    assert "Verdicts" not in text
    assert "Decided by" not in text


def test_the_first_of_the_strongest_decides() -> None:
    records: list[Record] = [verdict(3, "nudge"), verdict(5, "block"), verdict(6, "block")]
    decisive = report_of(records).decisive
    assert decisive is not None
    assert decisive.step == 5


def test_a_report_is_bounded_and_says_what_it_left_out() -> None:
    records: list[Record] = [verdict(step, "nudge", message="x" * 5000) for step in range(500)]
    records += [FaultRecord(step, 0.0, "w", "e" * 9000) for step in range(300)]
    report = report_of(records)
    assert len(report.verdicts) == 200
    assert report.verdicts[-1].step == 499, "the newest are kept"
    assert report.omitted == 300 + 101
    assert all(len(record.message) <= 2000 for record in report.verdicts)
    assert len(json.dumps(report.to_json())) < 1_200_000


@pytest.mark.parametrize(
    ("record", "words"),
    [
        (verdict(3, "nudge"), ["raise Repeats(nudge=...) above 3"]),
        (verdict(5, "block"), ["ToolFacts(polling=True)", "Repeats(block=...)"]),
        (verdict(2, "nudge", finding="unknown_tool"), ["give the agent the tool run_tests"]),
        (verdict(2, "stop", finding="monologue", evidence={}), ["raise Monologues(stop=...)."]),
        (verdict(7, "stop", evidence={"count": 3, "limit": 4}), ["BreakerSettings(trial_rounds="]),
        (verdict(2, "stop", finding="of my own"), ['mode="warn"']),
        (verdict(2, "stop", finding=None), ['mode="warn"']),
    ],
)
def test_every_verdict_says_what_to_change(record: VerdictRecord, words: list[str]) -> None:
    remedy = remedy_for(record)
    assert remedy.startswith("If this was legitimate: ")
    assert all(word in remedy for word in words)


NASTY = "<script>alert('x')</script>"
ROWS = [
    RunRow("quiet", "", "success", 4, "closed", Severity.NONE, ()),
    RunRow(
        f"loop {NASTY}",
        f"a title with {NASTY}",
        "fail",
        10,
        "open",
        Severity.STOP,
        (
            VerdictRow(3, "nudge", "repeat", f"said {NASTY}", EVIDENCE),
            VerdictRow(8, "stop", "repeat", "Stopped.", {"tool": NASTY}),
        ),
        ["nudge by step 2 expected"],
    ),
    RunRow("missed", "", "", 0, "closed", Severity.NONE, (), ["stop by step 8 expected"]),
    RunRow("held", "", "", 1, "closed", Severity.NONE, (), []),
]


def totals_of(rows: list[RunRow], limit: int = 1000) -> ReplayTotals:
    totals = ReplayTotals(limit=limit)
    for row in rows:
        totals.add(row)
    return totals


def test_totals_add_up() -> None:
    totals = totals_of(ROWS)
    assert (totals.runs, totals.steps, totals.shown, totals.passed, totals.failed) == (
        4,
        15,
        1,
        1,
        2,
    )
    assert totals.worst == {Severity.NONE: 3, Severity.STOP: 1}
    assert totals.outcomes["unknown", Severity.NONE] == 2
    assert totals.families == {"repeat": 1}
    assert [row.run for row in totals.kept] == [ROWS[1].run, "missed"]


def test_totals_keep_no_more_than_asked() -> None:
    totals = totals_of([ROWS[1]] * 50, limit=5)
    assert (totals.shown, len(totals.kept)) == (50, 5)
    assert "45 more run(s)" in page_of(totals)


def test_golden_totals() -> None:
    golden("replays.txt", shown(render_replays(totals_of(ROWS))))


def test_golden_page() -> None:
    golden("replays.html", page_of(totals_of(ROWS)))


def test_the_page_of_nothing() -> None:
    page = page_of(ReplayTotals())
    assert "every run was quiet" in page


class Outline(HTMLParser):
    """Tags in order, and every attribute that could load something."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.loads: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        if tag not in ("meta", "br"):
            self.open.append(tag)
        self.loads += [name for name, _ in attrs if name in ("src", "href", "onclick", "onload")]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_is_whole_safe_and_self_contained() -> None:
    page = page_of(totals_of(ROWS))
    outline = Outline()
    outline.feed(page)
    assert outline.open == []
    assert "script" not in outline.tags, "what a recording holds is text, not markup"
    assert outline.loads == []
    assert "&lt;script&gt;" in page
    assert "default-src 'none'" in page

"""What counts as wrong, caught, late and saved."""

from __future__ import annotations

from pathlib import Path

import pytest

from shearpin.analysis.intervals import paired_ratio, paired_share, wilson
from shearpin.analysis.labels import Label, read_labels
from shearpin.analysis.quality import Fired, Judged, judge_run, judged, score, source_of
from shearpin.core.settings import Settings
from shearpin.errors import TraceError
from shearpin.findings import Severity
from shearpin.traces import TraceRun, parse_run

NUDGE, STOP = Severity.NUDGE, Severity.STOP


def run(outcome: str = "fail", steps: int = 10, **more: object) -> TraceRun:
    call = {"name": "ls", "args": {}, "result": "a.txt"}
    return parse_run(
        {"run": "here/r", "outcome": outcome, "steps": [{"calls": [call]}] * steps, **more}
    )


def row(fired: list[Fired], label: Label | None = None, outcome: str = "fail") -> Judged:
    return judged(run(outcome), fired, label)


def test_steps_after_the_stop_are_saved_on_failed_runs_only() -> None:
    total = score([row([Fired(4, STOP)]), row([Fired(4, STOP)], outcome="success"), row([])])
    assert (total.steps_saved, total.failed_steps) == (6, 20)
    assert total.saved_steps == 0.3
    assert (total.failed_stopped, total.failed, total.good_stopped, total.good) == (1, 2, 1, 1)


def test_a_loop_is_caught_at_or_after_its_onset_only() -> None:
    label = Label(loop=True, onset_step=5)
    early, late = row([Fired(4, NUDGE)], label), row([Fired(4, NUDGE), Fired(7, NUDGE)], label)
    assert early.caught is None
    assert late.caught == 7
    total = score([early, late])
    assert (total.caught, total.loops, total.median_delay) == (1, 2, 2)


def test_a_verdict_on_a_success_is_wrong_unless_the_run_is_a_labelled_loop() -> None:
    looping = row([Fired(3, NUDGE)], Label(loop=True, onset_step=2), "success")
    plain = row([Fired(3, NUDGE)], None, "success")
    total = score([looping, plain])
    assert (total.good, total.good_nudged) == (1, 1)
    assert total.wrong_nudges == 1.0


def test_precision_is_over_labelled_runs() -> None:
    rows = [
        row([Fired(3, NUDGE)], Label(loop=True, onset_step=2)),
        row([Fired(3, NUDGE)], Label(loop=False)),
        row([], Label(loop=False)),
        row([Fired(3, NUDGE)]),
    ]
    assert score(rows).precision == 0.5


def test_without_anything_there_are_no_shares() -> None:
    total = score([])
    assert total.to_json()["precision"] is None
    assert total.median_delay is None
    assert total.late_delay is None


def test_tokens_are_the_recorded_ones_or_estimated_from_the_whole_history() -> None:
    used = {"usage": {"input_tokens": 90, "output_tokens": 10}}
    recorded = parse_run({"run": "r", "outcome": "fail", "steps": [used] * 4})
    assert judged(recorded, [Fired(3, STOP)]).tokens_saved == 100
    spoken = parse_run({"run": "r", "outcome": "fail", "steps": [{"text": "x" * 40}] * 3})
    bare = judged(spoken, [Fired(2, STOP)])
    assert bare.estimated
    assert (bare.tokens, bare.tokens_saved) == (10 + 20 + 30, 30)


def test_shearpin_itself_is_judged_by_its_replay() -> None:
    found = judge_run(run(steps=20), Settings())
    assert found.nudge == 3
    assert found.stop is not None
    assert found.findings[0] == ("cycle", NUDGE) or ("repeat", STOP) in found.findings


def test_the_source_is_named_or_the_first_part_of_the_id_or_the_file() -> None:
    assert source_of(run(source="there")) == "there"
    assert source_of(run()) == "here"
    nameless = run()._replace(run="17", origin="traces/fleet.jsonl.gz:3")
    assert source_of(nameless) == "fleet"


def test_labels_are_read_and_their_mistakes_named(tmp_path: Path) -> None:
    path = tmp_path / "labels.jsonl"
    path.write_text(
        '{"run": "a", "loop": true, "onset_step": 3, "x": 1}\n\n{"run": "b", "loop": false}\n'
    )
    assert read_labels([path]) == {"a": Label(True, 3), "b": Label(False)}
    for text, word in (
        ("[]", "object"),
        ("{", "JSON"),
        ('{"run": 1, "loop": true}', "run"),
        ('{"run": "a"}', "loop"),
        ('{"run": "a", "loop": true, "onset_step": 0}', "onset_step"),
    ):
        path.write_text(text)
        with pytest.raises(TraceError, match=word):
            read_labels([path])
    with pytest.raises(TraceError, match="cannot be read"):
        read_labels([tmp_path / "none.jsonl"])


def test_an_interval_holds_its_value_and_narrows_with_more_runs() -> None:
    few, many = wilson(1, 20), wilson(50, 1000)
    assert few.low < few.value < few.high
    assert many.high - many.low < few.high - few.low
    assert wilson(0, 0) == (0.0, 0.0, 1.0)
    assert wilson(5, 5).high == 1.0


def test_a_clear_difference_is_certain_and_a_small_one_is_not() -> None:
    clear = paired_share([(False, True)] * 30 + [(False, False)] * 70)
    small = paired_share([(False, True)] * 2 + [(True, False)] * 1 + [(False, False)] * 97)
    assert clear.certain
    assert not small.certain
    assert not paired_share([]).certain
    assert paired_share([(True, True)] * 50).value == 0


def test_equal_guards_save_equally() -> None:
    assert paired_ratio([(3, 3, 10), (0, 0, 7)]) == (0, 0, 0)
    assert paired_ratio([(1.0, 5.0, 10.0)] * 20).certain
    assert not paired_ratio([]).certain

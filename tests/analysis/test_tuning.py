"""The search finds what helps, and judges it on sources held out; processes change nothing."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from shearpin import BreakerSettings, Guard
from shearpin.analysis.fleet import evaluate, pieces, speaking
from shearpin.analysis.labels import Label
from shearpin.analysis.quality import Judged, score
from shearpin.analysis.tuning import (
    Change,
    Target,
    apply,
    choose,
    combined,
    cross_validate,
    singles,
    worth,
    written,
)
from shearpin.configuration import guard_options
from shearpin.core.settings import Settings
from shearpin.errors import TraceError


def record(name: str, outcome: str, repeats: int, steps: int = 12) -> dict[str, object]:
    """A run that makes new calls, and the same call `repeats` times at the end."""
    made = [
        {"calls": [{"name": "read", "args": {"n": n}, "result": f"line {n} of the book"}]}
        for n in range(steps - repeats)
    ]
    same = {"calls": [{"name": "read", "args": {"n": "x"}, "result": "no such line in it"}]}
    return {"run": name, "outcome": outcome, "steps": [*made, *[same] * repeats]}


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    """Three sources: honest runs repeat up to four times, failed ones eight times and more."""
    paths: list[Path] = []
    for source in ("a", "b", "c"):
        runs = [record(f"{source}/good{n}", "success", 3 + n % 2) for n in range(6)]
        runs += [record(f"{source}/bad{n}", "fail", 8 + n, 20) for n in range(4)]
        path = tmp_path / f"{source}.jsonl.gz"
        with gzip.open(path, "wt") as out:
            out.writelines(json.dumps(run) + "\n" for run in runs)
        paths.append(path)
    return paths


LABELS = {f"{source}/bad0": Label(True, 13) for source in "abc"}


def rows_of(files: list[Path]) -> dict[tuple[Change, ...], list[Judged]]:
    base = Settings()
    tried: list[tuple[Change, ...]] = [(), *((change,) for change in singles(base, ["repeat"]))]
    found = evaluate(pieces(files), [apply(base, changes) for changes in tried], LABELS)
    return dict(zip(tried, found.rows, strict=True))


def test_more_patience_is_chosen_where_honest_runs_repeat(files: list[Path]) -> None:
    rows = rows_of(files)
    start, chosen = rows[()], choose(rows, Target(), frozenset("abc"))
    assert score(start).wrong_nudges == 1.0
    assert chosen != ()
    assert score(rows[chosen]).wrong_nudges == 0.0
    assert score(rows[chosen]).recall == 1.0
    assert worth(rows[chosen], Target()) > worth(start, Target())


def test_each_source_is_judged_by_what_was_chosen_without_it(files: list[Path]) -> None:
    folds = cross_validate(rows_of(files), Target())
    assert [fold.source for fold in folds] == ["a", "b", "c"]
    for fold in folds:
        assert {row.source for row in fold.rows} == {fold.source}
        assert score(fold.rows).wrong_nudges == 0.0
        assert score(fold.before).wrong_nudges == 1.0


def test_a_single_source_cannot_be_held_out(files: list[Path]) -> None:
    rows = {key: [row for row in kept if row.source == "a"] for key, kept in rows_of(files).items()}
    (fold,) = cross_validate(rows, Target())
    assert fold.chosen == ()


def test_processes_and_pieces_change_nothing(files: list[Path]) -> None:
    settings = [Settings(), Settings(patience=0.0), Settings(patience=1.0)]
    alone = evaluate(pieces(files), settings, LABELS)
    spread = evaluate(pieces(files, size=2000), settings, LABELS, jobs=2)
    assert alone == spread


def test_progress_counts_every_run(files: list[Path]) -> None:
    seen: list[int] = []
    evaluate(pieces(files), [Settings()], {}, advance=seen.append)
    assert sum(seen) == 30


def test_a_bad_line_is_named_or_counted(files: list[Path], tmp_path: Path) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text(json.dumps(record("r", "fail", 3)) + "\n{}\n")
    with pytest.raises(TraceError, match=r"bad\.jsonl:2"):
        evaluate(pieces([path]), [Settings()], {})
    with pytest.raises(TraceError, match=r"bad\.jsonl:2"):
        evaluate(pieces([path], size=10), [Settings()], {})
    found = evaluate(pieces([path]), [Settings()], {}, skip_bad=True)
    assert found.bad == 1
    assert len(found.rows[0]) == 1
    with pytest.raises(TraceError, match="cannot be read"):
        evaluate(pieces([tmp_path / "none"]), [Settings()], {})


def test_only_rules_that_speak_are_worth_tuning(files: list[Path]) -> None:
    spoke = speaking(pieces(files), Settings())
    assert "repeat" in spoke
    assert "monologue" not in spoke


def test_what_helps_is_put_together_with_the_patience_first() -> None:
    def rows(worse: int) -> list[Judged]:
        quiet = Judged("r", "a", "success", None, 9, 9, False, None, None, None, None, 0, ())
        return [quiet._replace(nudge=3 if n < worse else None) for n in range(10)]

    one = Change("repeat", "repeat off", off="repeat")
    two = Change("patience", "patience 1", patience=1.0)
    worse = Change("cycle", "cycle off", off="cycle")
    found = combined(
        {(): rows(6), (one,): rows(3), (two,): rows(4), (worse,): rows(9)}, Target(), frozenset("a")
    )
    assert found == [(two, one)]


def test_chosen_settings_come_back_from_their_file() -> None:
    base = Settings()
    changes = [
        Change("patience", "", patience=0.25),
        Change("litany", "", off="litany"),
        Change("trial_rounds", "", breaker=(("trial_rounds", 1),)),
        *[change for change in singles(base, ["repeat"]) if change.name == "repeat later"],
    ]
    settings = apply(base, changes)
    data = written(settings)
    assert Guard(**guard_options(data, "test")).settings == settings
    assert data["breaker"] == {"trial_rounds": 1}
    assert settings.breaker == BreakerSettings(trial_rounds=1)
    assert written(base) == {}

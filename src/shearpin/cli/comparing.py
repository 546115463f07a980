"""The work behind `shearpin compare`; imported only when the command runs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import click
from rich.console import Console
from rich.table import Table

from shearpin.analysis.fleet import evaluate, pieces
from shearpin.analysis.intervals import Interval, paired_ratio, paired_share, wilson
from shearpin.analysis.labels import read_labels
from shearpin.analysis.quality import Judged
from shearpin.cli.reading import check_outcomes, guard_of, warn_of_unknown_keys
from shearpin.cli.tuning import progress
from shearpin.errors import ShearpinError

__all__ = ["Measure", "differences", "run_compare"]

_OK, _BAD_INPUT = 0, 2


class Measure(NamedTuple):
    """One measure under both configurations, and how much larger it is under the second."""

    name: str
    first: Interval
    second: Interval
    difference: Interval
    runs: int


def run_compare(
    first: Path,
    second: Path,
    traces: Sequence[Path],
    labels: Sequence[Path],
    jobs: int,
    as_json: bool,
    skip_bad: bool,
) -> int:
    """Replays, prints; returns the exit code."""
    try:
        settings = [guard_of(path).settings for path in (first, second)]
        known = read_labels(labels)
        warn_of_unknown_keys(traces)
        with progress() as begin:
            found = evaluate(
                pieces(traces), settings, known, jobs=jobs, skip_bad=skip_bad,
                advance=begin("Replaying under both", None),
            )  # fmt: skip
        check_outcomes(found.rows[0])
    except ShearpinError as error:
        click.echo(f"Error: {error}", err=True)
        return _BAD_INPUT
    measures = differences(*found.rows)
    if as_json:
        click.echo(json.dumps([_json(measure) for measure in measures]))
    else:
        _print(measures, first.name, second.name)
    if found.bad:
        click.echo(f"{found.bad} bad line(s) skipped", err=True)
    return _OK


def differences(first: Sequence[Judged], second: Sequence[Judged]) -> list[Measure]:
    """Every measure that the runs allow, under both."""
    pairs = list(zip(first, second, strict=True))
    good = [pair for pair in pairs if pair[0].good]
    failed = [pair for pair in pairs if pair[0].outcome == "fail"]
    loops = [pair for pair in pairs if pair[0].label is not None and pair[0].label.loop]
    measures = [
        _share("wrong stops", [(a.stop is not None, b.stop is not None) for a, b in good]),
        _share("wrong nudges", [(a.nudge is not None, b.nudge is not None) for a, b in good]),
        _share("loops caught", [(a.caught is not None, b.caught is not None) for a, b in loops]),
        _share(
            "failed runs stopped", [(a.stop is not None, b.stop is not None) for a, b in failed]
        ),
        _ratio("steps saved", [(a.steps_saved, b.steps_saved, a.steps) for a, b in failed]),
        _ratio("tokens saved", [(a.tokens_saved, b.tokens_saved, a.tokens) for a, b in failed]),
    ]
    return [measure for measure in measures if measure.runs]


def _share(name: str, pairs: list[tuple[bool, bool]]) -> Measure:
    runs = len(pairs)
    return Measure(
        name,
        wilson(sum(a for a, _ in pairs), runs),
        wilson(sum(b for _, b in pairs), runs),
        paired_share(pairs),
        runs,
    )


def _ratio(name: str, rows: Sequence[tuple[int, int, int]]) -> Measure:
    return Measure(
        name,
        paired_ratio([(0, a, size) for a, _, size in rows]),
        paired_ratio([(0, b, size) for _, b, size in rows]),
        paired_ratio(rows),
        len(rows),
    )


def _json(measure: Measure) -> dict[str, object]:
    return {
        "measure": measure.name,
        "runs": measure.runs,
        "first": measure.first._asdict(),
        "second": measure.second._asdict(),
        "difference": measure.difference._asdict(),
        "certain": measure.difference.certain,
    }


def _print(measures: Sequence[Measure], first: str, second: str) -> None:
    table = Table(box=None, pad_edge=False)
    for heading in ("", "runs", first, second, "difference, 95 %"):
        table.add_column(heading, justify="right" if heading else "left")
    for name, a, b, difference, runs in measures:
        mark = " *" if difference.certain else ""
        spread = f"[{100 * difference.low:+.2f}, {100 * difference.high:+.2f}]"
        table.add_row(
            name, f"{runs:,}", f"{100 * a.value:.2f} %", f"{100 * b.value:.2f} %",
            f"{100 * difference.value:+.2f} {spread}{mark}",
            style="bold" if difference.certain else "",
        )  # fmt: skip
    console = Console()
    console.print(table, markup=False)
    console.print("\nPercentage points. * zero lies outside of the interval.", markup=False)

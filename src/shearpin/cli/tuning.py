"""The work behind `shearpin tune`; imported only when the command runs."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import click
from rich.console import Console, RenderableType
from rich.table import Table

from shearpin.analysis.fleet import evaluate, pieces, speaking
from shearpin.analysis.intervals import wilson
from shearpin.analysis.labels import Label, read_labels
from shearpin.analysis.quality import Judged, Score, score
from shearpin.analysis.tuning import (
    FEW,
    Change,
    Fold,
    Rows,
    Target,
    apply,
    choose,
    combined,
    cross_validate,
    singles,
    supported,
    written,
)
from shearpin.cli.reading import check_outcomes, guard_of, warn_of_unknown_keys
from shearpin.cli.toml_text import toml_text
from shearpin.configuration import guard_options
from shearpin.core.settings import Settings
from shearpin.errors import ConfigError, ShearpinError
from shearpin.recipe import Guard
from shearpin.report.tradeoff import Point, TuningPage, render_tuning

__all__ = ["Options", "progress", "run_tune"]

_OK, _BAD_INPUT = 0, 2
_Advance = Callable[[int], None]


class Options(NamedTuple):
    """What was asked for on the command line."""

    traces: tuple[Path, ...]
    labels: tuple[Path, ...]
    target_false_stops: float
    target_false_nudges: float
    preset: str | None
    config: Path | None
    jobs: int
    ray: str | None
    output: Path | None
    report: Path | None
    usd_per_million_tokens: float | None
    skip_bad: bool


class _Found(NamedTuple):
    rows: dict[tuple[Change, ...], list[Judged]]
    chosen: tuple[Change, ...]
    folds: list[Fold]
    bad: int


def run_tune(options: Options) -> int:
    """Searches, prints, writes; returns the exit code."""
    target = Target(options.target_false_stops, options.target_false_nudges)
    try:
        data = _start(options)
        base = Guard(**guard_options(data, "the start")).settings
        labels = read_labels(options.labels)
        warn_of_unknown_keys(options.traces)
        found = _search(options, base, labels, target)
        settings = apply(base, found.chosen)
        merged = _merged(data, written(settings, base))
        if options.output is not None:
            _write(options.output, _header(options, found) + toml_text(merged))
        if options.report is not None:
            _write(options.report, render_tuning(_page(found)))
    except ShearpinError as error:
        click.echo(f"Error: {error}", err=True)
        return _BAD_INPUT
    console = Console()
    console.print(_contributions(found.rows, options.usd_per_million_tokens))
    console.print(_outcome(found))
    console.print(_held_out(found.folds))
    console.print(_certainty(found, target), markup=False, highlight=False)
    if options.output is None:
        console.print("\nConfiguration:\n", toml_text(merged) or "# the defaults", markup=False)
    if found.bad:
        click.echo(f"{found.bad} bad line(s) skipped", err=True)
    return _OK


def _start(options: Options) -> dict[str, Any]:
    data: dict[str, Any] = {}
    if options.config is not None:
        guard_of(options.config)  # names the key of a mistake
        data = tomllib.loads(options.config.read_text(encoding="utf-8"))
    if options.preset is not None:
        data["preset"] = options.preset
    return data


def _search(options: Options, base: Settings, labels: dict[str, Label], target: Target) -> _Found:
    with progress() as begin:
        advance = begin("Reading", None)
        runs = 0

        def count(done: int) -> None:
            nonlocal runs
            runs += done
            advance(done)

        families = speaking(pieces(options.traces), base, skip_bad=options.skip_bad, advance=count)
        tried: list[tuple[Change, ...]] = [(), *((c,) for c in singles(base, families))]
        made = _judge(options, base, tried, labels, begin("Trying changes one by one", runs))
        check_outcomes(made.rows[0])
        rows = dict(zip(tried, made.rows, strict=True))
        sources = frozenset(row.source for row in rows[()])
        more = {
            changes
            for held in ("", *sources)
            for changes in combined(supported(rows), target, sources - {held})
        }
        extra = sorted(more - set(rows), key=lambda changes: [c.name for c in changes])
        if extra:
            together = _judge(options, base, extra, labels, begin("Trying them together", runs))
            rows.update(zip(extra, together.rows, strict=True))
    if not rows[()]:
        raise ConfigError("the traces hold no run; there is nothing to tune by")
    able = supported(rows)
    return _Found(rows, choose(able, target, sources), cross_validate(able, target), made.bad)


def _judge(
    options: Options,
    base: Settings,
    tried: Sequence[tuple[Change, ...]],
    labels: dict[str, Label],
    advance: _Advance,
) -> Any:
    return evaluate(
        pieces(options.traces),
        [apply(base, changes) for changes in tried],
        labels,
        jobs=options.jobs,
        ray=options.ray,
        skip_bad=options.skip_bad,
        advance=advance,
    )


@contextmanager
def progress() -> Generator[Callable[[str, int | None], _Advance]]:
    """A bar over runs with rate and time left, on standard error where that is a terminal."""
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        ProgressColumn,
        Task,
        TextColumn,
        TimeRemainingColumn,
    )
    from rich.text import Text

    class Rate(ProgressColumn):
        def render(self, task: Task) -> Text:
            return Text("" if task.speed is None else f"{task.speed:,.0f} runs/s")

    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), Rate(),
        TimeRemainingColumn(),
    )  # fmt: skip
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:

        def begin(name: str, total: int | None) -> _Advance:
            task = bar.add_task(name, total=total)
            return lambda done: bar.advance(task, done)

        yield begin


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error.strerror or error}") from error


def _merged(data: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    out = dict(data)
    for key, value in changes.items():
        old = out.get(key)
        out[key] = _merged(old, value) if isinstance(old, dict) else value  # pyright: ignore[reportUnknownArgumentType]
    return out


def _header(options: Options, found: _Found) -> str:
    total = score(found.rows[found.chosen])
    held = score(row for fold in found.folds for row in fold.rows)
    return (
        f"# Found by shearpin tune on {total.runs:,} runs from {len(found.folds)} source(s).\n"
        f"# Changes: {name_of(found.chosen)}.\n"
        f"# On sources held out: {percent(held.wrong_stops)} wrong stops, "
        f"{percent(held.wrong_nudges)} wrong nudges, {percent(held.saved_steps)} of the steps of "
        "failed runs saved.\n\n"
    )


def name_of(changes: Sequence[Change]) -> str:
    """What a candidate changes, in words."""
    return ", ".join(change.name for change in changes) or "none, the start is as good as any"


def percent(value: float | None) -> str:
    """A share for people; a dash where there is none."""
    return "-" if value is None else f"{100 * value:.2f} %"


def _table(title: str, *headings: str) -> Table:
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for place, heading in enumerate(headings):
        table.add_column(heading, justify="right" if place else "left", overflow="fold")
    return table


def _contributions(rows: Rows, price: float | None) -> RenderableType:
    """What is lost and what is spared if a rule is taken out."""
    start = score(rows[()])
    headings = ["rule", "loops", "wrong nudges", "wrong stops", "steps saved", "tokens saved"]
    if price is not None:
        headings.append("dollars saved")
    headings.append("median delay without it")
    table = _table("What each rule contributes", *headings)
    for changes, kept in rows.items():
        if len(changes) != 1 or changes[0].off is None:
            continue
        without = score(kept)
        tokens = start.tokens_saved - without.tokens_saved
        cells = [
            f"{start.caught - without.caught:+d}",
            f"{start.good_nudged - without.good_nudged:+d}",
            f"{start.good_stopped - without.good_stopped:+d}",
            f"{start.steps_saved - without.steps_saved:+,d}",
            f"{tokens:+,d}",
        ]
        if price is not None:
            cells.append(f"{tokens * price / 1e6:+,.2f}")
        delay = without.median_delay
        table.add_row(changes[0].off, *cells, "-" if delay is None else f"{delay:g}")
    return table


def _measures(total: Score) -> list[str]:
    delay = total.median_delay
    return [
        percent(total.wrong_stops), percent(total.wrong_nudges),
        f"{total.caught}/{total.loops}", percent(total.precision),
        "-" if delay is None else f"{delay:g}", percent(total.stopped), percent(total.saved_steps),
    ]  # fmt: skip


_MEASURES = (
    "wrong stops", "wrong nudges", "loops", "precision", "delay", "failed stopped", "steps saved",
)  # fmt: skip


def _outcome(found: _Found) -> RenderableType:
    table = _table(f"\nChosen: {name_of(found.chosen)}", "on the same runs", *_MEASURES)
    table.add_row("start", *_measures(score(found.rows[()])))
    table.add_row("chosen", *_measures(score(found.rows[found.chosen])))
    return table


def _held_out(folds: Sequence[Fold]) -> RenderableType:
    table = _table(
        "\nWhat to expect: each source with settings chosen on the others", "source", *_MEASURES
    )
    for fold in folds:
        table.add_row(fold.source, *_measures(score(fold.rows)))
    table.add_row("all, held out", *_measures(score(row for f in folds for row in f.rows)))
    table.add_row("all, start", *_measures(score(row for f in folds for row in f.before)))
    return table


def _certainty(found: _Found, target: Target) -> str:
    """How far the share of wrong stops can be believed, in words."""
    total = score(found.rows[found.chosen])
    most = wilson(total.good_stopped, total.good).high
    said = (
        f"\n{total.good_stopped:,} of {total.good:,} successful runs stopped: at 95 % confidence "
        f"this is compatible with up to {100 * most:.1f} % of them."
    )
    lines = [said]
    if most > target.stops:
        lines.append(
            f"They do not show that the target of {100 * target.stops:g} % is met; try the "
            'settings with mode = "observe" or "warn" first.'
        )
    if total.good < FEW:
        lines.append(
            f"Below {FEW} successful runs, patience below 0.25 or above 0.75 is not chosen."
        )
    return "\n".join(lines)


def _page(found: _Found) -> TuningPage:
    points: list[Point] = []
    for changes, kept in found.rows.items():
        total = score(kept)
        curve = len(changes) == 1 and changes[0].patience is not None
        points.append(
            Point(
                name_of(changes) if changes else "start",
                100 * (total.wrong_nudges or 0.0),
                100 * (total.wrong_stops or 0.0),
                100 * (total.recall or 0.0),
                100 * (total.saved_steps or 0.0),
                changes[0].patience if curve else None,
                changes == found.chosen,
            )
        )
    lines = [
        (fold.source, name_of(fold.chosen), *_measures(score(fold.rows))) for fold in found.folds
    ]
    return TuningPage(name_of(found.chosen), tuple(points), _MEASURES, tuple(lines))

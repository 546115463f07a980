"""`shearpin compare`: two configurations on the same recorded runs."""

from __future__ import annotations

from pathlib import Path

import click

__all__ = ["compare"]

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command(short_help="Compare two configurations on the same recorded runs.")
@click.argument("first", metavar="A.toml", type=_FILE)
@click.argument("second", metavar="B.toml", type=_FILE)
@click.argument("traces", nargs=-1, required=True, metavar="TRACES...", type=_FILE)
@click.option(
    "--labels", multiple=True, type=_FILE, help="Labels (JSON Lines: run, loop, onset_step)."
)
@click.option(
    "--jobs", type=click.IntRange(1), default=1, show_default=True, help="Processes to use."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--skip-bad", is_flag=True, help="Skip and count lines that cannot be read.")
def compare(
    first: Path,
    second: Path,
    traces: tuple[Path, ...],
    labels: tuple[Path, ...],
    jobs: int,
    as_json: bool,
    skip_bad: bool,
) -> None:
    """Say in what two configurations differ on recorded runs, with 95 % confidence intervals.

    Both see the same runs, so the differences are paired. An interval that does not hold zero is
    marked: there the difference is more than chance. An empty file is the default configuration.

    \b
    What would the tuned settings change?
        shearpin compare now.toml tuned.toml runs.jsonl.gz --labels labels.jsonl
    To compare them on live runs, give each run its arm by a stable hash:
        policy = shearpin.analysis.arms.arm(thread_id, [now, tuned], experiment="patience")

    \b
    Exit codes:
        0  done
        2  wrong usage, or a file that cannot be read
    """
    from shearpin.cli.comparing import run_compare

    raise SystemExit(run_compare(first, second, traces, labels, jobs, as_json, skip_bad))

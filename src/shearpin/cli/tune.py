"""`shearpin tune`: settings that fit recorded runs, judged on sources that were held out."""

from __future__ import annotations

from pathlib import Path

import click

__all__ = ["tune"]

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_NEW = click.Path(dir_okay=False, writable=True, path_type=Path)


@click.command(short_help="Find settings that fit recorded runs, cross-validated by source.")
@click.argument("traces", nargs=-1, required=True, metavar="TRACES...", type=_FILE)
@click.option(
    "--labels", multiple=True, type=_FILE, help="Labels (JSON Lines: run, loop, onset_step)."
)
@click.option(
    "--target-false-stops",
    type=click.FloatRange(0, 1),
    default=0.002,
    show_default=True,
    help="Share of successful runs that may be ended for nothing.",
)
@click.option(
    "--target-false-nudges",
    type=click.FloatRange(0, 1),
    default=0.006,
    show_default=True,
    help="Share of successful runs that may be spoken to for nothing.",
)
@click.option("--preset", help="Start from a preset: polling, browser, coding, research ...")
@click.option("--config", type=_FILE, help="Start from a configuration (TOML).")
@click.option(
    "--jobs", type=click.IntRange(1), default=1, show_default=True, help="Processes to use."
)
@click.option(
    "--ray", metavar="ADDRESS", help="Work on a Ray cluster (local: start one here); extra `ray`."
)
@click.option("--output", "-o", type=_NEW, help="Write the configuration found (TOML).")
@click.option("--report", type=_NEW, metavar="FILE.html", help="Write the trade-off curve.")
@click.option(
    "--usd-per-million-tokens",
    type=click.FloatRange(0),
    help="Price by which saved tokens are also shown in dollars.",
)
@click.option("--skip-bad", is_flag=True, help="Skip and count lines that cannot be read.")
def tune(
    traces: tuple[Path, ...],
    labels: tuple[Path, ...],
    target_false_stops: float,
    target_false_nudges: float,
    preset: str | None,
    config: Path | None,
    jobs: int,
    ray: str | None,
    output: Path | None,
    report: Path | None,
    usd_per_million_tokens: float | None,
    skip_bad: bool,
) -> None:
    """Find settings for your agents from runs that you have recorded.

    Of each run `outcome` is read (success or fail), and which `source` it comes from: an agent, a
    model, a team. Changes are tried one by one (the patience, the breaker, each rule off, sooner or
    later) and the best few together. What is printed last is measured on each source with settings
    chosen without it: that is what to expect of an agent that the settings have never seen.

    \b
    From recorded runs to a configuration and a page:
        shearpin tune runs.jsonl.gz --labels labels.jsonl -o guard.toml --report tune.html
    With all cores, starting from a preset:
        shearpin tune runs.jsonl.gz --preset coding --jobs 8 -o guard.toml
    A fleet with millions of runs, on a Ray cluster:
        shearpin tune runs.jsonl.gz --ray ray://head:10001 -o guard.toml

    \b
    Exit codes:
        0  done
        2  wrong usage, or a file that cannot be read
    """
    from shearpin.cli.tuning import Options, run_tune

    options = Options(
        traces,
        labels,
        target_false_stops,
        target_false_nudges,
        preset,
        config,
        jobs,
        ray,
        output,
        report,
        usd_per_million_tokens,
        skip_bad,
    )
    raise SystemExit(run_tune(options))

"""`shearpin replay`: what the guard would have said about recorded runs."""

from __future__ import annotations

from pathlib import Path

import click

__all__ = ["replay"]


@click.command(short_help="Replay recorded runs and show the verdicts they would have got.")
@click.argument(
    "files",
    nargs=-1,
    required=True,
    metavar="FILE...",
    type=click.Path(exists=True, dir_okay=False, allow_dash=True),
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per run, in order.")
@click.option("--risk", is_flag=True, help="With --json: add the loop probability of each run.")
@click.option("--summary", is_flag=True, help="Count kinds of loops, with causes and advice.")
@click.option("--check", is_flag=True, help="Judge runs that carry `expect`; exit 1 if any fails.")
@click.option(
    "--config",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Guard configuration (TOML); default settings otherwise.",
)
@click.option("--skip-bad", is_flag=True, help="Skip and count lines that cannot be read.")
@click.option(
    "--report",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    metavar="FILE.html",
    help="Write a self-contained HTML report as well.",
)
def replay(
    files: tuple[str, ...],
    as_json: bool,
    risk: bool,
    summary: bool,
    check: bool,
    config: Path | None,
    skip_bad: bool,
    report: Path | None,
) -> None:
    """Feed recorded runs to the guard and show what it would have said, and when.

    FILE holds one run per line as JSON (.jsonl, gzip or not; - is standard input). Runs are read
    one at a time, so a file may be larger than the memory. The replay is open loop: the recorded
    agent does not hear the guard, so a run goes on after a stop, which is counted once.

    \b
    A run, the least there can be:
        {"run": "r1", "steps": [
          {"text": "", "calls": [{"name": "ls", "args": {"path": "."}, "result": "a.txt"}]}]}
    What would have happened, for people and for programs:
        shearpin replay runs.jsonl
        shearpin replay runs.jsonl.gz --json | jq 'select(.worst == "stop") | .run'
    What kinds of loops there are, what they come from, and what to do:
        shearpin replay runs.jsonl --summary
    Keep your own behaviour cases, and hold the settings against them:
        shearpin replay cases.jsonl --check --config guard.toml

    Verdicts, weakest first: nudge (a hint to the agent), block (a call is refused), stop (the run
    is ended). Progress and errors go to standard error.

    \b
    Exit codes:
        0  every run was read (and, with --check, every expectation holds)
        1  --check: at least one expectation failed
        2  wrong usage, a bad configuration, a line that cannot be read, or --check on runs
           none of which carries `expect`
           (with --skip-bad such lines are counted and do not change the code)
    """
    if risk and not as_json:
        raise click.UsageError("--risk adds to what --json prints; use both")
    from shearpin.cli.replaying import Options, run_replay

    options = Options(
        files=files,
        as_json=as_json,
        risk=risk,
        summary=summary,
        check=check,
        config=config,
        skip_bad=skip_bad,
        report=report,
    )
    raise SystemExit(run_replay(options))

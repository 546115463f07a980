"""What the commands that read recorded runs and configurations have in common."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import Final

import click

from shearpin.analysis.quality import Judged
from shearpin.errors import ConfigError, TraceError
from shearpin.recipe import Guard
from shearpin.traces import TraceRun, read_runs
from shearpin.traces.unknown import unknown_keys

__all__ = ["UnknownKeys", "check_outcomes", "guard_of", "warn_of_unknown_keys"]

_LOOKED_AT: Final = 200
"""Runs of a file that are looked at for misspelt keys before the work begins."""
_MOST_NAMES: Final = 20


def guard_of(path: Path) -> Guard:
    """The guard of a configuration file; every error names the file."""
    try:
        return Guard.from_file(path)
    except ConfigError as error:
        if str(error).startswith(str(path)):
            raise
        raise ConfigError(f"{path}: {error}") from error


class UnknownKeys:
    """Says once for each file which keys of its runs are not read.

    Args:
        file: its name, as it is shown.
    """

    def __init__(self, file: str) -> None:
        self._file = file
        self._names: dict[str, None] = {}

    def see(self, run: TraceRun) -> None:
        """Look at a run."""
        if len(self._names) < _MOST_NAMES:
            self._names.update(dict.fromkeys(unknown_keys(run)))

    def say(self) -> None:
        """Name what was found, on standard error."""
        if self._names:
            names = ", ".join(list(self._names)[:_MOST_NAMES])
            click.echo(f"Warning: {self._file}: unknown keys are not read: {names}", err=True)


def warn_of_unknown_keys(paths: Iterable[Path]) -> None:
    """Look at the first runs of some files; lines that cannot be read are left to others."""
    for path in paths:
        found = UnknownKeys(str(path))
        bad: list[TraceError] = []
        for run in islice(read_runs(path, on_bad=bad.append), _LOOKED_AT):
            found.see(run)
        found.say()


def check_outcomes(rows: Sequence[Judged]) -> None:
    """Whether there is anything to judge a guard by.

    Raises:
        ConfigError: no run has succeeded, so that nothing tells a wrong stop.
    """
    if rows and not any(row.good for row in rows):
        named = sorted({row.outcome or "none" for row in rows})[:5]
        raise ConfigError(
            f'none of {len(rows):,} runs carries "outcome": "success" (there is: '
            f"{', '.join(named)}), so nothing tells a wrong stop from a right one; record how "
            'runs ended, as "success" or "fail"'
        )

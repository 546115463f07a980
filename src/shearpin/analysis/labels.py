"""Labels of recorded runs: whether a run holds a loop, and where the loop begins.

A file of labels is JSON Lines. Of each object `run`, `loop` (true or false) and, for loops,
`onset_step` (the first repeated step, 1-based) are read; everything else is ignored.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple, cast

from shearpin.errors import TraceError

__all__ = ["Label", "read_labels"]


class Label(NamedTuple):
    """What a person said of a run: does it hold a loop, and from which step on."""

    loop: bool
    onset_step: int | None = None


def read_labels(paths: Iterable[str | Path]) -> dict[str, Label]:
    """The labels of some files, by run.

    Raises:
        TraceError: a file or line cannot be read; names file, line and field.
    """
    labels: dict[str, Label] = {}
    for path in paths:
        try:
            lines = Path(path).read_text(encoding="utf-8").splitlines()
        except OSError as error:
            raise TraceError(f"{path}: cannot be read: {error.strerror or error}") from error
        for number, line in enumerate(lines, 1):
            if line.strip():
                run, label = _label(line, f"{path}:{number}")
                labels[run] = label
    return labels


def _label(line: str, where: str) -> tuple[str, Label]:
    try:
        data: object = json.loads(line)
    except ValueError as error:
        raise TraceError(f"{where}: is not valid JSON: {error}") from error
    if not isinstance(data, dict):
        raise TraceError(f"{where}: a label must be an object")
    record = cast("dict[str, object]", data)
    run, loop, onset = record.get("run"), record.get("loop"), record.get("onset_step")
    if not isinstance(run, str):
        raise TraceError(f"{where}: run must be a text")
    if not isinstance(loop, bool):
        raise TraceError(f"{where}: loop must be true or false")
    if onset is not None and (not isinstance(onset, int) or onset < 1):
        raise TraceError(f"{where}: onset_step must be a step, counted from 1")
    return run, Label(loop, onset)

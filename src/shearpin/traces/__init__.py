"""Readers of recorded runs.

* `read_runs` - the runs of one `.jsonl` or `.jsonl.gz` file, one at a time
* `parse_run` - one run from an already parsed JSON object
* `TraceRun`, `TraceStep`, `TraceCall`, `TraceExpect` - what a recorded run holds
"""

from __future__ import annotations

from shearpin.traces.checks import ShapeError
from shearpin.traces.model import TraceCall, TraceExpect, TraceRun, TraceStep
from shearpin.traces.reader import read_runs
from shearpin.traces.shapes import parse_run

__all__ = [
    "ShapeError",
    "TraceCall",
    "TraceExpect",
    "TraceRun",
    "TraceStep",
    "parse_run",
    "read_runs",
]

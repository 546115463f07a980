"""Recorded runs, read and written.

* `read_runs` - the runs of one `.jsonl` or `.jsonl.gz` file, one at a time
* `parse_run` - one run from an already parsed JSON object
* `trace_of` - one run from the messages of a conversation; `write_runs` - a file of runs
* `TraceRun`, `TraceStep`, `TraceCall`, `TraceExpect` - what a recorded run holds
"""

from __future__ import annotations

from shearpin.traces.checks import ShapeError
from shearpin.traces.model import TraceCall, TraceExpect, TraceRun, TraceStep
from shearpin.traces.reader import read_runs
from shearpin.traces.shapes import parse_run
from shearpin.traces.writing import trace_of, write_runs

__all__ = [
    "ShapeError",
    "TraceCall",
    "TraceExpect",
    "TraceRun",
    "TraceStep",
    "parse_run",
    "read_runs",
    "trace_of",
    "write_runs",
]

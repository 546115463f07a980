"""Steps per second of a replay on one core, from file to verdicts.

    python -m benchmarks.replay_speed [FILE_OR_FOLDER ...]

Without arguments: 200,000 short generated steps. With arguments: these recorded runs as well, each
file on its own line. The time is CPU time of reading, parsing and judging.
"""

from __future__ import annotations

import random
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

import orjson

from benchmarks.measuring import cpu_seconds, save, table
from shearpin.analysis.replay import replay_run
from shearpin.core.settings import Settings
from shearpin.traces import read_runs

RUNS, STEPS_EACH = 2_000, 100


def generated(folder: Path) -> Path:
    """A file of short steps: one call each, small arguments, small results, some repeats."""
    dice = random.Random(11)
    path = folder / "generated short steps.jsonl"
    with path.open("wb") as out:
        for run in range(RUNS):
            steps = [
                {
                    "turn": 1,
                    "text": "",
                    "calls": [
                        {
                            "id": f"c{step}",
                            "name": dice.choice(("read_file", "search", "edit_file")),
                            "args": {"path": f"m{dice.randrange(60)}.py"},
                            "result": f"{dice.randrange(1000)} lines",
                            "status": "success",
                        }
                    ],
                    "usage": {"input_tokens": 900, "output_tokens": 40},
                }
                for step in range(STEPS_EACH)
            ]
            out.write(orjson.dumps({"run": f"g{run}", "tools": {}, "steps": steps}) + b"\n")
    return path


def replayed(path: Path) -> Iterator[int]:
    """Steps of each run, after its replay."""
    settings = Settings()
    for run in read_runs(path):
        replay_run(run, settings)
        yield len(run.steps)


def measure(path: Path) -> dict[str, object]:
    """The faster of two passes."""
    steps = sum(replayed(path))
    seconds = min(cpu_seconds(lambda: sum(replayed(path))) for _ in range(2))
    return {
        "file": path.name,
        "steps": steps,
        "cpu_seconds": round(seconds, 3),
        "steps_per_second": round(steps / seconds),
    }


def files(arguments: Iterable[str]) -> Iterator[Path]:
    """The trace files that are named, and those in named folders."""
    for argument in arguments:
        path = Path(argument)
        yield from sorted(path.glob("*.jsonl.gz")) if path.is_dir() else [path]


def main() -> None:
    rows: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory() as folder:
        rows.append(measure(generated(Path(folder))))
        print(rows[-1], flush=True)
    for path in files(sys.argv[1:]):
        rows.append(measure(path))
        print(rows[-1], flush=True)
    if len(rows) > 2:
        steps = sum(int(str(row["steps"])) for row in rows[1:])
        seconds = sum(float(str(row["cpu_seconds"])) for row in rows[1:])
        total = {"file": "all recorded runs", "steps": steps, "cpu_seconds": round(seconds, 3)}
        rows.append({**total, "steps_per_second": round(steps / seconds)})
    save("replay_speed", rows)
    body = [
        [
            str(row["file"]),
            f"{row['steps']:,}",
            f"{row['cpu_seconds']:.2f}",
            f"{row['steps_per_second']:,}",
        ]
        for row in rows
    ]
    print(table(["file", "steps", "CPU seconds", "steps per second"], body))


if __name__ == "__main__":
    main()

"""What the benchmarks share: CPU time, interleaved pairs, and a file of results."""

from __future__ import annotations

import gc
import json
import os
import platform
import statistics
import time
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NamedTuple

RESULTS = Path(__file__).parent / "results"


class Pair(NamedTuple):
    """CPU seconds of one plain and one guarded run, measured next to each other."""

    plain: float
    guarded: float


def cpu_seconds(run: Callable[[], object]) -> float:
    """CPU time of this process, all threads, for one run; earlier garbage is gone."""
    gc.collect()
    began = time.process_time()
    run()
    return time.process_time() - began


def interleaved(
    plain: Callable[[], object], guarded: Callable[[], object], pairs: int
) -> list[Pair]:
    """Measure A and B alternately, which goes first changes each time, after one warm-up each."""
    found: list[Pair] = []
    for number in range(pairs):
        if number % 2:
            second = cpu_seconds(guarded)
            found.append(Pair(cpu_seconds(plain), second))
        else:
            first = cpu_seconds(plain)
            found.append(Pair(first, cpu_seconds(guarded)))
    return found


def median(values: list[float]) -> float:
    """The middle value."""
    return statistics.median(values)


def machine() -> dict[str, str | int | None]:
    """What the numbers depend on."""

    def of(package: str) -> str | None:
        try:
            return version(package)
        except PackageNotFoundError:
            return None

    return {
        "python": platform.python_version(),
        "system": platform.system(),
        "processor": platform.machine(),
        "cores": os.cpu_count(),
        "langgraph": of("langgraph"),
        "langchain-core": of("langchain-core"),
    }


def save(name: str, rows: list[dict[str, object]]) -> None:
    """Write `results/NAME.json`."""
    RESULTS.mkdir(exist_ok=True)
    text = json.dumps({"machine": machine(), "rows": rows}, indent=1) + "\n"
    (RESULTS / f"{name}.json").write_text(text, encoding="utf-8")


def table(header: list[str], rows: list[list[str]]) -> str:
    """A markdown table."""
    lines = [header, ["---:" if index else "---" for index in range(len(header))], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)

"""Fit the loop probability model, and say how well it carries over to sources it has not seen.

    python -m benchmarks.train_risk CORPUS

Positive steps: the eight steps after the onset of a labelled loop. Negative steps: all of
successful runs that are not labelled as loops. Every source weighs the same on either side. Weights
are never negative: more of a sign is never less of a loop. Writes src/shearpin/analysis/risk.json.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.measuring import table
from shearpin.analysis.labels import read_labels
from shearpin.analysis.quality import source_of
from shearpin.analysis.risk import FEATURES, RiskModel, features_of
from shearpin.traces import read_runs

TARGET = Path(__file__).parent.parent / "src" / "shearpin" / "analysis" / "risk.json"
ROUNDS, STEP, SHRINK = 4000, 0.5, 0.002


class Run(NamedTuple):
    source: str
    loop: bool
    steps: list[list[float]]


def load(folder: Path) -> list[Run]:
    labels = read_labels([folder / "labels.jsonl"])
    runs: list[Run] = []
    for file in sorted(folder.glob("*.jsonl.gz")):
        for run in read_runs(file):
            label = labels.get(run.run)
            if label is not None and label.loop:
                onset = label.onset_step or 1
                runs.append(Run(source_of(run), True, features_of(run)[onset : onset + 8]))
            elif run.outcome == "success":
                runs.append(Run(source_of(run), False, features_of(run)))
    return [run for run in runs if run.steps]


def fit(runs: Sequence[Run]) -> RiskModel:
    sizes = Counter((run.source, run.loop) for run in runs for _ in run.steps)
    sides = Counter(loop for _, loop in sizes)
    rows = np.array([step for run in runs for step in run.steps])
    wanted = np.array([float(run.loop) for run in runs for _ in run.steps])
    weight = np.array([
        1 / (sizes[run.source, run.loop] * sides[run.loop]) for run in runs for _ in run.steps
    ])  # fmt: skip
    weight /= weight.sum()
    beta, intercept = np.zeros(rows.shape[1]), 0.0
    for _ in range(ROUNDS):
        error = weight * (1 / (1 + np.exp(-(rows @ beta + intercept))) - wanted)
        beta = np.maximum(0.0, beta - STEP * (rows.T @ error + SHRINK * beta))
        intercept -= STEP * error.sum()
    names = list(FEATURES)
    return RiskModel(
        round(float(intercept), 3),
        {name: round(float(value), 3) for name, value in zip(names, beta, strict=True)},
    )


def peak(model: RiskModel, run: Run) -> float:
    return max(model.score(step) for step in run.steps)


def area(model: RiskModel, runs: Sequence[Run]) -> float | None:
    """How often a loop scores above a healthy run, whole runs by their highest step."""
    loops = [peak(model, run) for run in runs if run.loop]
    healthy = [peak(model, run) for run in runs if not run.loop]
    if not loops or not healthy:
        return None
    wins = sum((a > b) + (a == b) / 2 for a in loops for b in healthy)
    return wins / (len(loops) * len(healthy))


def main() -> None:
    runs = load(Path(sys.argv[1]))
    lines: list[list[str]] = []
    held_loops: list[float] = []
    held_healthy: list[float] = []
    for source in sorted({run.source for run in runs}):
        model = fit([run for run in runs if run.source != source])
        test = [run for run in runs if run.source == source]
        held_loops += [peak(model, run) for run in test if run.loop]
        held_healthy += [peak(model, run) for run in test if not run.loop]
        found = area(model, test)
        lines.append([
            source, str(sum(run.loop for run in test)), str(sum(not run.loop for run in test)),
            "-" if found is None else f"{found:.3f}",
        ])  # fmt: skip
    wins = sum((a > b) + (a == b) / 2 for a in held_loops for b in held_healthy)
    pooled = wins / (len(held_loops) * len(held_healthy))
    bound = sorted(held_healthy)[int(0.99 * len(held_healthy))]
    caught = sum(value > bound for value in held_loops) / len(held_loops)
    print(table(["source held out", "loops", "healthy runs", "AUC"], lines))
    print(f"pooled AUC {pooled:.3f}; at 1 % of healthy runs: {caught:.2f} of loops")
    model = fit(runs)
    report = {
        "runs": len(runs),
        "loops": sum(run.loop for run in runs),
        "sources": len({run.source for run in runs}),
        "auc_in_sample": round(area(model, runs) or 0.0, 3),
        "auc_held_out": round(pooled, 3),
        "loops_at_one_percent_held_out": round(caught, 3),
        "by_source_held_out": {line[0]: line[3] for line in lines},
    }
    data = {"intercept": model.intercept, "weights": model.weights, "training": report}
    TARGET.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(data, indent=1))


if __name__ == "__main__":
    main()

"""How well the guard judges recorded runs, next to what others do, and on sources held out.

    python -m benchmarks.quality CORPUS [--jobs N] [--no-held-out]

CORPUS is a folder with trace files (`*.jsonl.gz`) and `labels.jsonl`. What is counted, and how, is
said in `shearpin.analysis.quality`. The baseline `longguard` takes part if it is installed.
"""

from __future__ import annotations

import argparse
import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from benchmarks.baselines import baselines
from benchmarks.measuring import save, table
from shearpin.analysis.fleet import evaluate, pieces, speaking
from shearpin.analysis.labels import Label, read_labels
from shearpin.analysis.quality import Judged, Score, judge_run, judged, score
from shearpin.analysis.tuning import (
    Change,
    Target,
    apply,
    choose,
    combined,
    cross_validate,
    singles,
)
from shearpin.core.settings import Settings
from shearpin.traces import TraceRun, read_runs

SCRIPTED = ("sweagent_demos",)
TOYS = ("local_llm",)
SPLITS = 40
Rows = Mapping[tuple[Change, ...], Sequence[Judged]]


def group_of(source: str) -> str:
    """InterCode's older models and scripted runs are no measure of false alarms on LLM agents."""
    if source.startswith("intercode"):
        return "InterCode"
    if source.startswith((*SCRIPTED, *TOYS)):
        return "scripted and toys"
    return "LLM agents"


def percent(value: float | None, digits: int = 1) -> str:
    return "-" if value is None else f"{100 * value:.{digits}f}"


def number(value: float | None) -> str:
    return "-" if value is None else f"{value:g}"


def part(count: int, whole: int) -> str:
    return f"{count}/{whole}" if whole else "-"


COLUMNS: list[tuple[str, Callable[[Score], str]]] = [
    ("good runs", lambda s: f"{s.good:,}"),
    ("nudged %", lambda s: percent(s.wrong_nudges, 2)),
    ("stopped %", lambda s: percent(s.wrong_stops, 2)),
    ("loops caught", lambda s: part(s.caught, s.loops)),
    ("precision", lambda s: "-" if s.precision is None else f"{s.precision:.2f}"),
    ("delay", lambda s: number(s.median_delay)),
    ("p90", lambda s: number(s.late_delay)),
    ("failed runs", lambda s: f"{s.failed:,}"),
    ("stopped % ", lambda s: percent(s.stopped)),
    ("steps saved %", lambda s: percent(s.saved_steps)),
    ("tokens saved %", lambda s: percent(s.saved_tokens)),
]


def grid(first: str, scores: Mapping[str, Score]) -> str:
    body = [[name, *(show(one) for _, show in COLUMNS)] for name, one in scores.items()]
    return table([first, *(name for name, _ in COLUMNS)], body)


def judge_all(runs: Iterable[TraceRun], labels: Mapping[str, Label]) -> dict[str, list[Judged]]:
    """Every run, by Shearpin and by every baseline, in one pass."""
    settings, others = Settings(), baselines()
    found: dict[str, list[Judged]] = {"Shearpin": [], **{name: [] for name in others}}
    for run in runs:
        label = labels.get(run.run)
        found["Shearpin"].append(judge_run(run, settings, label))
        for name, judge in others.items():
            found[name].append(judged(run, judge(run), label))
    return found


def compared(found: Mapping[str, list[Judged]]) -> list[dict[str, object]]:
    """The tables of guards, for each group of sources, and of Shearpin for each source."""
    records: list[dict[str, object]] = []
    for group in ("LLM agents", "InterCode", "all"):
        scores = {
            name: score(r for r in rows if group in (group_of(r.source), "all"))
            for name, rows in found.items()
        }
        print(f"\n### {group}\n\n{grid('guard', scores)}")
        records += [
            {"table": "guards", "group": group, "guard": name, **one.to_json()}
            for name, one in scores.items()
        ]
    for name, rows in found.items():
        sources = sorted({row.source for row in rows})
        scores = {source: score(r for r in rows if r.source == source) for source in sources}
        if name == "Shearpin":
            print(f"\n### Shearpin by source\n\n{grid('source', scores)}")
        records += [
            {"table": "sources", "guard": name, "source": source, **one.to_json()}
            for source, one in scores.items()
        ]
    return records


def misses(rows: Sequence[Judged]) -> list[dict[str, object]]:
    """The runs that show what is wrong or missed."""
    records: list[dict[str, object]] = []

    def note(kind: str, row: Judged) -> None:
        found = ", ".join(f"{family} {level.label}" for family, level in row.findings)
        record = {"kind": kind, "run": row.run, "steps": row.steps, "findings": found}
        records.append({"table": "misses", **record, "nudge": row.nudge, "stop": row.stop})

    for row in rows:
        if row.good and row.nudge is not None:
            note("ended, though it succeeded" if row.stop else "nudged, though it succeeded", row)
        elif row.label is not None and row.label.loop and row.caught is None:
            note("labelled loop missed", row)
        elif row.label is not None and not row.label.loop and row.nudge is not None:
            note("labelled as no loop, but nudged", row)
    columns = ("kind", "run", "steps", "nudge", "stop", "findings")
    lines = [[str(record[column]) for column in columns] for record in records]
    print(f"\n### Wrong or missed\n\n{table(list(columns), lines)}")
    return records


def unstopped(rows: Sequence[Judged]) -> dict[str, object]:
    """Why failed InterCode runs were not ended."""
    why: Counter[str] = Counter()
    for row in rows:
        if group_of(row.source) != "InterCode" or row.outcome != "fail":
            continue
        if row.stop is not None:
            why["ended"] += 1
        elif row.nudge is None:
            why["no repetition with an unchanged result was seen"] += 1
        elif row.steps - row.nudge < 4:
            why["told, and the run was over less than four steps later"] += 1
        else:
            why["told, but what followed was not the same again"] += 1
    total = sum(why.values())
    print("\n### Failed InterCode runs\n")
    print(table(["", "runs", "%"], [
        [name, f"{count:,}", percent(count / total)] for name, count in why.most_common()
    ]))  # fmt: skip
    return {"table": "failed InterCode runs", **why}


def candidates(files: Sequence[Path], labels: Mapping[str, Label], jobs: int) -> Rows:
    """All settings that the held-out evaluation may choose from, on every run."""
    base = Settings()
    tried: list[tuple[Change, ...]] = [()]
    tried += [(change,) for change in singles(base, speaking(pieces(files), base))]
    rows = dict(zip(tried, _replay(files, base, tried, labels, jobs), strict=True))
    sources = frozenset(row.source for row in rows[()])
    more: set[tuple[Change, ...]] = set()
    for held in ("", *sorted(sources)):
        more.update(combined(rows, Target(), sources - {held}))
    extra = sorted(more - set(rows), key=lambda changes: [change.name for change in changes])
    rows.update(zip(extra, _replay(files, base, extra, labels, jobs), strict=True))
    return rows


def _replay(
    files: Sequence[Path],
    base: Settings,
    tried: Sequence[tuple[Change, ...]],
    labels: Mapping[str, Label],
    jobs: int,
) -> tuple[list[Judged], ...]:
    settings = [apply(base, changes) for changes in tried]
    return evaluate(pieces(files), settings, labels, jobs=jobs).rows


def held_out(rows: Rows) -> list[dict[str, object]]:
    """Settings chosen on some sources, measured on the others, against the defaults there."""
    records: list[dict[str, object]] = []
    lines: list[list[str]] = []
    folds = cross_validate(rows, Target())
    names = Counter(" + ".join(c.name for c in fold.chosen) or "defaults" for fold in folds)
    lines.append(_held("leave one source out", (row for fold in folds for row in fold.rows)))
    records.append({"table": "held out", "split": "leave one source out", "chosen": dict(names)})
    dice = random.Random(7)
    sources = sorted({row.source for row in rows[()]})
    halves: list[Judged] = []
    chosen: Counter[str] = Counter()
    for _ in range(SPLITS):
        train = frozenset(dice.sample(sources, len(sources) // 2))
        changes = choose(rows, Target(), train)
        chosen[" + ".join(c.name for c in changes) or "defaults"] += 1
        halves += [row for row in rows[changes] if row.source not in train]
    lines.append(_held(f"half and half, {SPLITS} splits", halves))
    records.append({"table": "held out", "split": "half and half", "chosen": dict(chosen)})
    lines.append(_held("defaults, all sources (in-sample)", rows[()]))
    header = [
        "settings", "nudged %", "stopped %", "loops caught %", "precision", "delay",
        "failed InterCode stopped %",
    ]  # fmt: skip
    print(f"\n### Chosen on some sources, measured on others\n\n{table(header, lines)}")
    print("\nChosen, leave one out:", dict(names), "\nChosen, halves:", dict(chosen))
    return [*records, *({"table": "held out", "line": line} for line in lines)]


def _held(name: str, rows: Iterable[Judged]) -> list[str]:
    kept = list(rows)
    llm = score(row for row in kept if group_of(row.source) == "LLM agents")
    code = score(row for row in kept if group_of(row.source) == "InterCode")
    every = score(kept)
    return [
        name, percent(llm.wrong_nudges, 2), percent(llm.wrong_stops, 2), percent(every.recall),
        number(None if every.precision is None else round(every.precision, 2)),
        number(every.median_delay), percent(code.stopped),
    ]  # fmt: skip


def patience_table(rows: Rows) -> list[dict[str, object]]:
    """What one step of patience means."""
    scores: dict[float, Sequence[Judged]] = {0.5: rows[()]}
    for changes in rows:
        if len(changes) == 1 and changes[0].patience is not None:
            scores[changes[0].patience] = rows[changes]
    lines: list[list[str]] = []
    records: list[dict[str, object]] = []
    for patience, kept in sorted(scores.items()):
        llm = score(row for row in kept if group_of(row.source) == "LLM agents")
        code = score(row for row in kept if group_of(row.source) == "InterCode")
        every = score(kept)
        lines.append([
            f"{patience:g}", percent(llm.wrong_nudges, 2), f"{1000 * (llm.wrong_stops or 0):.1f}",
            f"{1000 * (code.wrong_stops or 0):.1f}", percent(every.recall),
            number(None if every.precision is None else round(every.precision, 2)),
            number(every.median_delay), number(every.late_delay), percent(code.stopped),
            percent(every.saved_steps),
        ])  # fmt: skip
        records.append({"table": "patience", "patience": patience, **every.to_json()})
    header = [
        "patience", "wrong nudges %", "wrong stops per 1,000 LLM runs",
        "wrong stops per 1,000 InterCode runs", "loops caught %", "precision",
        "steps to the first word (median)", "p90", "failed InterCode stopped %",
        "steps saved on failed runs %",
    ]  # fmt: skip
    print(f"\n### Patience\n\n{table(header, lines)}")
    return records


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, add_help=True)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--no-held-out", action="store_true")
    options = parser.parse_args()
    files = sorted(options.corpus.glob("*.jsonl.gz"))
    labels = read_labels([options.corpus / "labels.jsonl"])
    found = judge_all((run for file in files for run in read_runs(file)), labels)
    if len(found) < 6:
        print("longguard is not installed and takes no part")
    records = compared(found)
    records += misses(found["Shearpin"])
    records.append(unstopped(found["Shearpin"]))
    if not options.no_held_out:
        rows = candidates(files, labels, options.jobs)
        records += patience_table(rows)
        records += held_out(rows)
    save("quality", records)


if __name__ == "__main__":
    main()

"""Reading recorded runs: plain, gzip, damaged, and without filling the memory."""

from __future__ import annotations

import gzip
import io
import json
import tracemalloc
from pathlib import Path

import pytest

from shearpin.errors import TraceError
from shearpin.traces import read_runs, reader

RUN = {"run": "r1", "steps": [{"text": "hello", "calls": []}]}


def line(name: str, **more: object) -> str:
    return json.dumps({**RUN, "run": name, **more}, ensure_ascii=False) + "\n"


def written(path: Path, *lines: str, zipped: bool = False) -> Path:
    data = "".join(lines).encode()
    path.write_bytes(gzip.compress(data) if zipped else data)
    return path


@pytest.mark.parametrize("zipped", [False, True])
@pytest.mark.parametrize("name", ["runs.jsonl", "runs.jsonl.gz", "runs"])
def test_gzip_is_recognised_by_content(tmp_path: Path, name: str, zipped: bool) -> None:
    path = written(tmp_path / name, line("a"), line("b", titel="跑步"), zipped=zipped)
    runs = list(read_runs(path))
    assert [run.run for run in runs] == ["a", "b"]
    assert runs[1].origin == f"{path}:2"
    assert runs[1].raw["titel"] == "跑步"


def test_an_open_stream_is_read_and_left_open() -> None:
    stream = io.BufferedReader(io.BytesIO(line("a").encode()))  # type: ignore[arg-type]
    (run,) = read_runs(stream, name="<stdin>")
    assert run.origin == "<stdin>:1"
    assert not stream.closed


def test_empty_lines_a_byte_order_mark_and_a_missing_line_end_are_fine(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + line("a").encode() + b"\n \r\n" + line("b").strip().encode())
    assert [(run.run, run.origin[-2:]) for run in read_runs(path)] == [("a", ":1"), ("b", ":4")]


def test_an_empty_file_holds_no_runs(tmp_path: Path) -> None:
    assert list(read_runs(written(tmp_path / "none.jsonl"))) == []


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"gone\.jsonl: cannot be opened: No such file"):
        list(read_runs(tmp_path / "gone.jsonl"))


@pytest.mark.parametrize(
    ("bad", "problem"),
    [
        ("not json\n", "runs.jsonl:2: the line is not valid JSON"),
        (
            '{"run": "x", "steps": [{"calls": [{"name": 3}]}]}\n',
            r":2: steps\[0\]\.calls\[0\]\.name",
        ),
        ('{"run": "x", "steps"\n', "runs.jsonl:2: the line is not valid JSON"),
        ("[" * 100_000 + "\n", "runs.jsonl:2: the line is nested too deeply"),
        ('"a run"\n', ":2: must be a JSON object"),
    ],
)
def test_a_bad_line_is_an_error_with_file_line_and_field(
    tmp_path: Path, bad: str, problem: str
) -> None:
    path = written(tmp_path / "runs.jsonl", line("a"), bad, line("b"))
    seen: list[str] = []
    with pytest.raises(TraceError, match=problem):
        seen.extend(run.run for run in read_runs(path))
    skipped: list[TraceError] = []
    assert [run.run for run in read_runs(path, on_bad=skipped.append)] == ["a", "b"]
    assert len(skipped) == 1


def test_what_python_writes_and_json_forbids_is_read(tmp_path: Path) -> None:
    bad = (
        '{"run": "r", "steps": [{"text": "\\ud800", "calls": [{"name": "a", "args": {"x": NaN}}]}]}'
    )
    (run,) = read_runs(written(tmp_path / "runs.jsonl", bad))
    assert run.steps[0].text == "?", "what no terminal or file can take is replaced"


@pytest.mark.parametrize("cut", [5, 60])
def test_a_damaged_archive_is_an_error_and_ends_the_file(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "runs.jsonl.gz"
    whole = gzip.compress("".join(line(f"r{number}") for number in range(5000)).encode())
    path.write_bytes(whole[:cut])
    with pytest.raises(TraceError, match=r"runs\.jsonl\.gz:\d+: the file is damaged"):
        list(read_runs(path))
    skipped: list[TraceError] = []
    list(read_runs(path, on_bad=skipped.append))
    assert len(skipped) == 1


def test_a_line_without_end_does_not_fill_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "MAX_RUN_BYTES", 1000)
    path = written(tmp_path / "runs.jsonl", line("a"), line("b", title="x" * 5000), line("c"))
    skipped: list[TraceError] = []
    assert [run.run for run in read_runs(path, on_bad=skipped.append)] == ["a", "c"]
    assert "runs.jsonl:2: the line is longer than 1000 bytes" in str(skipped[0])
    assert len(skipped) == 1


@pytest.mark.parametrize("zipped", [False, True])
def test_memory_does_not_grow_with_the_file(tmp_path: Path, zipped: bool) -> None:
    steps = [{"text": "word " * 40, "calls": []}] * 20
    lines = [line(str(number), steps=steps) for number in range(2000)]
    path = written(tmp_path / "runs.jsonl", *lines, zipped=zipped)
    tracemalloc.start()
    try:
        assert sum(len(run.steps) for run in read_runs(path)) == 2000 * 20
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < sum(map(len, lines)) / 10

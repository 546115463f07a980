"""Reads recorded runs from JSON Lines, plain or gzip, one run in memory at a time.

A bad line is a `TraceError` that names file, line and field. With `on_bad` the reader hands it over
and goes on with the next line instead.
"""

from __future__ import annotations

import gzip
import io
import json
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from os import PathLike, fspath
from pathlib import Path
from typing import Final

import orjson

from shearpin.errors import TraceError
from shearpin.traces.checks import ShapeError
from shearpin.traces.model import TraceRun
from shearpin.traces.shapes import parse_run

__all__ = ["MAX_RUN_BYTES", "read_runs"]

MAX_RUN_BYTES: Final = 512 * 1024 * 1024
"""Longest line that is read: a file without line ends must not fill the memory."""

_GZIP_MAGIC: Final = b"\x1f\x8b"
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_DAMAGED: Final = (EOFError, zlib.error, gzip.BadGzipFile)


def read_runs(
    source: str | PathLike[str] | io.BufferedReader,
    *,
    name: str | None = None,
    on_bad: Callable[[TraceError], None] | None = None,
) -> Iterator[TraceRun]:
    """The runs of one trace file, in order.

    Args:
        source: a path, or a binary stream that is already open (it is left open). Gzip is
            recognised by its first two bytes, whatever the file is called.
        name: what to call the source in errors; its path by default.
        on_bad: called with the error of each line that cannot be read, which is then skipped. None
            (default): the first bad line raises.

    Raises:
        TraceError: the file cannot be opened, or a line is not a run and `on_bad` is None.

    Example:
        >>> from shearpin.traces import read_runs
        >>> for run in read_runs("runs.jsonl.gz"):  # doctest: +SKIP
        ...     print(run.run, len(run.steps))
    """
    with ExitStack() as stack:
        if isinstance(source, io.BufferedReader):
            raw = source
            label = name or str(getattr(source, "name", "<stream>"))
        else:
            label = name or fspath(source)
            try:
                raw = stack.enter_context(Path(source).open("rb"))
            except OSError as error:
                raise TraceError(f"{label}: cannot be opened: {error.strerror}") from error
        yield from _runs(raw, label, on_bad)


def _runs(
    raw: io.BufferedReader, label: str, on_bad: Callable[[TraceError], None] | None
) -> Iterator[TraceRun]:
    zipped = raw.peek(2)[:2] == _GZIP_MAGIC
    lines = gzip.GzipFile(fileobj=raw, mode="rb") if zipped else raw
    number = 0
    while True:
        number += 1
        origin = f"{label}:{number}"
        try:
            line = _line(lines)
        except (*_DAMAGED, OSError) as error:
            _report(TraceError(f"{origin}: the file is damaged: {error}"), error, on_bad)
            return
        if line == b"":
            return
        try:
            if line is None:
                raise ShapeError("", f"the line is longer than {MAX_RUN_BYTES} bytes")
            if number == 1:
                line = line.removeprefix(_BYTE_ORDER_MARK)
            if line.isspace():
                continue
            run = parse_run(_parse(line), origin)
        except ShapeError as error:
            _report(TraceError(f"{origin}: {error}"), error, on_bad)
            continue
        yield run


def _line(lines: io.BufferedReader | gzip.GzipFile) -> bytes | None:
    """The next line, empty at the end of the file; None, and read over, where it is too long."""
    line = lines.readline(MAX_RUN_BYTES)
    if len(line) < MAX_RUN_BYTES or line.endswith(b"\n"):
        return line
    while line and not line.endswith(b"\n"):
        line = lines.readline(MAX_RUN_BYTES)
    return None


def _parse(line: bytes) -> object:
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError as error:
        strict = error
    # Python's own json writes NaN and lone surrogates, which orjson is right to refuse; a recording
    # made with it should be readable all the same. Surrogates are replaced: nothing can print them.
    try:
        text = json.dumps(json.loads(line), ensure_ascii=False)
        return json.loads(text.encode("utf-8", "replace"))
    except RecursionError:
        raise ShapeError("", "the line is nested too deeply") from None
    except ValueError:
        raise ShapeError(
            "", f"the line is not valid JSON: {strict.msg} (character {strict.pos + 1})"
        ) from None


def _report(
    error: TraceError, cause: BaseException, on_bad: Callable[[TraceError], None] | None
) -> None:
    if on_bad is None:
        raise error from cause
    on_bad(error)

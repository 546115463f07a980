"""The work behind `shearpin repair`; imported only when the command runs."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

import click
import orjson

from shearpin.adapters.langgraph.stored.diagnosis import Diagnosis
from shearpin.adapters.langgraph.stored.mending import is_lasting, look_through, mend_stored
from shearpin.adapters.langgraph.stored.opening import open_threads
from shearpin.adapters.langgraph.stored.records import Head, Threads
from shearpin.errors import ConfigError, ShearpinError

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["Options", "run_repair"]

_OK, _BROKEN, _BAD_INPUT = 0, 1, 2


class Options(NamedTuple):
    """What was asked for on the command line."""

    checkpoint: str
    threads: tuple[str, ...]
    dry_run: bool
    as_json: bool
    messages_key: str | None
    give_up: bool
    language: str


def run_repair(options: Options) -> int:
    """Looks through all conversations and returns the exit code."""
    try:
        threads = open_threads(options.checkpoint, reads_only=options.dry_run)
        try:
            return _repair(threads, options)
        finally:
            threads.close()
    except ShearpinError as error:
        click.echo(f"Error: {error}", err=True)
        return _BAD_INPUT


def _repair(threads: Threads, options: Options) -> int:
    heads = [head for head in threads.heads(options.threads) if is_lasting(head)]
    _check_names(threads, heads, options)
    counts: Counter[str] = Counter()
    shown: list[tuple[Diagnosis, str]] = []
    keyed = False
    looked = look_through(
        threads,
        heads,
        options.messages_key,
        give_up=options.give_up,
        language=options.language,
    )
    with _progress(len(heads)) as advance:
        for found, stored in looked:
            keyed = keyed or found.channel is not None
            if found.change is not None and stored is not None and not options.dry_run:
                mend_stored(threads, found, stored)
            outcome = _outcome(found, options)
            counts[outcome] += 1
            if options.as_json:
                sys.stdout.buffer.write(
                    orjson.dumps(_as_json(found, outcome), option=orjson.OPT_APPEND_NEWLINE)
                )
            elif outcome != "sound" and (outcome != "waiting" or options.threads):
                shown.append((found, outcome))
            advance()
    if options.messages_key is not None and heads and not keyed:
        raise ConfigError(
            f"{threads.name}: no thread has the key {options.messages_key!r}; leave "
            "--messages-key away to have it looked for"
        )
    _conclude(threads, shown, counts, options)
    return _BROKEN if counts["left"] or counts["broken"] else _OK


def _check_names(threads: Threads, heads: list[Head], options: Options) -> None:
    for name in options.threads:
        if all(head.thread != name for head in heads):
            raise ConfigError(f"{threads.name}: there is no thread {name!r}")


def _outcome(found: Diagnosis, options: Options) -> str:
    """`sound`, `waiting`, `left`, `broken` (a dry run) or `mended`."""
    if found.left is not None:
        return "left"
    if found.change is not None:
        return "broken" if options.dry_run else "mended"
    return "waiting" if found.waiting else "sound"


def _as_json(found: Diagnosis, outcome: str) -> dict[str, object]:
    return {
        "thread": found.head.thread,
        "namespace": found.head.namespace,
        "checkpoint": found.head.checkpoint,
        "key": found.channel,
        "standing": found.standing,
        "outcome": outcome,
        "unanswered": _calls(found.unanswered),
        "recovered": _calls(found.recovered),
        "orphans": found.orphans,
        "misplaced": found.misplaced,
        "waiting": _calls(found.waiting),
        "reason": found.left or found.waits,
    }


def _calls(named: list[tuple[str, str]]) -> list[dict[str, str]]:
    return [{"tool": tool, "id": call} for tool, call in named]


def _conclude(
    threads: Threads,
    shown: list[tuple[Diagnosis, str]],
    counts: Counter[str],
    options: Options,
) -> None:
    if shown:
        from rich.console import Console

        Console().print(_table(shown))
    total = sum(counts.values())
    parts = [f"{total:,} conversation{'' if total == 1 else 's'} in {threads.name}"]
    parts += [
        f"{counts[outcome]:,} {words}"
        for outcome, words in (
            ("mended", "mended"),
            ("broken", "to be mended (nothing was changed: --dry-run)"),
            ("left", "left as they are"),
            ("waiting", "with calls that may still be answered (not broken; --json lists them)"),
        )
        if counts[outcome]
    ]
    if not (counts["mended"] or counts["broken"] or counts["left"]):
        parts.append("none broken")
    click.echo("; ".join(parts), err=True)


def _table(shown: list[tuple[Diagnosis, str]]) -> Table:
    from rich.table import Table
    from rich.text import Text

    styles = {"mended": "green", "broken": "yellow", "left": "red", "waiting": "dim"}
    words = {"broken": "to be mended", "waiting": "waits"}
    table = Table(box=None, pad_edge=False)
    for heading in ("thread", "key", "what is wrong", "outcome"):
        table.add_column(heading, overflow="fold")
    for found, outcome in shown:
        head = found.head
        name = f"{head.thread} [{head.namespace}]" if head.namespace else head.thread
        said = Text(words.get(outcome, outcome), styles[outcome])
        reason = found.left or found.waits
        if reason:
            said.append(f": {reason}", "default")
        table.add_row(Text(name), Text(found.channel or ""), Text(_wrong(found)), said)
    return table


def _wrong(found: Diagnosis) -> str:
    parts = [
        f"{len(calls)} {what}: {', '.join(f'{tool} ({call})' for tool, call in calls[:5])}"
        + (" ..." if len(calls) > 5 else "")
        for calls, what in (
            (found.unanswered, "without an answer"),
            (found.recovered, "with an answer that was not saved"),
            (found.waiting, "not answered yet"),
        )
        if calls
    ]
    if found.orphans:
        parts.append(f"{found.orphans} answers to no call")
    if found.misplaced:
        parts.append(f"{found.misplaced} answers in the wrong place")
    return "; ".join(parts)


@contextmanager
def _progress(total: int) -> Generator[Callable[[], None]]:
    """A bar over the conversations, on standard error, where that is a terminal."""
    if not sys.stderr.isatty() or total < 2:
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("Looking through", total=total)
        yield lambda: bar.advance(task)

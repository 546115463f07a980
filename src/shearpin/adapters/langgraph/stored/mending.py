"""Conversations looked through, and mended where they may be.

Contract: what was mended is read again, and has to be valid, with all else as it was; where it is
not, that is an error and not a success. Mending twice changes nothing the second time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Final

from shearpin.adapters.langgraph.stored.diagnosis import Diagnosis, Standing, diagnose
from shearpin.adapters.langgraph.stored.records import (
    Change,
    Head,
    Stored,
    Threads,
    UnreadableError,
)
from shearpin.errors import ShearpinError, StoreError

__all__ = ["is_lasting", "look_through", "mend_stored"]

_MOST_FAILURES: Final = 20
"""How many failed steps of a conversation are looked at, for answers that it lacks."""


def is_lasting(head: Head) -> bool:
    """Whether a conversation goes on: one call's record of a subgraph is never read again."""
    return ":" not in head.namespace


def look_through(
    threads: Threads,
    heads: Sequence[Head],
    key: str | None = None,
    *,
    give_up: bool = False,
    language: str = "en",
) -> Iterator[tuple[Diagnosis, Stored | None]]:
    """What is wrong with each of some conversations, those of a thread one after another."""
    thread, root = "", "ended"
    for head in heads:
        try:
            stored = threads.read(head)
            standing: Standing = root if head.thread == thread and head.namespace else "ended"
            look = partial(diagnose, stored, key, root=standing, give_up=give_up, language=language)
            found = look()
            if found.unanswered and (earlier := _earlier(threads, head)):
                found = look(earlier=earlier)
        except UnreadableError as error:
            found, stored = Diagnosis(head, left=str(error)), None
        except ShearpinError:
            raise  # the database, not this conversation
        except Exception as error:  # whatever may stand in a database that others write to
            found, stored = Diagnosis(head, left=f"it cannot be read: {error!r}"), None
        if not head.namespace:
            thread, root = head.thread, found.standing
        yield found, stored


def _earlier(threads: Threads, head: Head) -> list[Stored]:
    """The latest checkpoints whose step failed; those in another form tell nothing."""
    found: list[Stored] = []
    for failure in threads.failures(head, _MOST_FAILURES):
        with suppress(UnreadableError):  # the newest one is what has to be mended, and was read
            found.append(threads.read(failure))
    return found


def mend_stored(threads: Threads, found: Diagnosis, stored: Stored) -> None:
    """Carry out what was found to be needed; where that cannot be, `found.left` says why.

    Raises:
        StoreError: it cannot be written, or what was written is not what was meant.
    """
    change = found.change
    assert change is not None
    try:
        head = threads.write(stored, change)
    except UnreadableError as error:
        found.left = str(error)
        return
    if head is None:
        found.left = "it has gone on meanwhile; run this again"
        return
    _check(threads.read(head), stored, change, found)


def _check(after: Stored, before: Stored, change: Change, found: Diagnosis) -> None:
    kept = {
        name: value
        for name, value in before.values.items()
        if name != change.channel and name not in change.clear
    }
    now = {name: value for name, value in after.values.items() if name != change.channel}
    again = diagnose(after, change.channel)
    if now != kept or after.values.get(change.channel) != change.items or again.change is not None:
        raise StoreError(
            f"thread {found.head.thread!r}: what was written is not what was meant; its checkpoint "
            f"{after.head.checkpoint} is of no use, the one before it is as it was"
        )

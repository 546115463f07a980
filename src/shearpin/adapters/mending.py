"""Where a broken history is noticed in a run: mended, logged, and written into the report.

Contract: in mode `observe`, and with `repair="off"`, it is written down and left as it is. A fault
is said once in a run, however often the history is mended.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from langchain_core.messages import AIMessage

from shearpin.adapters.repair import Mended, mended
from shearpin.adapters.run import Run
from shearpin.core.canonical import digest
from shearpin.core.journal import NoteRecord

__all__ = ["mend", "note_repair"]

logger = logging.getLogger("shearpin")


def mend(
    run: Run,
    key: str,
    messages: Sequence[object],
    *,
    agent: str,
    asks: bool,
    patched: bool = False,
) -> Mended | None:
    """The history as a provider accepts it; None where it is valid, or is to be left alone.

    Args:
        run: the run.
        key: which history it is; what was found valid in it before is not looked at again.
        messages: the history.
        agent: whose it is.
        asks: whether a model is about to be asked.
        patched: whether the host itself answers calls with unreadable arguments.
    """
    if not run.histories.is_broken(key, messages, asks=asks):
        return None
    settings = run.state.judge.session.settings
    found = mended(messages, asks=asks, language=settings.language)
    if found is None or (patched and _is_left_to_the_host(found, messages)):
        return None
    acts = run.repair != "off" and settings.mode != "observe"
    note_repair(run, found, agent, "lent" if acts else "left")
    return found if acts else None


def _is_left_to_the_host(found: Mended, messages: Sequence[object]) -> bool:
    """Whether all that is missing are answers to calls with unreadable arguments."""
    unreadable = {
        call["id"]
        for message in messages
        if isinstance(message, AIMessage)
        for call in message.invalid_tool_calls
    }
    made_up = all(answer.tool_call_id in unreadable for answer in found.answers)
    return made_up and not found.removed and not found.moved


def note_repair(run: Run, found: Mended, agent: str, how: str) -> None:
    """Write a repair into the report and the log, once."""
    lost = [message.tool_call_id for message in found.answers]
    key = digest([agent, lost, found.removed, found.moved])
    counts = {"unanswered": len(lost), "orphans": found.removed, "misplaced": found.moved}
    record = NoteRecord(
        run.step, run.now(), "history", "broken_history", key, agent, {**counts, "repair": how}
    )
    if run.note(record):
        logger.warning(
            "shearpin: the history of %s (thread %s) would be refused by providers: %d calls "
            "without an answer, %d answers without a call, %d in the wrong place; %s",
            run.graph,
            run.thread,
            *counts.values(),
            {"lent": "mended for the model", "saved": "mended for good"}.get(how, "left as it is"),
        )

"""A call that a person has refused comes again: it is answered without asking, and then no more.

Contract: what is done is journaled like any verdict, and follows the mode. The first time the call
is answered, the second time the run is stopped.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from shearpin.adapters.people import (
    answers_by_pause,
    halt_for,
    identity_of,
    is_refusal,
    refusal_words,
)
from shearpin.adapters.run import Run
from shearpin.events import ToolRequest
from shearpin.findings import Finding, Severity
from shearpin.verdicts import PROCEED, Block, Halt, Verdict

__all__ = ["goes_on", "note_question", "note_refusal", "proposed_again", "was_refused"]


def goes_on(run: Run, call: str) -> bool:
    """Whether a tool call was paused from within and is entered again, to hear what was said.

    An agent that the tool calls asks for itself; until it has, the run is still stopped.
    """
    ways = run.ways
    if ways.on_stop != "pause" or ways.answer is None or not run.state.people.were_asked(call):
        return False
    return ways.asked is not None and run.stopped is ways.asked


def was_refused(run: Run, task: str, *, failed: bool) -> bool:
    """Whether what is being answered now is a person's no.

    Args:
        run: the run; it knows what the person has said.
        task: what waited for the person.
        failed: whether the answer to the call says that it failed; tells apart the decisions of one
            that were taken together.
    """
    people, said = run.state.people, run.answer
    if not people.were_asked(task):
        return False
    several = answers_by_pause(said)
    if several is not None:
        said = people.answer_to(task, several)
    return is_refusal(said) or (failed and isinstance(said, dict) and "decisions" in said)


def note_question(run: Run, task: str, pause: BaseException) -> None:
    """Remember that a task waits for a person, and by which ids it may be answered."""
    raised: object = pause.args[0] if pause.args else ()
    held = cast("Sequence[object]", raised) if isinstance(raised, (list, tuple)) else ()
    ids = [getattr(interrupt, "id", None) for interrupt in held]
    run.state.people.ask(task, [it for it in ids if isinstance(it, str)])


def note_refusal(run: Run, request: ToolRequest, node: str = "", goto: str = "") -> None:
    """Remember that a person has refused a call, which node asked, and where it led to then."""
    judge = run.state.judge
    with judge.lock:
        run.state.people.refuse(identity_of(request, judge.session.settings), node, goto)


def proposed_again(run: Run, request: ToolRequest, task: str, agent: str) -> Block | Halt | None:
    """What becomes of a call that a person may have refused; None where it may go its way."""
    people, judge = run.state.people, run.state.judge
    if not people.have_refused:
        return None
    settings = judge.session.settings
    call = identity_of(request, settings)
    with judge.lock:
        if not people.refused(call):
            return None
        count, fresh = people.propose(call, task)
    step, words = run.step, refusal_words(settings.language)
    halt = halt_for(request, call, count, agent, step, settings.language)
    finding = halt.finding if halt is not None else None
    if finding is None:
        finding = _finding(request, call, count, agent, step)
    verdict: Block | Halt = halt or Block(finding, words)
    if not fresh:
        return verdict if settings.mode == "enforce" else None
    at = run.now()
    given: Verdict = judge.ask(lambda session: session.rule(verdict, finding, at), PROCEED)
    return given if isinstance(given, (Block, Halt)) else None


def _finding(request: ToolRequest, call: str, count: int, agent: str, step: int) -> Finding:
    return Finding(
        family="rejection",
        rule="proposed_again",
        key=f"rejection:{call}",
        level=Severity.BLOCK,
        count=count,
        limit=1,
        onset_step=step,
        step=step,
        agent=agent,
        subject=request.name,
        cause="refused_by_person",
    )

"""The end of a run in which too much has failed: a degraded answer that says so.

Contract: a stop like any other, so the run ends the normal way, with a last answer of the model's
where that is asked for and the model works. Only where the boundary acts; else it is only reported.
"""

# ruff: noqa: E501 - sentences are read whole
from __future__ import annotations

from typing import Final

from langchain_core.messages import HumanMessage

from shearpin.adapters.boundary.bounds import Bounds
from shearpin.adapters.places import Place
from shearpin.adapters.run import Run
from shearpin.boundary.endings import FAMILY
from shearpin.core.messages import wrap_up_text
from shearpin.findings import Finding, Severity
from shearpin.verdicts import Halt

__all__ = ["exhausted_words", "over_failures", "too_much_failed", "wrap_up_note"]

_MOST_NAMED = 3
_WORDS: Final = {
    "en": "This is not a full answer: too much failed on the way ({count} errors: {which}), so the run was ended. What was found up to then stands above.",
    "zh": "这不是完整的回答：途中失败太多（{count} 次：{which}），运行已结束。此前得到的内容见上文。",
}
_MORE: Final = {"en": "and others", "zh": "等"}


def exhausted_words(bounds: Bounds) -> str:
    """What is said of a run in which too much has failed: how much, and where most of it."""
    language = bounds.language
    told = bounds.tally.snapshot()
    failed = sorted((place for place in told.places if place.errors), key=lambda one: -one.errors)
    named = [f"{one.name or one.kind} {one.errors}" for one in failed[:_MOST_NAMED]]
    if len(failed) > _MOST_NAMED:
        named.append(_MORE[language])
    count = sum(place.errors for place in failed)
    return _WORDS[language].format(count=count, which=", ".join(named))


def too_much_failed(bounds: Bounds, *, step: int = 0, agent: str = "main") -> Halt:
    """The stop of a run whose error budget is used up."""
    limit = bounds.tally.error_budget or 0
    count = sum(place.errors for place in bounds.tally.snapshot().places)
    rule = "error_budget"
    finding = Finding(
        FAMILY, rule, f"{FAMILY}:{rule}", Severity.STOP, count, limit, step, step, agent, hard=False
    )
    return Halt(f"{FAMILY}:{rule}", exhausted_words(bounds), finding)


def wrap_up_note(bounds: Bounds) -> HumanMessage:
    """The request for the last answer of such a run; it is lent, never saved."""
    text = wrap_up_text(None, exhausted_words(bounds), bounds.language)
    return HumanMessage(content=text, id=f"shearpin:wrap-up:{bounds.language}")


def over_failures(run: Run, bounds: Bounds, place: Place) -> Halt | None:
    """Stop a run whose error budget is used up; None while it is not, or where nothing is to be
    done about it."""
    if not bounds.tally.exhausted or run.ways.landed or not bounds.acts(node=place.node):
        return None
    halt = too_much_failed(bounds, step=run.step, agent=place.agent)
    return halt if bounds.halt(run, halt) else None

"""Tool calls that nobody can answer in the tool's place: made by plain nodes, chains and code.

Contract: callbacks see them, and can keep them from being made, but cannot give anything back.
Failures are counted and raised as they are. Effects happen at most once here, too: a call whose
effect has happened, or may have, is refused with an `EffectRefusedError` that holds what is known.
So is a call that is answered, where a retry layer of the host within it runs the tool again after
it may have taken effect. Nothing is made again, and nothing takes a tool's place: that is what
`resilient` is for.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, cast
from uuid import UUID

from langchain_core.messages import ToolMessage
from langgraph.errors import GraphBubbleUp

from shearpin.adapters.boundary.packing import pack
from shearpin.adapters.outcomes import is_about_arguments
from shearpin.adapters.signals import stop_in
from shearpin.boundary.calls import CallInfo, recorded
from shearpin.boundary.categories import ErrorCategory
from shearpin.boundary.effects import Begun, Finished, TooMany, TooSoon, Unknown
from shearpin.boundary.inner import OWN, WITHIN, raised_within
from shearpin.boundary.wording import failure_words
from shearpin.core.tools import effect_of
from shearpin.errors import EffectRefusedError
from shearpin.events import ToolReturned

if TYPE_CHECKING:
    from shearpin.adapters.boundary.bounds import Bounds
    from shearpin.adapters.run import OpenCall, Run

__all__ = ["begins", "ends", "fails", "run_again"]

_INTERRUPTS: Final = ("GraphInterrupt", "NodeInterrupt")


def begins(
    run: Run, bounds: Bounds, id: UUID, metadata: Mapping[str, object] | None = None
) -> None:
    """A tool is about to run; `metadata` says where.

    Raises:
        EffectRefusedError: its effect has happened, or may have, or must not happen now.
    """
    try:
        refusal = _begun(run, bounds, id)
        if refusal is None:
            bounds.doubts.opened(id, metadata)
    except Exception as error:
        run.fault("boundary.unanswered", error)
        return
    if refusal is not None:
        raise refusal


def ends(run: Run, bounds: Bounds, id: UUID, output: object) -> None:
    """The tool has given something back."""
    bounds.doubts.closed(id)
    begun = bounds.effects_open.pop(id, None)
    if begun is None:
        return
    try:
        if isinstance(output, ToolMessage) and output.status == "error":
            bounds.effects.fail(begun, False)
        else:
            bounds.effects.finish(begun, _packed(output))
    except Exception as error:
        run.fault("boundary.unanswered", error)


def fails(run: Run, bounds: Bounds, id: UUID, error: BaseException) -> None:
    """The tool has raised."""
    try:
        _failed(run, bounds, id, error)
    except Exception as fault:
        run.fault("boundary.unanswered", fault)


def _failed(run: Run, bounds: Bounds, id: UUID, error: BaseException) -> None:
    opened = run.open.get(id)
    control = isinstance(error, GraphBubbleUp) or stop_in(error) is not None
    if control or opened is None:
        bounds.doubts.closed(id)
    else:
        _noted(run, bounds, id, opened, error)
    if opened is not None and opened.held:
        raised_within(error)
        return
    safe = any(kind.__name__ in _INTERRUPTS for kind in type(error).__mro__)
    if isinstance(error, Exception) and not control:
        failure = bounds.classify(error)
        if opened is not None:
            bounds.tally.error(failure, tool=opened.name)
        safe = failure.safe_to_retry or is_about_arguments(error)
    begun = bounds.effects_open.pop(id, None)
    if begun is not None:
        bounds.effects.fail(begun, safe)


def _noted(run: Run, bounds: Bounds, id: UUID, opened: OpenCall, error: BaseException) -> None:
    """The node in which this was called must not be run again, if it may have taken effect."""
    call, failure = _call(run, bounds, opened), bounds.classify(error)
    policy = bounds.boundary.policy(call.tool)
    acts = call.acts or policy.effect is not None
    clear = failure.safe_to_retry or is_about_arguments(error) or call.repeatable
    passing = failure.category is ErrorCategory.RETRYABLE
    if opened.held:  # it is answered, and that says what is to be done about it
        passing = passing and effect_of(call.tool, call.args, call.facts) != "read"
    if clear or failure.category is ErrorCategory.CONTROL or not (acts or passing):
        bounds.doubts.closed(id)
    else:
        bounds.doubts.failed(id, acts=acts)


def _call(run: Run, bounds: Bounds, opened: OpenCall) -> CallInfo:
    name, args = opened.name, opened.args
    named = cast("Mapping[str, object]", args) if isinstance(args, Mapping) else {"input": args}
    facts = run.state.judge.ask(lambda session: session.settings.tools.get(name), None)
    return CallInfo(name, named, opened.call, bounds.thread, facts)


def _begun(run: Run, bounds: Bounds, id: UUID) -> EffectRefusedError | None:
    opened = run.open.get(id)
    if opened is None or not bounds.acts(opened.name, opened.node):
        return None
    name, outer = opened.name, WITHIN.get()
    call = _call(run, bounds, opened)
    if opened.held:
        if outer is not None:
            outer.started = True
        return _again(run, bounds, id, call)
    if OWN.get() == name or (outer is not None and outer.recorded == name):
        return None
    how = recorded(call, bounds.boundary.policy(name))
    if how is None:
        return None
    try:
        found = bounds.effects.begin(how.thread, name, call.args, how.policy, call.call_id)
    except Exception as error:  # a store that failed, or a key that does not fit the arguments
        run.fault("boundary.effects.begin", error)
        if how.policy.on_fault == "run":
            return None
        return _refused(run, bounds, id, opened, "store")
    if isinstance(found, Begun):
        bounds.effects_open[id] = found
        return None
    if isinstance(found, Finished):
        return _refused(run, bounds, id, opened, "done", output=found.output)
    if isinstance(found, TooSoon):
        return _refused(run, bounds, id, opened, "too_soon", wait=found.wait_seconds)
    if isinstance(found, TooMany):
        return _refused(run, bounds, id, opened, "too_many")
    reason = "outcome_unknown" if isinstance(found, Unknown) else "in_progress"
    return _refused(run, bounds, id, opened, reason)


def _again(run: Run, bounds: Bounds, id: UUID, call: CallInfo) -> EffectRefusedError | None:
    refusal = run_again(bounds, call)
    if refusal is not None:
        run.open.pop(id, None)
    return refusal


def run_again(bounds: Bounds, call: CallInfo) -> EffectRefusedError | None:
    """Why a tool must not be run once more within this attempt, by a layer of the host's, after it
    has failed; None where it has not, or may be."""
    within = WITHIN.get()
    error = None if within is None else within.raised
    if error is None or call.repeatable or is_about_arguments(error):
        return None
    failure = bounds.classify(error)
    if failure.safe_to_retry or failure.category is ErrorCategory.CONTROL:
        return None
    if recorded(call, bounds.boundary.policy(call.tool)) is None:
        passing = failure.category is ErrorCategory.RETRYABLE
        if not passing or effect_of(call.tool, call.args, call.facts) == "read":
            return None
    bounds.tally.refused("outcome unknown", tool=call.tool)
    words = _words(bounds, call.tool, "outcome_unknown", None)
    return EffectRefusedError(words, "outcome_unknown", None)


def _refused(
    run: Run,
    bounds: Bounds,
    id: UUID,
    opened: OpenCall,
    reason: str,
    *,
    output: object = None,
    wait: float | None = None,
) -> EffectRefusedError:
    """The call is not made: it costs nothing, and the core is told."""
    run.open.pop(id, None)
    if opened.spending is not None:
        opened.spending.drop_tool(opened.call)
    bounds.tally.refused(reason.replace("_", " "), tool=opened.name)
    args = cast("Mapping[str, object] | str", opened.args)
    place = (opened.agent, opened.node)
    run.after(ToolReturned(run.now(), opened.call, opened.name, args, None, "blocked", *place))
    return EffectRefusedError(_words(bounds, opened.name, reason, wait), reason, output)


def _words(bounds: Bounds, tool: str, reason: str, wait: float | None) -> str:
    return failure_words(
        bounds.language,
        tool=tool,
        kind=reason,
        category=None,
        detail=None,
        attempts=0,
        elapsed=0.0,
        retry_after=wait,
        unknown=False,
    )


def _packed(output: object) -> object:
    try:
        return pack(output)
    except TypeError:
        return str(output)

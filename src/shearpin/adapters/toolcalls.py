"""One tool call that can be answered: asked about before it runs, reported after.

Contract: whatever happens, the call gets exactly one answer and is reported once, under one id,
also when a retry layer runs the tool several times; interrupts and cancellation pass through
untouched.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple, cast

from langchain_core.messages import ToolMessage
from langgraph.errors import GraphBubbleUp, GraphInterrupt
from langgraph.types import Command

from shearpin.adapters.messages import answer
from shearpin.adapters.money.metering import cut_in, spending_of
from shearpin.adapters.money.spending import Spending
from shearpin.adapters.money.timing import CutOff, atimed, timed
from shearpin.adapters.outcomes import message_in, status_of_error
from shearpin.adapters.places import Place, place_of
from shearpin.adapters.refusing import (
    goes_on,
    note_question,
    note_refusal,
    proposed_again,
    was_refused,
)
from shearpin.adapters.run import Run
from shearpin.adapters.signals import stop_in
from shearpin.adapters.stepping import name_the_child
from shearpin.events import CallStatus, ToolCalled, ToolRequest, ToolReturned
from shearpin.verdicts import Block, Halt, Verdict

__all__ = ["Asked", "aaround", "around", "not_run"]


class Asked(NamedTuple):
    """A call that may run, and what is needed to report it.

    Attributes:
        call: its id. place: where it is made. request: what was asked for. known: whether the host
            has a tool of that name. spending: its budget. config: of the host.
        tool: what is called, where the host tells.
    """

    call: str
    place: Place
    request: ToolRequest
    known: bool
    spending: Spending | None
    config: Mapping[str, Any]
    tool: object = None


def around(
    run: Run,
    execute: Callable[[], Any],
    call: Mapping[str, Any],
    config: Mapping[str, Any],
    known: bool,
    tool: object = None,
) -> Any:
    """Run one tool call under guard; `known` where the host has a tool of that name."""
    asked = _ask(run, call, config, known)
    if not isinstance(asked, Asked):
        return execute() if asked is None else asked
    try:
        bounds = run.boundary if known else None
        if bounds is None:
            result = timed(asked.spending, asked.request.name, execute)
        else:
            from shearpin.adapters.boundary.bounded import bounded

            result = bounded(run, bounds, asked._replace(tool=tool), execute)
    except BaseException as error:
        return _failed(run, asked, error)
    return _answered(run, asked, result)


async def aaround(
    run: Run,
    execute: Callable[[], Awaitable[Any]],
    call: Mapping[str, Any],
    config: Mapping[str, Any],
    known: bool,
    tool: object = None,
) -> Any:
    """`around`, for asynchronous hosts."""
    asked = _ask(run, call, config, known)
    if not isinstance(asked, Asked):
        return await execute() if asked is None else asked
    try:
        bounds = run.boundary if known else None
        if bounds is None:
            result = await atimed(asked.spending, asked.request.name, execute)
        else:
            from shearpin.adapters.boundary.bounded import abounded

            result = await abounded(run, bounds, asked._replace(tool=tool), execute)
    except BaseException as error:
        return _failed(run, asked, error)
    return _answered(run, asked, result)


def not_run(halt: Halt) -> str:
    """What a call is answered with that was not run because the run was stopped."""
    return f"Not run: the run was stopped ({halt.reason})."


def _ask(
    run: Run, call: Mapping[str, Any], config: Mapping[str, Any], known: bool
) -> Asked | ToolMessage | None:
    """The call if it may run, its answer if not, None if it is guarded already or cannot be."""
    try:
        place = place_of(config.get("metadata"))
        request = ToolRequest(str(call.get("id") or ""), str(call["name"]), call.get("args") or {})
        if not request.id:
            return None
        key = run.numbers.tool_call(place.task or run.id, request.name, request.args, request.id)
        if key in run.answering:
            return None
        verdict = proposed_again(run, request, key, place.agent) or run.before(
            ToolCalled(run.now(), key, request.name, request.args, place.agent, place.node)
        )
        spending = spending_of(run)
        asked = Asked(key, place, request, known, spending, config)
        if spending is not None and not isinstance(verdict, (Block, Halt)):
            found = spending.open_tool(key, request.name, request.id, place, run.step)
            verdict = found or verdict
        if isinstance(verdict, (Block, Halt)) and not goes_on(run, key):
            return _refuse(run, asked, verdict)
        run.answering[key] = None
        return asked
    except Exception as error:
        run.fault("toolcalls.ask", error)
        return None


def _refuse(run: Run, asked: Asked, verdict: Block | Halt) -> ToolMessage:
    text = verdict.message if isinstance(verdict, Block) else not_run(verdict)
    _report(run, asked, None, "blocked")
    return answer(run.id, asked.request, text, run.numbers.times(asked.request.id))


def _failed(run: Run, asked: Asked, error: BaseException) -> ToolMessage:
    run.answering.pop(asked.call, None)
    if isinstance(error, CutOff):
        _pay(run, asked)
        _report(run, asked, str(error), "error")
        return answer(run.id, asked.request, str(error), run.numbers.times(asked.request.id))
    halt = stop_in(error) or cut_in(run, error)
    if halt is not None:
        _pay(run, asked)
        text = halt.message if run.stopped is None else not_run(halt)
        return answer(run.id, asked.request, text, run.numbers.times(asked.request.id))
    if isinstance(error, GraphInterrupt):
        note_question(run, asked.call, error)
    if not isinstance(error, GraphBubbleUp):
        _pay(run, asked)
    elif asked.spending is not None:
        asked.spending.drop_tool(asked.call)
    if isinstance(error, Exception) and not isinstance(error, GraphBubbleUp):
        try:
            name_the_child(error, f"the tool {asked.request.name!r}")
            _report(run, asked, str(error) or type(error).__name__, status_of_error(error))
        except Exception as fault:
            run.fault("toolcalls.failed", fault)
    raise error


def _answered(run: Run, asked: Asked, result: Any) -> Any:
    noted = run.answering.pop(asked.call, None)
    try:
        _pay(run, asked)
        message = message_in(result, asked.request.id)
        status: CallStatus = "success"
        content: object = message.content if message is not None else _words_of(result)  # pyright: ignore[reportUnknownMemberType]
        if message is not None and message.status == "error":
            status = "unknown_tool" if not asked.known else "error"
            status = "bad_args" if noted == "bad_args" else status
        _report(run, asked, content, status)
        if was_refused(run, asked.call, failed=status == "error"):
            note_refusal(run, asked.request)
    except Exception as error:
        run.fault("toolcalls.answered", error)
    return result


def _pay(run: Run, asked: Asked) -> None:
    """The call was made: it counts, whatever came of it."""
    spending = asked.spending
    if spending is not None:
        for nudge in spending.close_tool(asked.call, asked.request.name, asked.place, run.step):
            run.keep(nudge)


def _report(run: Run, asked: Asked, result: object, status: CallStatus) -> Verdict:
    request, place = asked.request, asked.place
    return run.after(
        ToolReturned(
            run.now(),
            asked.call,
            request.name,
            request.args,
            result,
            status,
            place.agent,
            place.node,
        )
    )


def _words_of(result: object) -> object:
    """What stands for an answer without a message: a command's target, or the value itself."""
    if isinstance(result, Command):
        command = cast("Command[object]", result)
        return {"goto": str(command.goto), "graph": str(command.graph)}
    return result

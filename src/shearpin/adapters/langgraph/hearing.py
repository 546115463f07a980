"""What the messages that a node has written tell: a history that was cut, answers that no tool has
given, and answers of models that no callback has seen.

Contract: an answer of a model counts once, whoever called the model: where a callback has seen a
call while the node ran, that one counts. Messages that were there before are nobody's answers. A
first text of a node that asks for nothing is held back until a second one comes: a node that runs
once is no agent, and a run without an agent leaves no trace.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage, convert_to_messages
from langchain_core.runnables import RunnableConfig
from langgraph.types import Command

from shearpin.adapters.langgraph.lending import history_key
from shearpin.adapters.langgraph.speaking import member, written_messages
from shearpin.adapters.messages import (
    MARK,
    content_text,
    is_messages,
    removes,
    request_for,
    requests_of,
    usage_of,
)
from shearpin.adapters.refusing import note_refusal, was_refused
from shearpin.adapters.run import Run
from shearpin.events import CallStatus, HistoryCompacted, ModelReturned, ToolRequest, ToolReturned

if TYPE_CHECKING:
    from shearpin.adapters.langgraph.nodes import NodePlan, Visit

__all__ = ["hear", "watch_history"]

_MOST_MESSAGES = 16
_LOOK_BACK = 32


def hear(run: Run, plan: NodePlan, visit: Visit, output: Any) -> None:
    """Take in what a node has written to the conversation."""
    channel = plan.endings.channel
    items = written_messages(output, channel)
    if not items:
        return
    cut = removes((items[0], items[-1]))
    if cut and run.speaks:
        _compacted(run, visit.agent)
    if plan.contains or plan.answers:
        return
    held: Any = visit.input if channel == "__root__" else member(visit.input, channel or "")
    before = cast("list[Any]", held)[-_LOOK_BACK:] if isinstance(held, list) else []
    unseen = run.models == visit.models and not cut
    heard: list[Any] = []
    for item in items[-_MOST_MESSAGES:]:
        message = _message(item)
        if isinstance(message, AIMessage):
            if unseen and _is_new(message, before) and MARK not in message.response_metadata:
                _hear_model(run, plan.name, visit, message)
        elif isinstance(message, ToolMessage):
            answered = _hear_answer(
                run, plan.name, visit, message, [*before, *heard], unseen=unseen
            )
            failed = message.status == "error"
            if answered is not None and was_refused(run, visit.task, failed=failed):
                note_refusal(run, answered, plan.name, _goto(output))
        heard.append(message)


def watch_history(
    run: Run, channel: str | None, agent: str, input: Any, config: RunnableConfig
) -> None:
    """Tell of a conversation that has become shorter since it was last seen."""
    messages: object = member(input, channel) if channel is not None else None
    if is_messages(messages):
        graph = history_key(config.get("metadata"))
        if run.shrank(graph, len(cast("list[Any]", messages))):
            _compacted(run, agent)


def _compacted(run: Run, agent: str) -> None:
    run.after(HistoryCompacted(run.now(), agent))
    if run.spending is not None:
        run.spending.compactions.happened(agent)


def _message(item: object) -> object:
    """A message, whichever way it was written: as an object, a mapping, or a pair."""
    if isinstance(item, BaseMessage) or not isinstance(item, (Mapping, tuple)):
        return item
    try:
        return convert_to_messages([cast("Any", item)])[0]
    except (KeyError, RuntimeError, TypeError, ValueError):
        return None


def _is_new(message: BaseMessage, before: Sequence[Any]) -> bool:
    return not any(
        message is other or (message.id is not None and message.id == getattr(other, "id", None))
        for other in before
    )


def _hear_model(run: Run, node: str, visit: Visit, message: AIMessage) -> None:
    requests = requests_of(message)
    run.numbers.asked({request.id for request in requests})
    fact = ModelReturned(
        run.now(),
        run.numbers.model_call(visit.task or run.id),
        visit.agent,
        node,
        text=content_text(message.content),  # pyright: ignore[reportUnknownMemberType]
        requests=requests,
        usage=usage_of(message),
    )
    place = (visit.agent, node)
    if not requests and place not in run.speakers and place not in run.texts:
        run.texts[place] = fact
        return
    first = run.texts.pop(place, None)
    run.speakers.add(place)
    for answered in (first, fact) if first is not None else (fact,):
        run.models += 1
        run.after(answered)


def _hear_answer(
    run: Run, node: str, visit: Visit, message: ToolMessage, before: list[Any], *, unseen: bool
) -> ToolRequest | None:
    """Report an answer that neither a tool node nor a callback has reported; what it answers.

    It was made up in place of a call (a person's rejection, invalid output), or the node has run a
    plain function by itself.
    """
    speaks = (visit.agent, node) in run.speakers
    # LangChain marks invalid structured output in the text only.
    invalid = speaks and str(message.content).startswith("Error")  # pyright: ignore[reportUnknownMemberType,reportUnknownArgumentType]
    by_hand = unseen and run.numbers.times(message.tool_call_id) > 0
    decided = run.state.people.were_asked(visit.task)
    if not (invalid or message.status == "error" or by_hand or decided):
        return None
    request = request_for(message.tool_call_id, before)
    if request is None or run.numbers.knows(request.id, request.name):
        return None
    status: CallStatus = "success" if message.status != "error" else "error"
    call = run.numbers.tool_call(visit.task, request.name, request.args, request.id)
    content: object = message.content  # pyright: ignore[reportUnknownMemberType]
    run.after(
        ToolReturned(
            run.now(),
            call,
            request.name,
            request.args,
            content,
            "bad_args" if invalid else status,
            visit.agent,
            node,
        )
    )
    return request


def _goto(output: Any) -> str:
    """Where a node leads to by itself, if it does and that is one node."""
    goto: object = output.goto if isinstance(output, Command) else ""  # pyright: ignore[reportUnknownMemberType,reportUnknownVariableType]
    return goto if isinstance(goto, str) else ""

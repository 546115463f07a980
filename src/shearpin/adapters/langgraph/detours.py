"""What is executed in place of a failed node: each way of going on, as something to run.

Contract: nothing is decided here. A way that does not exist at a place (there is no conversation to
put a hint into, the node shares its superstep with others) is None. What is made leaves the history
valid: tool calls that the node was to answer have an answer.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from langchain_core.messages import BaseMessage, HumanMessage, ToolMessage
from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.types import Command, Send

from shearpin.adapters.langgraph.compat import AnyRunnable, executable_with, is_sent, read_channel
from shearpin.adapters.langgraph.lending import history_key
from shearpin.adapters.langgraph.rewinding import rewound
from shearpin.adapters.langgraph.speaking import Unlending, member, with_member, written_messages
from shearpin.adapters.messages import answer, is_messages, unanswered
from shearpin.adapters.run import Run
from shearpin.boundary.categories import Classification
from shearpin.boundary.endings import hint_words, no_result, tried_words
from shearpin.boundary.wording import failure_words
from shearpin.core.journal import VerdictRecord
from shearpin.events import ToolRequest
from shearpin.findings import Finding
from shearpin.verdicts import Halt, Rollback

if TYPE_CHECKING:
    from shearpin.adapters.langgraph.nodes import NodePlan, Visit

__all__ = ["Way", "answered", "changed_prompt", "elsewhere", "instead", "led", "taken_back"]

_ROOT = "__root__"
_SPACE = uuid.UUID("5b0d0f7a-52a0-5b61-9f0e-6f2f0a6f4c11")


class Way(NamedTuple):
    """A way to go on after a failure.

    Attributes:
        action: its name.
        inner: what is executed; None where the graph is ended.
        input: what that is given.
        config: of the task.
        wait: seconds before that.
        halt: why the graph is ended.
    """

    action: str
    inner: AnyRunnable | None
    input: Any
    config: RunnableConfig
    wait: float = 0.0
    halt: Halt | None = None


class _Giving(Runnable[Any, Any]):
    """Gives back a value: the node's whole work."""

    def __init__(self, value: Any) -> None:
        self.value = value
        self.name = "shearpin"

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        return self.value


def instead(plan: NodePlan, update: object) -> AnyRunnable | None:
    """As if the node had returned an update: its edges are followed."""
    return executable_with(plan.node, _Giving(update))


def led(plan: NodePlan, command: Command[Any]) -> AnyRunnable | None:
    """As if the node had returned a command: where that leads somewhere, no edge is followed."""
    return executable_with(plan.node, _Giving(command), first_writer=bool(command.goto))


# -- a changed prompt ------------------------------------------------------------------------------


def changed_prompt(
    run: Run,
    plan: NodePlan,
    visit: Visit,
    failure: Classification,
    attempt: int,
    config: RunnableConfig,
) -> tuple[AnyRunnable, Any] | None:
    """The node and its input with a hint in it, which is not saved.

    None where there is no conversation, or one that waits for answers: a hint has no place between
    a call and its answer. A graph goes on from where it was, so it would not see the hint.
    """
    channel, bounds = plan.endings.channel, run.boundary
    if channel is None or plan.quiet or bounds is None:
        return None
    messages: Any = visit.input if channel == _ROOT else member(visit.input, channel)
    if not is_messages(messages) or unanswered(messages):
        return None
    text = hint_words(
        failure,
        bounds.boundary.prompt,
        attempt=attempt,
        node=plan.name,
        language=bounds.language,
    )
    hint = HumanMessage(text, id=str(uuid.uuid5(_SPACE, f"{run.id}:{visit.task}:{attempt}")))
    lent: list[BaseMessage] = [hint]
    if visit.inner is not plan.inner:
        held = cast("Sequence[Any]", read_channel(config, channel) or ())
        known = {getattr(message, "id", None) for message in held}
        lent += [message for message in messages if message.id not in known]
    inner = executable_with(plan.node, Unlending(plan.bound, channel, lent))
    told = [*messages, hint]
    if inner is None:
        return None
    return inner, (told if channel == _ROOT else with_member(visit.input, channel, told))


# -- another node ----------------------------------------------------------------------------------


def elsewhere(
    run: Run,
    plan: NodePlan,
    given: Any,
    target: str,
    failure: Classification,
    config: RunnableConfig,
) -> Command[Any] | None:
    """To another node of the graph; a branch takes its own input along."""
    if plan.endings.entrypoint or target not in plan.graph.nodes:
        return None
    goto: Any = target
    if is_sent(config) and not plan.answers:
        return Command(goto=Send(target, given))
    update = _answers(run, plan, _asked(run, plan, given, config), failure)
    return Command(update=update, goto=goto) if update is not None else Command(goto=goto)


# -- an earlier state ------------------------------------------------------------------------------


def taken_back(
    run: Run,
    plan: NodePlan,
    visit: Visit,
    given: Any,
    failure: Classification,
    finding: Finding,
    config: RunnableConfig,
) -> Command[Any] | None:
    """Back to before the loop that the run is in or, without one, to the last good state.

    That is what the latest node before this one was given, of those that ask a model where there
    are any. None where nodes run side by side: there is no state that is this one's alone.
    """
    if plan.endings.entrypoint or not _is_alone(run, plan, given, config):
        return None
    metadata = cast("Mapping[str, Any]", config.get("metadata") or {})
    graph = history_key(metadata)
    nodes = frozenset(node for agent, node in run.speakers if agent == visit.agent)
    onset = _onset(run, visit.agent)
    seen = run.ways.before(graph, onset - 1, nodes) if onset is not None and nodes else None
    seen = seen or run.ways.last_good(graph, plan.name, given, nodes)
    if seen is None:
        return None
    language = run.boundary.language if run.boundary is not None else "en"
    due = Rollback(finding, seen.step, tried_words(failure, language))
    return rewound(run, plan, seen, due, config, bare=True)


def _onset(run: Run, agent: str) -> int | None:
    """The first step of the loop that an agent is in; None where it is in none."""
    if run.state.judge.ask(lambda session: session.state, "closed") == "closed":
        return None
    run.collect()
    for record in reversed(run.records):
        onset = record.evidence.get("onset_step") if isinstance(record, VerdictRecord) else None
        if isinstance(record, VerdictRecord) and record.agent == agent and type(onset) is int:
            return onset
    return None


def _is_alone(run: Run, plan: NodePlan, given: Any, config: RunnableConfig) -> bool:
    """Whether no other node runs in the same superstep."""
    metadata = cast("Mapping[str, Any]", config.get("metadata") or {})
    bounds = run.boundary
    if bounds is None or bounds.peers(metadata) > 1:
        return False
    if not is_sent(config):
        return True
    channel = plan.endings.channel
    state = cast("Mapping[str, Any]", given).get("state") if isinstance(given, Mapping) else None
    messages: Any = member(state, channel) if channel is not None else None
    return plan.answers and is_messages(messages) and len(unanswered(messages)) == 1


# -- answers ---------------------------------------------------------------------------------------


def answered(
    run: Run,
    plan: NodePlan,
    given: Any,
    update: object,
    failure: Classification | None,
    halt: Halt | None = None,
) -> object:
    """An update for a tool node, with an answer to each of its calls that it does not answer."""
    channel = plan.endings.channel
    known = update is None or isinstance(update, (Mapping, list))
    if not plan.answers or channel is None or not known:
        return cast("object", update)
    written = written_messages(update, channel)
    done = {message.tool_call_id for message in written if isinstance(message, ToolMessage)}
    asked = [request for request in _calls_in(given, channel) if request.id not in done]
    news = _answers(run, plan, asked, failure, halt)
    if news is None:
        return cast("object", update)
    answers = cast("list[Any]", news[channel] if isinstance(news, dict) else news)
    if channel == _ROOT:
        return [*written, *answers]
    return {**cast("Mapping[str, Any]", update or {}), channel: [*written, *answers]}


def _answers(
    run: Run,
    plan: NodePlan,
    requests: Sequence[ToolRequest],
    failure: Classification | None,
    halt: Halt | None = None,
) -> Any:
    """Answers to calls, as an update; None where there is nothing to answer."""
    channel = plan.endings.channel
    language = run.boundary.language if run.boundary is not None else "en"
    given: list[ToolMessage] = []
    for request in requests:
        text = no_result(halt, language) if failure is None and halt is not None else None
        if text is None and failure is not None:
            text = failure_words(
                language,
                tool=request.name,
                kind=failure.error_type,
                category=failure.category,
                detail=failure.message,
                attempts=1,
                elapsed=0.0,
                retry_after=failure.retry_after,
                unknown=False,
            )
        given.append(answer(run.id, request, text or "No result.", run.numbers.times(request.id)))
    if not given or channel is None:
        return None
    return given if channel == _ROOT else {channel: given}


def _asked(run: Run, plan: NodePlan, given: Any, config: RunnableConfig) -> list[ToolRequest]:
    """The calls that nobody answers once this node has failed."""
    channel = plan.endings.channel
    if channel is None or not plan.endings.merged:
        return []
    if plan.answers:
        return _calls_in(given, channel)
    return _calls_in(given, channel) if _is_alone(run, plan, given, config) else []


def _calls_in(given: Any, channel: str) -> list[ToolRequest]:
    """The calls that a node was given to answer."""
    if isinstance(given, Mapping) and "tool_call" in given:
        calls: list[Any] = [cast("Mapping[str, Any]", given)["tool_call"]]
    elif isinstance(given, list) and given and isinstance(given[0], dict):
        calls = cast("list[Any]", given)
    else:
        whole = channel == _ROOT or isinstance(given, list)
        messages: Any = cast("Any", given) if whole else member(given, channel)
        found = unanswered(messages) if is_messages(messages) else []
        return [request for request in found if request.id]
    return [
        ToolRequest(str(call["id"]), str(call["name"]), call.get("args") or {})
        for call in calls
        if call.get("id")
    ]

"""What a node does in place of its work where the run is to take another turn.

Contract: a stand-in is executed as the node would be, with its name, callbacks and streams, and
writes through the node's first writer only, so that no static edge is followed. It is put in for a
node that is entered while the run is stopped (one last answer, or a pause) or while a way out of a
loop is due. Where there is none, the caller ends the graph as usual.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.types import Command, Send

from shearpin.adapters.langgraph.compat import AnyRunnable, executable_with, is_sent, read_channel
from shearpin.adapters.langgraph.landing import Landing
from shearpin.adapters.langgraph.lending import history_key
from shearpin.adapters.langgraph.pausing import Pausing
from shearpin.adapters.langgraph.rewinding import rewound
from shearpin.adapters.langgraph.speaking import Unlending, member, with_member
from shearpin.adapters.langgraph.stopping import left_open
from shearpin.adapters.lastwords import wrap_up_message
from shearpin.adapters.messages import answer, is_messages, unanswered
from shearpin.adapters.run import Run
from shearpin.adapters.toolcalls import not_run
from shearpin.verdicts import Halt, Reroute

if TYPE_CHECKING:
    from shearpin.adapters.langgraph.nodes import NodePlan

__all__ = ["Turn", "back_again", "other_way", "remember", "way_to_end"]

_ROOT = "__root__"


class Turn(Runnable[Any, Any]):
    """Leads the graph elsewhere: the node's whole work."""

    def __init__(self, command: Command[Any]) -> None:
        self.command = command
        self.name = "shearpin"

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        return self.command


def way_to_end(
    run: Run, plan: NodePlan, agent: str, given: Any, halt: Halt, config: RunnableConfig
) -> tuple[Any, AnyRunnable] | None:
    """What a node is given and does while the run is stopped; None: its graph is to be ended."""
    if run.ways.on_stop == "pause":
        if plan.contains:  # what is within asks, and goes on where it was
            return given, plan.inner
        return given, _paused(run, plan, given, halt, config)
    if run.ways.on_stop != "wrap_up" or not _may_land(run, plan, agent):
        return None
    speakers = sorted(node for name, node in run.speakers if name == agent)
    if plan.name not in speakers:
        if is_sent(config) or not run.ways.may_turn():
            return None
        return given, _stand_in(plan, Turn(_onward(run, plan, halt, config, speakers[-1])))
    channel = plan.endings.channel or ""
    messages: Any = given if channel == _ROOT else member(given, channel)
    if not is_messages(messages):
        return None
    if unanswered(messages):
        if is_sent(config) or not run.ways.may_turn():
            return None
        return given, _stand_in(plan, Turn(_onward(run, plan, halt, config, plan.name)))
    run.ways.land(agent, plan.name)
    note = wrap_up_message(run.id, halt, run.state.judge.session.settings)
    told = [*messages, note]
    bound = Unlending(plan.bound, channel, [note])
    landing = Landing(bound, run, halt, plan.endings)
    return (told if channel == _ROOT else with_member(given, channel, told)), _stand_in(
        plan, landing
    )


def _may_land(run: Run, plan: NodePlan, agent: str) -> bool:
    """Whether a last answer may be asked for in this graph: once in a run, in the outermost one."""
    if run.ways.landed or plan.contains or plan.endings.returns or plan.endings.channel is None:
        return False
    speaking = {name for name, _ in run.speakers}
    if agent not in speaking:
        return False
    path = agent.partition(":")[0].split("/")
    above = {"main", *("/".join(path[:end]) for end in range(1, len(path)))} - {agent}
    return not any(name.partition(":")[0] in above for name in speaking - {agent})


def back_again(
    run: Run, plan: NodePlan, agent: str, given: Any, halt: Halt, config: RunnableConfig
) -> Command[Any] | None:
    """Where a call was refused within a node that may still act: enter that node once more."""
    due = run.ways.on_stop == "pause" or (
        run.ways.on_stop == "wrap_up"
        and _may_land(run, plan, agent)
        and (agent, plan.name) in run.speakers
    )
    if not due or plan.endings.entrypoint or plan.contains or not plan.node.writers:
        return None
    if is_sent(config):
        return Command(goto=Send(plan.name, given)) if run.ways.may_turn() else None
    return _onward(run, plan, halt, config, plan.name) if run.ways.may_turn() else None


def other_way(run: Run, plan: NodePlan, agent: str, config: RunnableConfig) -> AnyRunnable | None:
    """The way out of a loop that is due, if it can be taken from this node."""
    due = run.ways.diversion
    if due is None or due.finding.agent != agent or plan.contains or plan.answers:
        return None
    if not plan.node.writers or plan.endings.entrypoint or is_sent(config):
        return None
    run.ways.diversion = None
    if isinstance(due, Reroute):
        target = due.target.removeprefix("node:")
        if target in plan.graph.nodes:
            text = not_run(Halt("rerouted", "", due.finding))
            return _stand_in(plan, Turn(_leading(run, plan, text, config, target)))
    else:
        nodes = frozenset(node for name, node in run.speakers if name == agent)
        seen = run.ways.before(history_key(config.get("metadata")), due.to_step, nodes)
        command = None if seen is None else rewound(run, plan, seen, due, config)
        if command is not None:
            return _stand_in(plan, Turn(command))
    run.not_carried_out(due)
    return None


def remember(run: Run, plan: NodePlan, given: Any, config: RunnableConfig) -> None:
    """Keep what a node is given, where there may be a way back to it."""
    rolls_back = run.boundary is not None and run.boundary.rolls_back
    if not plan.answers and (rolls_back or (run.ways.may("rollback") and not plan.contains)):
        run.ways.visit(history_key(config.get("metadata")), run.step, plan.name, given)


def _paused(
    run: Run, plan: NodePlan, given: Any, halt: Halt, config: RunnableConfig
) -> AnyRunnable:
    if plan.endings.entrypoint:
        inner = executable_with(plan.node, Pausing(run, plan, halt, then=plan.bound))
        return cast("AnyRunnable", inner)
    target: Any = Send(plan.name, given) if is_sent(config) else plan.name
    return _stand_in(plan, Pausing(run, plan, halt, target=target))


def _onward(
    run: Run, plan: NodePlan, halt: Halt, config: RunnableConfig, target: str
) -> Command[Any]:
    return _leading(run, plan, left_open(run, halt), config, target)


def _leading(
    run: Run, plan: NodePlan, text: str, config: RunnableConfig, target: str
) -> Command[Any]:
    """To another node, with every tool call answered."""
    channel, merged = plan.endings.channel, plan.endings.merged
    held = read_channel(config, channel) if channel is not None else None
    if channel is None or channel == _ROOT or not is_messages(held):
        return Command(goto=target)
    messages = cast("list[Any]", held)
    answers = [
        answer(run.id, request, text, run.numbers.times(request.id))
        for request in unanswered(messages)
        if request.id
    ]
    if not answers:
        return Command(goto=target)
    news: Mapping[str, Any] = {channel: answers if merged else [*messages, *answers]}
    return Command(update=news, goto=target)


def _stand_in(plan: NodePlan, bound: Runnable[Any, Any]) -> AnyRunnable:
    return cast("AnyRunnable", executable_with(plan.node, bound, first_writer=True))

"""A pause in place of an end: an interrupt for a person, with the finding as its payload.

Contract: the run can be resumed with `Command(resume=...)`: `"continue"`, `{"instruction": ...}`
(both grant the stated allowance, a few times at most) or `"stop"`. Any other answer, and a
`continue` beyond the allowance, ends the run the normal way. The node itself starts afresh after a
pause, in a task of its own, so that its own interrupts are not mixed up with this one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from langchain_core.messages import HumanMessage
from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.errors import GraphInterrupt
from langgraph.types import Command, interrupt

from shearpin.adapters.langgraph.compat import AnyRunnable, within
from shearpin.adapters.messages import MARK, reason_of
from shearpin.adapters.people import answers_by_pause
from shearpin.adapters.run import Run
from shearpin.events import SignalReceived
from shearpin.verdicts import Halt

if TYPE_CHECKING:
    from shearpin.adapters.langgraph.nodes import NodePlan

__all__ = ["Pausing", "ask_anew", "granted", "instruction_in", "payload"]

_MOST_PAUSES = 64
_PLACE = "\0pause"


class Pausing(Runnable[Any, Any]):
    """Asks a person in place of a node's work; then that goes on, or the graph is ended."""

    def __init__(
        self,
        run: Run,
        plan: NodePlan,
        halt: Halt,
        *,
        target: Any = None,
        then: AnyRunnable | None = None,
    ) -> None:
        self.run = run
        self.plan = plan
        self.halt = halt
        self.target = target
        self.then = then
        self.name = "shearpin"

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        given = cast("RunnableConfig", config)
        found = self._answered(given)
        if found is None:
            return self.plan.endings.ending(self.run, self.halt, given)
        return found if self.then is None else self.then.invoke(input, config, **kwargs)

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        given = cast("RunnableConfig", config)
        found = self._answered(given)
        if found is None:
            return self.plan.endings.ending(self.run, self.halt, given)
        return found if self.then is None else await self.then.ainvoke(input, config, **kwargs)

    def _answered(self, config: RunnableConfig) -> Command[Any] | None:
        """What the person's answer amounts to; None: stop. Pauses where there is no answer yet."""
        ways = self.run.ways
        said = ask(self.run, self.halt, config) if self.then is None else ways.answer
        told = instruction_in(said)
        if (said == "continue" or told is not None) and granted(self.run):
            channel = self.plan.endings.channel
            if told is None or channel is None or self.then is not None:
                return Command(goto=self.target or ())
            return Command(update={channel: [HumanMessage(told)]}, goto=self.target)
        ways.on_stop = "end"  # nobody is asked a second time on the way out
        return None


def granted(run: Run) -> bool:
    """Let a stopped run go on, within its allowance; False where that is used up."""
    if run.stopped is not None:
        run.after(SignalReceived(run.now(), "continue"))
    if run.stopped is not None and run.boundary is not None:
        run.boundary.pardon(run)  # what has failed may be tried again
    return run.stopped is None


def ask(run: Run, halt: Halt, config: RunnableConfig) -> object:
    """The person's answer; pauses the run where there is none yet.

    Of branches that run side by side, one asks; the others wait in silence.
    """
    ways = run.ways
    if ways.answer is not None and halt is ways.asked and answers_by_pause(ways.answer) is None:
        return ways.answer  # said to what this run was paused for; a later stop asks again
    if not run.say_once(f"{_PLACE}:{id(halt)}"):
        raise GraphInterrupt(())
    run.ways.pausing = True
    found = within(config, lambda: interrupt(payload(run, halt)))
    run.ways.pausing = False
    return found


def ask_anew(run: Run, halt: Halt, config: RunnableConfig) -> None:
    """Pause a task that may have been paused before: earlier answers are not taken for new ones."""
    run.ways.pausing = True
    for _ in range(_MOST_PAUSES):
        within(config, lambda: interrupt(payload(run, halt)))
    run.ways.pausing = False


def payload(run: Run, halt: Halt) -> dict[str, object]:
    """What a person is shown."""
    limits = run.state.judge.session.settings.limits
    return {
        MARK: {
            "event": "paused",
            **reason_of(run.id, halt),
            "thread": run.thread,
            "message": halt.message,
            "resume": ["continue", "stop", {"instruction": "..."}],
            "allowance": {"rounds": limits.trial_rounds, "times": limits.continues},
        }
    }


def instruction_in(said: object) -> str | None:
    """The new instruction in a person's answer, if there is one."""
    if isinstance(said, Mapping):
        text = cast("Mapping[str, object]", said).get("instruction")
        return text if isinstance(text, str) and text else None
    return None

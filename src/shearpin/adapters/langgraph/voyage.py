"""One run of a guarded graph: whose conversation it is, what is known of it, and how it began."""

from __future__ import annotations

from typing import Any, cast

from langgraph.types import Command

from shearpin.adapters.boundary.bounds import open_bounds
from shearpin.adapters.calls import CallLayer
from shearpin.adapters.judge import ThreadState
from shearpin.adapters.langgraph import state as states
from shearpin.adapters.langgraph.compat import AnyGraph, ambient, configurable, is_nested, saver_of
from shearpin.adapters.langgraph.keeping import Keeper
from shearpin.adapters.langgraph.sessions import SessionKeeper
from shearpin.adapters.langgraph.wiring import Wiring
from shearpin.adapters.messages import has_genuine_turn
from shearpin.adapters.money.metering import open_spending, orders_in
from shearpin.adapters.money.paying import call_layer
from shearpin.adapters.reports import tripped
from shearpin.adapters.run import Run
from shearpin.adapters.signals import stop_in
from shearpin.adapters.ways import Ways
from shearpin.events import RunOutcome

__all__ = ["Voyage"]

_INTERRUPT_ID = 32
"""Length of the ids by which LangGraph tells interrupts apart."""


class Voyage:
    """One run of a guarded graph, from its start to its end."""

    def __init__(
        self, wiring: Wiring, graph: AnyGraph, input: Any, config: Any, context: Any = None
    ) -> None:
        self.wiring = wiring
        self.graph = graph
        values = configurable(ambient(), graph.config, config)
        thread = values.get("thread_id")
        self.thread = str(thread) if thread is not None else None
        nested = is_nested(values)
        self.checkpoints = None if nested or self.thread is None else self._saver(values)
        self.sessions = None if self.thread is None else wiring.sessions
        self.saver = None if self.sessions is not None else self.checkpoints
        self.keeps = self.saver is not None or self.sessions is not None  # not in memory alone
        self.key = self.thread
        if nested and self.thread is not None:
            path = str(values.get("checkpoint_ns", "")).split("|")
            self.key = "|".join([self.thread, *(part.partition(":")[0] for part in path)])
        self.orders = orders_in(values, context)
        self.new_turn = _opens_turn(input)
        self.answer = _answer_in(input)
        self.run: Run | None = None
        self.handler: CallLayer | None = None

    def _saver(self, values: dict[str, Any]) -> states.AnySaver | None:
        if self.wiring.recipe.state == "memory":
            return None
        return saver_of(self.graph, values)

    # -- what is saved ----------------------------------------------------------------------------

    def load(self) -> states.Snapshot | None:
        """What was saved of the conversation."""
        if self.sessions is not None:
            return self.sessions.load(self.key or "", self.checkpoints, self.wiring.note)
        assert self.saver is not None
        return states.load(self.saver, self.thread or "", self.wiring.note)

    async def aload(self) -> states.Snapshot | None:
        """`load`, for asynchronous runs."""
        if self.sessions is not None:
            return await self.sessions.aload(self.key or "", self.checkpoints, self.wiring.note)
        assert self.saver is not None
        return await states.aload(self.saver, self.thread or "", self.wiring.note)

    def save(self, state: ThreadState) -> None:
        """Save the conversation at the end of a run."""
        if self.sessions is not None:
            self.sessions.save(self.key or "", state)
        elif self.saver is not None:
            states.save(self.saver, self.thread or "", state)

    async def asave(self, state: ThreadState, outcome: RunOutcome) -> None:
        """`save`, for asynchronous runs."""
        cancelled = outcome == "cancelled"
        if self.sessions is not None:
            await self.sessions.asave(self.key or "", state, cancelled=cancelled)
        elif self.saver is not None and cancelled:
            state.unsaved = True
        elif self.saver is not None:
            await states.asave(self.saver, self.thread or "", state)

    def _keeper(self, state: ThreadState) -> Keeper | SessionKeeper | None:
        """What saves it in mid-run, where that is asked for."""
        every = self.wiring.recipe.save_every
        if not every:
            return None
        nodes = 1 if every == "call" else every
        if self.sessions is not None:
            return SessionKeeper(self.sessions, self.key or "", state, nodes)
        if self.saver is not None:
            return Keeper(self.saver, self.thread or "", state, nodes)
        return None

    # -- begin and end ----------------------------------------------------------------------------

    def known(self) -> ThreadState | None:
        """What this process knows of the thread, where that needs no look at the checkpointer."""
        if self.key is None:
            settings = self.wiring.recipe.fitted(self.wiring.settings)
            return ThreadState.fresh(settings, self.wiring.now)
        state = self.wiring.threads.get(self.key)
        if state is None or not self.keeps or state.unsaved or state.users:
            return state
        return None

    def remembered(self, snapshot: states.Snapshot | None) -> ThreadState:
        """The thread's state as it was saved, or as this process still has it."""
        assert self.key is not None
        held = self.wiring.threads.get(self.key)
        if held is not None:
            same = snapshot is not None and held.sequence == snapshot.sequence
            if same or held.users or not self.keeps:
                return held
            self.wiring.threads.drop(self.key)
        settings, now = self.wiring.recipe.fitted(self.wiring.settings), self.wiring.now
        fresh = ThreadState.fresh(settings, now)
        state = fresh if snapshot is None else snapshot.restore(settings, now)
        return self.wiring.threads.put(self.key, state)

    def begin(self, state: ThreadState) -> None:
        """Open the run."""
        wiring = self.wiring
        name = wiring.recipe.name or self.graph.get_name()
        run = Run(name, self.thread, state, wiring.now, redirects=wiring.redirects)
        run.ways = Ways(wiring.recipe, self.answer)
        run.repair = wiring.recipe.repair
        run.answer = self.answer
        run.keeper = keeper = self._keeper(state)
        new_turn = self.new_turn or self.thread is None
        run.begin(new_turn=new_turn)
        run.ways.asked = run.stopped
        passing = self.key is None
        open_spending(run, wiring.recipe, self.orders, new_turn=new_turn, passing=passing)
        if run.spending is not None and wiring.recipe.save_every == "call":
            run.spending.keeper = keeper
        open_bounds(run, wiring.recipe)
        wiring.runs.put(run)
        for where, error in wiring.noted():
            run.fault(where, error)
        self.run, self.handler = run, call_layer(run)

    def close(self, outcome: RunOutcome) -> None:
        """Close the run; its state may have to be saved after this."""
        if self.run is not None:
            self.run.end(outcome)

    def verdict(self) -> Exception | None:
        """The error that the caller has asked for, if the run was stopped."""
        run = self.run
        if run is None or run.halted is None or self.wiring.recipe.on_stop != "raise":
            return None
        bounds = run.boundary
        return tripped(run.halted, None if bounds is None else bounds.cause)

    def swallows(self, error: BaseException) -> bool:
        """Whether an error is our own stop, from a place that no node of ours surrounds."""
        return stop_in(error) is not None


def _answer_in(input: Any) -> object:
    """What a person says to a pause."""
    if not isinstance(input, Command):
        return None
    said = cast("object", input.resume)  # pyright: ignore[reportUnknownMemberType]
    if isinstance(said, dict):
        answers = cast("dict[str, object]", said)
        if len(answers) == 1 and all(len(key) == _INTERRUPT_ID for key in answers):
            return next(iter(answers.values()))
        return answers
    return said


def _opens_turn(input: Any) -> bool:
    """Whether a run's input is a new turn, and not an answer to a pause of the last one."""
    if input is None:
        return False
    if isinstance(input, Command):
        command = cast("Command[Any]", input)
        update = cast("object", command.update)  # pyright: ignore[reportUnknownMemberType]
        return command.resume is None and update is not None and has_genuine_turn(update)
    return has_genuine_turn(input)

"""The budget of one run at work: asked before each call, told after it.

Contract: a call that a limit leaves no room for is refused before it is made, once the mode allows
acting; in `observe` it is made, and charged. What ends the run is only a refusal to the main agent:
a sub-agent's ends the sub-agent, and its caller still has the landing reserve. What was used is
settled whatever becomes of the call. A fault of the budget itself is told, never raised.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, cast

from langchain_core.messages import BaseMessage
from langchain_core.outputs import LLMResult

from shearpin.adapters.money.costs import scopes_of
from shearpin.adapters.money.holding import Holding
from shearpin.adapters.money.settling import Chunks, Outcome, failure_of, outcome_of
from shearpin.adapters.money.till import PricedCall
from shearpin.adapters.places import Place
from shearpin.core.books import Exhausted, Notice
from shearpin.ledgers.requests import Bill, ModelRequest
from shearpin.pricing import TokenUsage
from shearpin.report.budget import BudgetReport
from shearpin.verdicts import Block, Halt, Nudge

__all__ = ["Closed", "Spending"]


class Closed(NamedTuple):
    """A model call is settled.

    Attributes:
        usage: as reported, or as estimated.
        nudges: that this gives rise to.
        halt: where the answer leaves nothing to go on with.
    """

    usage: TokenUsage | None
    nudges: Sequence[Nudge] = ()
    halt: Halt | None = None


class Spending(Holding):
    """The budget of one run. See the module's contract."""

    # -- model calls --------------------------------------------------------------------------

    def close_model(self, id: str, outcome: Outcome, step: int) -> Closed:
        """A model has answered: settle what it used."""
        try:
            due = self._due(id, outcome)
            if isinstance(due, Closed):
                return due
            call, usage, bill = due
            notices = self.purse.close_model(id, bill)
            return self._closed(call, outcome, usage, notices, step)
        except Exception as error:
            self.on_fault("budget.settle", error)
            return Closed(outcome.usage)

    async def aclose_model(self, id: str, outcome: Outcome, step: int) -> Closed:
        """`close_model`, without blocking an event loop."""
        try:
            due = self._due(id, outcome)
            if isinstance(due, Closed):
                return due
            call, usage, bill = due
            notices = await self.purse.aclose_model(id, bill)
            return self._closed(call, outcome, usage, notices, step)
        except Exception as error:
            self.on_fault("budget.settle", error)
            return Closed(outcome.usage)

    def _due(self, id: str, outcome: Outcome) -> tuple[PricedCall, TokenUsage, Bill] | Closed:
        call = self._calls.pop(id, None)
        if call is None:
            return Closed(outcome.usage)
        self.till.note_late(call, self.purse.now())
        self.funds.done(call.call)
        if outcome.cached:
            self.till.cached += 1
            self.purse.drop(id)
            return Closed(outcome.usage)
        if self.purse.estimate_of(id) is None:  # it could not be measured before
            self.purse.force_model(ModelRequest(id, "", 0.0, 0))
        usage = outcome.usage
        if usage is None:
            usage = self.till.guessed(outcome, self.purse.estimate_of(id), call)
        elif not usage.prompt_tokens:  # a prompt is never empty: the provider has left it out
            prompt = self.till.guessed(outcome, self.purse.estimate_of(id), call).input
            usage = usage._replace(input=prompt, estimated=True)
        return call, usage, self.till.bill(usage, call, steps=1)

    def _closed(
        self,
        call: PricedCall,
        outcome: Outcome,
        usage: TokenUsage,
        notices: Sequence[Notice],
        step: int,
    ) -> Closed:
        if outcome.message is not None:
            self._batch(outcome.message)
        halt = None
        if not outcome.text.strip() and not getattr(outcome.message, "tool_calls", None):
            # Silence, because its tools were refused: the run must not end without a word.
            found = self.purse.account.silenced(call.place.agent)
            refused = found and self.rulings.refused(found, call.place, step)
            halt = refused.halt if refused else None
        return Closed(usage, self.rulings.nudges(notices, call.place, step), halt)

    def left(self, task: str) -> None:
        """A node is done: a call of its own that has not ended was given up, and counts as made."""
        for name, call in list(self._calls.items()):
            if call.place.task == task:
                del self._calls[name]
                self.purse.keep(name)

    def fail_model(
        self, id: str, error: BaseException, response: LLMResult | None, chunks: Chunks | None
    ) -> None:
        """A model call has failed, or its stream was closed: what was received is settled."""
        call = self._calls.pop(id, None)
        if call is None:
            return
        failure = failure_of(error)
        if failure.limited:
            for book in self.purse.account.own:
                book.watch.wait(self.purse.now())
        received = outcome_of(response, chunks)
        if received.usage is not None or received.text:
            usage = received.usage
            if usage is None or not usage.prompt_tokens:
                usage = self.till.guessed(received, self.purse.estimate_of(id), call)
            self.purse.close_model(id, self.till.bill(usage, call, steps=0))
        elif failure.unknown:
            self.purse.keep(id)
        else:
            self.purse.close_model(id, Bill(0, 0, estimated=True, steps=0))

    # -- tools --------------------------------------------------------------------------------

    def open_tool(self, id: str, tool: str, call: str, place: Place, step: int) -> Block | None:
        """Set a tool call aside, or say how it is to be answered instead."""
        try:
            if self.broken is not None:
                raise self.broken
            found = self.purse.open_tool(id, tool, call, place.agent, step)
        except Exception as error:
            self.on_fault("budget.hold", error)
            return self.rulings.broken_tool(place, step) if self.fails_closed else None
        if not isinstance(found, Exhausted):
            return None
        block = self.rulings.blocked(found, place, step)
        if block is None:
            self.purse.force_tool(id)
        return block

    def close_tool(self, id: str, tool: str, place: Place, step: int) -> list[Nudge]:
        """A tool was run; the nudges that this gives rise to."""
        try:
            return self.rulings.nudges(self.purse.close_tool(id, tool), place, step)
        except Exception as error:
            self.on_fault("budget.settle", error)
            return []

    def drop_tool(self, id: str) -> None:
        """A tool was interrupted and will be asked for again."""
        try:
            self.purse.drop(id)
        except Exception as error:
            self.on_fault("budget.release", error)

    def _batch(self, message: BaseMessage) -> None:
        calls = cast("list[dict[str, Any]]", getattr(message, "tool_calls", None) or [])
        if len(calls) > 1:
            self.purse.batch([(str(call["id"] or ""), str(call["name"])) for call in calls])

    # -- the run ------------------------------------------------------------------------------

    def finish(self, *, interrupted: bool) -> None:
        """The run is over, or pauses for a person."""
        self.purse.finish()
        self._calls.clear()
        if interrupted:
            self.funds.pause()
        elif self.passing:
            self.purse.forget()

    def report(self) -> BudgetReport:
        """Where the budgets of the run stand."""
        try:
            self.purse.refresh()
        except Exception as error:  # the latest known numbers stand
            self.on_fault("budget.usage", error)
        till = self.till
        return BudgetReport(
            scopes_of(self.purse.account, self.purse.now(), priced=not till.unpriced),
            till.estimated,
            till.cached,
            till.unpriced,
            till.unbounded,
            tuple(till.notes),
        )

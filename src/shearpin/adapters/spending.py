"""The budget of one run at work: asked before each call, told after it.

Contract: a call that a limit leaves no room for is refused before it is made, once the mode allows
acting; in `observe` it is made, and charged. What ends the run is only a refusal to the main agent:
a sub-agent's ends the sub-agent, and its caller still has the landing reserve. Faults in here are
the caller's to contain; an unmeasured call is charged when its usage is known.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, cast

from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.outputs import LLMResult

from shearpin.adapters.costs import at_most, scopes_of
from shearpin.adapters.funds import Funds
from shearpin.adapters.places import Place
from shearpin.adapters.prompts import Prompts, output_bound
from shearpin.adapters.rulings import Refused, Rule, Rulings
from shearpin.adapters.settling import Chunks, Outcome, failure_of, outcome_of
from shearpin.adapters.till import PricedCall, Till
from shearpin.adapters.turns import turns_of
from shearpin.core.books import Exhausted
from shearpin.errors import PriceUnknownError
from shearpin.ledgers.purse import Purse
from shearpin.ledgers.requests import Bill, ModelRequest
from shearpin.pricing import Pricing, TokenUsage
from shearpin.report.budget import BudgetReport
from shearpin.verdicts import Block, Halt, Nudge

__all__ = ["Closed", "Spending", "speaker_of"]

_WAIT_SECONDS = 30.0


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


class Spending:
    """See the module's contract.

    Args:
        purse: account and ledger of the run. funds: of the conversation. pricing: of model calls.
        rule: takes a verdict to the session, and says what the mode leaves of it. language: of the
        budget's own words. nested: whether this is the budget of a part of a larger run. acts:
        whether the mode lets it act.
    """

    def __init__(
        self,
        purse: Purse,
        funds: Funds,
        pricing: Pricing,
        rule: Rule,
        language: Literal["en", "zh"],
        *,
        nested: bool = False,
        acts: bool = True,
    ) -> None:
        self.purse = purse
        self.funds = funds
        self.nested = nested
        self.acts = acts
        self.fails_closed = True
        self.on_fault: Callable[[str, BaseException], None] | None = None
        self.rulings = Rulings(rule, language, nested)
        account = purse.account
        budgets = [*(book.budget for book in account.books), *account.per_call]
        capped = any(budget.usd is not None for budget in budgets)
        self.till = Till(pricing, capped)
        self.prompts = Prompts()
        self._calls: dict[str, PricedCall] = {}
        self.turns = turns_of(account)
        self.refused: dict[str, Halt] = {}  # by task; a refusal ends it, so there are few

    # -- model calls --------------------------------------------------------------------------

    def open_model(
        self,
        id: str,
        prompt: Sequence[BaseMessage] | str,
        params: object,
        metadata: Mapping[str, object],
        place: Place,
        call: str,
        step: int,
    ) -> Refused | None:
        """Set a model call aside, or refuse it.

        Args:
            id: of this very provider call. prompt: messages, or a text for a completion model.
            params: how the model is invoked: its limit, the tools it is offered.
            metadata: LangChain's names of model and provider. place: where it is made.
            call: its identity when its task is re-executed. step: the session's.
        """
        try:
            known: Mapping[str, object] = (
                cast("Mapping[str, object]", params) if isinstance(params, Mapping) else {}
            )
            return self._open_model(id, prompt, known, metadata, place, call, step)
        except Exception as error:
            if not self.fails_closed:  # the caller contains it; what the call uses is charged
                raise
            if self.on_fault is not None:
                self.on_fault("budget.hold", error)
            return self.rulings.broken(error, place, step)

    def _open_model(
        self,
        id: str,
        prompt: Sequence[BaseMessage] | str,
        params: Mapping[str, object],
        metadata: Mapping[str, object],
        place: Place,
        call: str,
        step: int,
    ) -> Refused | None:
        model, provider = _text(metadata.get("ls_model_name")), _text(metadata.get("ls_provider"))
        messages = [HumanMessage(prompt)] if isinstance(prompt, str) else prompt
        tier = _text(params.get("service_tier"))
        for book in self.purse.account.books:
            book.watch.work(self.purse.now())
        try:
            price = self.till.price(model, provider)
        except PriceUnknownError as error:
            return self.rulings.unpriced(error, model, place, step)
        self._calls[id] = PricedCall(call, place, provider, price, tier)
        speaker = speaker_of(place, model)
        bound = output_bound(params, metadata, model)
        request = ModelRequest(
            id,
            speaker,
            self.prompts.measure(speaker, messages, params.get("tools"), provider),
            bound.tokens,
            bounded=bound.certain,
            cost=None if price is None else at_most(price, params, messages, provider, tier),
            agent=place.agent,
            last=place.agent == "main" and not self.nested,
            steps=int(self.funds.first_time(call)),
        )
        if not bound.certain:
            self.till.unbounded += 1
        found = self._ask(request)
        if isinstance(found, Exhausted):
            refused = self.rulings.refused(found, place, step)
            if refused is not None:
                del self._calls[id]
                self.refused[place.task] = refused.halt
                return refused
            self.purse.force_model(request)
        return None

    def _ask(self, request: ModelRequest) -> Exhausted | None:
        """Ask for room; where only other threads' calls stand in the way, wait for them."""
        while True:
            since = self.purse.closings
            found = self.purse.open_model(request)
            if not isinstance(found, Exhausted):
                return None
            if not found.crowded or _in_event_loop():
                return found
            # The refusal of this very call counts as a closing, too.
            if not self.purse.wait_for_room(since + 1, _WAIT_SECONDS):
                return found

    def close_model(self, id: str, outcome: Outcome, step: int) -> Closed:
        """A model has answered: settle what it used."""
        call = self._calls.pop(id, None)
        if call is None:
            return Closed(outcome.usage)
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
        notices = self.purse.close_model(id, self.till.bill(usage, call, steps=1))
        if outcome.message is not None:
            self._batch(outcome.message)
        halt = None
        if not outcome.text.strip() and not getattr(outcome.message, "tool_calls", None):
            # Silence, because its tools were refused: the run must not end without a word.
            found = self.purse.account.silenced(call.place.agent)
            refused = found and self.rulings.refused(found, call.place, step)
            halt = refused.halt if refused else None
        return Closed(usage, self.rulings.nudges(notices, call.place, step), halt)

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
        found = self.purse.open_tool(id, tool, call, place.agent, step)
        if not isinstance(found, Exhausted):
            return None
        block = self.rulings.blocked(found, place, step)
        if block is None:
            self.purse.force_tool(id)
        return block

    def seconds_left(self) -> float | None:
        """Seconds until a tool call that begins now has to end; None without a time limit."""
        return self.purse.account.seconds_left(self.purse.now()) if self.acts else None

    def close_tool(self, id: str, tool: str, place: Place, step: int) -> list[Nudge]:
        """A tool was run; the nudges that this gives rise to."""
        return self.rulings.nudges(self.purse.close_tool(id, tool), place, step)

    def drop_tool(self, id: str) -> None:
        """A tool was interrupted and will be asked for again."""
        self.purse.drop(id)

    def _batch(self, message: BaseMessage) -> None:
        calls = cast("list[dict[str, Any]]", getattr(message, "tool_calls", None) or [])
        if len(calls) > 1:
            self.purse.refresh()
            self.purse.batch([(str(call["id"] or ""), str(call["name"])) for call in calls])

    # -- the run ------------------------------------------------------------------------------

    def finish(self, *, interrupted: bool) -> None:
        """The run is over, or pauses for a person."""
        self.purse.finish()
        self._calls.clear()
        if interrupted:
            self.funds.pause()

    def report(self) -> BudgetReport:
        """Where the budgets of the run stand."""
        self.purse.refresh()
        till = self.till
        return BudgetReport(
            scopes_of(self.purse.account, self.purse.now()),
            till.estimated,
            till.cached,
            till.unpriced,
            till.unbounded,
            tuple(till.notes),
        )


def speaker_of(place: Place, model: str | None) -> str:
    """Whose prompts resemble each other: a model in one place of the tree."""
    return f"{place.agent}|{place.node}|{model}"


def _in_event_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None

"""Setting model calls aside before they are made, and for how long they may take.

Contract: a call that does not fit is refused and nothing is held. Where only calls of others stand
in its way it waits for them, in a thread or in a task, until its own time is up. A fault of the
budget itself is told, and refuses the call, or lets it pass uncounted, as its option says.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from threading import get_ident
from typing import Literal, Protocol

from shearpin.adapters.money.compacting import Compactions
from shearpin.adapters.money.deadlines import Deadlines
from shearpin.adapters.money.funds import Funds
from shearpin.adapters.money.prompts import Prompts
from shearpin.adapters.money.rulings import Refused, Rule, Rulings
from shearpin.adapters.money.starting import ModelStart, request_for
from shearpin.adapters.money.till import PricedCall, Till
from shearpin.adapters.money.turns import turns_of
from shearpin.adapters.places import path_of
from shearpin.core.books import Exhausted
from shearpin.ledgers.base import Ready
from shearpin.ledgers.purse import Purse
from shearpin.ledgers.requests import ModelRequest
from shearpin.ledgers.waiting import mine_in_task
from shearpin.pricing import Pricing
from shearpin.verdicts import Halt

__all__ = ["Holding"]

_WAIT_SECONDS = 300.0
"""How long a call waits for others at most, each time; longer than a model thinks."""

_EARLY_SECONDS = 0.01
"""How much too early a timer may be."""


class Saves(Protocol):
    """Saves a run's session before a call is made."""

    def save_now(self) -> None: ...
    async def asave_now(self) -> None: ...


class Holding:
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
        self.on_fault: Callable[[str, BaseException], None] = _nowhere
        self.halted: Callable[[], Halt | None] = _never
        self.broken: Exception | None = None
        self.keeper: Saves | None = None
        self.passing = False  # nothing follows that its books are kept for
        self.rulings = Rulings(rule, language, nested)
        account = purse.account
        budgets = [*(book.budget for book in account.books), *account.per_call]
        capped = any(budget.usd is not None for budget in budgets)
        self.till = Till(pricing, capped)
        self.prompts = Prompts()
        self.compactions = Compactions()
        self.deadlines = Deadlines()
        self._calls: dict[str, PricedCall] = {}
        self.turns = turns_of(account)
        self.refused: dict[str, Halt] = {}  # by task; a refusal ends it, so there are few

    @property
    def awaits(self) -> bool:
        """Whether the ledger has to be awaited where that is possible."""
        return not isinstance(self.purse.ledger, Ready)

    # -- model calls --------------------------------------------------------------------------

    def open_model(self, start: ModelStart) -> Refused | None:
        """Set a model call aside, or refuse it."""
        try:
            request = self._begin(start)
            if not isinstance(request, ModelRequest):
                return request
            refused = self._concluded(start, request, self._too_deep(start) or self._ask(request))
            if refused is None and self.keeper is not None:
                self.keeper.save_now()
            return refused
        except Exception as error:
            return self._broken(error, start)

    async def aopen_model(self, start: ModelStart) -> Refused | None:
        """`open_model`, without blocking an event loop, also while it waits for others."""
        try:
            request = self._begin(start)
            if not isinstance(request, ModelRequest):
                return request
            found = self._too_deep(start) or await self._aask(request)
            refused = self._concluded(start, request, found)
            if refused is None and self.keeper is not None:
                await self.keeper.asave_now()
            return refused
        except Exception as error:
            return self._broken(error, start)

    def _begin(self, start: ModelStart) -> ModelRequest | Refused | None:
        if self.broken is not None:
            raise self.broken
        for book in self.purse.account.books:
            book.watch.work(self.purse.now())
        return request_for(start, self._calls)

    def _too_deep(self, start: ModelStart) -> Exhausted | None:
        return self.purse.account.too_deep(path_of(start.metadata))

    def _ask(self, request: ModelRequest) -> Exhausted | Halt | None:
        """Ask for room; where only other threads' calls stand in the way, wait for them."""
        waiting = self.purse.waiting
        while True:
            since = waiting.closed
            found = self.purse.open_model(request)
            if not isinstance(found, Exhausted):
                return None
            if not found.crowded:
                return found
            in_vain = _in_event_loop() or not waiting.wait(since, {get_ident()}, self._patience())
            if in_vain:
                return found._replace(crowded=waiting.busy({get_ident()}))
            halt = self.halted()
            if halt is not None:
                return halt

    async def _aask(self, request: ModelRequest) -> Exhausted | Halt | None:
        """`_ask`, for tasks."""
        waiting = self.purse.waiting
        while True:
            since = waiting.closed
            found = await self.purse.aopen_model(request)
            if not isinstance(found, Exhausted):
                return None
            if not found.crowded:
                return found
            if not await waiting.wait_in_task(since, mine_in_task(), self._patience()):
                return found._replace(crowded=waiting.busy(mine_in_task()))
            halt = self.halted()
            if halt is not None:
                return halt

    def _patience(self) -> float:
        left = self.purse.account.seconds_left(self.purse.now())
        return _WAIT_SECONDS if left is None else min(left, _WAIT_SECONDS)

    def _concluded(
        self, start: ModelStart, request: ModelRequest, found: Exhausted | Halt | None
    ) -> Refused | None:
        if found is None:
            self.till.unbounded += not request.bounded
            if self.acts:
                until = self.purse.account.deadline(self.purse.now())
                self._calls[request.id] = self._calls[request.id]._replace(until=until)
            return None
        if isinstance(found, Halt):  # the run was stopped while the call waited
            refused = Refused(found, False)
        else:
            refused = self.rulings.refused(found, start.place, start.step)
        if refused is None:
            self.till.unbounded += not request.bounded
            self.purse.force_model(request)
            return None
        del self._calls[request.id]
        self.refused[start.place.task] = refused.halt
        return refused

    def _broken(self, error: Exception, start: ModelStart) -> Refused | None:
        self.on_fault("budget.hold", error)
        if not self.fails_closed:
            return None  # what the call uses is charged when that is known
        self._calls.pop(str(start.id), None)
        try:
            self.purse.drop(str(start.id))
        except Exception as second:  # what is set aside then counts until its lease runs out
            self.on_fault("budget.release", second)
        return self.rulings.broken(start.place, start.step)

    @property
    def has_time_limit(self) -> bool:
        """Whether a call may be cut off."""
        return self.acts and self.purse.account.seconds_left(self.purse.now()) is not None

    def seconds_left(self) -> float | None:
        """Seconds until a call that begins now has to end; None without a time limit."""
        try:
            return self.purse.account.seconds_left(self.purse.now()) if self.acts else None
        except Exception as error:
            self.on_fault("budget.seconds_left", error)
            return None

    def late(self, start: ModelStart, *, rounded: bool = False) -> Halt | None:
        """With what a model call under way is ended; None where it still has time.

        `rounded` where a timer says so, which may be a little early.
        """
        call = self._calls.get(str(start.id))
        if call is None or call.until is None:
            return None
        now = self.purse.now()
        if now < call.until[0] - (_EARLY_SECONDS if rounded else 0):
            return None
        refused = self.rulings.refused(call.until[1], start.place, start.step)
        if refused is None:
            return None
        self.refused[start.place.task] = refused.halt
        return refused.halt


def _in_event_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _nowhere(where: str, error: BaseException) -> None:
    """Nobody is there to be told."""


def _never() -> Halt | None:
    return None

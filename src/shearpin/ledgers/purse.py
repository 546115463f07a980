"""An account and a ledger at work together: what adapters ask before and tell after each call.

Contract: thread-safe. The account is touched under a lock, the ledger is asked outside of it. Every
call that was granted is closed exactly once, by `close_*` or `drop_*`; what is still open when a
run ends is settled by `finish` at what was set aside, because it may have been used.
"""

from __future__ import annotations

from asyncio import current_task
from collections.abc import Sequence
from threading import Lock, get_ident
from typing import NamedTuple

from shearpin import clock
from shearpin.core.account import LANDING, Account, Ask
from shearpin.core.books import Exhausted, Notice
from shearpin.core.budget import Span, tool_dimension
from shearpin.core.estimate import Estimate, Learner
from shearpin.core.holds import Amounts, Hold, Refusal, Tally
from shearpin.core.reserve import LANDING_OUTPUT, model_amounts
from shearpin.core.room import output_room
from shearpin.ledgers.base import Ledger
from shearpin.ledgers.memory import MemoryLedger
from shearpin.ledgers.requests import Bill, Granted, ModelRequest, may_land, without_landing
from shearpin.ledgers.waiting import Waiting

__all__ = ["Purse"]


class _Open(NamedTuple):
    hold: Hold | None
    request: ModelRequest | None
    estimate: Estimate | None


class Purse:
    """See the module's contract.

    Args:
        account: whose books the calls are charged to.
        ledger: where that is kept.
        learner: of prompt sizes.
        now: the clock, in seconds.
        waiting: calls under way that this purse's calls may wait for; purses of one tree share it.

    Example:
        >>> from shearpin.core.books import Book
        >>> from shearpin.core.budget import Budget
        >>> from shearpin.ledgers.memory import MemoryLedger
        >>> from shearpin.ledgers.requests import Bill, ModelRequest
        >>> purse = Purse(Account([Book(Budget(model_calls=1), "run:1")]), MemoryLedger())
        >>> purse.open_model(ModelRequest("a", "main", 100.0, 50)).landing
        >>> notices = purse.close_model("a", Bill(90, 20))
        >>> purse.open_model(ModelRequest("b", "main", 100.0, 50)).reason
        'budget:model_calls'
    """

    def __init__(
        self,
        account: Account,
        ledger: Ledger,
        learner: Learner | None = None,
        now: clock.Clock = clock.monotonic,
        waiting: Waiting | None = None,
    ) -> None:
        self.account = account
        self.ledger = ledger
        self.learner = learner if learner is not None else Learner()
        self.now = now
        self.waiting = waiting if waiting is not None else Waiting()
        self._lock = Lock()
        self._open: dict[str, _Open] = {}
        self._over = False
        self.fits = False  # whether answers are limited to what is left

    # -- model calls --------------------------------------------------------------------------

    def open_model(self, request: ModelRequest) -> Granted | Exhausted:
        """Set the worst case aside; `Exhausted` where there is no room, and nothing is held."""
        answer: Granted | Exhausted | None = None
        self.waiting.begins(request.id, get_ident())
        try:
            if not request.bounded:
                self.refresh()
            ask, estimate = self._plan_model(request)
            if isinstance(ask, Exhausted):
                return ask
            found, refused = self.ledger.hold(request.id, ask.scopes, ask.amounts), None
            if isinstance(found, Refusal):
                refused = self._refused(found)
                if not may_land(ask, refused):
                    return refused
                amounts = {**ask.amounts, LANDING: 1}
                found = self.ledger.hold(request.id, ask.landing or (), amounts)
            answer = self._answer(request, estimate, found, refused)
            return answer
        finally:
            if not isinstance(answer, Granted):
                self.waiting.ends(request.id, closed=False)

    async def aopen_model(self, request: ModelRequest) -> Granted | Exhausted:
        """`open_model`, without blocking an event loop."""
        answer: Granted | Exhausted | None = None
        self.waiting.begins(request.id, id(current_task()))
        try:
            if not request.bounded:
                self._take_in([await self.ledger.ausage(key) for key in self.account.keys])
            ask, estimate = self._plan_model(request)
            if isinstance(ask, Exhausted):
                return ask
            found, refused = await self.ledger.ahold(request.id, ask.scopes, ask.amounts), None
            if isinstance(found, Refusal):
                refused = self._refused(found)
                if not may_land(ask, refused):
                    return refused
                amounts = {**ask.amounts, LANDING: 1}
                found = await self.ledger.ahold(request.id, ask.landing or (), amounts)
            answer = self._answer(request, estimate, found, refused)
            return answer
        finally:
            if not isinstance(answer, Granted):
                self.waiting.ends(request.id, closed=False)

    def force_model(self, request: ModelRequest) -> None:
        """The call is made although there is no room: only observed. It will be charged."""
        with self._lock:
            self._open[request.id] = _Open(None, request, self._estimate(request))

    def close_model(self, id: str, bill: Bill) -> list[Notice]:
        """The call was made and has used this; unknown and closed calls are not counted again."""
        opened = self._take(id)
        if opened is None:
            return []
        amounts = _billed(opened, bill)
        try:
            if opened.hold is not None:
                tallies = self.ledger.settle(opened.hold, amounts)
            else:
                tallies = self.ledger.charge(self.account.keys, amounts)
        finally:
            self.waiting.ends(id, closed=True)
        return self._settled(opened, tallies, bill)

    async def aclose_model(self, id: str, bill: Bill) -> list[Notice]:
        """`close_model`, without blocking an event loop."""
        opened = self._take(id)
        if opened is None:
            return []
        amounts = _billed(opened, bill)
        try:
            if opened.hold is not None:
                tallies = await self.ledger.asettle(opened.hold, amounts)
            else:
                tallies = await self.ledger.acharge(self.account.keys, amounts)
        finally:
            self.waiting.ends(id, closed=True)
        return self._settled(opened, tallies, bill)

    def keep(self, id: str) -> None:
        """Nobody knows what the call has used: it counts at what was set aside."""
        opened = self._take(id)
        try:
            if opened is not None and opened.hold is not None:
                amounts = {**without_landing(opened.hold.amounts), "steps": 0}
                self.ledger.settle(opened.hold, amounts)
        finally:
            self.waiting.ends(id, closed=True)

    def drop(self, id: str) -> None:
        """The call was not made, or cost nothing and counts for nothing (a cache hit)."""
        opened = self._take(id)
        try:
            if opened is not None and opened.hold is not None:
                self.ledger.release(opened.hold)
        finally:
            self.waiting.ends(id, closed=True)

    def estimate_of(self, id: str) -> Estimate | None:
        """What a model call under way is expected to take."""
        opened = self._open.get(id)
        return None if opened is None else opened.estimate

    # -- tool calls ---------------------------------------------------------------------------

    def open_tool(
        self, id: str, tool: str, call: str = "", agent: str = "main", step: int = 0
    ) -> Granted | Exhausted:
        """Set one call aside; `Exhausted` where the tool must not be run."""
        with self._lock:
            ask = self.account.tool(tool, call, at=self.now())
            if ask is None:
                self.account.tool_granted(agent)
                return Granted()
        found = ask if isinstance(ask, Exhausted) else self.ledger.hold(id, ask.scopes, ask.amounts)
        with self._lock:
            if isinstance(found, Hold):
                self.account.tool_granted(agent)
                self._open[id] = _Open(found, None, None)
                return Granted()
            self.account.tool_refused(agent, step)
            return self.account.refused(found) if isinstance(found, Refusal) else found

    def force_tool(self, id: str) -> None:
        """The tool is run although there is no room: only observed. It will be charged."""
        with self._lock:
            self._open[id] = _Open(None, None, None)

    def close_tool(self, id: str, tool: str) -> list[Notice]:
        """The tool was run, whatever came of it."""
        opened = self._take(id)
        if opened is None:
            return []
        if opened.hold is not None:
            tallies = self.ledger.settle(opened.hold, opened.hold.amounts)
        else:
            amounts = {"tool_calls": 1, tool_dimension(tool): 1}
            tallies = self.ledger.charge(self.account.keys, amounts)
        return self._settled(opened, tallies, None)

    def batch(self, requests: Sequence[tuple[str, str]]) -> None:
        """A model asks for several tools, as (call, tool): decide which fit, in this order."""
        with self._lock:
            self.account.batch(requests)

    # -- the run ------------------------------------------------------------------------------

    def extend(self, amounts: Amounts, per: Span = "run") -> bool:
        """Raise limits; False where there is no scope of that kind."""
        with self._lock:
            return self.account.extend(amounts, per)

    def refresh(self) -> None:
        """Ask the ledger where the scopes stand, for reports and forecasts."""
        if not self._over:
            self._take_in([self.ledger.usage(key) for key in self.account.keys])

    def forget(self) -> None:
        """Nobody will spend here again: leave nothing of it in the memory of this process."""
        self.refresh()
        self._over = True
        if isinstance(self.ledger, MemoryLedger):
            for book in self.account.own:
                self.ledger.forget(book.key)

    def finish(self) -> None:
        """The run is over: what is still open may have been used, and is settled as set aside."""
        with self._lock:
            opened, self._open = list(self._open.items()), {}
        for call, entry in opened:
            try:
                if entry.hold is not None:
                    self.ledger.settle(entry.hold, without_landing(entry.hold.amounts))
            finally:
                self.waiting.ends(call, closed=True)

    # -- shared -------------------------------------------------------------------------------

    def _take_in(self, tallies: Sequence[Tally]) -> None:
        with self._lock:
            for book, tally in zip(self.account.books, tallies, strict=True):
                book.take(tally)

    def _estimate(self, request: ModelRequest) -> Estimate:
        return Estimate(
            self.learner.prompt(request.speaker, request.guess),
            request.output_tokens,
            self.learner.answer(request.speaker, request.output_tokens),
            request.bounded,
        )

    def _fitted(self, request: ModelRequest) -> Estimate:
        """What to set aside; where the answer has no bound, at most what is left."""
        estimate = self._estimate(request)
        if estimate.bounded:
            return estimate
        account, into = self.account, estimate.input_tokens
        if not self.learner.knows(request.speaker):
            estimate = estimate._replace(likely_output=min(estimate.output_tokens, LANDING_OUTPUT))
        likely = estimate.likely_output
        growth = self.learner.growth(request.speaker)
        room = output_room(account, into, request.cost, growth=growth, answer=LANDING_OUTPUT)
        if room < likely:
            room = max(likely, output_room(account, into, request.cost))
        return estimate._replace(output_tokens=min(estimate.output_tokens, room))

    def _plan_model(self, request: ModelRequest) -> tuple[Ask | Exhausted, Estimate]:
        with self._lock:
            estimate = self._fitted(request)
            ask = self.account.model(
                estimate,
                request.cost,
                at=self.now(),
                last=request.last,
                growth=self.learner.growth(request.speaker),
                agent=request.agent,
                steps=request.steps,
            )
            return ask, estimate

    def _refused(self, refusal: Refusal) -> Exhausted:
        with self._lock:
            return self.account.refused(refusal)

    def _answer(
        self,
        request: ModelRequest,
        estimate: Estimate,
        found: Hold | Refusal,
        refused: Exhausted | None,
    ) -> Granted | Exhausted:
        """What a ledger's word means; `refused` where the landing reserve was asked for."""
        if isinstance(found, Hold):
            with self._lock:
                self._open[request.id] = _Open(found, request, estimate)
            return Granted(refused, estimate)
        if found.dimension == LANDING and refused is not None:
            return refused._replace(crowded=True)  # while another last answer is under way, wait
        return self._refused(found)

    def _take(self, id: str) -> _Open | None:
        with self._lock:
            return self._open.pop(id, None)

    def _settled(self, opened: _Open, tallies: Sequence[Tally], bill: Bill | None) -> list[Notice]:
        with self._lock:
            request = opened.request
            if bill is not None and request is not None and not bill.estimated:
                self.learner.learn(
                    request.speaker, request.guess, bill.input_tokens, bill.output_tokens
                )
            at, step = self.now(), bill is not None and bill.steps > 0
            notices = self.account.settled(tallies, at=at, step=step)
            if bill is not None and request is not None and request.last and step:
                growth = self.learner.growth(request.speaker)
                likely = self.learner.answer(request.speaker, request.output_tokens)
                most = request.output_tokens
                if self.fits or not request.bounded:  # an answer will be made to fit
                    most = min(most, max(likely, LANDING_OUTPUT))
                following = Estimate(bill.input_tokens + growth, most, likely)
                last = self.account.foresee(following, request.cost, growth, at)
                if last is not None:
                    notices.append(last)
            return notices


def _billed(opened: _Open, bill: Bill) -> Amounts:
    steps = bill.steps if opened.request is None else min(bill.steps, opened.request.steps)
    return model_amounts(bill.input_tokens, bill.output_tokens, bill.usd, steps=steps)

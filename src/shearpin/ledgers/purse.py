"""An account and a ledger at work together: what adapters ask before and tell after each call.

Contract: thread-safe. The account is touched under a lock, the ledger is asked outside of it. Every
call that was granted is closed exactly once, by `close_*` or `drop_*`; what is still open when a
run ends is settled by `finish` at what was set aside, because it may have been used.
"""

from __future__ import annotations

from collections.abc import Sequence
from threading import Condition, get_ident
from typing import NamedTuple

from shearpin import clock
from shearpin.core.account import (
    LANDING,
    LANDING_OUTPUT,
    RESERVED,
    Account,
    Ask,
    model_amounts,
)
from shearpin.core.books import Exhausted, Notice
from shearpin.core.budget import Span
from shearpin.core.estimate import Estimate, Learner
from shearpin.core.holds import Amounts, Hold, Refusal
from shearpin.core.room import output_room
from shearpin.ledgers.base import Ledger
from shearpin.ledgers.requests import Bill, Granted, ModelRequest

__all__ = ["Purse"]


class _Open(NamedTuple):
    hold: Hold | None
    request: ModelRequest | None
    estimate: Estimate | None
    thread: int


class Purse:
    """See the module's contract.

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
    ) -> None:
        self.account = account
        self.ledger = ledger
        self.learner = learner if learner is not None else Learner()
        self.now = now
        self._lock = Condition()
        self._open: dict[str, _Open] = {}
        self._asking: set[int] = set()
        self._closings = 0

    # -- model calls --------------------------------------------------------------------------

    def open_model(self, request: ModelRequest) -> Granted | Exhausted:
        """Set the worst case aside; `Exhausted` where there is no room, and nothing is held."""
        ask, estimate = self._plan_model(request)
        try:
            if isinstance(ask, Exhausted):
                return ask
            found = self.ledger.hold(request.id, ask.scopes, ask.amounts)
            if isinstance(found, Hold):
                return self._grant(request, estimate, found, None)
            refused = self._refused(found)
            if ask.landing is None or refused.crowded or refused.dimension not in RESERVED:
                return refused
            found = self.ledger.hold(request.id, ask.landing, {**ask.amounts, LANDING: 1})
            if isinstance(found, Hold):
                return self._grant(request, estimate, found, refused)
            return self._not_landing(found, refused)
        finally:
            self._asked()

    async def aopen_model(self, request: ModelRequest) -> Granted | Exhausted:
        """`open_model`, for ledgers that need I/O."""
        ask, estimate = self._plan_model(request)
        try:
            if isinstance(ask, Exhausted):
                return ask
            found = await self.ledger.ahold(request.id, ask.scopes, ask.amounts)
            if isinstance(found, Hold):
                return self._grant(request, estimate, found, None)
            refused = self._refused(found)
            if ask.landing is None or refused.crowded or refused.dimension not in RESERVED:
                return refused
            found = await self.ledger.ahold(request.id, ask.landing, {**ask.amounts, LANDING: 1})
            if isinstance(found, Hold):
                return self._grant(request, estimate, found, refused)
            return self._not_landing(found, refused)
        finally:
            self._asked()

    def force_model(self, request: ModelRequest) -> None:
        """The call is made although there is no room: only observed. It will be charged."""
        with self._lock:
            self._open[request.id] = _Open(None, request, self._estimate(request), get_ident())

    def close_model(self, id: str, bill: Bill) -> list[Notice]:
        """The call was made and has used this; unknown and closed calls are not counted again."""
        opened = self._take(id)
        if opened is None:
            return []
        steps = bill.steps if opened.request is None else min(bill.steps, opened.request.steps)
        amounts = model_amounts(bill.input_tokens, bill.output_tokens, bill.usd, steps=steps)
        return self._settle(opened, amounts, bill)

    def keep(self, id: str) -> None:
        """Nobody knows what the call has used: it counts at what was set aside."""
        opened = self._take(id)
        if opened is not None and opened.hold is not None:
            self.ledger.settle(opened.hold, {**_without_landing(opened.hold.amounts), "steps": 0})
        self._room()

    def drop(self, id: str) -> None:
        """The call was not made, or cost nothing and counts for nothing (a cache hit)."""
        opened = self._take(id)
        if opened is not None and opened.hold is not None:
            self.ledger.release(opened.hold)
        self._room()

    @property
    def closings(self) -> int:
        """How many calls were closed or refused so far: whether there may be room again."""
        return self._closings

    def wait_for_room(self, since: int, seconds: float) -> bool:
        """Wait until a call of another thread is closed; False if none is under way, or in vain.

        A thread must not wait for its own calls, such as a stream that it has not read to the end.

        Args:
            since: `closings` before the refusal.
            seconds: to wait at most.
        """
        with self._lock:
            if self._closings != since:
                return True
            mine = get_ident()
            others = {entry.thread for entry in self._open.values()} | self._asking
            if not others - {mine}:
                return False
            return self._lock.wait(seconds)

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
                self._open[id] = _Open(found, None, None, get_ident())
                return Granted()
            self.account.tool_refused(agent, step)
            return self.account.refused(found) if isinstance(found, Refusal) else found

    def force_tool(self, id: str) -> None:
        """The tool is run although there is no room: only observed. It will be charged."""
        with self._lock:
            self._open[id] = _Open(None, None, None, get_ident())

    def close_tool(self, id: str, tool: str) -> list[Notice]:
        """The tool was run, whatever came of it."""
        opened = self._take(id)
        if opened is None:
            return []
        amounts = (
            opened.hold.amounts if opened.hold is not None else {"tool_calls": 1, "tool:" + tool: 1}
        )
        return self._settle(opened, amounts, None)

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
        tallies = [self.ledger.usage(key) for key in self.account.keys]
        with self._lock:
            for book, tally in zip(self.account.books, tallies, strict=True):
                book.take(tally)

    def finish(self) -> None:
        """The run is over: what is still open may have been used, and is settled as set aside."""
        with self._lock:
            opened, self._open = list(self._open.values()), {}
        for entry in opened:
            if entry.hold is not None:
                self.ledger.settle(entry.hold, _without_landing(entry.hold.amounts))

    # -- shared -------------------------------------------------------------------------------

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
        if not request.bounded:
            self.refresh()
        with self._lock:
            self._asking.add(get_ident())
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

    def _not_landing(self, found: Refusal, refused: Exhausted) -> Exhausted:
        """What the refusal of a last answer means; while another one is under way, wait for it."""
        if found.dimension == LANDING:
            return refused._replace(crowded=True)
        return self._refused(found)

    def _grant(
        self, request: ModelRequest, estimate: Estimate, hold: Hold, landing: Exhausted | None
    ) -> Granted:
        with self._lock:
            self._open[request.id] = _Open(hold, request, estimate, get_ident())
        return Granted(landing, estimate)

    def _take(self, id: str) -> _Open | None:
        with self._lock:
            return self._open.pop(id, None)

    def _room(self) -> None:
        with self._lock:
            self._closings += 1
            self._lock.notify_all()

    def _asked(self) -> None:
        with self._lock:
            self._asking.discard(get_ident())
            self._closings += 1
            self._lock.notify_all()

    def _settle(self, opened: _Open, amounts: Amounts, bill: Bill | None) -> list[Notice]:
        if opened.hold is not None:
            tallies = self.ledger.settle(opened.hold, amounts)
        else:
            tallies = self.ledger.charge(self.account.keys, amounts)
        with self._lock:
            request = opened.request
            if bill is not None and request is not None and not bill.estimated:
                self.learner.learn(
                    request.speaker, request.guess, bill.input_tokens, bill.output_tokens
                )
            self._closings += 1
            self._lock.notify_all()
            at, step = self.now(), bill is not None and bill.steps > 0
            notices = self.account.settled(tallies, at=at, step=step)
            if bill is not None and request is not None and request.last and step:
                speaker, most = request.speaker, request.output_tokens
                into = bill.input_tokens + self.learner.growth(speaker)
                following = Estimate(into, most, self.learner.answer(speaker, most))
                last = self.account.foresee(following, request.cost, at)
                if last is not None:
                    notices.append(last)
            return notices


def _without_landing(amounts: Amounts) -> Amounts:
    return {name: amount for name, amount in amounts.items() if name != LANDING}

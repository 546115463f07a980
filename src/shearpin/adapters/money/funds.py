"""What a conversation has to spend: its books, its ledger, and what was learnt of its prompts.

Contract: a run spans interrupts and resumes, so its books stay until the next genuine turn; a
budget that was given for one invocation is gone with it. What was spent never goes back: a saved
copy is charged into a fresh ledger, as far as that does not know it already.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast
from zlib import crc32

from shearpin import clock
from shearpin.core.account import LANDING, Account
from shearpin.core.books import Book
from shearpin.core.budget import Budget, budgets_of
from shearpin.core.estimate import Learner
from shearpin.core.levels import Levels
from shearpin.ledgers.base import Ledger
from shearpin.ledgers.memory import MemoryLedger

__all__ = ["BUDGET_KEY", "EXTEND_KEY", "Funds", "extension_of", "override_in"]

BUDGET_KEY = "shearpin_budget"
"""The key of `configurable`, or of the runtime context, for the budget of one invocation."""

EXTEND_KEY = "shearpin_extend"
"""Under this key of `configurable` the limits of a run that goes on are raised."""

_MOST_CALLS = 64


def override_in(values: Mapping[str, object], context: object) -> tuple[Budget, ...]:
    """The budgets that were given for one invocation."""
    given = values.get(BUDGET_KEY)
    if given is None and isinstance(context, Mapping):
        given = cast("Mapping[str, object]", context).get(BUDGET_KEY)
    elif given is None and context is not None:
        given = getattr(context, BUDGET_KEY, None)
    return budgets_of(given, BUDGET_KEY)


def extension_of(values: Mapping[str, object]) -> tuple[Budget, ...]:
    """By how much limits are raised."""
    return budgets_of(values.get(EXTEND_KEY), EXTEND_KEY)


class Funds:
    """The books of one conversation.

    Args:
        ledger: that is given; None for one of its own.
        now: the clock, in seconds.
        thread: the conversation's name in a ledger that others use as well; None where it has none.
    """

    def __init__(
        self,
        ledger: Ledger | None = None,
        now: clock.Clock = clock.monotonic,
        thread: str | None = None,
    ) -> None:
        self.ledger: Ledger = ledger if ledger is not None else MemoryLedger(now=now)
        self.thread = thread
        self.on_fault: Callable[[str, BaseException], None] | None = None
        self.learner = Learner()
        self._now = now
        self._books: dict[str, Book] = {}
        self._calls: OrderedDict[int, None] = OrderedDict()
        self._levels = Levels()

    def account(
        self,
        budgets: Sequence[Budget],
        run: str,
        *,
        new_turn: bool,
        parent: Account | None = None,
        given: Sequence[Budget] = (),
    ) -> Account:
        """The account of a run that begins or goes on.

        Args:
            budgets: of the recipe.
            run: id of the run.
            new_turn: whether it begins; else the books of the last turn go on.
            parent: the account of the run that it is a part of.
            given: budgets for this invocation, each in place of the recipe's for its kind of scope.
        """
        last = self._books.get("run")
        if new_turn or last is None:
            self._calls.clear()
            self._levels.clear()
        chosen = {budget.per: budget for budget in budgets}
        if last is not None and not new_turn:
            chosen["run"] = last.budget
        chosen |= {budget.per: budget for budget in given}
        books: list[Book] = []
        for per in ("run", "thread"):
            budget = chosen.get(per)
            if budget is not None:
                books.append(self._book(per, budget, run, fresh=new_turn and per == "run"))
        per_call = [budget for budget in chosen.values() if budget.per == "call"]
        return Account(books, per_call, parent, self._levels)

    def _book(self, per: str, budget: Budget, run: str, *, fresh: bool) -> Book:
        known = self._books.get(per)
        if known is None or fresh:
            if known is not None and isinstance(self.ledger, MemoryLedger):
                self.ledger.forget(known.key)
            named = per == "thread" and self.thread is not None
            known = Book(budget, f"{per}:{self.thread if named else run}")
            known.watch.start(self._now())
        elif known.budget != budget:
            known = known.under(budget)
            if per == "thread":  # for this invocation only
                return known
        known.watch.work(self._now())
        self._books[per] = known
        return known

    def first_time(self, call: str) -> bool:
        """Whether a model call is no repetition of one that was answered before it was replayed."""
        return crc32(call.encode()) not in self._calls

    def done(self, call: str) -> None:
        """A model call was answered."""
        self._calls[crc32(call.encode())] = None
        if len(self._calls) > _MOST_CALLS:
            self._calls.popitem(last=False)

    def pause(self) -> None:
        """The run waits for a person."""
        for book in self._books.values():
            book.watch.wait(self._now())

    def dump(self) -> dict[str, Any]:
        """The state as JSON-ready data, without any text of the run."""
        now = self._now()
        return {
            "books": {
                per: [book.key, self._used(book), book.dump(now)]
                for per, book in self._books.items()
            },
            "learner": self.learner.dump(),
            "calls": list(self._calls),
            **({"agents": agents} if (agents := self._levels.dump()) else {}),
        }

    def _used(self, book: Book, *, faults: bool = True) -> dict[str, int]:
        """What was spent in a scope, or may have been: what is set aside for calls under way."""
        try:
            _, spent, held, _ = self.ledger.usage(book.key)
        except Exception as error:
            if not faults or self.on_fault is None:
                raise
            self.on_fault("budget.usage", error)
            spent, held = book.spent, book.held
        names = {**spent, **held}.keys() - {LANDING}
        return {name: spent.get(name, 0) + held.get(name, 0) for name in names}

    def load(self, data: Mapping[str, Any], budgets: Sequence[Budget]) -> None:
        """Go on from what `dump` gave, under the budgets of the recipe."""
        chosen = {budget.per: budget for budget in budgets}
        for per, (key, spent, state) in data["books"].items():
            budget = chosen.get(per)
            if budget is None:
                continue
            book = Book(budget, key)
            book.load(state, self._now())
            known = self._used(book, faults=False)
            missing = {
                name: amount - known.get(name, 0)
                for name, amount in cast("dict[str, int]", spent).items()
                if amount > known.get(name, 0)
            }
            (tally,) = self.ledger.charge([key], missing)
            book.take(tally)
            self._books[per] = book
        self.learner.load(data["learner"])
        self._calls = OrderedDict((call, None) for call in data["calls"])
        self._levels.load(data.get("agents", ()))

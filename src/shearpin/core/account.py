"""The account of a run: which books a call is charged to, what is set aside for it, what is left.

Contract: pure and not thread-safe; the caller holds a lock and asks the ledger. An account turns a
call into an `Ask` (amounts and scopes for a ledger), a ledger's refusal into an `Exhausted`, and
settled tallies into `Notice`s. A child's calls are charged to all its ancestors; the outermost
scope without room is the one that is reported. Spend lives in the ledger and never rolls back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
from typing import NamedTuple

from shearpin.core.books import Book, Exhausted, Notice, notices_of
from shearpin.core.budget import Budget, Span, tool_dimension
from shearpin.core.estimate import Estimate
from shearpin.core.holds import Amounts, Refusal, Scope, Tally
from shearpin.core.levels import Levels
from shearpin.core.reserve import LANDING_NOTE, LANDING_OUTPUT, RESERVED, Cost, kept_back, less
from shearpin.core.reserve import model_amounts as _amounts

__all__ = [
    "LANDING",
    "REFUSED_ROUNDS",
    "Account",
    "Ask",
]

LANDING = "landing"
"""The dimension that lets one call of a run use the landing reserve."""

REFUSED_ROUNDS = 2
"""Rounds in a row of which every tool call was refused, after which the run is ended."""


class Ask(NamedTuple):
    """What to set aside for a call, and where.

    Attributes:
        amounts: at worst.
        scopes: with the landing reserve taken off their limits.
        landing: the same scopes with their full limits, where this call may be the last one.
    """

    amounts: Amounts
    scopes: tuple[Scope, ...]
    landing: tuple[Scope, ...] | None = None


class Account:
    """All budgets of one run, innermost first. See the module's contract.

    Example:
        >>> account = Account([Book(Budget(tool_calls=2), "run:1")])
        >>> account.tool("search", at=0.0).amounts
        {'tool_calls': 1, 'tool:search': 1}
    """

    def __init__(
        self,
        books: Sequence[Book],
        per_call: Sequence[Budget] = (),
        parent: Account | None = None,
        levels: Levels | None = None,
    ) -> None:
        self.own = tuple(books)
        self.books: tuple[Book, ...] = (*books, *(parent.books if parent is not None else ()))
        self.per_call: tuple[Budget, ...] = (
            *per_call,
            *(parent.per_call if parent is not None else ()),
        )
        self.exempt = frozenset(name for book in self.books for name in book.budget.exempt)
        self.keys = tuple(book.key for book in self.books)
        self._by_key = {book.key: book for book in self.books}
        self._reserves = any(name in book.limits for book in self.books for name in RESERVED)
        own = levels if levels is not None else Levels()
        self.levels = parent.levels if parent is not None else own
        self._deep = any(book.budget.depth is not None for book in self.books)
        self._final = (0, 0)
        self._refused: dict[str, list[int]] = {}
        self._skipped: dict[str, Exhausted] = {}

    @property
    def limited(self) -> bool:
        """Whether there is any limit at all."""
        return bool(self.books or self.per_call)

    # -- asking -------------------------------------------------------------------------------

    def model(
        self,
        estimate: Estimate,
        cost: Cost | None,
        *,
        at: float,
        last: bool = False,
        growth: int = 0,
        agent: str = "main",
        steps: int = 1,
    ) -> Ask | Exhausted:
        """What to set aside for a model call; `last` where it may use the landing reserve.

        Args:
            estimate: of its tokens.
            cost: of tokens; None where money is not counted.
            at: now.
            last: whether this call could be the run's final answer.
            growth: tokens by which the prompt usually grows from call to call.
            agent: whose call it is.
            steps: 0 where it repeats a call that was counted before.
        """
        late = self._late(at) or self._stuck(agent)
        if late is not None:
            return late
        into, out = estimate.input_tokens, estimate.output_tokens
        amounts = _worth(into, out, cost, steps)
        over = self._over_one_call(amounts)
        if over is not None:
            return over
        if not self._reserves:
            return Ask(amounts, self._scopes())
        prompt, answer = (
            into + growth + LANDING_NOTE,
            min(out, max(estimate.likely_output, LANDING_OUTPUT)),
        )
        if last:
            self._final = (prompt, answer)
            kept = kept_back(estimate, cost, prompt, answer)
            return Ask(amounts, self._scopes(kept), self._scopes(landing=True))
        # Not to be used up by a part of the run: what the main agent's last answer will need.
        kept = kept_back(estimate._replace(likely_output=out), cost, *self._final)
        return Ask(amounts, self._scopes(kept))

    def too_deep(self, path: Sequence[str]) -> Exhausted | None:
        """The limit that keeps an agent from asking a model because it is called too deep, if any.

        Args:
            path: of the graphs around the call, outermost first.
        """
        if not self._deep:
            return None
        level = self.levels.of(path)
        for book in reversed(self.books):
            if book.budget.depth is not None:
                limit = book.budget.depth + book.extra.get("depth", 0)
                if level > limit:
                    per, passed = book.budget.per, level - 1
                    return Exhausted("depth", per, limit, passed, wanted=level, key=book.key)
        self.levels.add(path)
        return None

    def tool(self, tool: str, call: str = "", *, at: float) -> Ask | Exhausted | None:
        """What to set aside for a tool call; None where the tool is exempt.

        Args:
            tool: its name.
            call: the id that the model gave the call, which tells its place in a batch.
            at: now.
        """
        if tool in self.exempt:
            return None
        refused = self._late(at) or self._skipped.get(call)
        if refused is not None:
            return refused
        return Ask({"tool_calls": 1, tool_dimension(tool): 1}, self._scopes())

    def batch(self, requests: Sequence[tuple[str, str]]) -> None:
        """A model asks for several tools at once, as (call, tool): the first that fit will run.

        The scopes must be up to date (see `settled`). Which calls of a batch are left out is
        settled here, in the order of the message, so that it does not depend on which thread comes
        first.
        """
        self._skipped.clear()
        wanted: dict[str, int] = {}
        for call, tool in requests:
            if tool in self.exempt:
                continue
            short = self._short({"tool_calls", tool_dimension(tool)}, wanted)
            if short is not None:
                self._skipped[call] = short
                continue
            for name in ("tool_calls", tool_dimension(tool)):
                wanted[name] = wanted.get(name, 0) + 1

    def _short(self, names: set[str], wanted: Mapping[str, int]) -> Exhausted | None:
        for book in reversed(self.books):
            for name, limit in book.limits.items():
                if name in names:
                    spent, held = book.spent.get(name, 0), book.held.get(name, 0)
                    if spent + held + wanted.get(name, 0) >= limit:
                        return Exhausted(name, book.budget.per, limit, spent, held, 1, key=book.key)
        return None

    def _scopes(
        self, kept: Mapping[str, int] | None = None, *, landing: bool = False
    ) -> tuple[Scope, ...]:
        if landing:
            return tuple([Scope(book.key, {**book.limits, LANDING: 1}) for book in self.books])
        if kept is None:
            return tuple([Scope(book.key, book.limits) for book in self.books])
        return tuple([Scope(book.key, less(book.limits, kept)) for book in self.books])

    def _late(self, at: float) -> Exhausted | None:
        for book in reversed(self.books):
            late = book.late(at)
            if late is not None:
                return late
        return None

    def _over_one_call(self, amounts: Amounts) -> Exhausted | None:
        for budget in reversed(self.per_call):
            for name, limit in budget.limits.items():
                if amounts.get(name, 0) > limit:
                    return Exhausted(name, "call", limit, 0, 0, amounts[name])
        return None

    # -- answers of the ledger ----------------------------------------------------------------

    def refused(self, refusal: Refusal) -> Exhausted:
        """What a ledger's refusal means; its limit is the budget's own, without the reserve."""
        book = self._by_key[refusal.key]
        limit = book.limits.get(refusal.dimension, refusal.limit)
        crowded = refusal.held > 0 and refusal.spent + refusal.wanted <= refusal.limit
        return Exhausted(
            refusal.dimension,
            book.budget.per,
            limit,
            refusal.spent,
            refusal.held,
            refusal.wanted,
            crowded,
            refusal.key,
        )

    def settled(self, tallies: Iterable[Tally], *, at: float, step: bool) -> list[Notice]:
        """Take in where the scopes stand; what there is to say, each thing once."""
        books = self._by_key
        found: list[Notice] = []
        for tally in tallies:
            book = books[tally.key]
            book.spent, book.held = tally.spent, tally.held
            if step:
                book.step(at)
            found.extend(notices_of(book, at))
        return found

    def foresee(
        self, estimate: Estimate, cost: Cost | None, growth: int, at: float
    ) -> Notice | None:
        """The notice that the main agent's next call will be the last that fits, if it will.

        It fits at worst, with the notice in its prompt; if it takes its likely course, the one
        after it will not.
        """
        near = [
            (book, name)
            for book in self.books
            for name in RESERVED
            if name in book.limits and f"last:{name}" not in book.told
        ]
        if not near:
            return None
        into, out, likely, _ = estimate
        worst = _worth(into + LANDING_NOTE, out, cost)
        usual = _worth(into, likely, cost)
        after = _worth(into + growth + LANDING_NOTE, out, cost)
        for book, name in near:
            used = book.spent.get(name, 0) + book.held.get(name, 0)
            if used + worst[name] <= book.limits[name] < used + usual[name] + after[name]:
                return book.notice("last", name, at)
        return None

    # -- rounds of which every tool call was refused -------------------------------------------

    def tool_refused(self, agent: str, step: int) -> None:
        """A tool call of an agent was refused in this step."""
        steps = self._refused.setdefault(agent, [])
        if not steps or steps[-1] != step:
            steps.append(step)
            del steps[:-REFUSED_ROUNDS]

    def tool_granted(self, agent: str) -> None:
        """A tool call of an agent may run: the agent is not stuck."""
        self._refused.pop(agent, None)

    def silenced(self, agent: str) -> Exhausted | None:
        """The limit because of which an agent's latest tool calls were refused, if any were."""
        return self._tool_limit() if self._refused.get(agent) else None

    def _stuck(self, agent: str) -> Exhausted | None:
        return self._tool_limit() if len(self._refused.get(agent, ())) >= REFUSED_ROUNDS else None

    def _tool_limit(self) -> Exhausted | None:
        for book in reversed(self.books):
            for name, limit in book.limits.items():
                if (name == "tool_calls" or name.startswith("tool:")) and book.spent.get(
                    name, 0
                ) >= limit:
                    return Exhausted(
                        name, book.budget.per, limit, book.spent.get(name, 0), key=book.key
                    )
        return None

    # -- changes ------------------------------------------------------------------------------

    def extend(self, amounts: Amounts, per: Span = "run") -> bool:
        """Raise the limits of the innermost scope of that kind; False if there is none."""
        for book in self.books:
            if book.budget.per == per:
                book.extend(amounts)
                self._refused.clear()
                return True
        return False

    def left(self, dimension: str) -> int | None:
        """What is left in a dimension, in the scope with the least; None where unlimited."""
        room = [
            book.limits[dimension] - book.spent.get(dimension, 0) - book.held.get(dimension, 0)
            for book in self.books
            if dimension in book.limits
        ]
        return max(0, min(room)) if room else None

    def seconds_left(self, at: float) -> float | None:
        """Seconds until a call that begins now has to be cut; None where no time limit is set."""
        found = self.deadline(at)
        return None if found is None else max(0.0, found[0] - at)

    def deadline(self, at: float) -> tuple[float, Exhausted] | None:
        """When a call that begins now has to end, and the limit that it then has used up."""
        found = [
            (at + budget.seconds, Exhausted("seconds", "call", budget.seconds, budget.seconds))
            for budget in self.per_call
            if budget.seconds is not None
        ]
        for book in self.books:
            found.extend(book.deadlines(at))
        return min(found, key=itemgetter(0), default=None)


def _worth(into: int, out: int, cost: Cost | None, steps: int = 1) -> Amounts:
    return _amounts(into, out, cost(into, out) if cost is not None else 0, steps=steps)

"""Where a run's budget comes from, and which budget a piece of code spends from.

Contract: a run without budgets has no `Spending` at all and pays nothing for it. A graph that is
guarded by itself and runs within another run has its own budgets, nested in the outer one's: what
it spends is charged to both.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from contextvars import ContextVar

from shearpin.adapters.carrying import tell
from shearpin.adapters.money.funds import Funds, extension_of, override_in
from shearpin.adapters.money.rulings import Rule
from shearpin.adapters.money.spending import Spending
from shearpin.adapters.run import Run
from shearpin.core.budget import Budget
from shearpin.findings import Finding
from shearpin.ledgers.purse import Purse
from shearpin.recipe import Guard
from shearpin.switch import SWITCH
from shearpin.verdicts import PROCEED, Block, Halt, Nudge, Verdict

__all__ = [
    "NESTED",
    "Orders",
    "cut_in",
    "ends_here",
    "nested_spending",
    "open_spending",
    "orders_in",
    "refused_before",
    "spending_of",
]

NESTED: ContextVar[tuple[Run, Spending] | None] = ContextVar("shearpin_nested", default=None)
"""The budget of the guarded graph that this code belongs to, where that runs within another run."""

_MISPLACED = "max_concurrency"


class Orders:
    """What one invocation says about its budget.

    Attributes:
        given: budgets in place of the recipe's.
        more: by how much limits are raised.
    """

    __slots__ = ("given", "more")

    def __init__(self, given: Sequence[Budget] = (), more: Sequence[Budget] = ()) -> None:
        self.given = tuple(given)
        self.more = tuple(more)


def orders_in(values: Mapping[str, object], context: object = None) -> Orders:
    """What the configuration and the runtime context of an invocation say about its budget.

    Raises:
        ConfigError: it cannot be read.
    """
    if _MISPLACED in values:
        warnings.warn(
            f"{_MISPLACED} under `configurable` is ignored by LangGraph; put it on the top level "
            'of the configuration, {"max_concurrency": N}, or use Budget(max_concurrency=N) for '
            "tool calls",
            UserWarning,
            stacklevel=6,
        )
    return Orders(override_in(values, context), extension_of(values))


def open_spending(
    run: Run, recipe: Guard, orders: Orders, *, new_turn: bool, passing: bool = False
) -> None:
    """Give a run its budget, if there is any; `passing` where it belongs to no conversation."""
    if not (recipe.budgets or orders.given):
        return
    funds, broken = _funds_of(run, recipe)
    account = funds.account(recipe.budgets, run.id, new_turn=new_turn, given=orders.given)
    purse = Purse(account, funds.ledger, funds.learner, run.now)
    acts, rule = recipe.mode == "enforce", _rule_of(run)
    run.spending = Spending(purse, funds, recipe.pricing, rule, recipe.language, acts=acts)
    run.spending.broken, run.spending.passing = broken, passing
    _belongs(run.spending, run, recipe)
    for more in orders.more:
        _extend(run, run.spending, more)


def _funds_of(run: Run, recipe: Guard) -> tuple[Funds, Exception | None]:
    """What a conversation has to spend, and why that cannot be told where it cannot."""
    state = run.state
    if state.funds is not None:
        return state.funds, None
    name = None
    if recipe.ledger is not None and run.thread is not None:
        name = f"{recipe.name or run.graph}:{run.thread}"
    funds = Funds(recipe.ledger, run.now, name)
    funds.on_fault = run.fault
    if state.saved_funds is not None:
        try:
            funds.load(state.saved_funds, recipe.budgets)
        except Exception as error:  # it is tried again in the next run
            run.fault("budget.load", error)
            return funds, error
    state.funds, state.saved_funds = funds, None
    return funds, None


def nested_spending(recipe: Guard, run: Run) -> Spending | None:
    """The budget of a guarded graph within a run; None where it has none of its own."""
    if not recipe.budgets:
        return None
    outer = spending_of(run)
    parent = outer.purse.account if outer is not None else None
    funds = Funds(outer.funds.ledger if outer is not None else recipe.ledger, run.now)
    number = run.numbers.model_call(f"nested:{run.id}")
    account = funds.account(recipe.budgets, number, new_turn=True, parent=parent)
    waiting = outer.purse.waiting if outer is not None else None
    purse = Purse(account, funds.ledger, funds.learner, run.now, waiting)
    pricing = recipe.pricing
    acts, rule = recipe.mode == "enforce", _rule_of(run)
    spending = Spending(purse, funds, pricing, rule, recipe.language, nested=True, acts=acts)
    spending.passing = True
    _belongs(spending, run, recipe)
    if outer is not None:
        spending.deadlines = outer.deadlines
    return spending


def spending_of(run: Run) -> Spending | None:
    """The innermost budget that code of a run spends from; none while guards are off."""
    if SWITCH.is_off():
        return None
    nested = NESTED.get()
    if nested is not None and nested[0] is run:
        return nested[1]
    return run.spending


def refused_before(run: Run, task: str, error: BaseException) -> Halt | None:
    """The refusal that an error of a task comes from: fallbacks give the first error, and a call
    that was cut at its deadline was cancelled.
    """
    if not isinstance(error, Exception):
        return cut_in(run, error)
    spending = spending_of(run)
    if not run.refused_in(task):
        return None
    return run.stopped or (spending.refused.get(task) if spending is not None else None)


def cut_in(run: Run, error: BaseException) -> Halt | None:
    """The end of a model call that was cut at its deadline, where that is all that an error is."""
    try:
        spending = spending_of(run)
        return None if spending is None else spending.deadlines.ended(error)
    except Exception as fault:
        run.fault("metering.cut_in", fault)
        return None


def ends_here(run: Run, halt: Halt) -> bool:
    """Whether a refusal that was meant for a part of a run has reached the graph of the run itself.

    Then it ends the run, unless only calls that are under way stood in its way: of a parallel
    batch, what fits runs on, and the rest is left out.
    """
    finding = halt.finding
    if finding is None or finding.evidence.get("crowded"):
        return False
    _rule_of(run)(halt, finding)
    return True


def _belongs(spending: Spending, run: Run, recipe: Guard) -> None:
    spending.fails_closed = recipe.budget_faults == "stop"
    spending.on_fault = run.fault
    spending.halted = lambda: run.stopped


def _rule_of(run: Run) -> Rule:
    def rule(verdict: Nudge | Block | Halt, finding: Finding) -> Verdict:
        at = run.now()
        given = run.state.judge.ask(lambda session: session.rule(verdict, finding, at), PROCEED)
        if given is verdict:
            tell(run, verdict)
        return given

    return rule


def _extend(run: Run, spending: Spending, more: Budget) -> None:
    amounts = dict(more.limits) | ({"depth": more.depth} if more.depth is not None else {})
    for name in ("seconds", "working_seconds"):
        value = getattr(more, name)
        if value is not None:
            amounts[name] = int(value)
    if spending.purse.extend(amounts, more.per):
        run.state.judge.ask(lambda session: session.pardon("budget:"), None)

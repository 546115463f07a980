"""From the core's verdict to what is carried out: the author is asked, and ways out are kept.

Contract: the last call that the run is owed is let through. A verdict that the author's handler
replaces is marked so in the journal. A halt is given up only within the allowance that a person's
"continue" has; a budget's verdict cannot be replaced: a cap is a cap.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from shearpin.errors import ConfigError
from shearpin.events import Fact, ModelCalled, SignalReceived
from shearpin.recipe import Occasion
from shearpin.verdicts import PROCEED, Block, Halt, Nudge, Proceed, Reroute, Rollback, Verdict

if TYPE_CHECKING:
    from shearpin.adapters.run import Run

__all__ = ["carried", "tell"]


def carried(run: Run, fact: Fact, verdict: Verdict) -> Verdict:
    """What is to be carried out of a verdict other than `PROCEED`."""
    if isinstance(verdict, Halt):
        if type(fact) is ModelCalled and run.ways.admits(fact.agent, fact.node):
            return PROCEED
        if verdict is run.ways.told:
            return verdict
    verdict = _as_wished(run, verdict)
    if isinstance(verdict, Nudge):
        run.keep(verdict)
    elif isinstance(verdict, (Reroute, Rollback)):
        run.ways.divert(verdict)
    return verdict


def tell(run: Run, verdict: Verdict) -> Verdict | None:
    """Tell the author's handler, where there is one, of a verdict that stands."""
    if isinstance(verdict, Halt):
        run.ways.told = verdict
    teller = run.ways.teller
    if teller is None:
        return None
    occasion = Occasion(run.id, run.thread, run.graph, run.step)
    return teller.tell(verdict, occasion, run.fault)


def _as_wished(run: Run, verdict: Verdict) -> Verdict:
    wish = tell(run, verdict)
    finding = getattr(verdict, "finding", None)
    if wish is None or wish == verdict or finding is None:
        return verdict
    if finding.family == "budget":
        run.fault("on_verdict", ConfigError("a budget's verdict cannot be replaced"))
        return verdict
    if isinstance(verdict, Halt) and not isinstance(wish, Halt):
        run.state.judge.after(SignalReceived(run.now(), "continue"))
        if run.stopped is not None:
            return verdict
    run.not_carried_out(verdict)
    if isinstance(wish, Proceed) or not isinstance(wish, (Nudge, Block, Halt)):
        return PROCEED
    at = run.now()
    return run.state.judge.ask(lambda session: session.rule(wish, finding, at), PROCEED)

"""What a run does besides speaking, blocking and ending: what its author says, and ways out.

Contract: one per run. It holds what is still to be carried out (a diversion, the last answer) and
what is known of places (which are left alone). Deciding is not its business, but the session's.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, NamedTuple, cast

from shearpin.adapters.models import Model, models_of
from shearpin.adapters.telling import Teller
from shearpin.core.detectors.oscillation import StateKey, StateOscillations
from shearpin.events import Fact, RunEnded, RunStarted, TurnStarted
from shearpin.switch import SWITCH
from shearpin.verdicts import Halt, Reroute, Rollback

if TYPE_CHECKING:
    from shearpin.analysis.choices import Choices
    from shearpin.recipe import Guard

__all__ = ["Seen", "Ways"]

_MOST_VISITS = 64
_MOST_GRAPHS = 16
_MOST_PLACES = 1024
_MOST_TURNS = 2
_MOST_READMITS = 2


class Seen(NamedTuple):
    """A node that was entered, at which step, and what it was given."""

    step: int
    node: str
    input: object


def _state_key(recipe: Guard) -> StateKey:
    """What of the state counts, by the author's own word."""
    for rule in recipe.detectors:
        if isinstance(rule, StateOscillations):
            return rule.key
    return None


class Ways:
    """See the module's contract."""

    def __init__(self, recipe: Guard | None = None, answer: object = None) -> None:
        self.on_stop = "end" if recipe is None else recipe.on_stop
        self.on_loop = None if recipe is None else recipe.on_loop
        self.learners = () if recipe is None else recipe.learners
        self.state_key = None if recipe is None else _state_key(recipe)
        choices = None if recipe is None else cast("Choices | None", recipe.choices)
        self._chosen = () if choices is None else choices.ways
        self.teller = None if recipe is None or recipe.on_verdict is None else Teller(recipe)
        self.diversion: Reroute | Rollback | None = None
        self.models: Mapping[str, Model] = {} if recipe is None else models_of(recipe)
        self.plans: dict[tuple[int, str], tuple[object, object]] = {}
        self._exchange: Reroute | Rollback | None = None
        self.landing: tuple[str, str] | None = None
        self.landed = False
        self.by_middleware = False
        self.said = ""
        self.cut_off = ""
        self.asked: Halt | None = None
        self.told: Halt | None = None
        self.pausing = False
        self.paused: set[str] = set()
        self.invocation: object = None
        self.answer = answer
        self._admits = 0
        self._readmits = 0
        self._turns = 0
        self._exclude = () if recipe is None else recipe.exclude
        self._alone: dict[tuple[str, str], bool] = {}
        self._visits: OrderedDict[str, deque[Seen]] = OrderedDict()

    # -- places that are left alone -------------------------------------------------------------

    def apart(self, agent: str, node: str) -> bool:
        """Whether nothing is to be done here: guards are off, or the node is excluded."""
        if SWITCH.is_off():
            return True
        return bool(self._exclude) and self._is_excluded(agent, node)

    def hides(self, fact: Fact) -> bool:
        """Whether the core is not to know of a fact."""
        if SWITCH.is_off():
            return True
        if not self._exclude or isinstance(fact, (RunStarted, RunEnded, TurnStarted)):
            return False
        node = getattr(fact, "node", None)
        return isinstance(node, str) and self._is_excluded(getattr(fact, "agent", ""), node)

    def _is_excluded(self, agent: str, node: str) -> bool:
        place = (agent, node)
        known = self._alone.get(place)
        if known is None:
            if len(self._alone) >= _MOST_PLACES:
                self._alone.clear()
            names = [node, *agent.partition(":")[0].split("/")]
            known = any(fnmatchcase(name, other) for name in names for other in self._exclude)
            self._alone[place] = known
        return known

    def may(self, way: str) -> bool:
        """Whether a way out of a loop may be taken in this run."""
        return way == self.on_loop or way in self._chosen

    # -- ways out -------------------------------------------------------------------------------

    def divert(self, verdict: Reroute | Rollback) -> None:
        """A way out of a loop is due; a tool that is taken away needs no more than that."""
        target = verdict.target if isinstance(verdict, Reroute) else ""
        if target.startswith("model:"):
            self._exchange = verdict
        elif not target.startswith("without:"):
            self.diversion = verdict

    def exchanged(self, agent: str) -> None:
        """An agent goes on with another model."""
        if self._exchange is not None and self._exchange.finding.agent == agent:
            self._exchange = None

    def unmet(self) -> set[str]:
        """What the journal says of a way out that was never taken."""
        due = (self.diversion, self._exchange)
        return {verdict.message for verdict in due if verdict is not None}

    # -- the last answer ------------------------------------------------------------------------

    def land(self, agent: str, node: str) -> None:
        """The run's one last answer is given here: its model call is let through."""
        self.landing = (agent, node)
        self.landed = True
        self._admits = 1

    def lands(self, agent: str, node: str) -> bool:
        """Whether the last answer is being given here."""
        return self.landing == (agent, node)

    def admits(self, agent: str, node: str) -> bool:
        """Whether a model may be called although the run was stopped: once, for the last answer."""
        if self._admits and self.lands(agent, node):
            self._admits -= 1
            return True
        return False

    def readmits(self, agent: str, node: str) -> None:
        """The call for the last answer has failed: another model may be asked for it, at most
        twice."""
        if self.lands(agent, node) and self._readmits < _MOST_READMITS:
            self._readmits += 1
            self._admits = 1

    def may_turn(self) -> bool:
        """Whether the run may be led to another node on its way out; at most twice."""
        self._turns += 1
        return self._turns <= _MOST_TURNS

    # -- where it has been ----------------------------------------------------------------------

    def visit(self, graph: str, step: int, node: str, input: object) -> None:
        """Remember what a node was given; `graph` tells one execution of a graph from another."""
        seen = self._visits.get(graph)
        if seen is None:
            seen = self._visits[graph] = deque(maxlen=_MOST_VISITS)
            if len(self._visits) > _MOST_GRAPHS:
                self._visits.popitem(last=False)
        seen.append(Seen(step, node, input))

    def last_good(self, graph: str, node: str, given: object, nodes: frozenset[str]) -> Seen | None:
        """The state to go back to where a node has failed with what it was given.

        That is the latest visit to one of `nodes`, else to any other node, else the failed one.
        """
        earlier = [seen for seen in self._visits.get(graph, ()) if seen.input is not given]
        for choice in (nodes, {seen.node for seen in earlier} - {node}):
            for seen in reversed(earlier):
                if seen.node in choice:
                    return seen
        return next((seen for seen in self._visits.get(graph, ()) if seen.input is given), None)

    def before(self, graph: str, step: int, nodes: frozenset[str]) -> Seen | None:
        """The latest visit to one of these nodes of a graph, up to and with a step."""
        for seen in reversed(self._visits.get(graph, ())):
            if seen.step <= step and seen.node in nodes:
                return seen
        return None

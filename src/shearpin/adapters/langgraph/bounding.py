"""What is done in place of raising where a node has failed: the boundary at node level.

Contract: control flow, cancellation and our own stops pass untouched. A node that LangGraph itself
is about to retry, or that has an error handler of its own, is left to it. Whatever is done writes
through the node's own writers, after the failed attempt's writes were cleared, so that nothing is
written twice. Where nothing can be done, the error is raised as it would have been without us; so
it is where this module itself fails.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.errors import GraphBubbleUp
from langgraph.types import Command

from shearpin.adapters.boundary.bounds import Bounds
from shearpin.adapters.boundary.exchanges import mark_tried, was_tried
from shearpin.adapters.boundary.exhaustion import over_failures
from shearpin.adapters.langgraph.compat_tasks import (
    has_handler,
    has_policy,
    policy_for,
    rerun,
    written,
)
from shearpin.adapters.langgraph.detours import (
    Way,
    answered,
    changed_prompt,
    elsewhere,
    instead,
    led,
    taken_back,
)
from shearpin.adapters.money.metering import spending_of
from shearpin.adapters.places import Place
from shearpin.adapters.run import Run
from shearpin.adapters.signals import stop_in
from shearpin.boundary.boundary import ACTIONS, Failure
from shearpin.boundary.categories import Classification, ErrorCategory
from shearpin.boundary.endings import failure_finding, failure_halt
from shearpin.boundary.retrying import backoff
from shearpin.errors import ConfigError
from shearpin.events import NodeLeft
from shearpin.verdicts import Halt

if TYPE_CHECKING:
    from shearpin.adapters.langgraph.nodes import NodePlan, Visit

__all__ = ["Failing"]

_AGAIN = ("retry", "modify_prompt")


@dataclass(slots=True)
class Failing:
    """One execution of a node that has failed, until it is settled what comes of it.

    Attributes:
        plan: the node. run: the run. bounds: its boundary. visit: the execution. given: what
            the node was given, before anything was lent to it. config: of the task.
        refused: the stop that an error comes from, though it does not say so.
        failed: what is done about an error without a boundary: raises it.
        ended: ends the graph.
        left: tells of a node that has done its work.
        retries: attempts that were made again.
        settled: whether something was put in the node's place; if that fails too, the run ends.
        asked_to_end: whether the author has said that such a failure ends the run.
        started: when the first attempt had failed.
        error: the latest failure.
    """

    plan: NodePlan
    run: Run
    bounds: Bounds
    visit: Visit
    given: Any
    config: RunnableConfig
    refused: Callable[[Run, Visit, BaseException], Halt | None]
    failed: Callable[[Run, Visit, RunnableConfig, BaseException], None]
    ended: Callable[[Run, Visit, Halt, RunnableConfig], None]
    left: Callable[[Run, Visit, Any], Any]
    retries: int = 0
    settled: bool = False
    asked_to_end: bool = False
    started: float | None = None
    error: BaseException | None = None

    def next(self, error: BaseException) -> Way | None:
        """What to do now; None: what would be done without a boundary."""
        try:
            return self._next(error)
        except Exception as fault:
            self.run.fault("bounding.next", fault)
            return None

    def done(self, way: Way, output: Any = None) -> Any:
        """A way has worked: tell of it."""
        if way.action in _AGAIN:
            return self.left(self.run, self.visit, output)
        try:
            run, visit = self.run, self.visit
            left = NodeLeft(run.now(), self.plan.name, visit.task, visit.agent, None, "error")
            run.after(left)
            run.numbers.forget(visit.task)
            if self.plan.cached:
                run.uncache.append((self.plan.graph, self.plan.name))
        except Exception as fault:
            self.run.fault("bounding.done", fault)
        return output

    def _next(self, error: BaseException) -> Way | None:
        if not isinstance(error, Exception) or isinstance(error, GraphBubbleUp):
            return None
        if stop_in(error) is not None or self.refused(self.run, self.visit, error) is not None:
            return None
        failure = self.bounds.classify(error)
        if failure.category is ErrorCategory.CONTROL:
            return None
        name, bounds = self.plan.name, self.bounds
        self.error = error
        bounds.tally.error(failure, node=name)
        if not self._ours(error):
            return None
        if self.started is None:
            self.started = self.run.now()
        if self.run.stopped is not None:
            return self._over(self.run.stopped)
        if self._silent and bounds.tally.exhausted:
            return None
        too_much = over_failures(self.run, bounds, Place(self.visit.task, self.visit.agent, name))
        if too_much is not None:
            return self._over(too_much)
        if self.settled:
            return self._terminate(failure)
        chosen = self._chosen(error, failure)
        if isinstance(chosen, Command):
            return self._settle("command", led(self.plan, cast("Command[Any]", chosen)))
        if not isinstance(chosen, str):
            return self._continue(failure, chosen)
        return self._carried_out(chosen, failure)

    def _ours(self, error: Exception) -> bool:
        """Whether anything is to be done about it here, and not by LangGraph or nobody."""
        name, bounds = self.plan.name, self.bounds
        if not bounds.boundary.covers(name) or not bounds.acts(node=name) or not self.visit.task:
            return False
        return not self._host_retries(error) and not has_handler(self.plan.node)

    def _host_retries(self, error: Exception) -> bool:
        """Whether LangGraph is going to run the node again by itself."""
        policy = policy_for(self.plan.graph, self.plan.node, error)
        if policy is None:
            return False
        return self.bounds.failed_before(self.visit.task) < policy.max_attempts

    def _chosen(self, error: Exception, failure: Classification) -> object:
        """The action that the author has chosen, or what his handler has made of the failure."""
        boundary, name = self.bounds.boundary, self.plan.name
        chosen: object = boundary.said(failure)
        if not callable(chosen):
            self.asked_to_end = chosen == "terminate"
            return chosen or boundary.by_default(name, failure, unclear=self._unclear)
        told = Failure(name, error, failure, self.retries + 1, self.given, self.run.thread)
        try:
            made = chosen(told)
            if made is None or made in ACTIONS:
                self.asked_to_end = made == "terminate"
                return made or boundary.by_default(name, failure, unclear=self._unclear)
            if isinstance(made, (Mapping, Command)):
                return cast("object", made)
            raise ConfigError(
                "a handler returns the name of an action, an update, a Command or None, "
                f"not {made!r}"
            )
        except Exception as fault:
            self.bounds.tally.fault(f"handler for {name}", fault)
            return boundary.by_default(name, failure, unclear=self._unclear)

    def _carried_out(self, action: str, failure: Classification) -> Way | None:
        """An action, or what comes next where it cannot be carried out here."""
        boundary, name = self.bounds.boundary, self.plan.name
        if action == "raise":
            self.bounds.tally.acted(action)
            return None
        if action in ("retry", "modify_prompt", "rollback"):
            act = {
                "retry": self._retry,
                "modify_prompt": self._modify,
                "rollback": self._roll_back,
            }[action]
            way = act(failure)
            if way is not None:
                return way
            action = boundary.degrading(name)
        if action == "alternative":
            if (way := self._go_elsewhere(failure)) is not None:
                return way
            action = "continue" if name in boundary.substitute else "terminate"
        if action == "continue":
            return self._continue(failure, boundary.substitute.get(name))
        untold = self._silent or self.plan.behind_tool  # there the tool's answer tells of it
        if action == "terminate" and untold and not self.asked_to_end:
            return self._raised(failure)
        return self._terminate(failure)

    @property
    def _unclear(self) -> bool:
        """Whether a tool call made in this execution may have taken effect."""
        return self.bounds.doubts.within(self.plan, self.config) is not None

    # -- again -------------------------------------------------------------------------------------

    def _retry(self, failure: Classification) -> Way | None:
        tried = failure.category is ErrorCategory.RETRYABLE and was_tried(failure.root, self.error)
        if tried or has_policy(self.plan.graph, self.plan.node):
            return None  # it was tried as often as its model may be, or as its author has said
        return self._again("retry", failure, self.visit.inner, self.visit.input)

    def _modify(self, failure: Classification) -> Way | None:
        changed = changed_prompt(
            self.run, self.plan, self.visit, failure, self.retries + 1, self.config
        )
        return None if changed is None else self._again("modify_prompt", failure, *changed)

    def _again(self, action: str, failure: Classification, inner: Any, given: Any) -> Way | None:
        bounds, retries = self.bounds, self.bounds.boundary.retries
        known = bounds.doubts.within(self.plan, self.config)
        if known or self.retries >= bounds.boundary.max_retries:
            return None  # what is known to have an effect is not done again, whoever says so
        wait = 0.0
        if failure.category is ErrorCategory.RETRYABLE:
            wait = backoff(retries, self.retries + 1, failure.retry_after, bounds.shared.uniform)
        passed = self.run.now() - (self.started or 0.0)
        deadline = retries.deadline_seconds
        if wait > retries.cap_seconds or (deadline is not None and passed + wait > deadline):
            return None
        if written(self.config) is None or not bounds.tally.retry(
            node=self.plan.name, waited_seconds=wait
        ):
            return None
        self.retries += 1
        config = rerun(self.config, self.retries + 1)
        self.run.numbers.forget(self.visit.task)
        bounds.tally.acted(action)
        return Way(action, inner, given, config or self.config, wait)

    # -- something else ----------------------------------------------------------------------------

    def _roll_back(self, failure: Classification) -> Way | None:
        bounds = self.bounds
        if bounds.rollbacks >= bounds.boundary.rollback_limit or written(self.config) is None:
            return None
        finding = self._finding(failure)
        command = taken_back(
            self.run, self.plan, self.visit, self.given, failure, finding, self.config
        )
        if command is None:
            return None
        bounds.rollbacks += 1
        return self._settle("rollback", led(self.plan, command))

    def _go_elsewhere(self, failure: Classification) -> Way | None:
        target = self.bounds.boundary.alternative.get(self.plan.name)
        command = target and elsewhere(
            self.run, self.plan, self.given, target, failure, self.config
        )
        if not isinstance(command, Command):
            return None
        way = self._settle("alternative", led(self.plan, command))
        if way is not None:
            self.bounds.tally.degraded(f"went on at {target}", node=self.plan.name)
        return way

    def _continue(self, failure: Classification, update: object) -> Way | None:
        full = answered(self.run, self.plan, self.given, update, failure)
        way = self._settle("continue", instead(self.plan, full))
        if way is not None:
            self.bounds.tally.degraded("went on with a substitute", node=self.plan.name)
        return way

    def _settle(self, action: str, inner: Any) -> Way | None:
        queue = written(self.config)
        if queue is None:
            return None
        queue.clear()
        self.settled = True
        self.bounds.tally.acted(action)
        return Way(action, inner, self.given, self.config)

    # -- the end -----------------------------------------------------------------------------------

    @property
    def _silent(self) -> bool:
        """Whether an end of the run would look like success: nothing would tell of it."""
        return self.plan.endings.silent and self.run.ways.on_stop in ("end", "wrap_up")

    def _raised(self, failure: Classification) -> None:
        """The error is raised, and not retried once more by the boundary of a node around it."""
        self.bounds.tally.acted("raise")
        mark_tried(failure.root)
        if self.error is not None:
            mark_tried(self.error)

    def _terminate(self, failure: Classification) -> Way | None:
        finding, language = self._finding(failure), self.bounds.language
        halt = failure_halt(failure, finding, language, unclear=self._unclear)
        if written(self.config) is None or not self.bounds.halt(self.run, halt, self.error):
            return None
        self.bounds.tally.acted("terminate")
        return self._over(halt, failure)

    def _over(self, halt: Halt, failure: Classification | None = None) -> Way | None:
        """The run is stopped: answer what this node was asked, or end its graph."""
        queue = written(self.config)
        if queue is None:
            return None
        queue.clear()
        if self.plan.answers and not self.settled:
            self.settled = True
            full = answered(self.run, self.plan, self.given, None, failure, halt)
            return Way("terminate", instead(self.plan, full), self.given, self.config)
        return Way("terminate", None, None, self.config, halt=halt)

    def _finding(self, failure: Classification) -> Any:
        return failure_finding(
            self.plan.name,
            failure,
            attempts=self.retries + 1,
            step=self.run.step,
            agent=self.visit.agent,
        )

    def waits(self, seconds: float) -> float:
        """So much is waited now: that is no work, for limits that tell these apart."""
        spending = spending_of(self.run)
        if spending is not None:
            for book in spending.purse.account.own:
                book.watch.wait(self.run.now())
        return seconds

    def given_up(self, way: Way | None, error: BaseException) -> None:
        """The graph is ended, or the error raised as without a boundary."""
        if way is not None and way.halt is not None:
            return self.ended(self.run, self.visit, way.halt, way.config)
        return self.failed(self.run, self.visit, self.config, error)

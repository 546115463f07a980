"""A run that has used up LangGraph's supersteps ends as any other: with a last word, and no error.

Contract: only the run's own graph, only where its error boundary acts, and only in the last step
after which LangGraph would raise: what the nodes of that step have done is kept, and where they
would have led is not. After-hooks cannot run any more. A graph within fails in the node around it,
which has a boundary of its own.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.errors import GraphRecursionError

from shearpin.adapters.langgraph.compat_tasks import leads_on, supersteps_left, written
from shearpin.adapters.run import Run
from shearpin.boundary.endings import failure_finding, failure_halt

if TYPE_CHECKING:
    from shearpin.adapters.langgraph.nodes import NodePlan

__all__ = ["end_in_last_step"]


def end_in_last_step(run: Run, plan: NodePlan, agent: str, config: RunnableConfig) -> None:
    """End the run where a node has led on, and there are no supersteps left to follow."""
    bounds, name = run.boundary, plan.name
    if bounds is None or agent != "main" or supersteps_left(config) != 1:
        return
    queue = written(config)
    onward = [] if queue is None else [write for write in queue if leads_on(write[0])]
    metadata = cast("Mapping[str, Any]", config.get("metadata") or {})
    if not onward or queue is None or "|" in str(metadata.get("langgraph_checkpoint_ns", "")):
        return
    failure = bounds.classify(
        GraphRecursionError("the run has used up the supersteps that recursion_limit allows")
    )
    bounds.tally.error(failure, node=name)
    covered = bounds.boundary.covers(name) and bounds.acts(node=name)
    if not covered or bounds.boundary.decision(name, failure) == "raise":
        return
    halt = run.stopped
    if halt is None and plan.endings.silent and bounds.boundary.said(failure) is None:
        return  # nowhere would it say that the run was ended
    if halt is None:
        finding = failure_finding(name, failure, attempts=1, step=run.step, agent=agent)
        halt = failure_halt(failure, finding, bounds.language)
        if not bounds.halt(run, halt, failure.root):
            return
        bounds.tally.acted("terminate")
    kept = [write for write in queue if not leads_on(write[0])]
    queue.clear()
    queue.extend(kept)
    dataclasses.replace(plan.endings, exit=None).end(run, halt, plan.node, config)

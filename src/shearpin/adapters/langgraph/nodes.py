"""The node layer: a runnable around what LangGraph executes for a node.

Contract: input, output, errors, streams and cancellation of the node pass through unchanged, unless
the run has been stopped: then the node's turn is used to end its graph. It writes through the
node's own first writer only, never into channels of its own. A fault of this layer is contained.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING, Any, cast

from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.errors import GraphBubbleUp, GraphInterrupt, ParentCommand

from shearpin.adapters.boundary.bounds import Bounds
from shearpin.adapters.calls import HANDLER
from shearpin.adapters.langgraph.chunks import Chunks
from shearpin.adapters.langgraph.compat import (
    executable_with,
)
from shearpin.adapters.langgraph.delta import delta_of
from shearpin.adapters.langgraph.exchanging import exchanged
from shearpin.adapters.langgraph.hearing import hear, watch_history
from shearpin.adapters.langgraph.lending import history_key, lent
from shearpin.adapters.langgraph.pausing import ask_anew
from shearpin.adapters.langgraph.plans import NodePlan, Visit
from shearpin.adapters.langgraph.reviewing import reviewed
from shearpin.adapters.langgraph.speaking import Unlending
from shearpin.adapters.langgraph.stopping import AFTER_HOOK
from shearpin.adapters.langgraph.turning import back_again, other_way, remember, way_to_end
from shearpin.adapters.money.metering import ends_here, refused_before
from shearpin.adapters.places import place_of
from shearpin.adapters.refusing import note_question
from shearpin.adapters.run import Run
from shearpin.adapters.signals import stop_in
from shearpin.adapters.stepping import name_the_child
from shearpin.events import NodeEntered, NodeLeft
from shearpin.verdicts import PROCEED, Halt

if TYPE_CHECKING:
    from shearpin.adapters.langgraph.resuming import Bounded

__all__ = ["GuardedNode", "NodePlan", "Visit"]


class GuardedNode(Runnable[Any, Any]):
    """Executes a node under the run that the context carries; plainly where there is none."""

    def __init__(self, plan: NodePlan) -> None:
        self.plan = plan
        self.name = plan.inner.get_name()

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        handler = HANDLER.get()
        if handler is None or config is None or handler.run.leaves_alone(self.plan.name):
            return self.plan.inner.invoke(input, config, **kwargs)
        run = handler.run
        visit = self._enter(run, input, config)
        if visit.halt is not None:
            return self._end(run, visit.halt, config)
        output, failure = None, None
        try:
            output = visit.inner.invoke(visit.input, config, **kwargs)
        except BaseException as error:
            if run.boundary is None:
                return self._failed(run, visit, config, error)
            failure = error
        if failure is None:
            output = self._left(run, visit, output)
        else:
            output = self._failing(run, visit, input, config).resumed(failure)
        if run.keeper is not None:
            run.keeper.save(config)
        return output

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        handler = HANDLER.get()
        if handler is None or config is None or handler.run.leaves_alone(self.plan.name):
            return await self.plan.inner.ainvoke(input, config, **kwargs)
        run = handler.run
        visit = self._enter(run, input, config)
        if visit.halt is not None:
            return self._end(run, visit.halt, config)
        output, failure = None, None
        try:
            output = await visit.inner.ainvoke(visit.input, config, **kwargs)
        except BaseException as error:
            if run.boundary is None:
                return self._failed(run, visit, config, error)
            failure = error
        if failure is None:
            output = self._left(run, visit, output)
        else:
            output = await self._failing(run, visit, input, config).aresumed(failure)
        if run.keeper is not None:
            await run.keeper.asave(config)
        return output

    def stream(
        self, input: Any, config: RunnableConfig | None = None, **kwargs: Any
    ) -> Iterator[Any]:
        handler = HANDLER.get()
        if handler is None or config is None or handler.run.leaves_alone(self.plan.name):
            yield from self.plan.inner.stream(input, config, **kwargs)
            return
        run = handler.run
        visit = self._enter(run, input, config)
        if visit.halt is not None:
            self._end(run, visit.halt, config)
            return
        chunks, failure = Chunks(), None
        try:
            for chunk in visit.inner.stream(visit.input, config, **kwargs):
                yield chunks.keep(chunk)
        except BaseException as error:
            if run.boundary is None:
                self._failed(run, visit, config, error)
                return
            failure = error
        if failure is None:
            self._left(run, visit, chunks.value)
        else:
            yield from self._failing(run, visit, input, config).streamed(failure)
        if run.keeper is not None:
            run.keeper.save(config)

    async def astream(
        self, input: Any, config: RunnableConfig | None = None, **kwargs: Any
    ) -> AsyncIterator[Any]:
        handler = HANDLER.get()
        if handler is None or config is None or handler.run.leaves_alone(self.plan.name):
            async for chunk in self.plan.inner.astream(input, config, **kwargs):
                yield chunk
            return
        run = handler.run
        visit = self._enter(run, input, config)
        if visit.halt is not None:
            self._end(run, visit.halt, config)
            return
        chunks, failure = Chunks(), None
        try:
            async for chunk in visit.inner.astream(visit.input, config, **kwargs):
                yield chunks.keep(chunk)
        except BaseException as error:
            if run.boundary is None:
                self._failed(run, visit, config, error)
                return
            failure = error
        if failure is None:
            self._left(run, visit, chunks.value)
        else:
            async for chunk in self._failing(run, visit, input, config).astreamed(failure):
                yield chunk
        if run.keeper is not None:
            await run.keeper.asave(config)

    # -- the three moments ------------------------------------------------------------------------

    def _enter(self, run: Run, input: Any, config: RunnableConfig) -> Visit:
        plan = self.plan
        try:
            metadata = config.get("metadata") or {}
            place = place_of(metadata)
            run.branches.enter(place.task, metadata, plan.answers)
            run.numbers.forget(place.task)
            if run.ways.models:
                plan = exchanged(run, plan, place)
            if run.boundary is not None:
                run.boundary.entered(place, metadata)
            verdict = run.before(NodeEntered(run.now(), plan.name, place.task, place.agent))
            if verdict is not PROCEED and isinstance(verdict, Halt) and not plan.runs_when_stopped:
                way = way_to_end(run, plan, place.agent, input, verdict, config)
                if way is None:
                    return Visit(place.task, place.agent, input, plan.inner, verdict)
                return Visit(place.task, place.agent, *way)
            if run.ways.diversion is not None:
                other = other_way(run, plan, place.agent, config)
                if other is not None:
                    return Visit(place.task, place.agent, input, other)
            remember(run, plan, input, config)
            if run.speakers:
                watch_history(run, plan.endings.channel, place.agent, input, config)
            visit = Visit(place.task, place.agent, input, plan.inner, None, run.models, config)
            if run.state.people.asks(plan.name) and not plan.quiet:
                visit = reviewed(run, plan, visit)
                if visit.halt is not None or visit.inner is not plan.inner:
                    return visit
            return visit if plan.quiet else self._lend(run, plan, visit, config)
        except Exception as error:
            run.fault("nodes.enter", error)
            return Visit("", "main", input, plan.inner)

    def _left(self, run: Run, visit: Visit, output: Any) -> Any:
        try:
            delta = None
            if self.plan.endings.channel is not None:
                hear(run, self.plan, visit, output)
            if run.spending is not None:
                run.spending.left(visit.task)
            if run.speaks:
                delta = delta_of(output, visit.input, self.plan.merged, run.ways.state_key)
            run.after(NodeLeft(run.now(), self.plan.name, visit.task, visit.agent, delta))
            run.numbers.forget(visit.task)
            if run.boundary is not None and visit.config is not None:
                run.boundary.left(run, self.plan, visit.agent, visit.config)
        except Exception as error:
            run.fault("nodes.left", error)
        return output

    def _failed(self, run: Run, visit: Visit, config: RunnableConfig, error: BaseException) -> None:
        """Turn a refused call into the end of the graph; pass everything else on."""
        passes = isinstance(error, (GraphInterrupt, ParentCommand))
        halt = None if passes else stop_in(error) or self._refused(run, visit, error)
        if halt is not None:
            if run.stopped is None and visit.agent == "main" and not ends_here(run, halt):
                return None
            return self._ended(run, visit, halt, config)
        try:
            if isinstance(error, GraphInterrupt):
                run.interrupted = True
                note_question(run, visit.task, error)
            elif isinstance(error, ParentCommand):
                key, command = run.ways.state_key, cast("Any", error).args[0]
                delta = delta_of(command, visit.input, self.plan.merged, key)
                run.after(NodeLeft(run.now(), self.plan.name, visit.task, visit.agent, delta))
            elif isinstance(error, Exception) and not isinstance(error, GraphBubbleUp):
                name_the_child(error, f"the node {self.plan.name!r}")
                left = NodeLeft(run.now(), self.plan.name, visit.task, visit.agent, None, "error")
                run.after(left)
        except Exception as fault:
            run.fault("nodes.failed", fault)
        raise error

    def _failing(self, run: Run, visit: Visit, given: Any, config: RunnableConfig) -> Bounded:
        from shearpin.adapters.langgraph.resuming import Bounded

        acts = self._refused, self._failed, self._ended, self._left
        return Bounded(self.plan, run, cast("Bounds", run.boundary), visit, given, config, *acts)

    def _refused(self, run: Run, visit: Visit, error: BaseException) -> Halt | None:
        """The refusal that an error comes from, though it does not say so."""
        try:
            return refused_before(run, visit.task, error)
        except Exception as fault:
            run.fault("nodes.refused", fault)
            return None

    def _ended(self, run: Run, visit: Visit, halt: Halt, config: RunnableConfig) -> None:
        """A call was refused within the node: it may have its turn again, or ask a person."""
        if run.ways.on_stop in ("wrap_up", "pause"):
            command: Any = None
            try:
                command = back_again(run, self.plan, visit.agent, visit.input, halt, config)
            except Exception as error:
                run.fault("nodes.ended", error)
            if command is not None:
                self.plan.node.writers[0].invoke(command, config)
                return
            if run.ways.on_stop == "pause" and self.plan.endings.entrypoint:
                ask_anew(run, halt, config)
        self._end(run, halt, config)

    def _end(self, run: Run, halt: Halt, config: RunnableConfig) -> None:
        plan = self.plan
        try:
            if plan.cached:
                run.uncache.append((plan.graph, plan.name))
            if not plan.name.endswith(AFTER_HOOK):
                plan.endings.end(run, halt, plan.node, config)
                return
            for writer in plan.node.writers:
                writer.invoke(None, config)
        except Exception as error:
            run.fault("nodes.end", error)

    # -- the conversation -------------------------------------------------------------------------

    def _lend(self, run: Run, plan: NodePlan, visit: Visit, config: RunnableConfig) -> Visit:
        """Hand the node a copy of its input with what it is lent in it, if anything."""
        channel = plan.endings.channel
        assert channel is not None
        given = lent(
            run,
            visit.input,
            channel,
            history_key(config.get("metadata")),
            agent=visit.agent + run.branches.of(visit.task),
            speaks=(visit.agent, plan.name) in run.speakers,
            patched=plan.patches,
            asks=plan.asks,
        )
        if given is None:
            return visit
        inner = executable_with(plan.node, Unlending(plan.bound, channel, given.messages))
        return visit._replace(input=given.input, inner=inner or plan.inner)

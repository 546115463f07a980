"""The supervisor layer: a guarded graph is its kind of graph, and opens a run around each stream.

Contract: `invoke`, `batch`, `astream_events` and the rest go through `stream` and `astream`, so
these are all that is overridden. The run's context variable is set around every single step of the
stream and reset after it: nothing leaks into the caller. A graph that runs within a run joins it.
"""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import AsyncIterator, Iterator
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.types import Command

from shearpin.adapters.calls import HANDLER, CallLayer, current_run
from shearpin.adapters.langgraph import state as states
from shearpin.adapters.langgraph.compat import (
    AnyGraph,
    ambient,
    configurable,
    is_nested,
    saver_of,
    with_nodes,
)
from shearpin.adapters.langgraph.wiring import WIRING, Wiring, guarded_nodes, wire, wiring_of
from shearpin.adapters.messages import has_genuine_turn
from shearpin.adapters.reports import report_of, tripped
from shearpin.adapters.run import Run, ThreadState
from shearpin.adapters.signals import stop_in
from shearpin.events import RunOutcome
from shearpin.recipe import Guard
from shearpin.report.model import Report

__all__ = ["guarded_graph"]

logger = logging.getLogger("shearpin")
_INTERRUPT = "__interrupt__"


def guarded_graph(graph: AnyGraph, recipe: Guard) -> AnyGraph:
    """A guarded copy of a compiled graph, of the same type; the graph itself stays as it is."""
    known = wiring_of(graph)
    if known is not None:
        if known.recipe == recipe:
            return graph
        graph = known.original
    wiring = wire(graph, recipe)
    nodes = guarded_nodes(graph) if wiring.redirects else graph.nodes
    return with_nodes(graph, _guarded_class(type(graph), wiring), nodes)


class _Voyage:
    """One run of a guarded graph, from its start to its end."""

    def __init__(self, wiring: Wiring, graph: AnyGraph, input: Any, config: Any) -> None:
        self.wiring = wiring
        self.graph = graph
        values = configurable(ambient(), graph.config, config)
        thread = values.get("thread_id")
        self.thread = str(thread) if thread is not None else None
        nested = is_nested(values)
        self.saver = None if nested or self.thread is None else self._saver(values)
        self.key = self.thread
        if nested and self.thread is not None:
            path = str(values.get("checkpoint_ns", "")).split("|")
            self.key = "|".join([self.thread, *(part.partition(":")[0] for part in path)])
        self.new_turn = _opens_turn(input)
        self.run: Run | None = None
        self.handler: CallLayer | None = None

    def _saver(self, values: dict[str, Any]) -> states.AnySaver | None:
        if self.wiring.recipe.state == "memory":
            return None
        return saver_of(self.graph, values)

    # -- begin and end ----------------------------------------------------------------------------

    def known(self) -> ThreadState | None:
        """What this process knows of the thread, where that needs no look at the checkpointer."""
        if self.key is None:
            return ThreadState.fresh(self.wiring.settings, self.wiring.now)
        state = self.wiring.threads.get(self.key)
        return state if state is not None and (self.saver is None or state.unsaved) else None

    def remembered(self, snapshot: states.Snapshot | None) -> ThreadState:
        """The thread's state as it was saved, or as this process still has it."""
        assert self.key is not None
        held = self.wiring.threads.get(self.key)
        if held is not None:
            if snapshot is not None and held.sequence == snapshot.sequence:
                return held
            self.wiring.threads.drop(self.key)
        settings, now = self.wiring.settings, self.wiring.now
        fresh = ThreadState.fresh(settings, now)
        state = fresh if snapshot is None else snapshot.restore(settings, now)
        return self.wiring.threads.put(self.key, state)

    def begin(self, state: ThreadState) -> None:
        """Open the run."""
        wiring = self.wiring
        run = Run(self.graph.get_name(), self.thread, state, wiring.now, redirects=wiring.redirects)
        run.begin(new_turn=self.new_turn or self.thread is None)
        wiring.runs.put(run)
        self.run, self.handler = run, CallLayer(run)

    def close(self, outcome: RunOutcome) -> None:
        """Close the run; its state may have to be saved after this."""
        if self.run is not None:
            self.run.end(outcome)

    def verdict(self) -> Exception | None:
        """The error that the caller has asked for, if the run was stopped."""
        run = self.run
        if run is None or run.halted is None or self.wiring.recipe.on_stop != "raise":
            return None
        return tripped(run.halted)

    def swallows(self, error: BaseException) -> bool:
        """Whether an error is our own stop, from a place that no node of ours surrounds."""
        return stop_in(error) is not None


def _guarded_class(base: type[AnyGraph], wiring: Wiring) -> type[AnyGraph]:
    """A subclass that looks like its base and opens a run around each stream."""

    def stream(
        self: AnyGraph, input: Any, config: RunnableConfig | None = None, **kwargs: Any
    ) -> Iterator[Any]:
        if current_run() is not None:
            yield from base.stream(self, input, config, **kwargs)
            return
        yield from _stream(base, wiring, self, input, config, kwargs)

    async def astream(
        self: AnyGraph, input: Any, config: RunnableConfig | None = None, **kwargs: Any
    ) -> AsyncIterator[Any]:
        chunks = (
            base.astream(self, input, config, **kwargs)
            if current_run() is not None
            else _astream(base, wiring, self, input, config, kwargs)
        )
        try:
            async for chunk in chunks:
                yield chunk
        finally:
            await cast("Any", chunks).aclose()

    def copy(self: AnyGraph, update: dict[str, Any] | None = None) -> AnyGraph:
        twin = base.copy(self, update)
        if wiring.redirects and update and "nodes" in update:
            twin.nodes = guarded_nodes(twin)
        return twin

    def report(self: AnyGraph, config: RunnableConfig | None = None) -> Report:
        """The report of the latest run of the thread in `config`, or of the latest of all."""
        thread = configurable(config).get("thread_id")
        return report_of(wiring.runs.get(None if thread is None else str(thread)), wiring.settings)

    body: dict[str, Any] = {
        WIRING: wiring,
        "stream": functools.update_wrapper(stream, base.stream),
        "astream": functools.update_wrapper(astream, base.astream),
        "copy": functools.update_wrapper(copy, base.copy),
        "report": report,
        "__module__": base.__module__,
        "__qualname__": base.__qualname__,
        "__doc__": base.__doc__,
    }
    return cast("Any", type)(base.__name__, (base,), body)


def _stream(
    base: type[AnyGraph], wiring: Wiring, graph: AnyGraph, input: Any, config: Any, kwargs: Any
) -> Iterator[Any]:
    voyage = _open(wiring, graph, input, config)
    chunks = base.stream(graph, input, config, **kwargs)
    if voyage is None:
        yield from chunks
        return
    if voyage.run is None:
        assert voyage.saver is not None
        assert voyage.thread is not None
        voyage.begin(voyage.remembered(states.load(voyage.saver, voyage.thread)))
    run, handler = voyage.run, voyage.handler
    assert run is not None
    outcome: RunOutcome = "failed"
    try:
        while True:
            token = HANDLER.set(handler)
            try:
                chunk = next(chunks)
            finally:
                try:
                    HANDLER.reset(token)
                except ValueError:  # closed from another context than the one that was reading
                    HANDLER.set(None)
            if _pauses(chunk):
                run.interrupted = True
            yield chunk
    except StopIteration:
        outcome = "completed"
    except (GeneratorExit, KeyboardInterrupt):
        outcome = "cancelled"
        raise
    except BaseException as error:
        if not voyage.swallows(error):
            raise
        outcome = "completed"
    finally:
        cast("Any", chunks).close()
        _finish(voyage, outcome)
    error = voyage.verdict()
    if error is not None:
        raise error


async def _astream(
    base: type[AnyGraph], wiring: Wiring, graph: AnyGraph, input: Any, config: Any, kwargs: Any
) -> AsyncIterator[Any]:
    voyage = _open(wiring, graph, input, config)
    chunks = cast("Any", base.astream(graph, input, config, **kwargs))
    if voyage is None:
        async for chunk in chunks:
            yield chunk
        return
    if voyage.run is None:
        assert voyage.saver is not None
        assert voyage.thread is not None
        voyage.begin(voyage.remembered(await states.aload(voyage.saver, voyage.thread)))
    run, handler = voyage.run, voyage.handler
    assert run is not None
    outcome: RunOutcome = "failed"
    try:
        while True:
            token = HANDLER.set(handler)
            try:
                chunk = await anext(chunks)
            finally:
                try:
                    HANDLER.reset(token)
                except ValueError:  # closed from another context than the one that was reading
                    HANDLER.set(None)
            if _pauses(chunk):
                run.interrupted = True
            yield chunk
    except StopAsyncIteration:
        outcome = "completed"
    except (GeneratorExit, KeyboardInterrupt, asyncio.CancelledError):
        outcome = "cancelled"
        raise
    except BaseException as error:
        if not voyage.swallows(error):
            raise
        outcome = "completed"
    finally:
        await chunks.aclose()
        await _afinish(voyage, outcome)
    error = voyage.verdict()
    if error is not None:
        raise error


def _pauses(chunk: object) -> bool:
    """Whether a chunk tells of a pause, also one that no node raised (`interrupt_before`)."""
    parts = cast("tuple[object, ...]", chunk) if type(chunk) is tuple else (chunk,)
    last = parts[-1] if parts else None
    if type(last) is not dict:
        return False
    payload = cast("dict[str, object]", last)
    if _INTERRUPT in payload:
        return True
    data = payload.get("data")
    return type(data) is dict and _INTERRUPT in cast("dict[str, object]", data)


def _open(wiring: Wiring, graph: AnyGraph, input: Any, config: Any) -> _Voyage | None:
    """A run for a new stream; None, with a warning, if the guard itself cannot start."""
    try:
        voyage = _Voyage(wiring, graph, input, config)
        state = voyage.known()
        if state is not None:
            if voyage.key is not None:
                state = wiring.threads.put(voyage.key, state)
            voyage.begin(state)
        elif voyage.saver is None:
            voyage.begin(voyage.remembered(None))
        return voyage
    except Exception as error:
        logger.warning("shearpin: the guard could not start, the run goes on without it: %r", error)
        return None


def _finish(voyage: _Voyage, outcome: RunOutcome) -> None:
    run = voyage.run
    if run is None:
        return
    try:
        voyage.close(outcome)
        if run.uncache and voyage.graph.cache is not None:
            voyage.graph.clear_cache(sorted(set(run.uncache) & set(voyage.graph.nodes)))
        if voyage.saver is not None and voyage.thread is not None:
            states.save(voyage.saver, voyage.thread, run.state)
    except Exception as error:
        run.fault("supervisor.finish", error)
    run.collect()


async def _afinish(voyage: _Voyage, outcome: RunOutcome) -> None:
    run = voyage.run
    if run is None:
        return
    try:
        voyage.close(outcome)
        if run.uncache and voyage.graph.cache is not None:
            await voyage.graph.aclear_cache(sorted(set(run.uncache) & set(voyage.graph.nodes)))
        if voyage.saver is not None and voyage.thread is not None:
            if outcome == "cancelled":
                run.state.unsaved = True
            else:
                await states.asave(voyage.saver, voyage.thread, run.state)
    except Exception as error:
        run.fault("supervisor.finish", error)
    run.collect()


def _opens_turn(input: Any) -> bool:
    """Whether a run's input is a new turn, and not an answer to a pause of the last one."""
    if input is None:
        return False
    if isinstance(input, Command):
        command = cast("Command[Any]", input)
        update = cast("object", command.update)  # pyright: ignore[reportUnknownMemberType]
        return command.resume is None and update is not None and has_genuine_turn(update)
    return has_genuine_turn(input)

"""The supervisor layer: a guarded graph is its kind of graph, and opens a run around each stream.

Contract: `invoke`, `batch`, `astream_events` and the rest go through `stream` and `astream`, so
these are all that is overridden. The run's context variable is set around every single step of the
stream and reset after it: nothing leaks into the caller. A graph that runs within a run joins it.
"""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any, cast

from langchain_core.runnables import RunnableConfig

from shearpin.adapters.calls import HANDLER, current_run
from shearpin.adapters.langgraph.compat import (
    AnyGraph,
    configurable,
    with_cache,
    with_nodes,
)
from shearpin.adapters.langgraph.saving import amended_input, mended_input
from shearpin.adapters.langgraph.voyage import Voyage
from shearpin.adapters.langgraph.wiring import WIRING, Wiring, wire, wiring_of
from shearpin.adapters.langgraph.within import awithin, within
from shearpin.adapters.reports import report_of
from shearpin.core.checks import instance
from shearpin.errors import ConfigError
from shearpin.events import RunOutcome
from shearpin.recipe import Guard
from shearpin.report.model import Report
from shearpin.switch import SWITCH

__all__ = ["guarded_graph"]

logger = logging.getLogger("shearpin")
_INTERRUPT = "__interrupt__"
_CONFIG = 'a configuration such as {"configurable": {"thread_id": "..."}}, or None'


def guarded_graph(graph: AnyGraph, recipe: Guard) -> AnyGraph:
    """A guarded copy of a compiled graph, of the same type; the graph itself stays as it is."""
    known = wiring_of(graph)
    if known is not None:
        if known.recipe == recipe:
            return graph
        graph = known.original
    wiring = wire(graph, recipe)
    nodes = wiring.nodes(graph) if wiring.redirects else graph.nodes
    return with_nodes(graph, _guarded_class(type(graph), wiring), nodes)


def _guarded_class(base: type[AnyGraph], wiring: Wiring) -> type[AnyGraph]:
    """A subclass that looks like its base and opens a run around each stream."""

    def stream(
        self: AnyGraph, input: Any, config: RunnableConfig | None = None, **kwargs: Any
    ) -> Iterator[Any]:
        run = current_run()
        if run is not None:
            yield from within(run, wiring.recipe, base.stream(self, input, config, **kwargs))
            return
        yield from _stream(base, wiring, self, input, config, kwargs)

    async def astream(
        self: AnyGraph, input: Any, config: RunnableConfig | None = None, **kwargs: Any
    ) -> AsyncIterator[Any]:
        run = current_run()
        chunks = (
            awithin(run, wiring.recipe, base.astream(self, input, config, **kwargs))
            if run is not None
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
            twin.nodes = wiring.nodes(twin)
        return twin

    def report(self: AnyGraph, config: RunnableConfig | None = None) -> Report:
        """The report of the latest run of the thread in `config`, or of the latest of all.

        Of a thread of which no run is known, its outcome is `unknown`.

        Raises:
            ConfigError: `config` is no configuration.
        """
        if config is not None:
            instance("config", config, Mapping, _CONFIG)
        thread = configurable(config).get("thread_id")
        run = wiring.runs.get(None if thread is None else str(thread))
        return report_of(run, wiring.settings, wiring.faults)

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
    voyage = _open(wiring, graph, input, config, kwargs.get("context"))
    if voyage is not None and voyage.run is None and voyage.keeps:
        _resume(voyage)
    if voyage is None or voyage.run is None:
        yield from base.stream(graph, input, config, **kwargs)
        return
    run, handler = voyage.run, voyage.handler
    given = mended_input(run, graph, voyage.thread if voyage.checkpoints else None, input)
    chunks = base.stream(graph, given, config, **kwargs)
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
    voyage = _open(wiring, graph, input, config, kwargs.get("context"))
    if voyage is not None and voyage.run is None and voyage.keeps:
        await _aresume(voyage)
    if voyage is None or voyage.run is None:
        async for chunk in base.astream(graph, input, config, **kwargs):
            yield chunk
        return
    run, handler = voyage.run, voyage.handler
    given = await amended_input(run, graph, voyage.thread if voyage.checkpoints else None, input)
    chunks = cast("Any", base.astream(graph, given, config, **kwargs))
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


def _open(wiring: Wiring, graph: AnyGraph, input: Any, config: Any, context: Any) -> Voyage | None:
    """A run for a new stream; None, with a warning, if the guard itself cannot start."""
    try:
        if SWITCH.look():
            return None
        voyage = Voyage(wiring, graph, input, config, context)
        state = voyage.known()
        if state is not None:
            if voyage.key is not None:
                state = wiring.threads.put(voyage.key, state)
            voyage.begin(state)
        elif not voyage.keeps:
            voyage.begin(voyage.remembered(None))
        return voyage
    except ConfigError:
        raise
    except Exception as error:
        _not_started(wiring, error)
        return None


def _resume(voyage: Voyage) -> None:
    """Begin a run on what was saved of its thread; without a run if the guard cannot start."""
    try:
        voyage.begin(voyage.remembered(voyage.load()))
    except Exception as error:
        voyage.run = None
        _not_started(voyage.wiring, error)


async def _aresume(voyage: Voyage) -> None:
    """`_resume`, for asynchronous runs."""
    try:
        voyage.begin(voyage.remembered(await voyage.aload()))
    except Exception as error:
        voyage.run = None
        _not_started(voyage.wiring, error)


def _not_started(wiring: Wiring, error: Exception) -> None:
    logger.warning("shearpin: the guard could not start, the run goes on without it: %r", error)
    wiring.note("supervisor.start", error)


def _finish(voyage: Voyage, outcome: RunOutcome) -> None:
    run = voyage.run
    if run is None:
        return
    try:
        voyage.close(outcome)
        for graph, node in run.uncache:
            cached = with_cache(cast("AnyGraph", graph), voyage.graph)
            if cached is not None:
                cached.clear_cache([node])
        voyage.save(run.state)
        run.collect()
    except Exception as error:
        run.fault("supervisor.finish", error)


async def _afinish(voyage: Voyage, outcome: RunOutcome) -> None:
    run = voyage.run
    if run is None:
        return
    try:
        voyage.close(outcome)
        for graph, node in run.uncache:
            cached = with_cache(cast("AnyGraph", graph), voyage.graph)
            if cached is not None:
                await cached.aclear_cache([node])
        await voyage.asave(run.state, outcome)
        run.collect()
    except Exception as error:
        run.fault("supervisor.finish", error)

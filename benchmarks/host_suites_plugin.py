"""A pytest plugin that guards every graph a test suite makes, and records what each test did.

Loaded by `host_suites.py` into the hosts' own suites (`-p host_suites_plugin`). With
`--shearpin-guard=off` it only records, so that the plain and the guarded run are told apart by
nothing but the guard. It keeps one contract: whatever a test gets from `StateGraph.compile`,
`entrypoint` or `Pregel(...)` is the guarded graph, made in the way a user would make it.
"""

from __future__ import annotations

import faulthandler
import functools
import json
import sys
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

OFF = "off"
HANGS_SECONDS = 60
STATES = ("memory", "auto", "checkpointer")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the two options that `host_suites.py` passes."""
    group = parser.getgroup("shearpin")
    group.addoption("--shearpin-guard", default=OFF, choices=(OFF, *STATES))
    group.addoption("--shearpin-results", default=None, help="file for one JSON line per test")


def pytest_configure(config: pytest.Config) -> None:
    """Guard graphs from here on, before any test module is imported."""
    state = config.getoption("--shearpin-guard")
    patch = None if state == OFF else GraphPatch(state)
    if patch is not None:
        patch.install()
    config.pluginmanager.register(Recorder(config, patch), "shearpin-recorder")


class GraphPatch:
    """Replaces the three doors through which compiled graphs enter the world.

    `StateGraph.compile` covers builders and all that is made from them (`create_agent`,
    supervisors, swarms, deepagents). `entrypoint` and hand-made graphs call `Pregel(...)`, so its
    `__new__` answers with a guarded instance; `__init__` is then called by Python on an object that
    is ready, and must do nothing.
    """

    def __init__(self, state: str) -> None:
        self.state = state
        self.guarded = 0
        self._inside = threading.local()

    def install(self) -> None:
        """Patch the host, for the life of the process."""
        from langgraph.graph.state import StateGraph
        from langgraph.pregel import Pregel

        StateGraph.compile = self._compile(StateGraph.compile)
        plain_init = Pregel.__init__
        Pregel.__new__ = staticmethod(self._new(Pregel, plain_init))
        Pregel.__init__ = self._init(plain_init)

    def _guard(self, graph: Any) -> Any:
        import shearpin

        # A graph without a saver cannot keep anything there, and says so if it is asked to.
        state = self.state if self.state == "memory" or has_saver(graph) else "auto"
        with self._building():
            guarded = shearpin.guard(graph, state=state)
        self.guarded += 1
        return guarded

    @contextmanager
    def _building(self) -> Iterator[None]:
        before = self._building_now
        self._inside.value = True
        try:
            yield
        finally:
            self._inside.value = before

    @property
    def _building_now(self) -> bool:
        return getattr(self._inside, "value", False)

    def _compile(self, plain: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(plain)
        def compile_guarded(builder: Any, *args: Any, **kwargs: Any) -> Any:
            graph = plain(builder, *args, **kwargs)
            return graph if self._building_now else self._guard(graph)

        return compile_guarded

    def _new(self, pregel: type[Any], plain_init: Callable[..., None]) -> Callable[..., Any]:
        def new(cls: type[Any], *args: Any, **kwargs: Any) -> Any:
            graph = object.__new__(cls)
            if cls is not pregel or self._building_now or not (args or kwargs):
                return graph
            plain_init(graph, *args, **kwargs)
            guarded = self._guard(graph)
            guarded.__dict__["_shearpin_suite_ready"] = True
            return guarded

        return new

    def _init(self, plain: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(plain)
        def init(graph: Any, *args: Any, **kwargs: Any) -> None:
            if not graph.__dict__.pop("_shearpin_suite_ready", False):
                plain(graph, *args, **kwargs)

        return init


def has_saver(graph: Any) -> bool:
    """Whether a graph was compiled with a checkpointer of its own."""
    from langgraph.checkpoint.base import BaseCheckpointSaver

    return isinstance(graph.checkpointer, BaseCheckpointSaver)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """End the process of a test that hangs: xdist calls the test failed and goes on without it."""
    faulthandler.dump_traceback_later(HANGS_SECONDS, exit=True, file=sys.__stderr__)
    try:
        return (yield)
    finally:
        faulthandler.cancel_dump_traceback_later()


class Recorder:
    """Writes one JSON line per test, and one at the end with the number of guarded graphs."""

    def __init__(self, config: pytest.Config, patch: GraphPatch | None) -> None:
        self._config = config
        self._patch = patch
        self._guarded_elsewhere = 0
        self._worst: dict[str, dict[str, Any]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep the worst outcome over set-up, call and tear-down of a test."""
        outcome = "error" if report.failed and report.when != "call" else report.outcome
        entry = self._worst.setdefault(
            report.nodeid, {"id": report.nodeid, "outcome": "passed", "seconds": 0.0, "detail": ""}
        )
        entry["seconds"] = round(entry["seconds"] + report.duration, 3)
        if outcome != "passed" and entry["outcome"] in ("passed", "skipped"):
            entry["outcome"] = outcome
            entry["detail"] = report.longreprtext if report.failed else ""

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """A module that cannot be imported counts as one failed test."""
        if report.failed:
            detail = report.longreprtext
            entry = {"id": report.nodeid, "outcome": "error", "seconds": 0.0, "detail": detail}
            self._worst[report.nodeid] = entry

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Add up the guarded graphs of the xdist workers."""
        output = getattr(node, "workeroutput", None) or {}
        self._guarded_elsewhere += output.get("shearpin_guarded", 0)

    def pytest_sessionfinish(self) -> None:
        """Hand the count to the controller, or write the file where this is the controller."""
        guarded = self._patch.guarded if self._patch is not None else 0
        output: dict[str, Any] | None = getattr(self._config, "workeroutput", None)
        if output is not None:
            output["shearpin_guarded"] = guarded
            return
        target = self._config.getoption("--shearpin-results")
        if target is None:
            return
        lines = [*self._worst.values(), {"guarded": guarded + self._guarded_elsewhere}]
        Path(target).write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")

"""Embeddings in a guarded graph: late, failing or missing, they never hurt the run."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Event
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.tools import tool

import shearpin
from shearpin.adapters import thoughts
from shearpin.core.detectors import SemanticOscillations
from shearpin.embedding import HashedEmbedder
from shearpin.errors import ConfigError
from shearpin.testing import StrictProvider, asks_for
from tests.adapters.builds import react_builder
from tests.detectors.test_semantic import OTHER, SAME

MESSAGES: dict[str, Any] = {"messages": [("user", "find it")]}


@tool
def search(query: str) -> str:
    """Search."""
    return "[]"


def guarded(embedder: Any, said: Sequence[str], wait: bool = True) -> Any:
    """An agent that thinks aloud before each empty search; the vectors arrive in time if `wait`."""

    def script(messages: Sequence[BaseMessage], call: int) -> AIMessage | str:
        found = thoughts._workers.get(id(embedder or thoughts._default[0]))
        if wait and found is not None:
            assert found[1].settle(10)
        if call > len(said):
            return "It is not there."
        return asks_for(("search", {"query": f"query {call}"}), text=said[call - 1])

    app = react_builder(StrictProvider(script), [search]).compile()
    return shearpin.guard(app, detectors=(SemanticOscillations(embedder=embedder),))


def rules(app: Any) -> set[str | None]:
    return {verdict.rule for verdict in app.report().verdicts}


@pytest.mark.parametrize("language", ["en", "zh"])
def test_it_is_reached_through_a_graph(language: str) -> None:
    app = guarded(HashedEmbedder(), [*SAME[language], *SAME[language]])
    app.invoke(MESSAGES)
    assert rules(app) == {"semantic_oscillation"}
    assert not app.report().faults


def test_different_thoughts_are_left_alone_in_a_graph() -> None:
    app = guarded(HashedEmbedder(), OTHER)
    app.invoke(MESSAGES)
    assert not app.report().verdicts


def test_a_slow_embedder_does_not_delay_the_run() -> None:
    go = Event()

    class Slow:
        def embed(self, texts: Sequence[str]) -> list[list[float]]:
            go.wait(30)
            return [[1.0] for _ in texts]

    embedder = Slow()
    app = guarded(embedder, SAME["en"], wait=False)
    result = app.invoke(MESSAGES)
    assert result["messages"][-1].content == "It is not there."
    assert not app.report().verdicts
    go.set()
    assert thoughts._workers[id(embedder)][1].settle(10)


def test_a_failing_embedder_is_reported_and_the_run_goes_on() -> None:
    class Broken:
        def embed(self, texts: Sequence[str]) -> list[list[float]]:
            raise OSError("no network")

    app = guarded(Broken(), SAME["en"])
    assert app.invoke(MESSAGES)["messages"][-1].content == "It is not there."
    (fault,) = app.report().faults
    assert "no network" in str(fault)


def test_without_numpy_the_report_says_that_it_is_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thoughts, "_default", [])
    monkeypatch.setattr("shearpin.embedding.hashed.find_spec", lambda name: None)

    def script(messages: Sequence[BaseMessage], call: int) -> AIMessage | str:
        return "Done." if call > 1 else asks_for(("search", {"query": "x"}), text="I search.")

    app = react_builder(StrictProvider(script), [search]).compile()
    app = shearpin.guard(app, detectors=(SemanticOscillations(),))
    assert app.invoke(MESSAGES)["messages"][-1].content == "Done."
    (fault,) = app.report().faults
    assert "pip install numpy" in str(fault)


def test_the_default_embedder_is_used_where_none_is_named() -> None:
    app = shearpin.guard(
        react_builder(StrictProvider(["Done."]), [search]).compile(),
        detectors=(SemanticOscillations(),),
    )
    app.invoke(MESSAGES)
    assert not app.report().faults
    assert isinstance(thoughts._default[0], HashedEmbedder)


def test_what_is_no_embedder_is_refused_when_built() -> None:
    with pytest.raises(ConfigError, match="embed"):
        SemanticOscillations(embedder=object())

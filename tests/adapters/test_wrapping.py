"""What can be guarded, what cannot, and what the error says."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
from langchain_core.runnables import RunnableLambda
from langgraph.graph.state import CompiledStateGraph

import shearpin
from shearpin import ConfigError, Guard
from shearpin.adapters.langgraph import compat, wiring
from shearpin.core.tools import ToolFacts
from tests.adapters.builds import (
    HELLO,
    MOST_CALLS,
    THREAD,
    functional,
    polite,
    react,
    runaway,
    saver,
)


def test_a_guarded_graph_is_of_the_same_type() -> None:
    plain = react(polite(), saver())
    app = shearpin.guard(plain)
    assert isinstance(app, CompiledStateGraph)
    assert type(app).__name__ == "CompiledStateGraph"
    assert type(app).__module__ == CompiledStateGraph.__module__
    assert app.get_graph().draw_mermaid() == plain.get_graph().draw_mermaid()
    assert app.get_input_jsonschema() == plain.get_input_jsonschema()
    assert app.get_name() == plain.get_name()
    assert list(app.channels) == list(plain.channels)
    assert not hasattr(plain, "report")


@pytest.mark.parametrize("twin", ["copy", "with_config", "copy.copy"])
def test_copies_stay_guarded(twin: str) -> None:
    model = runaway()
    app: Any = shearpin.guard(react(model, saver()))
    made = {
        "copy": lambda: app.copy({"name": "other"}),
        "with_config": lambda: app.with_config(configurable={"thread_id": "t1"}),
        "copy.copy": lambda: copy.copy(app),
    }[twin]()
    made.invoke(HELLO, THREAD)
    assert model.calls <= MOST_CALLS
    assert app.report(THREAD).outcome == made.report(THREAD).outcome == "stopped"


def test_state_methods_work() -> None:
    app = shearpin.guard(react(polite(), saver()))
    app.invoke(HELLO, THREAD)
    app.update_state(THREAD, {"messages": [("user", "by hand")]})
    assert app.get_state(THREAD).values["messages"][-1].content == "by hand"
    assert len(list(app.get_subgraphs())) == 0


def test_what_is_no_graph_is_refused() -> None:
    with pytest.raises(ConfigError, match="not a StrictProvider"):
        shearpin.guard(polite())
    with pytest.raises(ConfigError, match=r"Guard\(\)\.run\(\)"):
        shearpin.guard(RunnableLambda(lambda x: x))
    with pytest.raises(ConfigError, match="not int"):
        shearpin.guard(3)


def test_options_are_checked_when_given() -> None:
    graph = react(polite())
    with pytest.raises(ConfigError, match="did you mean 'on_stop'"):
        shearpin.guard(graph, on_stopp="end")
    with pytest.raises(ConfigError, match="on_stop must be one of end, raise"):
        shearpin.guard(graph, on_stop="explode")
    with pytest.raises(ConfigError, match="state must be one of"):
        Guard(state="disk")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="mode"):
        shearpin.guard(graph, mode="strict")
    with pytest.raises(ConfigError, match="not both"):
        shearpin.guard(graph, Guard(), mode="warn")
    with pytest.raises(ConfigError, match="must be a Guard"):
        shearpin.guard(graph, "enforce")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="needs a graph that is compiled with a checkpointer"):
        shearpin.guard(graph, state="checkpointer")


def test_a_guard_is_an_immutable_recipe() -> None:
    recipe = Guard(mode="warn")
    with pytest.raises(AttributeError):
        recipe.mode = "observe"  # type: ignore[misc]
    assert recipe == Guard(mode="warn") != Guard()
    assert recipe.settings.mode == "warn"


def test_a_configuration_file(tmp_path: Path) -> None:
    path = tmp_path / "guard.toml"
    path.write_text(
        """
mode = "warn"
ignored_arguments = ["why"]
[detectors.repeat]
nudge = 4
ceiling = "block"
[detectors.monologue]
enabled = false
[breaker]
trial_rounds = 2
[tools.status]
polling = true
key = ["id"]
"""
    )
    recipe = Guard.from_file(path)
    rules = {rule.family: rule for rule in recipe.detectors}
    assert recipe.mode == "warn" and recipe.ignored_arguments == {"why"}
    assert rules["repeat"].nudge == 4  # type: ignore[attr-defined]
    assert "monologue" not in rules
    assert recipe.breaker.trial_rounds == 2
    assert recipe.tools == {"status": ToolFacts(polling=True, key=("id",))}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('mod = "warn"', "unknown key 'mod'; did you mean 'mode'"),
        ("mode = 3", "mode must be a text"),
        ("mode = ", "is not valid TOML"),
        ("[detectors.repeats]", "did you mean 'repeat'"),
        ("[detectors.repeat]\nnudg = 3", "did you mean 'nudge'"),
        ("[detectors.repeat]\nnudge = -1", r"\[detectors.repeat\]"),
        ('[detectors.repeat]\nceiling = "kill"', "ceiling must be one of"),
        ('[detectors.repeat]\nenabled = "yes"', "enabled must be true or false"),
        ("[breaker]\npatience = 3", r"\[breaker\]: unknown key"),
        ('tools = "all"', "must be a table"),
        ("[tools.x]\nkey = 3", "must be a list of texts"),
    ],
)
def test_a_mistake_in_a_file_is_named(tmp_path: Path, text: str, complaint: str) -> None:
    path = tmp_path / "guard.toml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=complaint) as caught:
        Guard.from_file(path)
    assert str(path) in str(caught.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        Guard.from_file(tmp_path / "none.toml")


def test_the_public_route_where_private_parts_have_moved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wiring, "self_test", lambda graph: "a test says so")
    model = runaway()
    with pytest.warns(RuntimeWarning, match="public interface alone, because a test says so"):
        app = shearpin.guard(react(model, saver()))
    again = shearpin.guard(react(runaway()))  # said once
    assert again.invoke(HELLO) is not None
    app.invoke(HELLO, THREAD)
    assert model.calls < 20
    assert app.get_state(THREAD).next == ("agent",)
    assert app.report(THREAD).outcome == "stopped"
    calls = model.calls
    app.invoke(None, THREAD)
    assert model.calls == calls


def test_the_self_test_notices_what_has_moved(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = react(polite())
    assert compat.self_test(graph) is None
    with monkeypatch.context() as patch:
        patch.setattr(compat, "_idle", None)
        assert "is gone" in str(compat.self_test(graph))
    monkeypatch.delattr(type(graph.nodes["agent"]), "copy")
    assert "cannot be copied" in str(compat.self_test(graph))


def test_annotations_of_tools_are_taken_up() -> None:
    from langchain_core.tools import tool
    from langgraph.prebuilt import ToolNode

    from tests.adapters.builds import react_builder

    @tool
    def status(job: str) -> str:
        """Status."""
        return "running"

    status.metadata = {"readOnlyHint": True}
    graph = react_builder(polite(), [status]).compile()
    facts = wiring.tool_facts(graph)
    assert facts["status"].read_only is True
    assert isinstance(graph.nodes["tools"].bound, ToolNode)


def test_an_entrypoint_keeps_what_it_saved() -> None:
    app = shearpin.guard(functional(polite(), saver()))
    assert app.invoke(HELLO, THREAD)[-1].content == "It is not there."
    assert app.report(THREAD).outcome == "completed"


def test_reports_before_any_run_and_in_the_middle_of_one() -> None:
    app = shearpin.guard(react(polite(), saver()))
    assert app.report().to_json()["steps"] == 0
    seen = [app.report(THREAD).steps for _ in app.stream(HELLO, THREAD)]
    assert seen[-1] == 3

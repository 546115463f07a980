"""A wrong value is a `ConfigError` when it is given: it names the field, the value and the fix."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypedDict

import pytest
from langgraph.graph import END, START, StateGraph

import shearpin
from shearpin import (
    BreakerSettings,
    Budget,
    ConfigError,
    Cycles,
    Guard,
    Override,
    Repeats,
    ToolFacts,
)
from shearpin.analysis.adaptive import Adaptive
from shearpin.analysis.choices import Choices
from shearpin.boundary import (
    Answers,
    Availability,
    Boundary,
    Cached,
    Effects,
    ToolPolicy,
    resilient,
    retry_policy,
)
from shearpin.core.detectors import DEFAULT_DETECTORS, OPTIONAL_DETECTORS
from shearpin.langchain import GuardMiddleware, ResilienceMiddleware


class State(TypedDict):
    text: str


def stay() -> Any:
    builder: Any = StateGraph(State)
    builder.add_node("stay", lambda state: {"text": state["text"]})
    builder.add_edge(START, "stay")
    builder.add_edge("stay", END)
    return shearpin.guard(builder.compile())


def report_of(config: Any) -> object:
    return stay().report(config)


def on(kind: Callable[..., object], **options: object) -> tuple[Callable[[], object], str]:
    shown = ", ".join(f"{name}={value!r}" for name, value in options.items())
    return (lambda: kind(**options)), f"{kind.__name__}({shown})"


WRONG: list[tuple[tuple[Callable[[], object], str], str]] = [
    (on(ToolFacts, read_only="no"), r"ToolFacts\.read_only must be True, False or None, not 'no'"),
    (on(ToolFacts, polling="yes"), r"ToolFacts\.polling must be True, False or None, not 'yes'"),
    (on(ToolFacts, idempotent=1), r"ToolFacts\.idempotent must be True, False or None, not 1"),
    (on(ToolFacts, destructive=0), r"ToolFacts\.destructive must be True, False or None, not 0"),
    (on(ToolFacts, key=3), r"ToolFacts\.key must be a tuple of names .*'url'.* not 3"),
    (on(ToolFacts, key="url"), r"ToolFacts\.key must be a tuple .* write \('url',\)"),
    (on(ToolFacts, ignore=(1,)), r"ToolFacts\.ignore must hold names .* not 1"),
    (on(ToolPolicy, effect=True), r"ToolPolicy\.effect must be Effects\(\.\.\.\) .* not True"),
    (on(ToolPolicy, retries=3), r"ToolPolicy\.retries must be Retries\(\.\.\.\) .* not 3"),
    (on(ToolPolicy, availability=1), r"ToolPolicy\.availability must be Availability"),
    (on(ToolPolicy, never_degrade="x"), r"ToolPolicy\.never_degrade must be True or False"),
    (on(ToolPolicy, fallbacks=3), r"ToolPolicy\.fallbacks must be a tuple .*Cached.* not 3"),
    (on(Effects, key=()), r"Effects\.key must name an argument, not \(\).*None takes all"),
    (on(Effects, key=3), r"Effects\.key must be a tuple of names .* not 3"),
    (on(Effects, on_fault=3), r"Effects\.on_fault must be one of refuse, run, not 3"),
    (on(Cached, shared="no"), r"Cached\.shared must be True or False, not 'no'"),
    (on(Answers, restart_streams="no"), r"Answers\.restart_streams must be True or False"),
    (on(Availability, failure_ratio="x"), r"failure_ratio must be above 0 .* not 'x'"),
    (on(Guard, exclude=3), r"exclude must be a tuple of names .* not 3"),
    (on(Guard, exclude="node"), r"exclude must be a tuple .* write \('node',\)"),
    (on(Guard, name=3), r"name must be a text such as 'support', not 3"),
    (on(Guard, preset=3), r"preset must be a text such as 'coding', not 3"),
    (on(Guard, on_loop=3), r"on_loop must be a text such as 'rollback', not 3"),
    (on(Guard, breaker=3), r"breaker must be BreakerSettings\(\.\.\.\), not 3"),
    (on(Guard, ignored_arguments="x"), r"ignored_arguments must be .* write \('x',\)"),
    (on(Guard, tools=["a"]), r"tools must be a mapping such as .*ToolFacts.* not \['a'\]"),
    (on(Guard, tools={"a": True}), r"tools\['a'\] must be ToolFacts\(\.\.\.\), not True"),
    (on(Guard, tools={3: ToolFacts()}), r"tools must be keyed by names, .* not by 3"),
    (on(Guard, detectors=Repeats()), r"detectors must be a tuple such as \(Repeats\(\),\)"),
    (on(Guard, detectors=3), r"detectors must be a tuple such as \(Repeats\(\),\), not 3"),
    (on(Guard, detectors=[Repeats]), r"detectors must hold detector configs such as Repeats\(\)"),
    (on(Override, tools=("a",), detectors=[Repeats]), r"must hold rules such as Repeats\(\)"),
    (on(Repeats, ceiling="block"), r"Repeats\.ceiling must be a Severity, such as Severity\.BLOCK"),
    (on(Repeats, nudge="3"), r"Repeats\.nudge must be a whole number.* not '3'"),
    (on(Cycles, patient_seconds=True), r"Cycles\.patient_seconds must be a number, not True"),
    (on(BreakerSettings, lease_seconds="x"), r"BreakerSettings\.lease_seconds must be a number"),
    (on(Budget, exempt=3), r"Budget\.exempt must be a tuple of names .* not 3"),
    (on(Budget, exempt=(3,)), r"Budget\.exempt must hold names .* not 3"),
    (on(Budget, per_tool={3: 3}), r"Budget\.per_tool must be keyed by names, .* not by 3"),
    (on(Guard, overrides=3), r"overrides must be a tuple such as \(Override.* not 3"),
    (on(Guard, overrides=[3]), r"overrides must hold Override\(\.\.\.\), not 3"),
    (on(Override, tools=3), r"Override\.tools must be a tuple of names .* not 3"),
    (on(Override, tools=("a",), detectors=3), r"Override\.detectors must be a tuple .* not 3"),
    (on(Guard, modes=3), r"modes must be a mapping such as .* not 3"),
    (on(Guard, modes={"tool:a": 3}), r"modes\['tool:a'\] must be one of observe, .* not 3"),
    (on(Guard, messages=3), r"messages must be a mapping such as .* not 3"),
    (on(Guard, messages={"halt": 3}), r"messages\['halt'\] must be a text .* not 3"),
    (on(Guard, models=[3]), r"models must be a mapping such as .* not \[3\]"),
    (on(Guard, state=3), r"state must be .* not 3"),
    (on(Guard, choices=3), r"choices must be Choices\(\.\.\.\), or where to keep them.* not 3"),
    (on(Guard, prices=3), r"prices must be the path of a price file.* not 3"),
    (on(Guard, prices="none.toml"), r"none\.toml: cannot be read"),
    (on(Boundary, tools={"pay": Effects()}), r"Boundary\.tools\['pay'\] must be a ToolPolicy"),
    (on(Adaptive, workflow=3), r"Adaptive\.workflow must be a text such as 'billing', not 3"),
    (on(Choices, words="x"), r"Choices\.words must be a mapping such as .* not 'x'"),
    (on(Choices, seed="a"), r"Choices\.seed must be a whole number, .* not 'a'"),
    (on(Choices, wordings="plain"), r"Choices\.wordings must be a tuple .* write \('plain',\)"),
    (on(Choices, block="no"), r"Choices\.block must be True or False, not 'no'"),
    (on(Choices, ways=3), r"Choices\.ways must be a tuple of names .* not 3"),
    (on(Choices, prior="x"), r"prior must be from 0 to 1000, not 'x'"),
    (on(Adaptive, place=3), r"the place where it is kept must be the path .* not 3"),
    (on(retry_policy, retries=3), r"retries must be Retries\(\.\.\.\) or None, not 3"),
    (on(resilient, fallbacks=3), r"fallbacks must be a tuple .* not 3"),
    (on(ResilienceMiddleware, boundary=3), r"boundary must be Boundary\(\.\.\.\).* not 3"),
    (on(GuardMiddleware, guard=3), r"guard must be Guard\(\.\.\.\) or None, not 3"),
    (on(report_of, config="x"), r"config must be a configuration such as .* not 'x'"),
]


@pytest.mark.parametrize(
    ("build", "message"),
    [(build, said) for (build, _), said in WRONG],
    ids=[w[0][1] for w in WRONG],
)
def test_it_is_named_with_the_fix(build: Callable[[], object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        build()


RULES = [*DEFAULT_DETECTORS, *OPTIONAL_DETECTORS, BreakerSettings()]


@pytest.mark.parametrize("rule", RULES, ids=[type(rule).__name__ for rule in RULES])
@pytest.mark.parametrize("wrong", ["3", True, [], -1, float("nan")], ids=repr)
def test_numbers_of_rules_are_numbers(rule: Any, wrong: object) -> None:
    for spec in dataclasses.fields(rule):
        if spec.type not in ("int", "float", "Severity", "int | None"):
            continue
        with pytest.raises(
            ConfigError, match=rf"{type(rule).__name__}\b.*{spec.name.rpartition('_')[2]}"
        ):
            dataclasses.replace(rule, **{spec.name: wrong})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[tools.pay]\nread_only = "no"', r"\[tools\.pay\]: ToolFacts\.read_only must be True"),
        ("name = 3", "name must be a text"),
        ('[boundary.tools.pay]\nnever_degrade = "no"', r"never_degrade must be True or False"),
        ("[boundary.tools.pay]\neffect = { key = [] }", r"Effects\.key must name an argument"),
        ("choices = 3", r"\[choices\] must be a table"),
        ("prices = 3", "prices must be a text"),
    ],
)
def test_so_it_is_in_a_file(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "guard.toml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=message):
        Guard.from_file(path)


def test_of_a_thread_without_a_run_nothing_is_known() -> None:
    app, thread = stay(), {"configurable": {"thread_id": "1"}}
    assert app.report().outcome == app.report(thread).outcome == "unknown"
    app.invoke({"text": "hello"}, thread)
    assert app.report().outcome == app.report(thread).outcome == "completed"
    other = app.report({"configurable": {"thread_id": "2"}})
    assert (other.outcome, other.steps, other.to_json()["outcome"]) == ("unknown", 0, "unknown")
    assert GuardMiddleware().report().outcome == "unknown"


def test_lists_are_as_good_as_tuples() -> None:
    made = Guard(exclude=["a"], overrides=[Override(tools=["b"])], ignored_arguments=["why"])  # type: ignore[arg-type]
    assert made.exclude == ("a",) and made.settings.exclude == ("a",)
    assert made == Guard(
        exclude=("a",), overrides=(Override(tools=("b",)),), ignored_arguments=frozenset({"why"})
    )
    assert ToolFacts(key=["url"]) == ToolFacts(key=("url",))  # type: ignore[arg-type]


def test_a_boundary_of_true_is_the_default_one() -> None:
    assert ResilienceMiddleware(True).boundary == Boundary()
    assert ResilienceMiddleware(True, error_budget=3).boundary == Boundary(error_budget=3)


@pytest.mark.parametrize("kind", [Choices, Adaptive])
def test_a_place_that_cannot_be_is_refused_at_once(
    kind: Callable[[Path], object], tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=r"kept\.json: its folder does not exist; make it"):
        kind(tmp_path / "none" / "kept.json")
    with pytest.raises(ConfigError, match="is a folder; name a file in it"):
        kind(tmp_path)

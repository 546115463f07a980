"""The settings of a boundary: checked when they are built, in code and in a file."""

from __future__ import annotations

import gc
import pickle
from pathlib import Path
from typing import Any

import pytest

import shearpin
from shearpin import ConfigError, Guard
from shearpin.adapters.boundary.bounds import boundary_of, shared_of
from shearpin.boundary import (
    Answers,
    Availability,
    Boundary,
    Cached,
    Effects,
    ErrorCategory,
    Retries,
    Static,
    ToolPolicy,
    known,
)
from shearpin.boundary.categories import ERROR_TYPES, WHOLE_RUN
from shearpin.boundary.known.builtins import ERRNO
from tests.boundary.failing import Failing, plan_graph


async def later(failure: object) -> None:
    """A handler that cannot be one."""


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"nodes": "search"}, r"Boundary\.nodes must be a list of names, not one text: \['search'\]"),
    ({"nodes": []}, r"Boundary\.nodes must hold names or patterns"),
    ({"nodes": [1]}, r"Boundary\.nodes must hold names or patterns"),
    ({"nodes": 7}, r"Boundary\.nodes must be a list"),
    ({"on": "retry"}, r"Boundary\.on must be a mapping"),
    ({"on": {"fatal": "kontinue"}}, r"Boundary\.on\['fatal'\].*did you mean 'continue'"),
    ({"on": {"fatal": 3}}, r"must be an action or a function, not 3"),
    ({"on": {"fatal": later}}, r"must be a plain function, not an asynchronous one"),
    ({"on": {"retryabel": "retry"}}, r"'retryabel'; did you mean 'retryable'"),
    ({"on": {"Rate Limit": "retry"}}, r"must be keyed by a category .*'Rate Limit'"),
    ({"on": {"control": "retry"}}, r"interrupts, commands and cancellation are no failures"),
    ({"on": {ErrorCategory.CONTROL: "raise"}}, r"no failures"),
    ({"on": {KeyboardInterrupt: "raise"}}, r"a class of exceptions, not by KeyboardInterrupt"),
    ({"on": {int: "raise"}}, r"a class of exceptions, not by int"),
    ({"max_retries": -1}, r"Boundary\.max_retries must be 0 or more, not -1"),
    ({"max_retries": 1.5}, r"Boundary\.max_retries must be 0 or more, not 1\.5"),
    ({"rollback_limit": True}, r"Boundary\.rollback_limit must be 0 or more, not True"),
    ({"error_budget": -1}, r"Boundary\.error_budget must be 0 or more"),
    ({"alternative": ["a"]}, r"Boundary\.alternative must be a mapping"),
    ({"alternative": {"a": ""}}, r"Boundary\.alternative\['a'\] must name a node"),
    ({"alternative": {"a": "a"}}, r"leads in a circle: a -> a"),
    ({"alternative": {"a": "b", "b": "c", "c": "a"}}, r"leads in a circle: a -> b -> c -> a"),
    (
        {"nodes": ["a"], "alternative": {"b": "c"}},
        r"names the node 'b', which nodes=\['a'\] leaves",
    ),
    ({"nodes": ["a*"], "substitute": {"b": {}}}, r"Boundary\.substitute names the node 'b'"),
    ({"prompt": "{what}"}, r"Boundary\.prompt must be a text with \{error\}"),
    ({"prompt": 3}, r"Boundary\.prompt must be a text"),
    ({"on": {"tiemout": "raise"}}, r"Boundary\.on names 'tiemout'; did you mean 'timeout'\?"),
    ({"on": {"seats_gone": "raise"}}, r"'seats_gone', which is no type .*Boundary\(rules"),
    ({"cancel_siblings": "none"}, r"Boundary\.cancel_siblings must be True, False or 'all'"),
    ({"cancel_siblings": 1}, r"Boundary\.cancel_siblings must be True, False or 'all'"),
    ({"tools": {"a": {}}}, r"Boundary\.tools\['a'\] must be a ToolPolicy"),
    ({"retries": 3}, r"Boundary\.retries must be Retries\(\.\.\.\)"),
    ({"availability": True}, r"Boundary\.availability must be Availability\(\.\.\.\)"),
    ({"models": ["gpt"]}, r"Boundary\.models must hold chat models, not 'gpt'"),
    ({"rules": [3]}, r"Boundary\.rules must hold functions, not 3"),
    ({"store": "memory"}, r"Boundary\.store must be a URL such as 'memory:'"),
]


@pytest.mark.parametrize(("options", "message"), WRONG, ids=[entry[1] for entry in WRONG])
def test_what_is_wrong_is_named_with_its_fix(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Boundary(**options)


def test_categories_may_go_by_their_names() -> None:
    assert Boundary(on={"fatal": "raise"}).on == {ErrorCategory.FATAL: "raise"}


def test_a_boundary_is_a_value() -> None:
    recipe = Boundary(alternative={"search": "other"}, on={TimeoutError: "retry"})
    assert pickle.loads(pickle.dumps(recipe)) == recipe
    assert Boundary() != recipe
    assert Guard(boundary=True) == Guard(boundary=Boundary())
    assert Guard(boundary=False) == Guard(boundary=None) == Guard()
    with pytest.raises(ConfigError, match="boundary must be a Boundary, True, False or None"):
        Guard(boundary=3)  # type: ignore[arg-type]


def test_a_tool_goes_by_its_name_before_any_pattern() -> None:
    named, some = ToolPolicy(never_degrade=True), ToolPolicy(Retries(attempts=1))
    recipe = Boundary(tools={"pay_*": some, "pay_now": named})
    assert recipe.policy("pay_now") is named
    assert recipe.policy("pay_later") is some
    assert recipe.policy("look") == ToolPolicy()


def test_what_runs_share_is_opened_once_and_closed_with_the_boundary(tmp_path: Path) -> None:
    recipe = Boundary(store=f"sqlite:///{tmp_path / 'effects.db'}")
    shared = shared_of(recipe)
    assert shared_of(recipe) is shared
    assert shared_of(Boundary()) is not shared
    store = shared.store
    store.put("a", "1")
    del recipe
    gc.collect()
    with pytest.raises(shearpin.ShearpinError, match="closed"):
        store.get("a")


def test_a_guard_without_a_boundary_has_none_of_it() -> None:
    graph = shearpin.guard(plan_graph(Failing(lambda messages, call: True)))
    graph.invoke({"messages": [("user", "where?")]})
    assert graph.report().boundary is None
    assert boundary_of(Guard()) is None


# -- from a file ----------------------------------------------------------------------------------


def from_file(tmp_path: Path, text: str) -> Boundary | None:
    path = tmp_path / "guard.toml"
    path.write_text(text, encoding="utf-8")
    return boundary_of(Guard.from_file(path))


def test_a_file_says_all_but_what_is_code(tmp_path: Path) -> None:
    text = """
        [boundary]
        nodes = ["search", "enrich"]
        max_retries = 1
        rollback_limit = 0
        error_budget = false
        cancel_siblings = false
        prompt = "{error}"
        store = "memory:"
        on = { fatal = "raise", rate_limit = "retry" }
        alternative = { search = "answer_from_memory" }
        substitute = { enrich = { notes = [] } }
        retries = { attempts = 4, base_seconds = 1.0 }
        availability = true
        answers = { again = 1 }

        [boundary.tools.search]
        static = "The search is down."
        cached_seconds = 600
        availability = { min_calls = 9 }

        [boundary.tools."pay_*"]
        never_degrade = true
        effect = { key = ["order"], at_most = 1 }
    """
    assert from_file(tmp_path, text) == Boundary(
        nodes=["search", "enrich"],
        max_retries=1,
        rollback_limit=0,
        error_budget=None,
        cancel_siblings=False,
        prompt="{error}",
        on={"fatal": "raise", "rate_limit": "retry"},
        alternative={"search": "answer_from_memory"},
        substitute={"enrich": {"notes": []}},
        retries=Retries(attempts=4, base_seconds=1.0),
        availability=Availability(),
        answers=Answers(again=1),
        tools={
            "search": ToolPolicy(
                fallbacks=(Cached(600), Static("The search is down.")),
                availability=Availability(min_calls=9),
            ),
            "pay_*": ToolPolicy(never_degrade=True, effect=Effects(key=("order",), at_most=1)),
        },
    )
    assert from_file(tmp_path, "boundary = true") == Boundary()
    assert from_file(tmp_path, "boundary = false") is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("boundary = 3", r"\[boundary\] must be a table"),
        ("[boundary]\nmodels = []", r"\[boundary\]: unknown key 'models'"),
        ("[boundary]\nmax_retry = 1", r"unknown key 'max_retry'; did you mean 'max_retries'"),
        ("[boundary]\nmax_retries = -1", r"\[boundary\]: Boundary\.max_retries must be 0 or more"),
        ("[boundary]\non = { fatal = 3 }", r"\[boundary\]: on: fatal must be a text"),
        ("[boundary.tools.x]\ncache = 3", r"tools\.x: unknown key 'cache'"),
        ("[boundary.tools.x]\nretries = { attempts = 0 }", r"tools\.x: retries: .*attempts"),
        ("[boundary.tools.x]\neffect = { key = 3 }", r"tools\.x: effect: key must be a list"),
        ("[boundary.tools.x]\neffect = 3", r"tools\.x: effect must be a table"),
    ],
)
def test_a_mistake_in_a_file_is_named_with_its_key(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        from_file(tmp_path, text)


def test_all_types_that_are_told_apart_may_be_named() -> None:
    kinds = [kind for family in known._FAMILIES for kind in family.kinds.values()]
    kinds += [kind for family in known._FAMILIES for kind in family.codes.values()]
    kinds += [*ERRNO.values()]
    found = {kind.error_type for kind in kinds} | {"cancelled", "control"}
    assert found - {"control"} <= ERROR_TYPES
    assert WHOLE_RUN <= ERROR_TYPES
    for name in ERROR_TYPES:
        assert Boundary(on={name: "raise"}).on == {name: "raise"}


def test_rules_make_types_of_their_own() -> None:
    boundary = Boundary(on={"seats_gone": "raise"}, rules=[lambda error: None])
    assert boundary.on == {"seats_gone": "raise"}


@pytest.mark.parametrize(
    ("setting", "error_type", "gives_up"),
    [
        (True, "authentication", True),
        (True, "programming", False),
        ("all", "programming", True),
        (False, "authentication", False),
    ],
)
def test_which_failures_end_the_calls_beside_them(
    setting: Any, error_type: str, gives_up: bool
) -> None:
    boundary = Boundary(cancel_siblings=setting)
    assert boundary.gives_up_siblings(ErrorCategory.FATAL, error_type) is gives_up
    assert not boundary.gives_up_siblings(ErrorCategory.DEGRADABLE, error_type)

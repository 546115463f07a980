"""Whatever fails, in whatever order: an effect happens at most once."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings
from langgraph.errors import GraphInterrupt

from shearpin.boundary import Effects, Retries, Static, ToolPolicy
from shearpin.core.tools import ToolFacts
from tests.boundary.tool_bench import HOW, Bench

ENDS = ("works", "refused", "late", "lost", "wrong", "asks", "killed")
ends = st.lists(st.sampled_from(ENDS), max_size=12)


class World:
    """Where effects really happen, or not."""

    def __init__(self, ends: list[str]) -> None:
        self.ends = ends
        self.acted = 0

    def act(self, **args: Any) -> str:
        end = self.ends.pop(0) if self.ends else "works"
        if end == "refused":
            raise ConnectionRefusedError
        if end == "lost":
            raise TimeoutError("it never got there")
        if end == "asks":
            raise GraphInterrupt
        self.acted += 1
        if end == "late":
            raise TimeoutError("it got there, and the answer did not come back")
        if end == "wrong":
            raise ValueError("it got there, and then the tool stumbled")
        if end == "killed":
            raise KeyboardInterrupt
        return "done"


def called(bench: Bench, world: World, call: str, **options: Any) -> Any:
    try:
        return bench(world.act, {"to": "ann"}, name="send", call=call, **options)
    except (GraphInterrupt, KeyboardInterrupt) as error:
        return error


@pytest.mark.parametrize("how", HOW)
@settings(max_examples=60, deadline=None)
@given(ends=ends, same=st.lists(st.booleans(), min_size=8, max_size=8), backup=st.booleans())
def test_an_effect_happens_at_most_once(
    how: str, ends: list[str], same: list[bool], backup: bool
) -> None:
    if how == "async":
        ends = [end for end in ends if end != "killed"]
    world, bench = World(ends), Bench(how)
    policy = ToolPolicy(
        effect=Effects(),
        retries=Retries(attempts=3, base_seconds=0.1),
        fallbacks=[world.act, world.act, Static("none")] if backup else (),
    )
    results = [
        called(bench, world, "c" if again else f"c{number}", policy=policy)
        for number, again in enumerate(same)
    ]
    assert world.acted <= 1
    assert not bench.faults
    for result in results:
        if getattr(result, "success", False) and result.output == "done":
            assert world.acted == 1  # nobody is told of what did not happen
        if getattr(result, "success", None) is False and world.acted == 0:
            assert result.text()


@pytest.mark.parametrize("how", HOW)
@settings(max_examples=60, deadline=None)
@given(ends=ends, attempts=st.integers(1, 6))
def test_without_a_word_about_a_tool_it_is_not_run_after_it_may_have_acted(
    how: str, ends: list[str], attempts: int
) -> None:
    if how == "async":
        ends = [end for end in ends if end != "killed"]
    world, bench = World(ends), Bench(how)
    policy = ToolPolicy(retries=Retries(attempts=attempts, base_seconds=0.1))
    called(bench, world, "c", policy=policy)
    assert world.acted <= 1


@pytest.mark.parametrize("how", HOW)
@settings(max_examples=60, deadline=None)
@given(ends=ends, attempts=st.integers(1, 6), rounds=st.integers(1, 5))
def test_a_tool_declared_to_act_acts_once_for_each_call(
    how: str, ends: list[str], attempts: int, rounds: int
) -> None:
    if how == "async":
        ends = [end for end in ends if end != "killed"]
    world, bench = World(ends), Bench(how)
    policy = ToolPolicy(retries=Retries(attempts=attempts, base_seconds=0.1))
    for _ in range(rounds):  # the same call, carried out again and again
        called(bench, world, "c", policy=policy, facts=ToolFacts(destructive=True))
    assert world.acted <= 1

"""Keys of effects that name no argument: refused when they are written, and told of at run time."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.tools import tool

import shearpin
from shearpin import ConfigError
from shearpin.boundary import Boundary, Effects, ErrorCategory, ToolPolicy, resilient
from shearpin.testing import StrictProvider

MISSPELT = r"Effects\.key of 'refund' names 'ordr', .*did you mean 'order'\?"


def refund(order: int) -> str:
    """Give money back."""
    return f"order {order} is paid back"


def test_a_function_is_checked_when_it_is_decorated() -> None:
    with pytest.raises(ConfigError, match=MISSPELT):
        resilient(refund, effect=Effects(key=("ordr",)))
    assert resilient(refund, effect=Effects(key=("order",)))(17).output == "order 17 is paid back"


def test_a_tool_is_checked_when_it_is_wrapped() -> None:
    with pytest.raises(ConfigError, match=MISSPELT):
        resilient(tool(refund), effect=Effects(key=("ordr",)))


def test_a_graphs_tools_are_checked_when_it_is_guarded() -> None:
    agent = create_agent(StrictProvider(lambda messages, call: "done"), [refund])
    boundary = Boundary(tools={"refund": ToolPolicy(effect=Effects(key=("order", "ordr")))})
    with pytest.raises(ConfigError, match=MISSPELT):
        shearpin.guard(agent, boundary=boundary)


@pytest.mark.parametrize("on_fault", ["refuse", "run"])
def test_what_nobody_could_check_is_told_of(
    on_fault: Any, caplog: pytest.LogCaptureFixture
) -> None:
    ran: list[object] = []

    @resilient(effect=Effects(key=("ordr",), on_fault=on_fault))
    def pay(**given: object) -> None:
        ran.append(given)

    with caplog.at_level(logging.WARNING, "shearpin"):
        result = pay(order=17)
    assert (ran, result.category) == ([], ErrorCategory.FATAL)
    assert result.error_type == "configuration"
    assert "names ordr, but the call has order" in str(result.error_detail)
    assert "names ordr" in caplog.text


def test_a_result_says_what_a_model_reads() -> None:
    @resilient
    def broken() -> str:
        raise KeyError("x")

    failed = broken()
    assert str(failed) == failed.text()
    assert str(resilient(refund)(17)) == "order 17 is paid back"

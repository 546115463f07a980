"""What the boundary has dealt with is in the log: ends with their error, answers by type alone."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.tools import tool
from langgraph.graph import START, StateGraph

import shearpin
from shearpin.boundary import Boundary, resilient
from shearpin.boundary.log import log_end
from shearpin.errors import TrippedError
from shearpin.report.terminal import render_report
from shearpin.testing import StrictProvider, asks_for
from tests.boundary.failing import HELLO, State

SECRET = "sk-proj-" + "a1B2c3D4" * 5


def failing_graph(error: Exception) -> Any:
    def work(state: State) -> dict[str, Any]:
        raise error

    builder: StateGraph[Any] = StateGraph(State)
    builder.add_node("work", work)
    builder.add_edge(START, "work")
    return builder.compile()


def failing_agent(error: Exception) -> Any:
    @tool
    def look(place: str) -> str:
        """Look somewhere."""
        raise error

    def script(messages: Any, call: int) -> Any:
        return asks_for(("look", {"place": "the drawer"})) if call == 1 else "Not there."

    return create_agent(StrictProvider(script), [look])


def ours(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    return [record for record in caplog.records if record.name == "shearpin"]


@pytest.mark.parametrize("on_stop", ["end", "raise"])
def test_an_end_is_logged_with_its_error_and_chained(
    on_stop: Any, caplog: pytest.LogCaptureFixture
) -> None:
    error = RuntimeError(f"bad key {SECRET}")
    graph = shearpin.guard(failing_graph(error), boundary=True, on_stop=on_stop)
    with caplog.at_level(logging.DEBUG, "shearpin"):
        if on_stop == "raise":
            with pytest.raises(TrippedError) as caught:
                graph.invoke(HELLO)
            assert caught.value.__cause__ is error
        else:
            graph.invoke(HELLO)
    (record,) = ours(caplog)
    assert record.levelno == logging.WARNING
    assert record.exc_info is not None
    assert record.exc_info[1] is error
    said = record.getMessage()
    assert said.startswith("shearpin: the run is ended (failures:unknown) in 'work': RuntimeError:")
    assert SECRET not in said


def test_a_used_up_budget_is_logged_with_the_last_error(caplog: pytest.LogCaptureFixture) -> None:
    error = ValueError("no")
    boundary = Boundary(substitute={"work": {"found": ["nothing"]}}, error_budget=1)
    graph = shearpin.guard(failing_graph(error), boundary=boundary, on_stop="raise")
    with caplog.at_level(logging.DEBUG, "shearpin"), pytest.raises(TrippedError) as caught:
        graph.invoke(HELLO)
    (record,) = ours(caplog)
    assert "failures:error_budget" in record.getMessage()
    assert record.exc_info is not None
    assert record.exc_info[1] is error
    assert caught.value.__cause__ is error


def test_an_answered_failure_is_told_by_type_alone(caplog: pytest.LogCaptureFixture) -> None:
    graph = shearpin.guard(failing_agent(ValueError("no drawer here")), boundary=True)
    with caplog.at_level(logging.DEBUG, "shearpin"):
        graph.invoke({"messages": [("user", "where is it?")]})
    (record,) = ours(caplog)
    assert (record.levelno, record.exc_info) == (logging.DEBUG, None)
    assert record.getMessage() == (
        "shearpin: the tool 'look' has failed and was answered: invalid_arguments (ValueError)"
    )


def test_a_resilient_function_logs_too(caplog: pytest.LogCaptureFixture) -> None:
    @resilient
    def look(place: str) -> str:
        raise KeyError(place)

    with caplog.at_level(logging.DEBUG, "shearpin"):
        look("the drawer")
    (record,) = ours(caplog)
    assert "drawer" not in record.getMessage()
    assert "programming (KeyError)" in record.getMessage()


def test_names_stay_on_one_line(caplog: pytest.LogCaptureFixture) -> None:
    log_end("failures:unknown", "a\nb", None)
    assert "'a\\nb'" in ours(caplog)[0].getMessage()


def test_the_report_for_people_quotes_failures() -> None:
    graph = shearpin.guard(failing_agent(ValueError("no \x1b[31mdrawer")), boundary=True)
    graph.invoke({"messages": [("user", "where is it?")]})
    from rich.console import Console

    console = Console(width=120)
    with console.capture() as shown:
        console.print(render_report(graph.report()))
    assert "tool look (invalid_arguments): no" in shown.get()
    assert "\x1b[31m" not in shown.get()

"""Names in a guard that fit nothing in its graph: refused where misspelt, told of elsewhere."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from langchain.agents import create_agent

import shearpin
from shearpin import ConfigError, ToolFacts
from shearpin.adapters.langgraph import naming
from shearpin.boundary import Boundary, Effects, ToolPolicy
from shearpin.testing import StrictProvider

POLICY = ToolPolicy(effect=Effects())


def send_email(to: str) -> str:
    """Send a mail."""
    return f"sent to {to}"


def agent() -> Any:
    return create_agent(StrictProvider(lambda messages, call: "done"), [send_email])


@pytest.fixture(autouse=True)
def nothing_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(naming, "_said", set[str]())


@pytest.mark.parametrize(
    ("boundary", "message"),
    [
        (Boundary(tools={"send_mail": POLICY}), "'send_mail'.*did you mean 'send_email'"),
        (Boundary(nodes=("modle",)), "'modle'.*did you mean 'model'"),
    ],
)
def test_a_misspelt_name_of_a_boundary_is_refused(boundary: Boundary, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        shearpin.guard(agent(), boundary=boundary)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"boundary": Boundary(nodes=("nn",))}, "Boundary.nodes names the node 'nn'"),
        ({"boundary": Boundary(tools={"pay": POLICY})}, "Boundary.tools names the tool 'pay'"),
        ({"tools": {"send_mail": ToolFacts()}}, "did you mean 'send_email'?"),
        ({"exclude": ("nn",)}, "exclude names the node 'nn'"),
        ({"modes": {"node:nn": "observe"}}, "modes names the node 'nn'"),
    ],
)
def test_other_names_are_told_of_once(
    options: dict[str, Any], message: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "shearpin"):
        shearpin.guard(agent(), **options)
        shearpin.guard(agent(), **options)
    assert caplog.text.count(message) == 1


def test_what_fits_or_is_a_pattern_is_not_told_of(caplog: pytest.LogCaptureFixture) -> None:
    boundary = Boundary(nodes=("model", "other_*"), tools={"send_email": POLICY, "pay_*": POLICY})
    with caplog.at_level(logging.WARNING, "shearpin"):
        shearpin.guard(agent(), boundary=boundary)
    assert not caplog.records

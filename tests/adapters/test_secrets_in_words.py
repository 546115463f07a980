"""What the guard says of a call quotes no value of an argument that is named as a secret."""

from __future__ import annotations

import pytest
from langchain.agents import create_agent
from langchain_core.messages import HumanMessage, SystemMessage, ToolMessage

from shearpin import guard
from shearpin.testing import ScriptedModel, asks_for


def login(user: str, password: str) -> str:
    """Log in."""
    return f"no login for {user}/{password}"


@pytest.mark.parametrize("value", ["hunter2", "two plain words"])
def test_nudges_and_refusals_quote_no_password(value: str) -> None:
    model = ScriptedModel(
        lambda messages, call: asks_for(("login", {"user": "bob", "password": value}))
    )
    app = guard(create_agent(model, [login]))
    out = app.invoke({"messages": [("user", "Log in.")]})
    answers = [str(m.content) for m in out["messages"] if isinstance(m, ToolMessage)]
    refused = [text for text in answers if text.startswith("Not run")]
    said = [
        str(message.content)
        for request in model.requests
        for message in request
        if isinstance(message, (HumanMessage, SystemMessage))
    ]
    nudges = [text for text in said if text.startswith("You have called")]
    assert refused
    assert nudges
    assert all("bob" in text and value not in text for text in refused + nudges)

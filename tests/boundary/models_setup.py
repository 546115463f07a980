"""What tests of models under the boundary have in common."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.tools import tool

from shearpin import clock
from shearpin.boundary import Retries
from shearpin.testing import ManualClock, ScriptedModel, asks_for

PRICES = pytest.mark.skipif(
    find_spec("genai_prices") is None, reason="budgets need genai-prices, which is not installed"
)
QUICK = Retries(base_seconds=0.0)
HELLO = {"messages": [("user", "hello")]}
THREAD = {"configurable": {"thread_id": "t1"}}
DONE = "all done"


class TooManyRequestsError(Exception):
    """A rate limit, as a client with a status raises it."""

    status_code = 429


class UnauthorizedError(Exception):
    """A refused key, as a client with a status raises it."""

    status_code = 401


@tool
def look(what: str) -> str:
    """Look something up."""
    return f"{what}: found"


def model(*script: Any, **options: Any) -> ScriptedModel:
    return ScriptedModel(list(script), **options)


def down(error: Exception | None = None, **options: Any) -> ScriptedModel:
    return ScriptedModel(lambda messages, number: error or TimeoutError("no answer"), **options)


def asks(what: str = "a") -> AIMessage:
    return asks_for(("look", {"what": what}))


def last(out: Any) -> AIMessage:
    message = out["messages"][-1]
    assert isinstance(message, AIMessage)
    return message


def mark(message: BaseMessage) -> dict[str, Any]:
    return message.response_metadata.get("shearpin", {})


def assert_answered(messages: list[BaseMessage]) -> None:
    """Every call has one answer, in order."""
    open_calls: list[str] = []
    for message in messages:
        if isinstance(message, ToolMessage):
            assert message.tool_call_id in open_calls
            open_calls.remove(message.tool_call_id)
            continue
        assert not open_calls, message
        if isinstance(message, AIMessage):
            assert not message.invalid_tool_calls
            open_calls = [str(call["id"]) for call in message.tool_calls]
    assert not open_calls


class Waits:
    """Takes the place of waiting: the clock is advanced."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.clock = ManualClock()
        self.seconds: list[float] = []
        patch.setattr(clock, "sleep", self.wait)
        patch.setattr(clock, "asleep", self.await_)

    def wait(self, seconds: float) -> None:
        self.seconds.append(seconds)
        self.clock.advance(seconds)

    async def await_(self, seconds: float) -> None:
        self.wait(seconds)


class BreaksOff(ScriptedModel):
    """Its first answer breaks off after two words."""

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **_: Any) -> Any:
        result = super()._generate(messages, stop, run_manager)
        if self.calls == 1:
            raise ConnectionResetError("reset by peer")
        return result

    def _stream(self, *args: Any, **kwargs: Any) -> Any:
        first = self.calls == 0
        for number, chunk in enumerate(super()._stream(*args, **kwargs)):
            if first and number == 2:
                raise ConnectionResetError("reset by peer")
            yield chunk

    async def _astream(self, *args: Any, **kwargs: Any) -> Any:
        first, number = self.calls == 0, 0
        async for chunk in super()._astream(*args, **kwargs):
            if first and number == 2:
                raise ConnectionResetError("reset by peer")
            number += 1
            yield chunk

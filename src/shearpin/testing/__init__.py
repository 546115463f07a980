"""The public test kit: what a test of a guarded agent needs, offline and without waiting.

* `ManualClock` - a clock that only moves when told to
* `ScriptedModel` - a chat model that gives prepared answers, in every way a model can be called
* `asks_for` - an answer that requests tool calls
* `StrictProvider` - a scripted model that refuses what real providers refuse
* `ProviderRejectedError` - how it refuses
* `LoopbackProvider` - an HTTP server for the real clients of OpenAI and Anthropic
* `Fault` - what goes wrong in an exchange with it
* `ProviderRequest` - what it was asked

The models need `langchain-core`, which langgraph brings along.
"""

from __future__ import annotations

from shearpin.testing.clock import ManualClock
from shearpin.testing.faults import Fault
from shearpin.testing.loopback import LoopbackProvider, ProviderRequest
from shearpin.testing.model import ScriptedModel, ScriptEndedError, asks_for
from shearpin.testing.provider import ProviderRejectedError, StrictProvider

__all__ = [
    "Fault",
    "LoopbackProvider",
    "ManualClock",
    "ProviderRejectedError",
    "ProviderRequest",
    "ScriptEndedError",
    "ScriptedModel",
    "StrictProvider",
    "asks_for",
]

"""The public test kit: what a test of a guarded agent needs, offline and without waiting.

* `ManualClock` - a clock that only moves when told to
* `ScriptedModel` - a chat model that gives prepared answers, in every way a model can be called
* `asks_for` - an answer that requests tool calls
* `StrictProvider` - a scripted model that refuses what real providers refuse
* `ProviderRejectedError` - how it refuses

The models need `langchain-core`, which langgraph brings along.
"""

from __future__ import annotations

from shearpin.testing.clock import ManualClock
from shearpin.testing.model import ScriptedModel, ScriptEndedError, asks_for
from shearpin.testing.provider import ProviderRejectedError, StrictProvider

__all__ = [
    "ManualClock",
    "ProviderRejectedError",
    "ScriptEndedError",
    "ScriptedModel",
    "StrictProvider",
    "asks_for",
]

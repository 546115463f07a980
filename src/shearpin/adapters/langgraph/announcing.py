"""A stop, told to whoever reads the run's stream: in mode `custom` and in mode `messages`.

In mode `custom` it is one event in a run. It is `{"shearpin": {...}}` with the reason, the
finding's numbers and the ids by which the report is found. In mode `messages` it is the last word,
where it is written without the node being executed. A run that is not stopped has neither.
"""

from __future__ import annotations

from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableConfig

from shearpin.adapters.langgraph.compat import stream_writer, within
from shearpin.adapters.langgraph.compat_messages import stream_message
from shearpin.adapters.messages import MARK, reason_of
from shearpin.adapters.run import Run
from shearpin.verdicts import Halt

__all__ = ["announce", "say"]

_PLACE = "\0event"


def announce(run: Run, config: RunnableConfig | None, halt: Halt) -> None:
    """Write the event, if it was not written yet and there is somewhere to write it."""
    if config is None or not run.say_once(_PLACE):
        return
    try:
        event: dict[str, object] = {
            "event": "stopped",
            **reason_of(run.id, halt),
            "thread": run.thread,
            "message": halt.message,
        }
        writer = stream_writer(config)
        within(config, lambda: writer({MARK: event}))
    except Exception as error:
        run.fault("announcing", error)


def say(run: Run, config: RunnableConfig, word: BaseMessage) -> None:
    """Write the last word, which is in the state, into the stream of messages."""
    try:
        stream_message(config, word)
    except Exception as error:
        run.fault("announcing.say", error)

"""One attempt at a model call, as the callbacks of that call see it.

Contract: an attempt that fails, or whose answer is of no use, is paid for, and is no step of the
agent: no rule hears what it said. What was streamed of it to somebody is remembered, because that
cannot be taken back.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final, cast
from uuid import UUID

from langchain_core.callbacks import AsyncCallbackHandler, BaseCallbackHandler
from langchain_core.messages import BaseMessage
from langchain_core.tracers.base import BaseTracer
from langchain_core.tracers.context import register_configure_hook

from shearpin.adapters.messages import content_text

if TYPE_CHECKING:
    from shearpin.boundary.modelcalls import Fault

__all__ = ["ATTEMPT", "Attempt", "attempting", "discarded", "listened_to"]

_LONGEST: Final = 100_000
_SILENT: Final = (
    BaseCallbackHandler.on_llm_new_token,
    AsyncCallbackHandler.on_llm_new_token,
)


class Attempt(BaseCallbackHandler):
    """Hears the tokens of one attempt.

    Args:
        read: what is wrong with an answer. None: every answer is taken as it is.
    """

    run_inline = True
    ignore_chain = True  # pyright: ignore[reportIncompatibleMethodOverride,reportAssignmentType]
    ignore_retriever = True  # pyright: ignore[reportIncompatibleMethodOverride,reportAssignmentType]

    def __init__(self, read: Callable[[BaseMessage], Fault | None] | None) -> None:
        self.read = read
        self.streamed = False
        self._parts: list[str] = []
        self._length = 0

    def on_llm_new_token(self, token: object, *, run_id: UUID, **kwargs: object) -> None:
        """A part of the answer: if it can be seen, it cannot be taken back."""
        chunk: Any = kwargs.get("chunk")
        calls = getattr(getattr(chunk, "message", None), "tool_call_chunks", None)
        if not token and not calls:
            return
        self.streamed = True
        text = content_text(token)  # some clients give blocks
        if self._length < _LONGEST:
            self._parts.append(text)
            self._length += len(text)

    @property
    def text(self) -> str:
        """What was heard."""
        return "".join(self._parts)


ATTEMPT: ContextVar[Attempt | None] = ContextVar("shearpin_attempt", default=None)
"""The attempt that a model call in this code is."""


def discarded(message: BaseMessage | None) -> bool:
    """Whether the answer of the model call that just ended will not be used."""
    attempt = ATTEMPT.get()
    if attempt is None or attempt.read is None or message is None:
        return False
    return attempt.read(message) is not None


@contextmanager
def attempting(attempt: Attempt) -> Generator[Attempt]:
    """Make the model calls in the block parts of an attempt."""
    token = ATTEMPT.set(attempt)
    try:
        yield attempt
    finally:
        with suppress(ValueError):  # a stream may be closed from another context
            ATTEMPT.reset(token)


def listened_to(callbacks: object) -> bool:
    """Whether somebody sees an answer while it is made: a stream of a graph, or a handler."""
    handlers: object = getattr(callbacks, "handlers", callbacks)
    if not isinstance(handlers, Iterable):
        return False
    return any(_listens(handler) for handler in cast("Iterable[object]", handlers))


def _listens(handler: object) -> bool:
    heard = getattr(type(handler), "on_llm_new_token", None)
    if heard is None or heard in _SILENT or isinstance(handler, (BaseTracer, Attempt)):
        # A tracer keeps what it hears; LangChain's event stream is one that passes it on.
        return isinstance(handler, BaseTracer) and _passes_on(handler)
    return type(handler).__module__.partition(".")[0] != "shearpin"


def _passes_on(handler: object) -> bool:
    return any(kind.__name__ == "_StreamingCallbackHandler" for kind in type(handler).__mro__)


register_configure_hook(ATTEMPT, inheritable=False)

"""The innermost guard of a tool call in an agent that no guarded run surrounds.

Contract: retry layers of the host's stand within a middleware, and run a tool again by themselves.
While an attempt is under way, callbacks tell which tool is really run, and refuse a second run
after the first may have taken effect. Where the call layer of the same run sees the call, that does
all this. Only the refusal leaves it; faults are contained.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.tracers.context import register_configure_hook

from shearpin.adapters.calls import current_run
from shearpin.boundary.inner import WITHIN

if TYPE_CHECKING:
    from shearpin.adapters.run import Run
    from shearpin.errors import EffectRefusedError

__all__ = ["guarded_within"]


class _Innermost(BaseCallbackHandler):
    """Watches the runs of one tool call.

    Args:
        run: the call belongs to.
        tool: that is called.
        call: its id, as the model gave it.
        refusal: why the tool must not be run again within this attempt; None where it may be.
    """

    raise_error = True
    run_inline = True
    ignore_chain = True  # pyright: ignore[reportIncompatibleMethodOverride,reportAssignmentType]
    ignore_llm = True  # pyright: ignore[reportIncompatibleMethodOverride,reportAssignmentType]
    ignore_chat_model = True  # pyright: ignore[reportIncompatibleMethodOverride,reportAssignmentType]
    ignore_retriever = True  # pyright: ignore[reportIncompatibleMethodOverride,reportAssignmentType]

    def __init__(
        self, run: Run, tool: str, call: str, refusal: Callable[[], EffectRefusedError | None]
    ) -> None:
        self._run = run
        self._tool = tool
        self._call = call
        self._refusal = refusal
        self._inner = WITHIN.get()
        self._open: set[UUID] = set()

    def on_tool_start(
        self,
        serialized: Mapping[str, object] | None,
        input_str: str,
        *,
        run_id: UUID,
        **kwargs: object,
    ) -> None:
        """A tool is about to run.

        Raises:
            EffectRefusedError: it was run before, and may have taken effect.
        """
        name = str((serialized or {}).get("name") or kwargs.get("name") or "tool")
        call = kwargs.get("tool_call_id")
        own = name == self._tool and (call is None or call == self._call)
        if not own or self._open or self._inner is None:
            return
        self._inner.started = True
        refusal = None
        try:
            refusal = self._refusal()
        except Exception as error:
            self._run.fault("boundary.innermost", error)
        if refusal is not None:
            raise refusal
        self._open.add(run_id)

    def on_tool_end(self, output: object, *, run_id: UUID, **kwargs: object) -> None:
        """A tool has answered."""
        self._open.discard(run_id)

    def on_tool_error(self, error: BaseException, *, run_id: UUID, **kwargs: object) -> None:
        """A tool has raised."""
        if run_id in self._open:
            self._open.discard(run_id)
            if self._inner is not None:
                self._inner.raised = error


_WATCHING: ContextVar[_Innermost | None] = ContextVar("shearpin_innermost", default=None)

register_configure_hook(_WATCHING, inheritable=False)


@contextmanager
def guarded_within(
    run: Run, tool: str, call: str, refusal: Callable[[], EffectRefusedError | None]
) -> Generator[None]:
    """Watch what one attempt runs; entered within `attempt_within`."""
    seen = current_run() is run
    token = _WATCHING.set(None if seen else _Innermost(run, tool, call, refusal))
    try:
        yield
    finally:
        # What is given up in an event loop may be closed from another context.
        with suppress(ValueError):
            _WATCHING.reset(token)

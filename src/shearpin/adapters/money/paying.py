"""The call layer of a run with a budget: it can wait without blocking, and knows when time is up.

Contract: LangChain's asynchronous callback manager awaits what its synchronous one only calls.
Which of them asks is told by the frame that asks: a coroutine can await, anything else gets the
call layer's own methods. If that frame is ever another one, tasks are refused instead of waiting.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Mapping, Sequence
from inspect import CO_COROUTINE
from typing import Any
from uuid import UUID

from langchain_core.messages import BaseMessage
from langchain_core.outputs import LLMResult

from shearpin.adapters.calls import CallLayer
from shearpin.adapters.money.deadlines import Cut
from shearpin.adapters.money.rulings import Refused
from shearpin.adapters.money.settling import outcome_of
from shearpin.adapters.money.starting import ModelStart
from shearpin.adapters.places import Place
from shearpin.adapters.run import Run
from shearpin.adapters.signals import Stop
from shearpin.verdicts import Halt

__all__ = ["PayingCallLayer", "call_layer"]


def call_layer(run: Run) -> CallLayer:
    """The callback handler for a run, as simple as its recipe lets it be."""
    return CallLayer(run) if run.spending is None else PayingCallLayer(run)


class _Either:
    """A method for who can only call it, and another for who can await."""

    def __init__(self, called: Callable[..., None], awaited: str) -> None:
        self._called = called
        self._awaited = awaited

    def __get__(self, instance: object, owner: object = None) -> Any:
        if instance is None:
            return self
        if sys._getframe(1).f_code.co_flags & CO_COROUTINE:  # pyright: ignore[reportPrivateUsage]
            return getattr(instance, self._awaited)
        return self._called.__get__(instance)


class PayingCallLayer(CallLayer):
    """See the module's contract."""

    on_chat_model_start = _Either(CallLayer.on_chat_model_start, "achat_model_starts")  # pyright: ignore[reportAssignmentType]
    on_llm_start = _Either(CallLayer.on_llm_start, "allm_starts")  # pyright: ignore[reportAssignmentType]
    on_llm_end = _Either(CallLayer.on_llm_end, "allm_ends")  # pyright: ignore[reportAssignmentType]

    def __init__(self, run: Run) -> None:
        super().__init__(run)
        self._under_way: dict[UUID, ModelStart] = {}  # only calls that have a time limit
        self._timers: dict[UUID, asyncio.TimerHandle] = {}
        self._tasks: dict[UUID, tuple[asyncio.Task[Any], Callable[[Any], None]]] = {}

    # -- awaited --------------------------------------------------------------------------------

    async def achat_model_starts(
        self,
        serialized: object,
        messages: Sequence[Sequence[BaseMessage]],
        *,
        run_id: UUID,
        metadata: Mapping[str, object] | None = None,
        **kwargs: object,
    ) -> None:
        """A chat model is about to be called by a task; raises `Stop` where it must not."""
        prompt = messages[0] if messages else ()
        await self._amodel_starts(run_id, metadata or {}, prompt, kwargs.get("invocation_params"))

    async def allm_starts(
        self,
        serialized: object,
        prompts: Sequence[str],
        *,
        run_id: UUID,
        metadata: Mapping[str, object] | None = None,
        **kwargs: object,
    ) -> None:
        """A text model is about to be called by a task; raises `Stop` where it must not."""
        prompt = prompts[0] if prompts else ""
        await self._amodel_starts(run_id, metadata or {}, prompt, kwargs.get("invocation_params"))

    async def allm_ends(self, response: LLMResult, *, run_id: UUID, **kwargs: object) -> None:
        """A model has answered a task."""
        self._contained("on_llm_end", lambda: self._in_time(run_id), None)
        halt: Halt | None = None
        try:
            halt = await self._amodel_ends(response, run_id)
        except Exception as error:
            self.run.fault("calls.on_llm_end", error)
        if halt is not None:
            raise Stop(halt)

    async def _amodel_starts(
        self,
        run_id: UUID,
        metadata: Mapping[str, object],
        prompt: Sequence[BaseMessage] | str,
        params: object,
    ) -> None:
        where = "on_chat_model_start"
        start = self._contained(
            where, lambda: self._announced(run_id, metadata, prompt, params), None
        )
        if isinstance(start, ModelStart):
            begun, refused = start, None
            try:
                refused = await start.spending.aopen_model(start)
            except Exception as error:
                self.run.fault(f"calls.{where}", error)
            except BaseException:  # cancelled while it waited: the call is not made
                self.run.open.pop(run_id, None)
                raise
            start = self._contained(where, lambda: self._opened(begun, refused), None)
            if start is None:
                self._contained(where, lambda: self._arm(begun), None)
        if start is not None:
            self._refuse(*start)

    async def _amodel_ends(self, response: LLMResult, run_id: UUID) -> Halt | None:
        opened = self.run.open.get(run_id)
        if opened is None or opened.spending is None or not opened.spending.awaits:
            return self._model_ends(response, run_id)
        del self.run.open[run_id]
        found = outcome_of(response, opened.chunks)
        closed = await opened.spending.aclose_model(str(run_id), found, self.run.step + 1)
        return self._model_ended(opened, found, closed)

    # -- time -----------------------------------------------------------------------------------

    def on_llm_new_token(
        self, token: object, *, run_id: UUID, chunk: object = None, **kwargs: object
    ) -> None:
        """A part of an answer; raises `Stop` where the time for it is up."""
        super().on_llm_new_token(token, run_id=run_id, chunk=chunk, **kwargs)
        start = self._under_way.get(run_id)
        if start is not None:
            halt = self._contained("on_llm_new_token", lambda: start.spending.late(start), None)
            if halt is not None:
                self._refuse(halt, start.place)

    def on_llm_error(self, error: BaseException, *, run_id: UUID, **kwargs: object) -> None:
        """A model call has failed, or its stream was closed."""
        self._contained("on_llm_error", lambda: self._in_time(run_id), None)
        super().on_llm_error(error, run_id=run_id, **kwargs)

    def _opened(self, start: ModelStart, refused: Refused | None) -> tuple[Halt, Place] | None:
        found = super()._opened(start, refused)
        if found is None and start.spending.has_time_limit:
            self._under_way[start.id] = start
        return found

    def _model_ends(self, response: LLMResult, run_id: UUID) -> Halt | None:
        self._in_time(run_id)
        return super()._model_ends(response, run_id)

    def _in_time(self, run_id: UUID) -> None:
        """A call has ended, so that nothing is left to be cut."""
        self._under_way.pop(run_id, None)
        task, told = self._tasks.pop(run_id, (None, None))
        if task is not None and told is not None:
            task.remove_done_callback(told)
        timer = self._timers.pop(run_id, None)
        if timer is not None:
            timer.cancel()

    def _arm(self, start: ModelStart) -> None:
        """Cut the call of this task when its time is up; notice if somebody else cancels it."""
        seconds, task = start.spending.seconds_left(), asyncio.current_task()
        if task is None:
            return

        def told(ended: asyncio.Task[Any]) -> None:  # LangChain tells nobody of a cancelled call
            if ended.cancelled() and start.id in self.run.open:
                self.on_llm_error(asyncio.CancelledError(), run_id=start.id)

        self._tasks[start.id] = (task, told)
        task.add_done_callback(told)
        if seconds is None or start.id not in self._under_way:
            return
        loop = asyncio.get_running_loop()
        self._timers[start.id] = loop.call_later(seconds, self._cut, start, task)

    def _cut(self, start: ModelStart, task: asyncio.Task[Any]) -> None:
        def settle() -> None:
            self._model_fails(start.id, asyncio.CancelledError(), None)

        def cut() -> None:
            if start.id in self.run.open and not task.done():
                halt = start.spending.late(start, rounded=True)
                if halt is not None:
                    start.spending.deadlines.cut(Cut(task, halt, settle))

        self._contained("deadline", cut, None)

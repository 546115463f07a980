"""The call layer: sees every model and tool call of a run, and can refuse it before it happens.

Contract: the handler travels in a context variable that LangChain asks whenever it sets up
callbacks, so that it reaches sub-agents in tools, closures, `@task`s and Send branches, and is not
lost where user code passes callbacks of its own. It is synchronous and inline: errors raised by
asynchronous handlers would be swallowed. Only refusals leave it; any other fault is contained.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from typing import TypeVar, cast
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import BaseMessage, ToolMessage
from langchain_core.outputs import LLMResult
from langchain_core.tracers.context import register_configure_hook
from langgraph.errors import GraphBubbleUp

from shearpin.adapters.boundary.attempts import discarded
from shearpin.adapters.boundary.exhaustion import over_failures
from shearpin.adapters.chanting import listener_of
from shearpin.adapters.messages import requests_of
from shearpin.adapters.money.metering import spending_of
from shearpin.adapters.money.rulings import Refused
from shearpin.adapters.money.settling import Chunks, Outcome, fact_usage, outcome_of
from shearpin.adapters.money.spending import Closed
from shearpin.adapters.money.starting import ModelStart
from shearpin.adapters.outcomes import result_of, status_of_error
from shearpin.adapters.places import Place, place_of
from shearpin.adapters.quiet import quieten
from shearpin.adapters.refusing import goes_on
from shearpin.adapters.run import OpenCall, Run
from shearpin.adapters.signals import HardStop, PausingStop, Stop, stop_in
from shearpin.boundary.inner import calls_within
from shearpin.events import CallStatus, ModelCalled, ModelReturned, ToolCalled, ToolReturned
from shearpin.verdicts import PROCEED, Halt, Verdict

__all__ = ["HANDLER", "CallLayer", "current_run"]

T = TypeVar("T")


class CallLayer(BaseCallbackHandler):
    """The callback handler of one run."""

    raise_error = True
    run_inline = True
    ignore_chain = True  # pyright: ignore[reportIncompatibleMethodOverride,reportAssignmentType]
    ignore_retriever = True  # pyright: ignore[reportIncompatibleMethodOverride,reportAssignmentType]

    def __init__(self, run: Run) -> None:
        self.run = run
        self._listener = listener_of(run)

    # -- models ---------------------------------------------------------------------------------

    def on_chat_model_start(
        self,
        serialized: object,
        messages: Sequence[Sequence[BaseMessage]],
        *,
        run_id: UUID,
        metadata: Mapping[str, object] | None = None,
        **kwargs: object,
    ) -> None:
        """A chat model is about to be called; raises `Stop` where it must not."""
        prompt = messages[0] if messages else ()
        self._model_starts(run_id, metadata or {}, prompt, kwargs.get("invocation_params"))

    def on_llm_start(
        self,
        serialized: object,
        prompts: Sequence[str],
        *,
        run_id: UUID,
        metadata: Mapping[str, object] | None = None,
        **kwargs: object,
    ) -> None:
        """A text model is about to be called; raises `Stop` where it must not."""
        prompt = prompts[0] if prompts else ""
        self._model_starts(run_id, metadata or {}, prompt, kwargs.get("invocation_params"))

    def on_llm_new_token(
        self, token: object, *, run_id: UUID, chunk: object = None, **kwargs: object
    ) -> None:
        """A part of an answer: its report of usage may be the whole so far."""
        if self._listener is not None:
            self._listener.hear(run_id, token)
        usage = getattr(getattr(chunk, "message", None), "usage_metadata", None)
        opened = self.run.open.get(run_id) if usage else None
        if opened is not None:
            opened.chunks = opened.chunks or Chunks()
            opened.chunks.take(cast("Mapping[str, object]", usage))

    def on_llm_end(self, response: LLMResult, *, run_id: UUID, **kwargs: object) -> None:
        """A model has answered."""
        halt = self._contained("on_llm_end", lambda: self._model_ends(response, run_id), None)
        if halt is not None:
            raise Stop(halt)

    def on_llm_error(self, error: BaseException, *, run_id: UUID, **kwargs: object) -> None:
        """A model call has failed, or its stream was closed."""
        response = kwargs.get("response")
        if self._listener is not None:
            response = self._listener.received(run_id, response)
        self._contained("on_llm_error", lambda: self._model_fails(run_id, error, response), None)

    def _model_starts(
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
            begun = start
            refused = self._contained(where, lambda: begun.spending.open_model(begun), None)
            start = self._contained(where, lambda: self._opened(begun, refused), None)
        if start is not None:
            self._refuse(*start)

    def _announced(
        self,
        run_id: UUID,
        metadata: Mapping[str, object],
        prompt: Sequence[BaseMessage] | str,
        params: object,
    ) -> ModelStart | tuple[Halt, Place] | None:
        """Tell the core of a call; what is to be asked of the budget, or why it must not be."""
        run, place = self.run, place_of(metadata)
        if run.closed:
            return None if run.halted is None else (run.halted, place)
        call = run.numbers.model_call(place.task or run.id)
        named = metadata.get("ls_model_name")
        model = named if isinstance(named, str) else None
        run.speakers.add((place.agent, place.node))
        run.models += 1
        calls_within()
        verdict = run.before(ModelCalled(run.now(), call, place.agent, place.node, model))
        if run.boundary is not None and verdict is PROCEED:
            verdict = over_failures(run, run.boundary, place) or verdict
        if isinstance(verdict, Halt):
            return verdict, place
        spending = spending_of(run)
        run.open[run_id] = OpenCall(call, place.agent, place.node, model or "", spending=spending)
        if spending is None:
            return None
        known = cast("Mapping[str, object]", params) if isinstance(params, Mapping) else None
        return ModelStart(run_id, prompt, known, metadata, place, call, run.step, spending)

    def _opened(self, start: ModelStart, refused: Refused | None) -> tuple[Halt, Place] | None:
        """The budget has answered."""
        if refused is None:
            return None
        del self.run.open[start.id]
        return refused.halt, start.place

    def _model_ends(self, response: LLMResult, run_id: UUID) -> Halt | None:
        opened = self.run.open.pop(run_id, None)
        if opened is None:
            return None
        found = outcome_of(response, opened.chunks, priced=opened.spending is not None)
        closed = Closed(found.usage)
        if opened.spending is not None:
            closed = opened.spending.close_model(str(run_id), found, self.run.step + 1)
        return self._model_ended(opened, found, closed)

    def _model_ended(self, opened: OpenCall, found: Outcome, closed: Closed) -> Halt | None:
        """Tell the core of an answer that is settled."""
        for nudge in closed.nudges:
            self.run.keep(nudge)
        usage, model = found.told or fact_usage(closed.usage), opened.name or None
        fact = ModelReturned(
            self.run.now(), opened.call, opened.agent, opened.node, usage=usage, model=model
        )
        if discarded(found.message):  # paid for, but no step of the agent
            self.run.after(fact._replace(status="error"))
            return closed.halt
        requests = requests_of(found.message) if found.message is not None else ()
        if requests:
            self.run.numbers.asked({request.id for request in requests})
        self.run.after(fact._replace(text=found.text, requests=requests))
        return closed.halt

    def _model_fails(self, run_id: UUID, error: BaseException, response: object) -> None:
        opened = self.run.open.pop(run_id, None)
        if opened is not None:
            if opened.spending is not None:
                partial = response if isinstance(response, LLMResult) else None
                opened.spending.fail_model(str(run_id), error, partial, opened.chunks)
            at, model = self.run.now(), opened.name or None
            failed = ModelReturned(at, opened.call, opened.agent, opened.node, model=model)
            self.run.after(failed._replace(status="error"))
            if self.run.boundary is not None:
                self.run.ways.readmits(opened.agent, opened.node)

    # -- tools ----------------------------------------------------------------------------------

    def on_tool_start(
        self,
        serialized: Mapping[str, object] | None,
        input_str: str,
        *,
        run_id: UUID,
        metadata: Mapping[str, object] | None = None,
        inputs: Mapping[str, object] | None = None,
        **kwargs: object,
    ) -> None:
        """A tool is about to run; raises `Stop` where it must not.

        A block cannot be answered from here: the call runs, and is noted as not held back.
        """

        def report() -> tuple[Verdict, Place]:
            run, place = self.run, place_of(metadata)
            if run.closed:  # stray work is none of our business, unless the run was stopped
                return run.halted or PROCEED, place
            name = str((serialized or {}).get("name") or kwargs.get("name") or "tool")
            args = inputs if inputs is not None else input_str
            call = run.numbers.tool_call(
                place.task or run.id, name, args, kwargs.get("tool_call_id")
            )
            if call in run.answering:
                run.open[run_id] = OpenCall(call, place.agent, place.node, name, args, held=True)
                halt = run.stopped
                return (PROCEED if halt is None or goes_on(run, call) else halt), place
            calls_within()
            run.open[run_id] = OpenCall(call, place.agent, place.node, name, args)
            verdict = run.before(ToolCalled(run.now(), call, name, args, place.agent, place.node))
            if isinstance(verdict, Halt):
                del run.open[run_id]
                return verdict, place
            if verdict is not PROCEED:
                run.not_carried_out(verdict)
            spending = run.open[run_id].spending = spending_of(run)
            if spending is not None:
                given = str(kwargs.get("tool_call_id") or "")
                block = spending.open_tool(call, name, given, place, run.step)
                if block is not None:  # no answer can be given from here, and a limit is a limit
                    del run.open[run_id]
                    return spending.rulings.stop_for(block, place).halt, place
            return verdict, place

        verdict, place = self._contained("on_tool_start", report, (PROCEED, Place("", "", "")))
        if isinstance(verdict, Halt):
            self._refuse(verdict, place)
        elif self.run.boundary is not None:
            from shearpin.adapters.boundary.unanswered import begins

            begins(self.run, self.run.boundary, run_id, metadata)

    def on_tool_end(self, output: object, *, run_id: UUID, **kwargs: object) -> None:
        """A tool has answered."""

        def report() -> None:
            status: CallStatus = "success"
            if isinstance(output, ToolMessage):
                status = "error" if output.status == "error" else "success"
            self._tool_ends(run_id, result_of(output), status)

        if self.run.boundary is not None:
            from shearpin.adapters.boundary.unanswered import ends

            ends(self.run, self.run.boundary, run_id, output)
        self._contained("on_tool_end", report, None)

    def on_tool_error(self, error: BaseException, *, run_id: UUID, **kwargs: object) -> None:
        """A tool has failed. Interrupts and our own stops are no answers."""

        if self.run.boundary is not None:
            from shearpin.adapters.boundary.unanswered import fails

            fails(self.run, self.run.boundary, run_id, error)

        def report() -> None:
            if isinstance(error, GraphBubbleUp) or stop_in(error) is not None:
                opened = self.run.open.pop(run_id, None)
                if opened is not None and opened.spending is not None:
                    opened.spending.drop_tool(opened.call)
            else:
                self._tool_ends(run_id, str(error) or type(error).__name__, status_of_error(error))

        self._contained("on_tool_error", report, None)

    def _tool_ends(self, run_id: UUID, result: object, status: CallStatus) -> None:
        opened = self.run.open.pop(run_id, None)
        if opened is None:
            return
        if opened.held:
            if opened.call in self.run.answering:
                self.run.answering[opened.call] = status
            return
        args = opened.args
        if opened.spending is not None:
            place = Place("", opened.agent, opened.node)
            for nudge in opened.spending.close_tool(opened.call, opened.name, place, self.run.step):
                self.run.keep(nudge)
        self.run.after(
            ToolReturned(
                self.run.now(),
                opened.call,
                opened.name,
                args if isinstance(args, (Mapping, str)) else str(args),  # pyright: ignore[reportUnknownArgumentType]
                result,
                status,
                opened.agent,
                opened.node,
            )
        )

    # -- shared ---------------------------------------------------------------------------------

    def _refuse(self, halt: Halt, place: Place) -> None:
        if not self.run.redirects:
            raise PausingStop(halt)
        if self.run.refusal(place.task) > 1:
            raise HardStop(halt)
        raise Stop(halt)

    def _contained(self, where: str, act: Callable[[], T], otherwise: T) -> T:
        try:
            return act()
        except Exception as error:
            self.run.fault(f"calls.{where}", error)
            return otherwise


HANDLER: ContextVar[CallLayer | None] = ContextVar("shearpin_run", default=None)
"""The call layer of the run that this code belongs to."""


def current_run() -> Run | None:
    """The run that this code belongs to, unless it is over."""
    handler = HANDLER.get()
    if handler is None or handler.run.closed:
        return None
    return handler.run


register_configure_hook(HANDLER, inheritable=False)
quieten()

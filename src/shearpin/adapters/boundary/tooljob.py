"""One tool call within an error boundary: what its host adds to it, and how it is answered.

Contract: what the tool gives back where it works is the answer, as it is. An answer that the host
or the tool itself has made of a failure stays, too. All else becomes a `ToolMessage` under the id
of the call, with the result in its artifact.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, cast

from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool
from langgraph import errors
from langgraph.errors import GraphBubbleUp

from shearpin.adapters.boundary.bounds import Bounds
from shearpin.adapters.boundary.innermost import guarded_within
from shearpin.adapters.boundary.packing import pack, unpack
from shearpin.adapters.boundary.spelling import as_read
from shearpin.adapters.boundary.toolroom import ToolRoom
from shearpin.adapters.boundary.unanswered import run_again
from shearpin.adapters.money.metering import cut_in
from shearpin.adapters.money.timing import CutOff, atimed, timed
from shearpin.adapters.outcomes import is_about_arguments, message_in
from shearpin.adapters.run import Run
from shearpin.adapters.signals import Stop, stop_in
from shearpin.boundary.calls import CallInfo, Hooks, recorded
from shearpin.boundary.categories import ErrorCategory
from shearpin.boundary.inner import Inner, attempt_within, calls_within
from shearpin.boundary.results import ResultArtifact, ToolResult
from shearpin.boundary.runner import ToolCallRunner
from shearpin.boundary.settings import Fallback, Retries
from shearpin.boundary.steps import CancelledWithinError, Perform
from shearpin.errors import EffectRefusedError

if TYPE_CHECKING:
    from shearpin.adapters.toolcalls import Asked

__all__ = ["Job"]

_invalid_resume = cast(
    "Callable[[BaseException], bool] | None", getattr(errors, "is_invalid_resume", None)
)


class _NoRoomError(Exception):
    """A fallback was not called, because the budget has no room for it."""


def _never(error: BaseException) -> bool:
    return False


class Job:
    """One tool call within a boundary.

    Attributes:
        acts: whether anything may be done about it, besides counting.
        info: the call, host-free.
        policy: what is done about the tool.
        room: in the budget.
        made: attempts so far.
        given: what the tool gave back, if it did not raise.
        raised: what it has raised last.
    """

    def __init__(
        self, run: Run, bounds: Bounds, asked: Asked, runner: ToolCallRunner, *, loop: bool
    ) -> None:
        self.run = run
        self.runner = runner
        self.bounds = bounds
        self.asked = asked
        self.loop = loop
        node = asked.place.node
        self.acts = bounds.acts(asked.request.name, node) and not run.leaves_alone(node)
        self.policy = bounds.boundary.policy(asked.request.name)
        self.room = ToolRoom(run, asked.spending, asked.call, asked.place)
        self.made = 0
        self.info = self._call(asked.request.name, asked.call)
        if self.policy.effect is not None:
            self.info = replace(self.info, read=as_read(asked.tool, self.info.args))
        effect = recorded(self.info, self.policy) is not None
        self.inner = Inner(asked.request.name if effect else "")
        self.given: list[object] = []
        self.raised: BaseException | None = None
        calls_within()  # of the tool call that this one is made in, if there is one

    def _call(self, tool: str, call: str) -> CallInfo:
        """A call of a tool with the arguments at hand, host-free."""
        given = self.asked.request.args
        args = given if isinstance(given, Mapping) else {"input": given}
        facts = self.run.state.judge.ask(lambda session: session.settings.tools.get(tool), None)
        return CallInfo(tool, args, call, self.bounds.thread, facts)

    @property
    def begun(self) -> bool:
        """Whether the tool was run, or must not be run without its record."""
        return self.made > 0 or self.policy.effect is not None

    def observed(self, error: BaseException) -> None:
        """A failure in a mode that does not act: counted."""
        if not self.passes(error):
            self.bounds.tally.error(self.bounds.classify(error), tool=self.asked.request.name)

    # -- attempts -------------------------------------------------------------------------------

    def attempt(self, execute: Callable[[], Any]) -> Any:
        """Run the tool once."""
        self._begins()
        with attempt_within(self.inner), self._watched():
            try:
                given = timed(self.asked.spending, self.asked.request.name, execute)
            except BaseException as error:
                self.raised = self._behind(error)
                if self.raised is error:
                    raise
            else:
                self.given.append(given)
                return given
        raise self.raised  # not within the other one: what it comes from is its own

    async def aattempt(self, execute: Callable[[], Awaitable[Any]]) -> Any:
        """`attempt`, for asynchronous tools."""
        self._begins()
        with attempt_within(self.inner), self._watched():
            try:
                given = await atimed(self.asked.spending, self.asked.request.name, execute)
            except BaseException as error:
                self.raised = self._behind(error)
                if self.raised is error:
                    raise
            else:
                self.given.append(given)
                return given
        raise self.raised  # not within the other one: what it comes from is its own

    def bare(self, execute: Callable[[], Any]) -> Any:
        """Run the tool as if there were no boundary."""
        self.made += 1
        return timed(self.asked.spending, self.asked.request.name, execute)

    async def abare(self, execute: Callable[[], Awaitable[Any]]) -> Any:
        """`bare`, for asynchronous tools."""
        self.made += 1
        return await atimed(self.asked.spending, self.asked.request.name, execute)

    def _behind(self, error: BaseException) -> BaseException:
        """What the tool has raised, where a layer of the host's was kept from running it again."""
        refused = isinstance(error, EffectRefusedError) and error.reason == "outcome_unknown"
        return (self.inner.raised or error) if refused else error

    def _watched(self) -> AbstractContextManager[None]:
        request = self.asked.request
        refusal = partial(run_again, self.bounds, self.info)
        return guarded_within(self.run, request.name, request.id, refusal)

    def _begins(self) -> None:
        halt = self.run.stopped if self.made > 0 else None
        if halt is not None:  # the run was stopped during the wait
            raise Stop(halt)
        self.made += 1

    # -- hooks ----------------------------------------------------------------------------------

    @property
    def hooks(self) -> Hooks:
        """What this host adds to the call."""
        return Hooks(
            passes=self.passes,
            foreign=self._foreign,
            unrun=is_about_arguments,
            handled=self._handled,
            composite=lambda: self.inner.calls > 0,
            admit=partial(self.room.admit, self.asked.request.name),
            perform=self._perform,
            pack=pack,
            unpack=lambda value: unpack(value, self.asked.request.id),
            waiting=self.room.waiting,
        )

    def passes(self, error: BaseException) -> bool:
        """Whether an error is none of the boundary's business, but of the run or its host."""
        if isinstance(error, (CutOff, GraphBubbleUp)) or stop_in(error) is not None:
            return True
        if _invalid_resume is not None and _invalid_resume(error):
            return True
        return cut_in(self.run, error) is not None

    def _foreign(self, error: BaseException) -> bool:
        return error is not self.raised and not isinstance(error, CancelledWithinError)

    def _handled(self, output: object) -> BaseException | ToolResult | bool | None:
        message = message_in(output, self.asked.request.id)
        if message is None:
            return None
        if message.status != "error":
            given = self.inner.given  # of a resilient function: its result came out as a text
            if given is None or given.success:
                return None
            said = str(message.content)  # pyright: ignore[reportUnknownMemberType,reportUnknownArgumentType]
            return given if said == given.text() else None
        artifact = cast("object", message.artifact)
        if isinstance(artifact, ResultArtifact):
            return artifact.result
        if self.inner.raised is None and not self.inner.started:
            name = self.asked.request.name  # the host has not even asked the tool
            return ToolResult(False, ErrorCategory.DEGRADABLE, name, error_type="refused")
        return self.inner.raised or True

    def _perform(self, fallback: Fallback) -> Perform | None:
        tool, request = cast("object", fallback), self.asked.request
        if not isinstance(tool, BaseTool):
            return None
        call: Any = {"type": "tool_call", "name": tool.name, "args": request.args}
        invoke = tool.ainvoke if self.loop else tool.invoke

        def execute() -> Any:
            if not self.room.hold(tool.name):
                raise _NoRoomError(f"the budget has no room for {tool.name}")
            return invoke({**call, "id": request.id}, cast("Any", self.asked.config))

        # Once, and with what is said about it: its effects and whether it counts as down.
        policy = self.bounds.boundary.policy(tool.name)
        policy = replace(policy, fallbacks=(), retries=Retries(attempts=1))
        info = self._call(tool.name, f"{self.asked.call}/{tool.name}")
        if policy.effect is not None:
            info = replace(info, read=as_read(tool, info.args))
        run = self.runner.arun if self.loop else self.runner.run
        hooks = replace(self.hooks, foreign=_never)
        return Perform(lambda: run(info, execute, policy, hooks))

    # -- the answer -----------------------------------------------------------------------------

    def answer(self, result: ToolResult) -> Any:
        """What the host gets: the output as it is, or an answer that says what has failed."""
        output, language = result.output, self.bounds.language
        if not result.success:
            # An answer that the host has made of the failure, unless it invites to do again what
            # may have happened.
            invites = result.outcome_unknown and self.inner.raised is not None
            result_of_its_own = isinstance(output, ToolMessage) and output.status != "error"
            given = output is not None and not invites and not result_of_its_own
            return output if given else self._message(result.text(language), "error", result)
        answered = message_in(output, self.asked.request.id)
        if result.degraded is None:
            whole = answered is not None or result.attempts > 0
            return output if whole else self._message(result.text(language), "success", result)
        if not isinstance(output, ToolMessage):
            if answered is not None:
                return output  # a command with the answer in it
            return self._message(result.text(language), "success", result)
        content: Any = output.content  # pyright: ignore[reportUnknownMemberType]
        if isinstance(content, str):
            text: Any = replace(result, output=content).text(language)
        else:
            note = replace(result, output="").text(language).strip()
            text = [{"type": "text", "text": note}, *content]
        artifact = ResultArtifact(replace(result, output=content))
        name = self.asked.request.name
        return output.model_copy(update={"content": text, "name": name, "artifact": artifact})

    def _message(
        self, text: str, status: Literal["success", "error"], result: ToolResult
    ) -> ToolMessage:
        request = self.asked.request
        return ToolMessage(
            content=text,
            name=request.name,
            tool_call_id=request.id,
            status=status,
            artifact=ResultArtifact(result),
        )

"""One model call of a middleware that no guarded graph is around: what a graph would do there.

Contract: the state goes back to before a loop, people are asked in a pause, and what they have
refused is not proposed to them again. What has to be saved goes into the history with the model's
answer, as one update of the node's own. A refused call is taken out of an answer before the other
middleware of the agent can ask about it; every call that stays in the history has its answer.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from langchain.agents.middleware.types import ModelResponse
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, RemoveMessage, ToolMessage
from langgraph.types import interrupt

from shearpin.adapters.langchain.tenancy import ambient_config
from shearpin.adapters.langgraph.compat import REMOVE_ALL
from shearpin.adapters.langgraph.compat_said import (
    Said,
    asaid_before,
    invocation_of,
    said_before,
    said_to,
)
from shearpin.adapters.langgraph.lending import history_key
from shearpin.adapters.langgraph.pausing import granted, instruction_in, payload
from shearpin.adapters.lastwords import rollback_message, with_calls
from shearpin.adapters.messages import answer, content_text, request_for, requests_of
from shearpin.adapters.people import is_refusal
from shearpin.adapters.places import place_of
from shearpin.adapters.refusing import note_refusal, proposed_again
from shearpin.adapters.run import Run
from shearpin.adapters.signals import Stop
from shearpin.errors import ConfigError
from shearpin.events import ToolRequest, ToolReturned
from shearpin.recipe import Guard
from shearpin.verdicts import Halt, Rollback

__all__ = ["Alone", "check_alone", "hear_answer"]

if TYPE_CHECKING:
    from shearpin.adapters.langchain.requests import AnyRequest, AnyResponse

_SPACE = uuid.UUID("6a0f3f0e-52a4-5f5c-9a55-0d8f0a3c77b1")
_LOOK_BACK = 32
_DECISIONS = "decisions"
_REJECTED = "User rejected the tool call"


def check_alone(recipe: Guard) -> None:
    """Refuse what a middleware cannot do.

    Raises:
        ConfigError: names the option and the fix.
    """
    if (recipe.on_loop or "").startswith("node:"):
        raise ConfigError(
            f"on_loop={recipe.on_loop!r} cannot be done by GuardMiddleware: a middleware has no "
            "other node to lead its agent to; give it to guard(agent, ...), which the middleware "
            "then joins, or use 'rollback', 'without_tool' or 'model:NAME'"
        )


def hear_answer(run: Run, call: Mapping[str, Any], config: Mapping[str, Any]) -> None:
    """A tool has answered that may have asked a person: remember a no."""
    try:
        if any(is_refusal(said) for said in said_to(config)):
            request = ToolRequest(
                str(call.get("id") or ""), str(call["name"]), call.get("args") or {}
            )
            note_refusal(run, request)
    except Exception as error:
        run.fault("alone.hear_answer", error)


class Alone:
    """See the module's contract. It lives for one execution of the agent's model node."""

    def __init__(self, run: Run, request: AnyRequest) -> None:
        self.run = run
        self.request = request
        config = ambient_config()
        place = place_of(config.get("metadata"))
        self._key = history_key(config.get("metadata"))
        self._task, self._node, self._agent = place.task, place.node, place.agent
        self._invocation = invocation_of(config)
        self._lead: list[BaseMessage] = []

    # -- before the model is asked ----------------------------------------------------------------

    def begin(self) -> None:
        """Hear what people have refused, and go back to before a loop, if that is due."""
        try:
            if self._not_run():  # a person's no?
                self._hear(said_before(ambient_config()))
            self._go_back()
        except Exception as error:
            self.run.fault("alone.begin", error)

    async def abegin(self) -> None:
        """`begin`, for asynchronous agents."""
        try:
            if self._not_run():
                self._hear(await asaid_before(ambient_config()))
            self._go_back()
        except Exception as error:
            self.run.fault("alone.begin", error)

    def _hear(self, said: Said) -> None:
        """Remember which of the calls that were not run people have refused.

        Where the answer of the person is not saved yet, it is enough that the run was paused since
        the model asked for them, or that LangChain's words say so.
        """
        ways = self.run.ways
        paused = ways.invocation is not None and ways.invocation is not self._invocation
        refused = {
            message.tool_call_id: is_refusal(told)
            or (isinstance(told, dict) and _DECISIONS in told)
            for told, answers in said
            for message in answers
        }
        for request, message in self._not_run():
            text = content_text(message.content)  # pyright: ignore[reportUnknownMemberType]
            if refused.get(request.id, paused or text.startswith(_REJECTED)):
                note_refusal(self.run, request, self._node)
                self._report(request, text, "error")

    def _go_back(self) -> None:
        run, messages = self.run, self._messages()
        if not run.ways.may("rollback"):
            return
        due = run.ways.diversion
        if isinstance(due, Rollback) and due.finding.agent == self._agent:
            run.ways.diversion = None
            seen = run.ways.before(self._key, due.to_step, frozenset({self._node}))
            if seen is None:
                run.not_carried_out(due)
            else:
                before = cast("list[BaseMessage]", seen.input)
                messages = [*before, rollback_message(run.id, due)]
                self._lead = [RemoveMessage(id=REMOVE_ALL), *messages]
                self._ask(messages)
        run.ways.visit(self._key, run.step, self._node, messages)

    def paused(self, halt: Halt) -> Halt | None:
        """Ask a person, where that is wanted; None where the run may go on."""
        ways = self.run.ways
        if ways.on_stop != "pause" or self._task in ways.paused:
            return halt
        said = interrupt(payload(self.run, halt))
        ways.paused.add(self._task)
        told = instruction_in(said)
        if (said != "continue" and told is None) or not granted(self.run):
            return halt
        if told is not None:
            self._add(HumanMessage(told))
        return None

    # -- after it has answered ---------------------------------------------------------------------

    def takes(self, response: AnyResponse) -> AnyResponse | None:
        """The answer, with what goes into the history before it; None: ask the model again.

        Raises:
            Stop: what people have refused was proposed too often.
        """
        try:
            return self._taken(response)
        except Stop:
            raise
        except Exception as error:
            self.run.fault("alone.takes", error)
            return response

    def _taken(self, response: AnyResponse) -> AnyResponse | None:
        self.run.ways.invocation = self._invocation
        given = [response] if isinstance(response, AIMessage) else list(response.result)
        asking = given[0] if len(given) == 1 else None
        if self.run.state.people.have_refused and isinstance(asking, AIMessage):
            answers = self._refused_again(asking)
            if answers:
                refused = {message.tool_call_id for message in answers}
                left = [call["id"] for call in asking.tool_calls if call["id"] not in refused]
                if not left:
                    self._add(asking, *answers)
                    return None
                self._lead += [with_calls(asking, refused), *answers]
                key = str(uuid.uuid5(_SPACE, f"{asking.id}:{left}"))
                rest = with_calls(asking, {str(it) for it in left}, text=False)
                given = [rest.model_copy(update={"id": key, "usage_metadata": None})]
        if not self._lead and given[0] is asking:
            return response
        structured = None if isinstance(response, AIMessage) else response.structured_response
        return ModelResponse(
            result=cast("Any", [*self._lead, *given]), structured_response=structured
        )

    def _refused_again(self, asking: AIMessage) -> list[ToolMessage]:
        run, answers = self.run, list[ToolMessage]()
        for request in requests_of(asking):
            mark = f"{self._task}:{request.id}:{len(self._lead)}"
            verdict = proposed_again(run, request, mark, self._agent)
            if isinstance(verdict, Halt):
                raise Stop(verdict)
            if verdict is not None:
                self._report(request, None, "blocked")
                times = run.numbers.times(request.id)
                answers.append(answer(run.id, request, verdict.message, times))
        return answers

    # -- shared -----------------------------------------------------------------------------------

    def _messages(self) -> list[BaseMessage]:
        return list(cast("Sequence[BaseMessage]", self.request.messages))

    def _add(self, *messages: BaseMessage) -> None:
        self._lead += messages
        self._ask([*self._messages(), *messages])

    def _ask(self, messages: list[BaseMessage]) -> None:
        self.request = self.request.override(messages=cast("Any", messages))

    def _not_run(self) -> list[tuple[ToolRequest, ToolMessage]]:
        recent, found = self._messages()[-_LOOK_BACK:], list[tuple[ToolRequest, ToolMessage]]()
        for message in reversed(recent):
            if not isinstance(message, ToolMessage):
                break
            if message.status == "error":
                request = request_for(message.tool_call_id, recent)
                if request is not None and not self.run.numbers.knows(request.id, request.name):
                    found.append((request, message))
        return found

    def _report(self, request: ToolRequest, result: object, status: Any) -> None:
        run = self.run
        call = run.numbers.tool_call(self._task, request.name, request.args, request.id)
        run.after(
            ToolReturned(
                run.now(), call, request.name, request.args, result, status, self._agent, self._node
            )
        )

"""The last answer of a stopped run, where it is a middleware that asks for it.

Contract: as in a graph's own landing: one model call, without tools; what comes of it is one last
message that asks for nothing, the model's or ours. Within a guarded graph that graph does the rest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage

from shearpin.adapters.calls import current_run
from shearpin.adapters.langchain.tenancy import ambient_config
from shearpin.adapters.lastwords import as_last_word, wrap_up_message
from shearpin.adapters.messages import unanswered
from shearpin.adapters.places import place_of
from shearpin.adapters.run import Run
from shearpin.verdicts import Halt

__all__ = ["final_answer", "final_request", "with_other_model", "without_tools"]

if TYPE_CHECKING:
    from shearpin.adapters.langchain.requests import AnyRequest, AnyResponse


def final_request(run: Run, request: AnyRequest, halt: Halt) -> AnyRequest | None:
    """The request for the last answer; None where none is to be asked for."""
    try:
        place = place_of(ambient_config().get("metadata"))
        if run.ways.lands(place.agent, place.node):
            return request.override(tools=[], tool_choice=None)
        if current_run() is not None or run.closed or run.ways.landed:
            return None
        messages = cast("list[BaseMessage]", request.messages)
        if run.ways.on_stop != "wrap_up" or unanswered(messages):
            return None
        run.ways.land(place.agent, place.node)
        run.ways.by_middleware = True
        note = wrap_up_message(run.id, halt, run.state.judge.session.settings)
        told = cast("Any", [*messages, note])
        return request.override(messages=told, tools=[], tool_choice=None)
    except Exception as error:
        run.fault("middleware.landing", error)
        return None


def final_answer(run: Run, response: AnyResponse, halt: Halt) -> AnyResponse | None:
    """The model's last answer, made honest; None where it gave none."""
    if not run.ways.by_middleware:
        return response
    run.ways.landing = None
    given = [response] if isinstance(response, AIMessage) else response.result
    for message in reversed(given):
        if isinstance(message, AIMessage):
            return as_last_word(run.id, message, halt)
    return None


def with_other_model(run: Run, agent: str, request: AnyRequest) -> AnyRequest:
    """The request to another model, where one is due to an agent."""
    if not run.ways.models:
        return request
    name = run.state.judge.ask(lambda session: session.model_for(agent), None)
    other = run.ways.models.get(name) if name is not None else None
    if not isinstance(other, BaseChatModel):
        return request
    run.ways.exchanged(agent)
    return request.override(model=other)


def without_tools(run: Run, agent: str, request: AnyRequest) -> AnyRequest:
    """The request without the tools that were taken away from an agent."""
    if not run.ways.may("without_tool"):
        return request
    gone = run.state.judge.ask(lambda session: session.without(agent), frozenset[str]())
    if not gone:
        return request
    kept = [tool for tool in request.tools if _name(tool) not in gone]
    return request.override(tools=kept) if len(kept) < len(request.tools) else request


def _name(tool: object) -> str:
    if isinstance(tool, dict):
        declared = cast("dict[str, Any]", tool)
        inner = declared.get("function")
        return str(
            (cast("dict[str, Any]", inner) if isinstance(inner, dict) else declared).get("name")
        )
    return str(getattr(tool, "name", ""))

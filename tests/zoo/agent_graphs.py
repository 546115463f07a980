"""Exhibits of agents: LangChain's own, and those of the libraries that build on it."""

from __future__ import annotations

from typing import Annotated, Any

from langchain.agents import create_agent
from langchain.agents.middleware import (
    AgentMiddleware,
    HumanInTheLoopMiddleware,
    ModelCallLimitMiddleware,
    ToolRetryMiddleware,
)
from langchain.agents.structured_output import ToolStrategy
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import InjectedToolCallId, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from pydantic import BaseModel

from tests.zoo.exhibit import Exhibit, Graph
from tests.zoo.models import call, script

human = HumanMessage("compare the weather", id="h1")
more = HumanMessage("once more", id="h2")
turns = ({"messages": [human]}, {"messages": [more]})


@tool
def weather(city: str) -> str:
    """The weather in a city."""
    return f"sunny in {city}"


@tool
def broken(city: str) -> str:
    """Always fails."""
    raise ValueError(f"no weather for {city}")


@tool(return_direct=True)
def final(text: str) -> str:
    """Ends the run with its text."""
    return text


@tool
def note(text: str, tool_call_id: Annotated[str, InjectedToolCallId]) -> Command[Any]:
    """Writes to the state itself."""
    return Command(update={"messages": [ToolMessage(f"noted {text}", tool_call_id=tool_call_id)]})


def two_rounds() -> Any:
    return script(
        AIMessage("I look at two", tool_calls=[call("weather", "1", city="Rome")]),
        AIMessage(
            "", tool_calls=[call("weather", "2", city="Oslo"), call("weather", "3", city="Bonn")]
        ),
        AIMessage("it is sunny everywhere"),
    )


class Watching(AgentMiddleware[Any, Any]):
    """Uses every hook, and changes what passes."""

    def before_agent(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        return {"messages": [HumanMessage("be brief", id="brief")]}

    def before_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        return None

    def after_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        return None

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        return handler(request)

    async def awrap_model_call(self, request: Any, handler: Any) -> Any:
        return await handler(request)

    def wrap_tool_call(self, request: Any, handler: Any) -> Any:
        answer = handler(request)
        return answer.model_copy(update={"content": f"[{answer.content}]"})

    async def awrap_tool_call(self, request: Any, handler: Any) -> Any:
        answer = await handler(request)
        return answer.model_copy(update={"content": f"[{answer.content}]"})


class Verdict(BaseModel):
    """A structured answer."""

    city: str
    sunny: bool


def agent() -> Graph:
    return create_agent(
        two_rounds(), [weather], system_prompt="You are short.", checkpointer=InMemorySaver()
    )


def watched() -> Graph:
    return create_agent(
        two_rounds(),
        [weather],
        middleware=[Watching(), ModelCallLimitMiddleware(thread_limit=20)],
        checkpointer=InMemorySaver(),
        name="watched",
    )


def approved() -> Graph:
    return create_agent(
        two_rounds(),
        [weather],
        middleware=[HumanInTheLoopMiddleware({"weather": True})],
        checkpointer=InMemorySaver(),
    )


def decide(*kinds: str) -> Command[Any]:
    return Command(resume={"decisions": [{"type": kind} for kind in kinds]})


def structured() -> Graph:
    model = script(
        AIMessage("", tool_calls=[call("weather", "1", city="Rome")]),
        AIMessage("", tool_calls=[call("Verdict", "2", city="Rome", sunny="perhaps")]),
        AIMessage("", tool_calls=[call("Verdict", "3", city="Rome", sunny=True)]),
    )
    return create_agent(
        model, [weather], response_format=ToolStrategy(Verdict), checkpointer=InMemorySaver()
    )


def failing_tool(*middleware: Any) -> Graph:
    model = script(AIMessage("", tool_calls=[call("broken", "1", city="Rome")]), "no weather")
    return create_agent(model, [broken], middleware=middleware, checkpointer=InMemorySaver())


def tool_retry() -> Graph:
    retry = ToolRetryMiddleware(
        max_retries=2, initial_delay=0.0, jitter=False, on_failure=lambda error: f"gave up: {error}"
    )
    return failing_tool(retry)


def unknown_tool() -> Graph:
    model = script(AIMessage("", tool_calls=[call("wether", "1", city="Rome")]), "no such tool")
    return create_agent(model, [weather], checkpointer=InMemorySaver())


def tools_that_act() -> Graph:
    model = script(
        AIMessage("", tool_calls=[call("note", "1", text="rain")]),
        AIMessage("", tool_calls=[call("final", "2", text="the end")]),
        "never said",
    )
    return create_agent(model, [note, final], checkpointer=InMemorySaver())


def subagent() -> Graph:
    inner = create_agent(two_rounds(), [weather], name="inner")

    @tool
    def ask(question: str) -> str:
        """Ask the weather agent."""
        given = inner.invoke({"messages": [HumanMessage(question, id="q")]})
        return str(given["messages"][-1].content)

    model = script(AIMessage("", tool_calls=[call("ask", "a", question="where?")]), "it said so")
    return create_agent(model, [ask], checkpointer=InMemorySaver(), name="outer")


def deep() -> Graph:
    from deepagents import create_deep_agent

    todo = {"content": "look", "status": "in_progress"}
    helper = {
        "name": "meteorologist",
        "description": "knows the weather",
        "system_prompt": "look it up",
        "model": two_rounds(),
        "tools": [weather],
    }
    task = {"description": "compare", "subagent_type": "meteorologist"}
    model = script(
        AIMessage("", tool_calls=[call("write_todos", "1", todos=[todo])]),
        AIMessage("", tool_calls=[call("write_file", "2", file_path="/a.txt", content="a")]),
        AIMessage("", tool_calls=[call("task", "3", **task)]),
        AIMessage("", tool_calls=[call("read_file", "4", file_path="/a.txt")]),
        "all is done",
    )
    return create_deep_agent(
        model=model, tools=[weather], subagents=[helper], checkpointer=InMemorySaver()
    )


def supervisor() -> Graph:
    from langgraph_supervisor import create_supervisor

    worker = create_agent(two_rounds(), [weather], name="worker")
    model = script(
        AIMessage("", tool_calls=[call("transfer_to_worker", "s1")]),
        AIMessage("thank you"),
        AIMessage("the worker says it is sunny"),
        AIMessage("the end"),
    )
    return create_supervisor([worker], model=model).compile(checkpointer=InMemorySaver())


def swarm() -> Graph:
    from langgraph_swarm import create_handoff_tool, create_swarm

    to_bob = create_handoff_tool(agent_name="bob")
    alice = script(AIMessage("", tool_calls=[call("transfer_to_bob", "t1")]), "hello from alice")
    bob = script("never first", "hello from bob", "bob again")
    agents = [
        create_agent(alice, [to_bob, weather], name="alice"),
        create_agent(bob, [weather], name="bob"),
    ]
    return create_swarm(agents, default_active_agent="alice").compile(checkpointer=InMemorySaver())


EXHIBITS = [
    Exhibit("agent", agent, turns),
    Exhibit("agent_middleware", watched, turns),
    Exhibit(
        "agent_approval",
        approved,
        (turns[0], decide("approve"), decide("approve", "reject"), turns[1], decide("reject")),
    ),
    Exhibit("agent_structured_output", structured, turns),
    Exhibit("agent_tool_error", failing_tool, turns, broken=True),
    Exhibit("agent_tool_retry", tool_retry, turns),
    Exhibit("agent_unknown_tool", unknown_tool, turns),
    Exhibit("agent_tools_that_act", tools_that_act, turns),
    Exhibit("agent_in_a_tool", subagent, turns),
    Exhibit("deepagents", deep, turns, needs="deepagents", since=(1, 1)),
    Exhibit("supervisor", supervisor, turns, needs="langgraph_supervisor"),
    Exhibit("swarm", swarm, turns, needs="langgraph_swarm"),
]

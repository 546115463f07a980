"""Agents of every kind that go round in circles until one certain intervention reaches them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import signature
from typing import Any, Literal

from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.tools import StructuredTool, tool
from langgraph.func import entrypoint, task
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Send

from shearpin.testing import StrictProvider, asks_for
from tests.adapters.builds import look, react_builder, within_parent

NEXT: dict[str, Any] = {"messages": [("user", "and now?")]}
"""What the user says once the first turn is over, whatever came of it."""

HEEDS: dict[str, str | None] = {
    "nudge": "got the same result each time",
    "block": "Not run: this call was asked for",
    "wrap_up": "no tool can be called any more",
    "reroute": "has been taken away",
    "model": None,
    "rollback": "have been undone",
    "pause": "look elsewhere",
    "halt": None,
    "raise": None,
}
"""The words of each intervention that the model heeds; None: it never stops by itself."""

Flavour = Literal["any", "openai", "anthropic"]


def stubborn(heeds: str | None, flavour: Flavour = "any") -> StrictProvider:
    """A model that asks for the same look until it reads certain words; then it answers.

    With its answer to a request without tools it asks for one more, as models do.
    """

    def script(messages: Sequence[BaseMessage], call: int) -> AIMessage | str:
        texts = [str(message.content) for message in messages if message.type != "ai"]
        if any("and now?" in text for text in texts):
            return "All is well."
        if heeds is not None and any(heeds in text for text in texts):
            asked = asks_for(("look", {"place": "desk"}), text="The drawer is locked.")
            return asked if heeds == HEEDS["wrap_up"] else "The drawer is locked."
        return asks_for(("look", {"place": "desk"}))

    return StrictProvider(script, flavour=flavour)


def strong(flavour: Flavour = "any") -> StrictProvider:
    """A model that sees at once what is the matter."""
    return StrictProvider(lambda messages, call: "The drawer is locked.", flavour=flavour)


def state_graph(model: StrictProvider, saver: Any) -> Any:
    return react_builder(model).compile(checkpointer=saver)


def prebuilt(model: StrictProvider, saver: Any) -> Any:
    return create_agent(model, [look], checkpointer=saver)


def deep(model: StrictProvider, saver: Any) -> Any:
    from deepagents import create_deep_agent

    create: Any = create_deep_agent
    if "checkpointer" not in signature(create).parameters:
        raise ImportError("this deepagents is too old")
    return create(model=model, tools=[look], system_prompt="Be brief.", checkpointer=saver)


def sent(model: StrictProvider, saver: Any) -> Any:
    """Two branches side by side, each an agent; one of them has nothing to do."""
    builder: StateGraph[Any] = StateGraph(MessagesState)
    builder.add_node("worker", react_builder(model).compile())

    def fan_out(state: MessagesState) -> list[Send]:
        if state["messages"][-1].content == "and now?":
            return [Send("worker", state)]
        calm = {"messages": [HumanMessage("and now?")]}
        return [Send("worker", state), Send("worker", calm)]

    builder.add_conditional_edges(START, fan_out, ["worker"])
    return builder.compile(checkpointer=saver)


def functional(model: StrictProvider, saver: Any) -> Any:
    @task
    def think(messages: list[BaseMessage]) -> Any:
        return model.invoke(messages)

    @task
    def act(call: Any) -> Any:
        return look.invoke(call)

    @entrypoint(checkpointer=saver)
    def flow(inputs: dict[str, Any]) -> str:
        messages: list[BaseMessage] = [HumanMessage(str(inputs["messages"][0][1]))]
        while True:
            answer = think(messages).result()
            messages.append(answer)
            if not answer.tool_calls:
                return str(answer.content)
            messages.extend(act(call).result() for call in answer.tool_calls)

    return flow


def supervisor(model: StrictProvider, saver: Any) -> Any:
    from langgraph_supervisor import create_supervisor

    def script(messages: Sequence[BaseMessage], call: int) -> AIMessage | str:
        if any("and now?" in str(message.content) for message in messages):
            return "All is well."
        if any(message.name == "searcher" for message in messages):
            return "The searcher says: the drawer is locked."
        return asks_for(("transfer_to_searcher", {}))

    worker = create_agent(model, [look], name="searcher")
    return create_supervisor([worker], model=StrictProvider(script)).compile(checkpointer=saver)


def swarm(model: StrictProvider, saver: Any) -> Any:
    from langgraph_swarm import create_handoff_tool, create_swarm

    first = create_agent(model, [look, create_handoff_tool(agent_name="bob")], name="alice")
    second = create_agent(StrictProvider(["never asked"]), [look], name="bob")
    return create_swarm([first, second], default_active_agent="alice").compile(checkpointer=saver)


def boss(tool_name: str, args: dict[str, Any]) -> StrictProvider:
    """A model that asks an agent behind a tool, once in a turn."""

    def script(messages: Sequence[BaseMessage], call: int) -> AIMessage | str:
        texts = [str(message.content) for message in messages if message.type != "ai"]
        if any("and now?" in text for text in texts):
            return "All is well."
        if any(str(HEEDS["wrap_up"]) in text for text in texts):
            return asks_for((tool_name, args), text="The drawer is locked.")
        if messages[-1].type == "tool":
            return "The searcher is back."
        return asks_for((tool_name, args))

    return StrictProvider(script, flavour="openai")


def in_tool(model: StrictProvider, saver: Any) -> Any:
    """An agent that a tool's function calls."""
    inner = create_agent(model, [look], name="searcher")

    @tool
    def delegate(question: str) -> str:
        """Ask the searcher."""
        answer = inner.invoke({"messages": [("user", question)]})
        return str(answer["messages"][-1].content)

    @tool
    async def adelegate(question: str) -> str:
        """Ask the searcher."""
        answer = await inner.ainvoke({"messages": [("user", question)]})
        return str(answer["messages"][-1].content)

    both = StructuredTool.from_function(
        delegate.func,  # type: ignore[attr-defined]
        coroutine=adelegate.coroutine,  # type: ignore[attr-defined]
        name="delegate",
    )
    asking = boss("delegate", {"question": "where is it?"})
    return create_agent(asking, [both], checkpointer=saver)


def deep_task(model: StrictProvider, saver: Any) -> Any:
    """A sub-agent behind the `task` tool of deepagents."""
    from deepagents import create_deep_agent

    create: Any = create_deep_agent
    if "checkpointer" not in signature(create).parameters:
        raise ImportError("this deepagents is too old")
    finder = {
        "name": "finder",
        "description": "finds things",
        "system_prompt": "Find it.",
        "tools": [look],
        "model": model,
    }
    asking = boss("task", {"description": "where is it?", "subagent_type": "finder"})
    return create(
        model=asking, tools=[], subagents=[finder], system_prompt="Be brief.", checkpointer=saver
    )


KINDS: dict[str, Callable[[StrictProvider, Any], Any]] = {
    "state_graph": state_graph,
    "create_agent": prebuilt,
    "deepagents": deep,
    "agent in a tool": in_tool,
    "deepagents task": deep_task,
    "subgraph": within_parent,
    "send": sent,
    "functional": functional,
    "supervisor": supervisor,
    "swarm": swarm,
}

IMPOSSIBLE: dict[tuple[str, str], str] = {
    (
        "nudge",
        "functional",
    ): "the prompt is a list of the function's own: nothing can be lent to it",
    ("block", "functional"): "the function calls its tool itself: nothing can answer in its place",
    (
        "model",
        "functional",
    ): "a task holds the model, and what a task does is saved for it: the guard says so at once",
    ("reroute", "functional"): "a tool is taken away by answering its calls, see block",
    ("rollback", "functional"): "what came before is in variables of the function",
    (
        "wrap_up",
        "functional",
    ): "there is no node to run once more; the run ends with the fixed text",
}
"""Cells that cannot exist, and why."""

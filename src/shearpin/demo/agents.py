"""A runaway ReAct agent: real LangGraph, a scripted model.

It reads one file, then searches the log for the same words for ever, each time with another excuse.
Nothing it is told changes its mind: what a model does that has lost the thread.
"""

# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# (the types of langgraph's own API are partly unknown)

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, SystemMessage
from langchain_core.tools import BaseTool, tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.prebuilt import ToolNode, tools_condition

from shearpin.testing import ScriptedModel, asks_for

__all__ = ["QUESTION", "react_agent", "runaway_agent"]

QUESTION: Final = "The nightly import of orders failed. Find out why and tell me how to fix it."

_INSTRUCTIONS: Final = (
    "You are a careful on-call engineer. Work step by step. Use the tools to find the cause of the "
    "incident, never guess, and answer only when the cause is certain. Quote the log lines that "
    "prove it. " * 12
)
_EXCUSES: Final = (
    "The cause must be in the log. Let me search for it.",
    "That did not show it. I will look at the log again.",
    "Let me check the log once more to be certain.",
    "I should verify this by searching the log.",
    "Perhaps I missed the line. Searching again.",
)
_LOG: Final = "\n".join(
    f"worker-{number % 4} INFO batch {number:03d} of orders read, checksum ok, queue depth normal"
    for number in range(1, 25)
)
_FILES: Final = {
    "jobs/import_orders.py": "def run(day):\n    for batch in source(day):\n        load(batch)\n"
}


@tool
def read_file(path: str) -> str:
    """Read a file of the repository."""
    return _FILES.get(path, f"no such file: {path}")


@tool
def search_log(query: str) -> str:
    """Search last night's log for a text; returns the lines around each match."""
    return f"0 lines contain {query!r}. The log, for orientation:\n{_LOG}"


def react_agent(
    model: BaseChatModel, tools: Sequence[BaseTool], instructions: str, name: str
) -> CompiledStateGraph[MessagesState]:
    """The textbook loop: call the model, run the tools it asks for, until it asks for none."""
    bound = model.bind_tools(tools)

    def agent(state: MessagesState) -> dict[str, list[AIMessage]]:
        request: list[BaseMessage] = [SystemMessage(instructions), *state["messages"]]
        return {"messages": [bound.invoke(request)]}

    builder = StateGraph(MessagesState)
    builder.add_node("agent", agent)
    builder.add_node("tools", ToolNode(tools))
    builder.add_edge(START, "agent")
    builder.add_conditional_edges("agent", tools_condition)
    builder.add_edge("tools", "agent")
    return builder.compile(name=name)


def runaway_agent(model_name: str) -> CompiledStateGraph[MessagesState]:
    """The scripted agent that never comes to an end by itself."""
    model = ScriptedModel(_next_answer, model_name=model_name)
    return react_agent(model, [read_file, search_log], _INSTRUCTIONS, "on-call agent")


def _next_answer(messages: Sequence[BaseMessage], number: int) -> AIMessage:
    if number == 1:
        path = "jobs/import_orders.py"
        return asks_for(("read_file", {"path": path}), text="I will read the job first.")
    excuse = _EXCUSES[number % len(_EXCUSES)]
    return asks_for(("search_log", {"query": "import failed"}), text=excuse)

"""What the guard's report says, for people and for programs.

Run it: python examples/read_the_report.py (no key, no network: the model is scripted)
"""

from __future__ import annotations

import json

from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

import shearpin
from shearpin.report.terminal import print_report
from shearpin.testing import ScriptedModel, asks_for


@tool
def list_files(folder: str) -> str:
    """List the files of a folder."""
    return "README.md, main.py"


# The model asks for a tool that this agent does not have, each time with other arguments.
model = ScriptedModel(
    lambda messages, number: asks_for(("open_browser", {"page": number}), text=f"Opening {number}.")
)


def agent(state: MessagesState) -> dict[str, list[AIMessage]]:
    return {"messages": [model.bind_tools([list_files]).invoke(state["messages"])]}


builder = StateGraph(MessagesState)
builder.add_node("agent", agent)
builder.add_node("tools", ToolNode([list_files]))
builder.add_edge(START, "agent")
builder.add_conditional_edges("agent", tools_condition)
builder.add_edge("tools", "agent")

app = shearpin.guard(builder.compile(name="file agent"))
app.invoke({"messages": [("user", "Find the file that sets the price.")]})

report = app.report()
print_report(report)

# The same for programs: versioned, bounded, without prompts and results.
data = report.to_json()
print(
    json.dumps({key: data[key] for key in ("version", "outcome", "reason", "finding", "evidence")})
)

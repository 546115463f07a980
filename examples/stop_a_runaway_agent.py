"""A LangChain agent that runs the failing test again and again, and one line that ends it.

Run it: python examples/stop_a_runaway_agent.py (no key, no network: the model is scripted)
"""

from __future__ import annotations

from langchain.agents import create_agent
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver

import shearpin
from shearpin.testing import ScriptedModel, asks_for


@tool
def run_tests(path: str) -> str:
    """Run the tests under a path."""
    return f"{path}: 1 failed, 11 passed. test_total: expected 42, got 41"


# A real model goes here. This one asks for the same call for ever, until the user helps.
stuck = asks_for(("run_tests", {"path": "tests"}), text="Let me run the tests once more.")
model = ScriptedModel(
    lambda messages, number: (
        "Thank you, fixed."
        if "off by one" in str(messages)
        else stuck.model_copy(
            update={"tool_calls": [{**stuck.tool_calls[0], "id": f"call_{number}"}]}
        )
    )
)

agent = create_agent(model, tools=[run_tests], checkpointer=InMemorySaver())
app = shearpin.guard(agent)

thread = {"configurable": {"thread_id": "demo"}}
result = app.invoke({"messages": [("user", "Make the tests pass.")]}, thread)
print("The run ended normally. Its last message:")
print(" ", result["messages"][-1].text)

report = app.report(thread)
print(f"Reason: {report.reason}, after {report.spend.model_calls} model calls")
for verdict in report.verdicts:
    print(f"  step {verdict.step}: {verdict.verdict} ({verdict.finding})")

# A stop is a normal end: the thread takes the next turn, and counting starts afresh.
result = app.invoke({"messages": [("user", "total() is off by one.")]}, thread)
print("Next turn:", result["messages"][-1].text)
print("Outcome:", app.report(thread).outcome)

"""An agent whose tools fail in every way, and what its boundary makes of it.

Run it: python examples/tools_that_fail.py (no key, no network: the model is scripted)
"""

from __future__ import annotations

from langchain.agents import create_agent
from langchain_core.messages import ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver

import shearpin
from shearpin import ToolFacts
from shearpin.boundary import Boundary, Cached, Effects, Retries, ToolPolicy, ToolResult
from shearpin.testing import StrictProvider, asks_for

attempts = {"search": 0, "rates": 0, "send_sms": 0}


@tool
def search(query: str) -> str:
    """Look something up."""
    attempts["search"] += 1
    if attempts["search"] < 3:
        raise ConnectionResetError("reset by peer")
    return f"three hits for {query}"


@tool
def rates(currency: str) -> str:
    """The exchange rate of today."""
    attempts["rates"] += 1
    if attempts["rates"] > 1:
        raise ConnectionRefusedError("the service is down")
    return "1.0834"


@tool
def send_sms(to: str, text: str) -> str:
    """Send a text message."""
    attempts["send_sms"] += 1
    raise TimeoutError("no answer in 10 s")


# A real model goes here. StrictProvider refuses what OpenAI and Anthropic refuse.
wants = [
    asks_for(("search", {"query": "shear pins"}), ("rates", {"currency": "USD"})),
    asks_for(("rates", {"currency": "USD"})),
    asks_for(("send_sms", {"to": "+1 555", "text": "found"})),
    asks_for(("send_sms", {"to": "+1 555", "text": "found"})),
    "I found three hits. Whether the message went out I could not verify.",
    "Yes: please check the phone.",
]
model = StrictProvider(wants)

boundary = Boundary(
    retries=Retries(base_seconds=0.01),
    tools={
        "rates": ToolPolicy(fallbacks=[Cached(max_age_seconds=600)]),
        "send_sms": ToolPolicy(effect=Effects(at_most=3), never_degrade=True),
    },
)
agent = create_agent(model, [search, rates, send_sms], checkpointer=InMemorySaver())
app = shearpin.guard(agent, boundary=boundary, tools={"search": ToolFacts(read_only=True)})

thread = {"configurable": {"thread_id": "demo"}}
result = app.invoke({"messages": [("user", "Find shear pins, and text me.")]}, thread)

print("What the model was told:")
for message in result["messages"]:
    if isinstance(message, ToolMessage):
        print(f"  {message.name}: {message.content}")
        if message.status == "error":
            found = ToolResult.from_json(message.artifact)
            print(f"    ({found.error_type}, run {found.attempts} times)")
print("Its last message:")
print(" ", result["messages"][-1].text)
print("Messages sent at most:", attempts["send_sms"])

report = app.report(thread)
assert report.boundary is not None
print(f"Errors: {report.boundary.errors}, retries: {report.boundary.retries}")

# The thread is whole: every call has its answer, and the next turn works.
result = app.invoke({"messages": [("user", "Should I look?")]}, thread)
print("Next turn:", result["messages"][-1].text)

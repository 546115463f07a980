"""A loop of one's own around a chat model: no graph, so `guard.run()` watches the calls alone.

Run it: python examples/guard_a_plain_chain.py (no key, no network: the model is scripted)
"""

from __future__ import annotations

from langchain_core.messages import BaseMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool

from shearpin import Guard
from shearpin.testing import ScriptedModel, asks_for


@tool
def read_queue(name: str) -> str:
    """Read the next message of a queue."""
    return f"queue {name} is empty"


model = ScriptedModel([asks_for(("read_queue", {"name": "orders"}))], repeat_last=True)
chain = model.bind_tools([read_queue])
messages: list[BaseMessage] = [
    HumanMessage("Process all orders, then tell me how many there were.")
]

with Guard().run() as run:
    for _ in range(100):
        answer = chain.invoke(messages)
        messages.append(answer)
        for call in answer.tool_calls:
            result = read_queue.invoke(call)
            assert isinstance(result, ToolMessage)
            messages.append(result)

# A stop leaves the block, and the program goes on here. Guard(on_stop="raise") raises instead.
if run.stopped is not None:
    print(run.stopped.message)

report = run.report()
print(f"Outcome: {report.outcome}, reason: {report.reason}")
print(f"Model calls: {report.spend.model_calls} instead of 100")

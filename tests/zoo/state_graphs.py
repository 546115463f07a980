"""Exhibits about state: every kind of state that a graph may have."""

from __future__ import annotations

import operator
from dataclasses import dataclass, field
from typing import Annotated, Any

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, RemoveMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.graph.message import REMOVE_ALL_MESSAGES, add_messages
from langgraph.managed import RemainingSteps
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from tests.zoo.exhibit import Exhibit, Graph
from tests.zoo.models import call, script


class Counter(TypedDict):
    """A count and what was done."""

    count: int
    done: Annotated[list[str], operator.add]


def work(state: Counter) -> dict[str, Any]:
    count = state.get("count", 0) + 1
    return {"count": count, "done": [f"work {count}"]}


def check(state: Counter) -> dict[str, Any]:
    return {"done": [f"check {state['count']}"]}


def again(state: Counter) -> str:
    return "work" if state["count"] % 5 else END


def typed_dict() -> Graph:
    builder = StateGraph(Counter)
    builder.add_node(work)
    builder.add_node(check)
    builder.add_edge(START, "work")
    builder.add_edge("work", "check")
    builder.add_conditional_edges("check", again, ["work", END])
    return builder.compile(checkpointer=InMemorySaver())


class Form(BaseModel):
    """A pydantic state with a validated field."""

    name: str
    age: int = Field(ge=0)
    notes: Annotated[list[str], operator.add] = []


def pydantic() -> Graph:
    builder = StateGraph(Form)
    builder.add_node("greet", lambda form: {"notes": [f"hello {form.name}"]})
    builder.add_node("grow", lambda form: {"age": form.age + 1, "notes": [type(form).__name__]})
    builder.add_edge(START, "greet")
    builder.add_edge("greet", "grow")
    return builder.compile(checkpointer=InMemorySaver())


@dataclass
class Basket:
    """A dataclass state."""

    owner: str
    items: Annotated[list[str], operator.add] = field(default_factory=list)
    total: int = 0


def dataclass_state() -> Graph:
    builder = StateGraph(Basket)
    builder.add_node("pick", lambda basket: {"items": [f"apple for {basket.owner}"]})
    builder.add_node("sum", lambda basket: Basket(basket.owner, [], len(basket.items)))
    builder.add_edge(START, "pick")
    builder.add_edge("pick", "sum")
    return builder.compile(checkpointer=InMemorySaver())


def messages() -> Graph:
    model = script(
        AIMessage("let me look", tool_calls=[call("look", "1", at="sky")]),
        AIMessage("the sky is blue today"),
    )

    def agent(state: MessagesState) -> dict[str, Any]:
        return {"messages": [model.invoke(state["messages"])]}

    def tools(state: MessagesState) -> dict[str, Any]:
        calls = state["messages"][-1].tool_calls
        return {"messages": [ToolMessage("blue", tool_call_id=c["id"]) for c in calls]}

    builder = StateGraph(MessagesState)
    builder.add_node(agent)
    builder.add_node(tools)
    builder.add_edge(START, "agent")
    builder.add_conditional_edges(
        "agent", lambda state: "tools" if state["messages"][-1].tool_calls else END, ["tools", END]
    )
    builder.add_edge("tools", "agent")
    return builder.compile(checkpointer=InMemorySaver(), name="sky")


def root_list() -> Graph:
    builder = StateGraph(Annotated[list[str], operator.add])
    builder.add_node("first", lambda items: [f"first of {len(items)}"])
    builder.add_node("second", lambda items: [f"second of {len(items)}"])
    builder.add_edge(START, "first")
    builder.add_edge("first", "second")
    return builder.compile(checkpointer=InMemorySaver())


def root_messages() -> Graph:
    model = script("an answer in words")
    builder = StateGraph(Annotated[list[AnyMessage], add_messages])
    builder.add_node("answer", lambda items: [model.invoke(items)])
    builder.add_edge(START, "answer")
    return builder.compile(checkpointer=InMemorySaver())


class Question(TypedDict):
    """What comes in."""

    question: str


class Answer(TypedDict):
    """What goes out."""

    answer: str


class Working(Question, Answer):
    """What the nodes see."""

    draft: str


class Private(TypedDict):
    """What one node tells another."""

    secret: str


def think(state: Question) -> Private:
    return {"secret": state["question"][::-1]}


def draft(state: Private) -> dict[str, Any]:
    return {"draft": state["secret"].upper()}


def answer(state: Working) -> Answer:
    return {"answer": f"{state['question']}: {state['draft']}"}


def schemas() -> Graph:
    builder = StateGraph(Working, input_schema=Question, output_schema=Answer)
    builder.add_node(think)
    builder.add_node(draft)
    builder.add_node(answer)
    builder.add_edge(START, "think")
    builder.add_edge("think", "draft")
    builder.add_edge("draft", "answer")
    return builder.compile(checkpointer=InMemorySaver())


def removal() -> Graph:
    model = script("words one", "words two")

    def forget(state: MessagesState) -> dict[str, Any]:
        if len(state["messages"]) > 4:
            return {"messages": [RemoveMessage(REMOVE_ALL_MESSAGES), *state["messages"][-2:]]}
        return {"messages": [RemoveMessage(state["messages"][0].id)]}

    builder = StateGraph(MessagesState)
    builder.add_node("answer", lambda state: {"messages": [model.invoke(state["messages"])]})
    builder.add_node(forget)
    builder.add_edge(START, "answer")
    builder.add_edge("answer", "forget")
    return builder.compile(checkpointer=InMemorySaver())


class Budgeted(TypedDict):
    """State with a managed value."""

    left: Annotated[list[int], operator.add]
    remaining_steps: RemainingSteps


def managed() -> Graph:
    builder = StateGraph(Budgeted)
    builder.add_node("spend", lambda state: {"left": [state["remaining_steps"]]})
    builder.add_edge(START, "spend")
    builder.add_conditional_edges(
        "spend", lambda state: END if state["remaining_steps"] < 4 else "spend", ["spend", END]
    )
    return builder.compile(checkpointer=InMemorySaver())


human = HumanMessage("what colour is the sky?", id="h1")
more = HumanMessage("and the sea?", id="h2")

EXHIBITS = [
    Exhibit("typed_dict", typed_dict, ({"count": 0}, {"done": ["a second turn"]})),
    Exhibit("pydantic", pydantic, ({"name": "Ada", "age": 1}, {"name": "Ada", "age": -1})),
    Exhibit("dataclass", dataclass_state, ({"owner": "Ada"}, Basket("Bob", ["pear"]))),
    Exhibit("messages", messages, ({"messages": [human]}, {"messages": [more]})),
    Exhibit("root_list", root_list, (["start"], ["again"])),
    Exhibit("root_messages", root_messages, ([human], [more])),
    Exhibit("schemas", schemas, ({"question": "why"}, {"wrong": 1}, {"question": "how"})),
    Exhibit("removal", removal, ({"messages": [human]}, {"messages": [more]}) * 2),
    Exhibit("managed", managed, ({"left": []},), config={"recursion_limit": 8}),
]

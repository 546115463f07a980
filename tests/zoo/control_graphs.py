"""Exhibits about control: who runs next, in parallel, nested, interrupted."""

from __future__ import annotations

import operator
from typing import Annotated, Any, Literal

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, Send, interrupt
from typing_extensions import TypedDict

from tests.zoo.exhibit import Exhibit, Graph


class Log(TypedDict, total=False):
    """What the nodes said."""

    said: Annotated[list[str], operator.add]
    item: str


class Other(TypedDict):
    """A state that shares nothing with `Log`."""

    word: str


def says(text: str) -> Any:
    def node(state: Log) -> Log:
        return {"said": [f"{text} after {len(state.get('said', []))}"]}

    return node


def child(checkpointer: Any = None, *, asks: bool = False) -> Graph:
    def ask(state: Log) -> Log:
        return {"said": [f"asked: {interrupt('child asks') if asks else 'nothing'}"]}

    builder = StateGraph(Log)
    builder.add_node("enter", says("child enters"))
    builder.add_node(ask)
    builder.add_edge(START, "enter")
    builder.add_edge("enter", "ask")
    return builder.compile(checkpointer=checkpointer)


def parent(inner: Any) -> Graph:
    builder = StateGraph(Log)
    builder.add_node("before", says("before"))
    builder.add_node("inner", inner)
    builder.add_node("behind", says("behind"))
    builder.add_edge(START, "before")
    builder.add_edge("before", "inner")
    builder.add_edge("inner", "behind")
    return builder.compile(checkpointer=InMemorySaver())


def different_state() -> Graph:
    builder = StateGraph(Other)
    builder.add_node("shout", lambda state: {"word": state["word"].upper()})
    builder.add_edge(START, "shout")
    inner = builder.compile()
    return parent(lambda state: {"said": [inner.invoke({"word": state["said"][-1]})["word"]]})


def two_levels() -> Graph:
    middle = StateGraph(Log)
    middle.add_node("deep", child(asks=True))
    middle.add_edge(START, "deep")
    return parent(middle.compile())


def fan_out() -> Graph:
    builder = StateGraph(Log)
    builder.add_node("split", says("split"))
    builder.add_node("each", lambda state: {"said": [f"did {state['item']}"]})
    builder.add_node("join", says("join"))
    builder.add_edge(START, "split")
    builder.add_conditional_edges(
        "split", lambda _: [Send("each", {"item": letter}) for letter in "abcde"], ["each"]
    )
    builder.add_edge("each", "join")
    return builder.compile(checkpointer=InMemorySaver())


def fan_out_to_subgraphs() -> Graph:
    builder = StateGraph(Log)
    builder.add_node("split", says("split"))
    builder.add_node("each", child())
    builder.add_edge(START, "split")
    builder.add_conditional_edges(
        "split", lambda _: [Send("each", {"said": [letter]}) for letter in "ab"], ["each"]
    )
    return builder.compile(checkpointer=InMemorySaver())


def deferred() -> Graph:
    builder = StateGraph(Log)
    for name in ("start", "short", "long_1", "long_2"):
        builder.add_node(name, says(name))
    builder.add_node("last", says("last"), defer=True)
    builder.add_edge(START, "start")
    builder.add_edge("start", "short")
    builder.add_edge("start", "long_1")
    builder.add_edge("long_1", "long_2")
    builder.add_edge("short", "last")
    builder.add_edge("long_2", "last")
    return builder.compile(checkpointer=InMemorySaver())


def waiting() -> Graph:
    builder = StateGraph(Log)
    for name in ("left", "right_1", "right_2", "both"):
        builder.add_node(name, says(name))
    builder.add_edge(START, "left")
    builder.add_edge(START, "right_1")
    builder.add_edge("right_1", "right_2")
    builder.add_edge(["left", "right_2"], "both")
    return builder.compile(checkpointer=InMemorySaver())


def goto() -> Graph:
    def route(state: Log) -> Command[Literal["odd", "even"]]:
        target = "odd" if len(state["said"]) % 2 else "even"
        return Command(update={"said": [f"to {target}"]}, goto=target)

    def odd(state: Log) -> Command[Literal["route", "even"]]:
        return Command(update={"said": ["odd"]}, goto=[Send("even", {"said": ["x"]}), "route"])

    builder = StateGraph(Log)
    builder.add_node(route)
    builder.add_node(odd)
    builder.add_node("even", says("even"))
    builder.add_edge(START, "route")
    return builder.compile(checkpointer=InMemorySaver())


def goto_parent() -> Graph:
    def leave(state: Log) -> Command[Any]:
        said = {"said": ["leaving the child"]}
        return Command(graph=Command.PARENT, update=said, goto="outside")

    inner = StateGraph(Log)
    inner.add_node("enter", says("enter"))
    inner.add_node(leave)
    inner.add_edge(START, "enter")
    inner.add_edge("enter", "leave")
    builder = StateGraph(Log)
    builder.add_node("inner", inner.compile(), destinations=("outside",))
    builder.add_node("outside", says("outside"))
    builder.add_edge(START, "inner")
    return builder.compile(checkpointer=InMemorySaver())


def interrupted() -> Graph:
    def ask(state: Log) -> Log:
        first = interrupt({"question": "name?"})
        second = interrupt(f"age of {first}?")
        return {"said": [f"{first} is {second}"]}

    return parent(ask)


def parallel_interrupts() -> Graph:
    builder = StateGraph(Log)
    builder.add_node("one", lambda _: {"said": [interrupt("one?")]})
    builder.add_node("two", lambda _: {"said": [interrupt("two?")]})
    builder.add_node("three", says("three"))
    for name in ("one", "two", "three"):
        builder.add_edge(START, name)
    return builder.compile(checkpointer=InMemorySaver())


def answer_all(graph: Graph, config: dict[str, Any]) -> object:
    """Resume every open interrupt by its id."""
    open_ones = graph.get_state(config).interrupts
    answers = {pause.id: f"answer to {pause.value}" for pause in open_ones}
    return graph.invoke(Command(resume=answers), config)


def static_interrupts() -> Graph:
    builder = StateGraph(Log)
    for name in ("a", "b", "c"):
        builder.add_node(name, says(name))
    builder.add_edge(START, "a")
    builder.add_edge("a", "b")
    builder.add_edge("b", "c")
    return builder.compile(
        checkpointer=InMemorySaver(), interrupt_before=["b"], interrupt_after=["b"]
    )


def endless() -> Graph:
    builder = StateGraph(Log)
    builder.add_node("tick", lambda state: {"said": [str(len(state["said"]))]})
    builder.add_edge(START, "tick")
    builder.add_conditional_edges(
        "tick", lambda state: END if len(state["said"]) > 90 else "tick", ["tick", END]
    )
    return builder.compile(checkpointer=InMemorySaver())


start: Log = {"said": ["start"]}
resume = Command(resume="yes")

EXHIBITS = [
    Exhibit("subgraph_shared_state", lambda: parent(child()), (start, start)),
    Exhibit("subgraph_different_state", different_state, (start, start)),
    Exhibit("subgraph_own_memory", lambda: parent(child(True)), (start, start)),
    Exhibit("subgraph_no_memory", lambda: parent(child(False)), (start, start)),
    Exhibit("subgraph_interrupt", lambda: parent(child(asks=True)), (start, resume, start, resume)),
    Exhibit("subgraph_own_interrupt", lambda: parent(child(True, asks=True)), (start, resume)),
    Exhibit("subgraphs_two_levels", two_levels, (start, resume)),
    Exhibit("send", fan_out, (start, start)),
    Exhibit("send_to_subgraphs", fan_out_to_subgraphs, (start,)),
    Exhibit("defer", deferred, (start,)),
    Exhibit("waiting_edge", waiting, (start, start)),
    Exhibit("command_goto", goto, (start, {"said": []})),
    Exhibit("command_goto_at_start", goto, (start, Command(goto="even", update={"said": ["in"]}))),
    Exhibit("command_parent", goto_parent, (start, start)),
    Exhibit("interrupt", interrupted, (start, Command(resume="Ada"), resume, start, None)),
    Exhibit("parallel_interrupts", parallel_interrupts, (start, answer_all)),
    Exhibit("static_interrupts", static_interrupts, (start, None, None, start)),
    Exhibit("recursion_error", endless, (start, None), config={"recursion_limit": 7}),
    Exhibit("long_and_legit", endless, (start,), config={"recursion_limit": 200}),
]

"""Random fact streams, as hosts make them: batches, several agents, nodes, turns, compaction."""

from __future__ import annotations

from typing import Literal, NamedTuple

from hypothesis import strategies as st

from shearpin.core.session import Session
from shearpin.events import (
    Fact,
    HistoryCompacted,
    ModelCalled,
    ModelReturned,
    NodeEntered,
    NodeLeft,
    SignalReceived,
    ToolCalled,
    ToolRequest,
    ToolReturned,
    TurnStarted,
    Usage,
)
from shearpin.findings import Finding
from shearpin.verdicts import Halt, Verdict


class Item(NamedTuple):
    """One report to a session."""

    when: Literal["before", "after"]
    fact: Fact


AGENTS = st.sampled_from(["main", "main", "main", "helper", "reviewer"])
TOOLS = st.sampled_from(["search", "read_file", "write_file", "bash", "sleep", "zap"])
ARGS = st.sampled_from([{"q": "a"}, {"q": "b"}, {"command": "pytest -q"}, {"n": 1}, "{broken"])
RESULTS = st.sampled_from(
    [
        ("the answer is here", "success"),
        ("the answer is here", "success"),
        ("another answer entirely", "success"),
        ("[]", "success"),
        ("Error: no such file 'x'", "error"),
        ("Error: 503 service unavailable", "error"),
        ("zap is not a valid tool", "unknown_tool"),
        ("arguments could not be parsed", "bad_args"),
        (None, "blocked"),
    ]
)
TEXTS = st.sampled_from(
    ["", "I will now look at it.", "Done. The result is 42.", "Working, 3 of 9"]
)
CALLS = st.lists(st.tuples(TOOLS, ARGS, RESULTS), max_size=3)
SECONDS = st.sampled_from([0.0, 0.25, 1.0, 70.0])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("step"), AGENTS, CALLS, TEXTS, SECONDS),
        st.tuples(st.just("step"), AGENTS, CALLS, TEXTS, SECONDS),
        st.tuples(st.just("again"), st.integers(1, 6)),
        st.tuples(st.just("node"), AGENTS, st.sampled_from(["plan", "act"]), st.sampled_from("ab")),
        st.tuples(st.just("compact"), AGENTS),
        st.tuples(st.just("turn")),
        st.tuples(st.just("continue")),
    ),
    max_size=25,
)


class Weaver:
    """Makes facts of drawn steps; ids are what `name_of` makes of a running number."""

    def __init__(self, prefix: str = "") -> None:
        self.items: list[Item] = []
        self.prefix = prefix
        self.at = 0.0
        self.count = 0

    def id(self) -> str:
        self.count += 1
        return f"{self.prefix}{self.count}"

    def step(self, agent: str, calls: list[tuple], text: str, seconds: float) -> None:  # type: ignore[type-arg]
        self.at += seconds
        model = self.id()
        ids = [self.id() for _ in calls]
        add = self.items.append
        add(Item("before", ModelCalled(self.at, model, agent, "agent")))
        self.at += 0.5
        asked = tuple(
            ToolRequest(key, tool, args) for key, (tool, args, _) in zip(ids, calls, strict=True)
        )
        usage = Usage(100, 10)
        add(Item("after", ModelReturned(self.at, model, agent, "agent", text, asked, usage)))
        for key, (tool, args, _) in zip(ids, calls, strict=True):
            add(Item("before", ToolCalled(self.at, key, tool, args, agent, "tools")))
        for key, (tool, args, (result, status)) in zip(ids, calls, strict=True):
            returned = ToolReturned(self.at, key, tool, args, result, status, agent, "tools")
            add(Item("after", returned))

    def node(self, agent: str, node: str, delta: str) -> None:
        task = self.id()
        self.items.append(Item("before", NodeEntered(self.at, node, task, agent)))
        self.items.append(Item("after", NodeLeft(self.at, node, task, agent, delta)))

    def weave(self, steps: list[tuple]) -> list[Item]:  # type: ignore[type-arg]
        latest: tuple | None = None  # type: ignore[type-arg]
        for kind, *rest in steps:
            if kind == "step":
                latest = tuple(rest)
                self.step(*rest)
            elif kind == "again" and latest is not None:
                for _ in range(rest[0]):
                    self.step(*latest)
            elif kind == "node":
                self.node(*rest)
            elif kind == "compact":
                self.items.append(Item("after", HistoryCompacted(self.at, rest[0])))
            elif kind == "turn":
                self.items.append(Item("after", TurnStarted(self.at, self.count)))
            elif kind == "continue":
                self.items.append(Item("after", SignalReceived(self.at, "continue")))
        return self.items


def weave(steps: list[tuple], prefix: str = "") -> list[Item]:  # type: ignore[type-arg]
    return Weaver(prefix).weave(steps)


def feed(session: Session, items: list[Item]) -> list[Verdict]:
    return [
        session.before(item.fact) if item.when == "before" else session.after(item.fact)
        for item in items
    ]


def essence(verdict: Verdict) -> tuple[object, ...]:
    """A verdict without its wording and without what a finding refuses."""
    finding: Finding | None = getattr(verdict, "finding", None)
    reason = verdict.reason if isinstance(verdict, Halt) else None
    if finding is None:
        return (type(verdict).__name__, verdict.severity, reason)
    return (
        type(verdict).__name__,
        verdict.severity,
        reason,
        finding.family,
        finding.rule,
        finding.key,
        finding.level,
        finding.count,
        finding.limit,
        finding.onset_step,
        finding.step,
        finding.agent,
        finding.subject,
        finding.cause,
        finding.hard,
    )

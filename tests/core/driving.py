"""Feeds a session with facts as a host adapter does, with ids and a clock of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from shearpin.core.session import Session
from shearpin.core.settings import Settings
from shearpin.events import (
    CallStatus,
    ModelCalled,
    ModelReturned,
    ToolCalled,
    ToolRequest,
    ToolReturned,
    TurnStarted,
    Usage,
)
from shearpin.findings import Finding, Severity
from shearpin.verdicts import Block, Halt, Nudge, Proceed, Verdict


class Call(NamedTuple):
    """One tool call of a step, and what the tool answers."""

    tool: str = "search"
    args: Mapping[str, object] | str = {"q": "x"}
    result: object = "a result"
    status: CallStatus = "success"


class Driver:
    """Drives a session; an obedient host, which does not run what is blocked."""

    def __init__(self, *detectors: object, seconds: float = 1.0, **settings: object) -> None:
        if detectors:
            settings["detectors"] = detectors
        self.session = Session(Settings(**settings))  # type: ignore[arg-type]
        self.seconds = seconds
        self.at = 0.0
        self.model_calls = 0
        self.tool_calls = 0

    def step(
        self,
        *calls: Call,
        text: str = "",
        agent: str = "main",
        node: str = "agent",
        usage: Usage | None = None,
    ) -> list[Verdict]:
        """One model response with its calls; the verdicts other than Proceed, in order."""
        session = self.session
        self.at += self.seconds
        self.model_calls += 1
        model = f"m{self.model_calls}"
        given = [session.before(ModelCalled(self.at, model, agent, node))]
        ids = [f"c{self.tool_calls + i}" for i in range(1, len(calls) + 1)]
        self.tool_calls += len(calls)
        requests = tuple(
            ToolRequest(key, c.tool, c.args) for key, c in zip(ids, calls, strict=True)
        )
        given.append(
            session.after(ModelReturned(self.at, model, agent, node, text, requests, usage))
        )
        for key, call in zip(ids, calls, strict=True):
            verdict = session.before(ToolCalled(self.at, key, call.tool, call.args, agent, node))
            given.append(verdict)
            refused = isinstance(verdict, Block)
            given.append(
                session.after(
                    ToolReturned(
                        self.at,
                        key,
                        call.tool,
                        call.args,
                        None if refused else call.result,
                        "blocked" if refused else call.status,
                        agent,
                        node,
                    )
                )
            )
        return [verdict for verdict in given if not isinstance(verdict, Proceed)]

    def steps(self, times: int, *calls: Call, **more: str) -> list[list[Severity]]:
        """The same step several times: the severities that each was answered with."""
        return [[v.severity for v in self.step(*calls, **more)] for _ in range(times)]

    def turn(self) -> None:
        self.session.after(TurnStarted(self.at, 2))

    @property
    def faults(self) -> list[str]:
        return [record.error for record in self.session.drain() if hasattr(record, "error")]


def finding_of(verdict: Verdict) -> Finding:
    assert isinstance(verdict, (Nudge, Block, Halt))
    assert verdict.finding is not None
    return verdict.finding


def first_at(given: list[list[Severity]], level: Severity) -> int | None:
    """The 1-based step of the first answer that is at least this strong."""
    for place, severities in enumerate(given, 1):
        if any(severity >= level for severity in severities):
            return place
    return None

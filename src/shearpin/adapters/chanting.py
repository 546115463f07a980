"""Answers that chant while they are being streamed: the stream is cut, and the run ends.

Contract: listens only where the rule `chanting` is on, and only in runs whose mode enforces or
notes. An answer is spoken of once. What was said up to the end of the first lap is kept for the
run's last word, in memory alone; the call's cost is settled as for any stream that breaks off.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final
from uuid import UUID

from langchain_core.outputs import Generation, LLMResult

from shearpin.adapters.messages import content_text
from shearpin.adapters.signals import PausingStop, Stop
from shearpin.core.chanting import Chant, ChantProbe, Chants
from shearpin.core.messages import halt_text
from shearpin.findings import Finding, Severity
from shearpin.verdicts import Halt

if TYPE_CHECKING:
    from shearpin.adapters.run import Run

__all__ = ["Listener", "listener_of"]

_STREAMS: Final = 64


def listener_of(run: Run) -> Listener | None:
    """What listens to the streams of a run; None where no rule asks for it."""
    for rule in run.state.judge.session.settings.detectors:
        if isinstance(rule, Chants):
            return Listener(run, rule)
    return None


class Listener:
    """See the module's contract."""

    def __init__(self, run: Run, config: Chants) -> None:
        self._run = run
        self._config = config
        self._probes: OrderedDict[UUID, ChantProbe | None] = OrderedDict()
        self._heard_of: dict[UUID, str] = {}

    def hear(self, stream: UUID, token: object) -> None:
        """A part of an answer; raises `Stop` where the answer chants and the run is to end."""
        halt: Halt | None = None
        try:
            halt = self._heard(stream, token)
        except Exception as error:
            self._run.fault("chanting", error)
        if halt is not None:
            raise Stop(halt) if self._run.redirects else PausingStop(halt)

    def received(self, stream: UUID, response: object) -> object:
        """What there was of an answer that broke off: of one that was cut here, what was heard."""
        heard = self._heard_of.pop(stream, None)
        self._probes.pop(stream, None)
        if heard is None or (isinstance(response, LLMResult) and any(response.generations)):
            return response
        return LLMResult(generations=[[Generation(text=heard)]])

    def _heard(self, stream: UUID, token: object) -> Halt | None:
        if stream not in self._probes:
            if len(self._probes) >= _STREAMS:
                self._probes.popitem(last=False)
            self._probes[stream] = self._config.probe()
        probe = self._probes[stream]
        if probe is None or self._run.ways.apart("", ""):
            return None
        found = probe.feed(token if isinstance(token, str) else content_text(token))
        if found is None:
            return None
        self._probes[stream] = None
        self._heard_of[stream] = probe.heard
        return self._judged(stream, found, probe.sense(found))

    def _judged(self, stream: UUID, chant: Chant, said: str) -> Halt | None:
        run = self._run
        opened = run.open.get(stream)
        agent, node = ("main", "") if opened is None else (opened.agent, opened.node)
        if run.ways.apart(agent, node):
            return None
        step = run.step + 1
        finding = Finding(
            "monologue", "chanting", f"chanting:{agent}", Severity.STOP, chant.laps,
            self._config.laps, step, step, agent, None, "says_the_same",
            evidence={"period": chant.period, "onset_character": chant.onset},
        )  # fmt: skip
        settings = run.state.judge.session.settings
        message = halt_text(finding, settings.language, settings.messages)
        halt = Halt("loop:chanting", message, finding)
        at = run.now()
        given = run.state.judge.ask(lambda session: session.rule(halt, finding, at), None)
        if given is not halt:
            return None
        run.ways.cut_off = said
        return halt

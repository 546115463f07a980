"""What a session remembers, how it is read by others, and how it is written down.

`dump` and `load` are exact inverses: bounded, JSON-ready, without any text of the run.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Mapping
from typing import NamedTuple, Self

from shearpin.core.breaker import Breaker
from shearpin.core.detectors.base import Probe
from shearpin.core.evidence import Notes
from shearpin.core.journal import FaultRecord, Record
from shearpin.core.ladder import Ladder
from shearpin.core.observer import Observer
from shearpin.core.overrides import probe_of
from shearpin.core.seen import (
    MessageSeen,
    ModelSeen,
    NodeSeen,
    RoundSeen,
    Seen,
    StartSeen,
    ToolSeen,
    VectorSeen,
)
from shearpin.core.settings import Settings
from shearpin.core.stored import (
    finding_of,
    finding_row,
    mapping,
    pack,
    row,
    text,
    texts,
    unpack,
    whole,
    wholes,
)
from shearpin.errors import ConfigError
from shearpin.findings import Finding, Severity
from shearpin.verdicts import Halt

__all__ = ["DUMP_VERSION", "Memory", "Spend"]

DUMP_VERSION = 1
_JOURNAL = 256
_PACKED = 3900
"""Longest packed memory, in characters: with the envelope a dump stays under 4 KB."""
_SMALL = 128
_EARNEST = ("repeat", "cycle", "unknown_tool")
"""Rules that may end a run: what they remember is given up last."""


class Spend(NamedTuple):
    """What a session has used so far."""

    model_calls: int = 0
    tool_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0


class Memory:
    """The state of a session and how it is kept; the session says what is done with it."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.stopped: Halt | None = None
        self.worst: Severity = Severity.NONE
        self._model_calls = self._tool_calls = self._input_tokens = self._output_tokens = 0
        self._observer = Observer(settings)
        self._breaker = Breaker(settings.limits)
        self._ladder = Ladder()
        self._probes: dict[str, Probe] = {
            rule.family: probe_of(given, settings.patience, settings.overrides)
            if settings.overrides
            else rule.probe()
            for given, rule in zip(settings.detectors, settings.rules, strict=True)
        }
        self._routes = self._route()
        self._journal: deque[Record] = deque(maxlen=_JOURNAL)
        self._last: Finding | None = None
        self._compacted = 0
        self._notes = Notes()
        self._texts: dict[str, str] = {}
        self._round_evidence: dict[str, bool] = {}
        self._round_progress: dict[str, bool] = {}
        self._models: dict[str, str] = {}

    # -- what callers read --------------------------------------------------------------------

    @property
    def state(self) -> str:
        """The breaker's state: `closed`, `reflecting`, `half_open` or `open`."""
        return self._breaker.state

    @property
    def step(self) -> int:
        """Model responses seen so far, over all turns."""
        return self._observer.step

    @property
    def spend(self) -> Spend:
        """What the session has used so far, over all turns."""
        return Spend(self._model_calls, self._tool_calls, self._input_tokens, self._output_tokens)

    @property
    def _tokens(self) -> int:
        return self._input_tokens + self._output_tokens

    @property
    def active(self) -> bool:
        """Whether something must survive: calls were made, the breaker has moved, or a stop."""
        moved = self._breaker.state != "closed" or self.stopped is not None
        return moved or bool(self._model_calls or self._tool_calls)

    def drain(self) -> list[Record]:
        """The journal since the last call, oldest first (at most the latest 256 records)."""
        if not self._journal:
            return []
        records = list(self._journal)
        self._journal.clear()
        return records

    def fault(self, where: str, error: BaseException, at: float) -> None:
        """Write down that something inside the guard failed and was contained."""
        text = f"{type(error).__name__}: {error}"
        self._journal.append(FaultRecord(self.step, at, where, text[:200]))

    def _forget(self, agent: str | None, at: float) -> None:
        """Let every rule start afresh: for one agent or, with None, for a new turn."""
        for family, probe in self._probes.items():
            try:
                probe.forget(agent)
            except Exception as error:  # a faulty rule must not hurt the run
                self.fault(f"detector {family}", error, at)

    def _route(self) -> dict[type[Seen], list[tuple[str, Probe]]]:
        kinds: tuple[type[Seen], ...] = (
            StartSeen,
            ModelSeen,
            ToolSeen,
            MessageSeen,
            RoundSeen,
            NodeSeen,
            VectorSeen,
        )
        return {
            kind: [
                (d.family, self._probes[d.family])
                for d in self.settings.detectors
                if kind in d.watches
            ]
            for kind in kinds
        }

    # -- persistence --------------------------------------------------------------------------

    def dump(self) -> dict[str, object]:
        """The state as JSON-ready data: at most 4 KB as compact JSON, without any text of the run.

        The results that a `Block` quotes are kept in memory only: after `load` it does without
        them.
        """
        packed = pack(self._written())
        while len(packed) > _PACKED and self._shed():
            packed = pack(self._written())
        return {"v": DUMP_VERSION, "state": self.state, "step": self.step, "memory": packed}

    def _written(self) -> list[object]:
        stopped = self.stopped
        return [
            list(self.spend),
            int(self.worst),
            [stopped.reason, stopped.message, finding_row(stopped.finding)] if stopped else None,
            finding_row(self._last),
            list(self._round_evidence),
            list(self._round_progress),
            self._compacted,
            self._notes.dump(),
            self._observer.dump(),
            self._breaker.dump(),
            self._ladder.dump(),
            self._probes_written(),
        ]

    def _probes_written(self) -> dict[str, object]:
        written: dict[str, object] = {}
        for family, probe in self._probes.items():
            try:
                written[family] = probe.dump()
            except Exception as error:  # a rule that cannot be kept starts afresh after a restart
                self.fault(f"detector {family}", error, 0.0)
        return written

    def _shed(self) -> bool:
        """Forget the rule that takes the most room; False if nothing is left to forget.

        The live session forgets as well, so that it and its copy go on alike.
        """
        sizes = {name: len(json.dumps(data)) for name, data in self._probes_written().items()}
        mild = [name for name in sizes if name not in _EARNEST and sizes[name] >= _SMALL]
        widest = max(mild or sizes, key=lambda name: sizes[name], default=None)
        if widest is None or sizes[widest] < _SMALL:
            return self._observer.shed()
        try:
            self._probes[widest].forget(None)
        except Exception as error:  # a faulty rule must not hurt the run
            self.fault(f"detector {widest}", error, 0.0)
        shrunk = len(json.dumps(self._probes_written().get(widest))) < sizes[widest]
        return shrunk or self._observer.shed()

    @classmethod
    def load(cls, settings: Settings, data: Mapping[str, object]) -> Self:
        """The session that gave this dump. Rules that it does not know start afresh.

        Raises:
            ConfigError: the dump is of another version, or damaged.
        """
        version = mapping(data).get("v") if isinstance(data, dict) else None
        if version != DUMP_VERSION:
            raise ConfigError(
                f"session state has version {version!r}, this Shearpin reads {DUMP_VERSION}; "
                "start the thread afresh or use the version that wrote it"
            )
        session = cls(settings)
        try:
            session._restore(unpack(data.get("memory")))
        except (AssertionError, AttributeError, LookupError, TypeError, ValueError) as error:
            raise ConfigError(
                f"session state is damaged ({error!r}); start the thread afresh"
            ) from error
        return session

    def _restore(self, memory: object) -> None:
        spend, worst, stopped, last, evidence, progress, compacted, *parts = row(memory, 12)
        notes, observer, breaker, ladder, probes = parts
        self._notes.load(notes)
        self._compacted = whole(compacted)
        counts = row(wholes(spend), 4)
        self._model_calls, self._tool_calls, self._input_tokens, self._output_tokens = wholes(
            counts
        )
        self.worst = Severity(whole(worst))
        if stopped is not None:
            reason, message, finding = row(stopped, 3)
            self.stopped = Halt(text(reason), text(message), finding_of(finding))
        self._last = finding_of(last)
        self._round_evidence = dict.fromkeys(texts(evidence), True)
        self._round_progress = dict.fromkeys(texts(progress), True)
        self._observer.load(observer)
        self._breaker.load(breaker)
        self._ladder.load(ladder)
        stored = mapping(probes)
        for family, probe in self._probes.items():
            if family in stored:
                probe.load(stored[family])

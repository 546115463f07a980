"""cycle: two to six rounds that come again in the same order with the same results."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from shearpin.core.canonical import digest_text
from shearpin.core.checks import check_kinds
from shearpin.core.detectors.base import Probe, check_ascending, level_of
from shearpin.core.normal import LONGEST_NAME
from shearpin.core.seen import NodeSeen, RoundSeen, Seen
from shearpin.core.stored import flag, row, sequence, text, texts, whole, wholes
from shearpin.errors import ConfigError
from shearpin.findings import Finding, Severity

__all__ = ["Cycles"]

_STREAMS = 6
_EVERYBODY = "*"
_NODES = "#"

_Entry: TypeAlias = tuple[str, tuple[str, ...], str, bool, int]
"""Symbol, keys of its calls, first tool or node, whether it waits (a node: is free), and when."""


@dataclass(frozen=True, slots=True)
class Cycles:
    """The same sequence of rounds, lap after lap.

    A round is one model response with its calls and results, or its text where it makes no call.
    Every agent is watched by itself, and all of them together, so that two agents who send each
    other the same messages are seen as well. Nodes that write the same values in the same order
    count only if a model was called in every lap: a loop that costs nothing is nobody's business.

    Attributes:
        nudge: complete laps until the agent is told (2 or more).
        block: in this lap the calls are refused. None: never.
        stop: the end of this lap ends the run. None: never.
        longest: the longest period, in rounds (2 to 6).
        patient_seconds: laps that take this long without thinking are waiting, in seconds.
        ceiling: the strongest answer this rule may justify.

    *Source*: ABAB fires on 0.2 % of successful and 1.0 % (older models: 8.5 %) of failed public
    runs.

    Raises:
        ConfigError: a threshold is too small or falls, or `longest` is out of range.

    Example:
        >>> Cycles(longest=4).longest
        4
    """

    family: ClassVar[str] = "cycle"
    watches: ClassVar[tuple[type[Seen], ...]] = (RoundSeen, NodeSeen)

    nudge: int = 3
    block: int | None = 5
    stop: int | None = 8
    longest: int = 6
    patient_seconds: float = 60.0
    ceiling: Severity = Severity.STOP

    def __post_init__(self) -> None:
        check_kinds(self)
        check_ascending("Cycles", self.nudge, self.block, self.stop)
        if not 2 <= self.longest <= 6:
            raise ConfigError(f"Cycles.longest must be 2 to 6 rounds, not {self.longest!r}")
        if self.patient_seconds <= 0:
            raise ConfigError(
                f"Cycles.patient_seconds must be above 0 seconds, not {self.patient_seconds!r}"
            )

    def probe(self) -> Probe:
        return _CycleProbe(self)


class _Stream:
    """The last few symbols of one sequence, and for each period how long it has matched itself."""

    __slots__ = ("entries", "matched", "symbols")

    def __init__(self, longest: int) -> None:
        self.entries: list[_Entry] = []
        self.symbols: list[str] = []
        self.matched = [0] * (longest + 1)

    def take(self, entry: _Entry) -> tuple[int, int]:
        """Add a round; the shortest period that it continues and its complete laps, or zeros."""
        symbols, matched = self.symbols, self.matched
        symbol = entry[0]
        period = laps = 0
        if symbol in symbols:
            size = len(symbols)
            for back in range(1, len(matched)):
                if back <= size and symbols[-back] == symbol:
                    matched[back] += 1
                    if not period and (complete := matched[back] // back + 1) >= 2:
                        period, laps = back, complete
                else:
                    matched[back] = 0
        elif any(matched):
            self.matched = [0] * len(matched)
        symbols.append(symbol)
        self.entries.append(entry)
        if len(symbols) >= len(matched):
            del symbols[0], self.entries[0]
        return period, laps


class _CycleProbe:
    """Constant work: a new symbol is compared with those two to `longest` rounds back."""

    def __init__(self, config: Cycles) -> None:
        self._config = config
        self._streams: OrderedDict[str, _Stream] = OrderedDict()

    def observe(self, seen: Seen) -> Finding | None:
        if isinstance(seen, NodeSeen):
            symbol = digest_text(f"{seen.node}\0{seen.delta}")
            entry = (symbol, (), seen.node[:LONGEST_NAME], not seen.paid, int(seen.at))
            return self._take(_NODES, entry, seen.step, seen.agent, seen.at)
        assert isinstance(seen, RoundSeen)
        subject = seen.tools[0][:LONGEST_NAME] if seen.tools else ""
        entry = (seen.symbol, seen.calls, subject, seen.waits, int(seen.idle_at))
        found = self._take(seen.agent, entry, seen.step, seen.agent, seen.idle_at)
        if seen.agent != "main" or len(self._streams) > 1:
            shared = (digest_text(f"{seen.agent}\0{seen.symbol}"), *entry[1:])
            together = self._take(_EVERYBODY, shared, seen.step, seen.agent, seen.idle_at)
            if found is None or (together is not None and together.level > found.level):
                return together
        return found

    def _take(self, name: str, entry: _Entry, step: int, agent: str, now: float) -> Finding | None:
        stream = self._streams.get(name)
        if stream is None:
            if len(self._streams) >= _STREAMS:
                self._streams.popitem(last=False)
            stream = self._streams[name] = _Stream(self._config.longest)
        elif len(self._streams) > 1:
            self._streams.move_to_end(name)
        period, laps = stream.take(entry)
        if period < 2 or laps < self._config.nudge - 1:
            return None
        return self._judge(stream, period, laps, step, agent, now)

    def _judge(
        self, stream: _Stream, period: int, laps: int, step: int, agent: str, now: float
    ) -> Finding | None:
        config = self._config
        lap = stream.entries[-period:]
        ceiling = config.ceiling
        idle = [waits for _, _, _, waits, _ in lap]
        if stream is self._streams.get(_NODES):
            ceiling = Severity.NONE if all(idle) else ceiling  # no model was called in the lap
        elif any(idle):
            ceiling = min(ceiling, Severity.NUDGE)
        if len(lap) > 1 and now - lap[0][4] >= config.patient_seconds * (period - 1):
            ceiling = Severity.NONE
        level = level_of(laps, config.nudge, config.block, config.stop, ceiling)
        if level is Severity.NONE:
            return None
        reached = {
            Severity.NUDGE: config.nudge,
            Severity.BLOCK: config.block,
            Severity.STOP: config.stop,
        }
        return Finding(
            family="cycle",
            rule="cycle",
            key="cycle:" + min(symbol for symbol, *_ in lap),
            level=level,
            count=laps,
            limit=reached[level] or config.nudge,
            onset_step=max(1, step - laps * period + 1),
            step=step,
            agent=agent,
            subject=" -> ".join(dict.fromkeys(tool for _, _, tool, _, _ in lap if tool))[:120]
            or None,
            cause="same_sequence",
            hard=ceiling > Severity.NUDGE,
            refuses=tuple(dict.fromkeys(call for _, calls, *_ in lap for call in calls)),
            evidence={"period": period},
        )

    def forget(self, agent: str | None) -> None:
        if agent is None:
            self._streams.clear()
        else:
            self._streams.pop(agent, None)
            self._streams.pop(_EVERYBODY, None)

    def dump(self) -> object:
        return [
            [
                name,
                stream.matched,
                [[*entry[:1], list(entry[1]), *entry[2:]] for entry in stream.entries],
            ]
            for name, stream in self._streams.items()
        ]

    def load(self, data: object) -> None:
        self._streams.clear()
        for item in sequence(data):
            name, matched, entries = row(item, 3)
            stream = self._streams[text(name)] = _Stream(self._config.longest)
            kept = wholes(matched)[: self._config.longest + 1]
            stream.matched[: len(kept)] = kept
            stream.entries = [_entry(entry) for entry in sequence(entries)][-self._config.longest :]
            stream.symbols = [entry[0] for entry in stream.entries]


def _entry(data: object) -> _Entry:
    symbol, calls, subject, waits, at = row(data, 5)
    return text(symbol), tuple(texts(calls)), text(subject), flag(waits), whole(at)

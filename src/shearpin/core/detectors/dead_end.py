"""dead_end_drift: whatever is tried, nothing comes back that was not there before."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import ClassVar
from zlib import crc32

from shearpin.core.checks import check_kinds
from shearpin.core.detectors.base import Probe, check_ascending
from shearpin.core.seen import Seen, ToolSeen
from shearpin.core.stored import number, row, sequence, text, whole
from shearpin.errors import ConfigError
from shearpin.findings import Finding, Severity

__all__ = ["DeadEnds"]

_CAPACITY = 4
_BITS = 1024
_FULL = 224
"""Bits set in a generation before the next begins: one new line in five is then taken for old."""
_PIECES = 8
_HEAD = 400
_TAIL = 160
_LONG_LINE = 240

_ACKNOWLEDGEMENT = 48
"""A shorter answer to a new call ("saved", "1 row affected") is no standstill, in characters."""


@dataclass(frozen=True, slots=True)
class DeadEnds:
    """Rounds in a row whose results hold no line that was not seen before, by any agent.

    The calls may differ and so may the results as a whole; what counts is whether anything in them
    is new. Calls that think, plan, wait or hand over are left out. A novel call that succeeded and
    changed something starts the count afresh, and so does a single new line. What was seen is
    remembered in two Bloom filters that take turns, so memory stays the same after 100,000 steps;
    only the latest forty to eighty results are remembered, and of each a sample of its lines.

    Attributes:
        nudge: rounds that bring nothing new until the agent is told (2 or more).
        patient_seconds: rounds this far apart are waiting, in seconds.
        ceiling: the strongest answer this rule may justify.

    *Source*: on recorded runs no new line in five rounds fires on 0.7 % of the successful LLM runs,
    in eight on none; a study of 138 stuck and 233 working trials has 1.3 % false alarms at twelve
    steps. Bloom, "Space/time trade-offs in hash coding with allowable errors" (1970).

    Raises:
        ConfigError: a number is out of range.

    Example:
        >>> DeadEnds(nudge=5).nudge
        5
    """

    family: ClassVar[str] = "dead_end_drift"
    watches: ClassVar[tuple[type[Seen], ...]] = (ToolSeen,)

    nudge: int = 8
    patient_seconds: float = 60.0
    ceiling: Severity = Severity.NUDGE

    def __post_init__(self) -> None:
        check_kinds(self)
        check_ascending("DeadEnds", self.nudge, None, None)
        if self.patient_seconds <= 0:
            raise ConfigError(
                f"DeadEnds.patient_seconds must be above 0 seconds, not {self.patient_seconds!r}"
            )

    def probe(self) -> Probe:
        return _DeadEndProbe(self)


class _Drift:
    """Since when an agent has found nothing new."""

    __slots__ = ("at", "count", "epoch", "onset", "round")

    def __init__(self, count: int, onset: int, round_: int, epoch: int, at: float) -> None:
        self.count = count
        self.onset = onset
        self.round = round_
        self.epoch = epoch
        self.at = at


class _DeadEndProbe:
    def __init__(self, config: DeadEnds) -> None:
        self._config = config
        self._young = 0
        self._old = 0
        self._drifts: OrderedDict[str, _Drift] = OrderedDict()

    def observe(self, seen: Seen) -> Finding | None:
        assert isinstance(seen, ToolSeen)
        if seen.effect in ("think", "wait", "handoff") or seen.outcome == "blocked":
            return None
        drift = self._drifts.get(seen.agent)
        acknowledged = seen.novel and seen.outcome == "ok" and len(seen.text) < _ACKNOWLEDGEMENT
        if (seen.fresh and self._learn(seen.text)) or acknowledged or seen.facts.polling:
            if drift is not None:
                drift.count, drift.round = 0, seen.round
            return None
        if drift is None:
            if len(self._drifts) >= _CAPACITY:
                self._drifts.popitem(last=False)
            self._drifts[seen.agent] = _Drift(1, seen.step, seen.round, seen.epoch, seen.idle_at)
            return None
        return self._count(drift, seen)

    def _count(self, drift: _Drift, seen: ToolSeen) -> Finding | None:
        waited = seen.idle_at - drift.at >= self._config.patient_seconds
        drift.at = seen.idle_at
        if drift.epoch != seen.epoch or waited:
            drift.count, drift.round, drift.epoch = 0, -1, seen.epoch
        if drift.round == seen.round:
            return None
        drift.round = seen.round
        drift.count += 1
        if drift.count == 1:
            drift.onset = seen.step
        if drift.count < self._config.nudge:
            return None
        return Finding(
            family="stagnation",
            rule="dead_end_drift",
            key=f"drift:{seen.agent}",
            level=min(self._config.ceiling, Severity.NUDGE),
            count=drift.count,
            limit=self._config.nudge,
            onset_step=drift.onset,
            step=seen.step,
            agent=seen.agent,
            subject=seen.tool,
            cause="nothing_new",
            hard=False,
        )

    def _learn(self, result: str) -> bool:
        """Whether a result holds something new; it is remembered."""
        young = self._young
        known = young | self._old
        mask = 0
        for piece in _pieces(result):
            mask |= 1 << (piece & (_BITS - 1))
        if mask & ~known == 0:
            return False
        young |= mask
        if young.bit_count() > _FULL:
            self._old, young = young, 0
        self._young = young
        return True

    def forget(self, agent: str | None) -> None:
        if agent is None:
            self._young = self._old = 0
            self._drifts.clear()
        else:
            self._drifts.pop(agent, None)

    def dump(self) -> object:
        return [
            f"{self._young:x}",
            f"{self._old:x}",
            [
                [agent, d.count, d.onset, d.round, d.epoch, d.at]
                for agent, d in self._drifts.items()
            ],
        ]

    def load(self, data: object) -> None:
        self._drifts.clear()
        young, old, drifts = row(data, 3)
        self._young, self._old = _bits(young), _bits(old)
        for entry in sequence(drifts):
            agent, count, onset, round_, epoch, at = row(entry, 6)
            self._drifts[text(agent)] = _Drift(
                whole(count), whole(onset), whole(round_), whole(epoch), number(at)
            )


def _bits(data: object) -> int:
    found = int(text(data), 16)
    if found.bit_length() > _BITS:
        raise ValueError("a filter is too long")
    return found


def _pieces(result: str) -> list[int]:
    """A sample of the hashes of a result's lines, always the same for the same lines."""
    if len(result) > _HEAD + _TAIL:
        result = f"{result[:_HEAD]}\n{result[-_TAIL:]}"
    lines = result.encode("utf-8", "surrogatepass").split(b"\n")
    if len(lines) < 3 and len(result) > _LONG_LINE:
        lines = lines[0].replace(b". ", b", ").split(b", ") + lines[1:]
    return sorted(set(map(crc32, lines)))[:_PIECES]

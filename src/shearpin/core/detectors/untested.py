"""untested_edits: change upon change, and nothing is run to see whether they work."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import ClassVar

from shearpin.core.checks import check_kinds
from shearpin.core.detectors.base import Probe, check_ascending
from shearpin.core.seen import Seen, ToolSeen
from shearpin.core.stored import flag, row, sequence, text, whole
from shearpin.findings import Finding, Severity

__all__ = ["UntestedEdits"]

_CAPACITY = 4


@dataclass(frozen=True, slots=True)
class UntestedEdits:
    """New, successful changes in a row by an agent that can run things and does not.

    A note, and off by default: writing much before running it is how good agents work as well. It
    counts only for agents that have run something before in this turn.

    Attributes:
        after: changes in a row until it is noted (2 or more).
        ceiling: the strongest answer this rule may justify; `NUDGE` makes it speak.

    *Source*: on recorded runs eight changes in a row fire on 2.0 % of the successful and 0.7 % of
    the failed LLM runs, so it says nothing about trouble.

    Raises:
        ConfigError: `after` is too small.

    Example:
        >>> UntestedEdits(after=12).after
        12
    """

    family: ClassVar[str] = "untested_edits"
    watches: ClassVar[tuple[type[Seen], ...]] = (ToolSeen,)

    after: int = 8
    ceiling: Severity = Severity.NONE

    def __post_init__(self) -> None:
        check_kinds(self)
        check_ascending("UntestedEdits (after)", self.after, None, None)

    def probe(self) -> Probe:
        return _UntestedProbe(self)


class _Edits:
    __slots__ = ("count", "onset", "ran")

    def __init__(self, count: int = 0, onset: int = 0, ran: bool = False) -> None:
        self.count = count
        self.onset = onset
        self.ran = ran


class _UntestedProbe:
    def __init__(self, config: UntestedEdits) -> None:
        self._config = config
        self._agents: OrderedDict[str, _Edits] = OrderedDict()

    def observe(self, seen: Seen) -> Finding | None:
        assert isinstance(seen, ToolSeen)
        if seen.effect not in ("run", "write"):
            return None
        edits = self._agents.get(seen.agent)
        if edits is None:
            if len(self._agents) >= _CAPACITY:
                self._agents.popitem(last=False)
            edits = self._agents[seen.agent] = _Edits()
        if seen.effect == "run":
            edits.ran, edits.count = True, 0
            return None
        if not edits.ran or not seen.novel or seen.outcome not in ("ok", "empty"):
            return None
        edits.count += 1
        if edits.count == 1:
            edits.onset = seen.step
        if edits.count < self._config.after:
            return None
        return Finding(
            family="stagnation",
            rule="untested_edits",
            key=f"untested:{seen.agent}",
            level=min(self._config.ceiling, Severity.NUDGE),
            count=edits.count,
            limit=self._config.after,
            onset_step=edits.onset,
            step=seen.step,
            agent=seen.agent,
            subject=seen.tool,
            cause="not_tested",
            hard=False,
        )

    def forget(self, agent: str | None) -> None:
        if agent is None:
            self._agents.clear()

    def dump(self) -> object:
        return [[agent, e.count, e.onset, e.ran] for agent, e in self._agents.items()]

    def load(self, data: object) -> None:
        self._agents.clear()
        for entry in sequence(data):
            agent, count, onset, ran = row(entry, 4)
            self._agents[text(agent)] = _Edits(whole(count), whole(onset), flag(ran))

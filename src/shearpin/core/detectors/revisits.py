"""revisits: steps that only repeat earlier ones, strewn among steps that do not."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import ClassVar

from shearpin.core.checks import check_kinds
from shearpin.core.detectors.base import Probe, check_ascending
from shearpin.core.seen import Seen, ToolSeen
from shearpin.core.stored import flag, number, row, sequence, text, whole
from shearpin.errors import ConfigError
from shearpin.findings import Finding, Severity

__all__ = ["Revisits"]

_CAPACITY = 4


@dataclass(frozen=True, slots=True)
class Revisits:
    """Several *different* earlier calls come again with their old results, and one of them fails.

    No call needs to come often: an agent that lists, reads and runs the same broken script for a
    second time has gone in a circle of its own width. Only rounds in which nothing was new count,
    only since the last new work, and only if a failure is among them: to check everything once more
    before handing over is good practice, and its results are fine. At most a hint.

    Attributes:
        nudge: rounds that brought back only old results, until the agent is told (2 or more).
        window: rounds of the agent within which they count (at least `nudge`, at most 16).
        different: different calls that must be among them (2 or more).
        patient_seconds: rounds this far apart are waiting, in seconds.
        ceiling: the strongest answer this rule may justify.

    *Source*: on recorded runs three of eight rounds fire on no successful run; without the failure
    among them on 2.3 %.

    Raises:
        ConfigError: a number is out of range.

    Example:
        >>> Revisits(nudge=4).nudge
        4
    """

    family: ClassVar[str] = "revisits"
    watches: ClassVar[tuple[type[Seen], ...]] = (ToolSeen,)

    nudge: int = 3
    window: int = 8
    different: int = 2
    patient_seconds: float = 60.0
    ceiling: Severity = Severity.NUDGE

    def __post_init__(self) -> None:
        check_kinds(self)
        check_ascending("Revisits", self.nudge, None, None)
        if not self.nudge <= self.window <= 16:
            raise ConfigError(
                f"Revisits.window must lie between nudge and 16 rounds, not {self.window!r}"
            )
        if self.patient_seconds <= 0:
            raise ConfigError(
                f"Revisits.patient_seconds must be above 0 seconds, not {self.patient_seconds!r}"
            )
        if not 2 <= self.different <= self.nudge:
            raise ConfigError(
                f"Revisits.different must lie between 2 and nudge, not {self.different!r}"
            )

    def probe(self) -> Probe:
        return _RevisitProbe(self)


class _Trail:
    """Rounds of an agent that brought back only old results, the latest last."""

    __slots__ = ("at", "epoch", "fresh", "rounds")

    def __init__(self, epoch: int) -> None:
        self.at = 0.0
        self.epoch = epoch
        self.fresh = 0  # the latest round in which something was new
        self.rounds: list[tuple[int, int, str, bool]] = []


class _RevisitProbe:
    def __init__(self, config: Revisits) -> None:
        self._config = config
        self._trails: OrderedDict[str, _Trail] = OrderedDict()

    def observe(self, seen: Seen) -> Finding | None:
        assert isinstance(seen, ToolSeen)
        trail = self._trails.get(seen.agent)
        if seen.fresh:
            if trail is not None:
                trail.fresh = seen.round
                if trail.rounds and trail.rounds[-1][0] == seen.round:
                    del trail.rounds[-1]
            return None
        if (
            seen.outcome == "blocked"
            or seen.effect in ("wait", "think", "handoff")
            or seen.facts.polling
        ):
            return None
        if trail is None or trail.epoch != seen.epoch:
            if trail is None and len(self._trails) >= _CAPACITY:
                self._trails.popitem(last=False)
            trail = self._trails[seen.agent] = _Trail(seen.epoch)
        rounds = trail.rounds
        if trail.fresh == seen.round or (rounds and rounds[-1][0] == seen.round):
            return None
        if rounds and seen.idle_at - trail.at >= self._config.patient_seconds:
            rounds.clear()  # it has waited: looking again is what waiting is for
        trail.at = seen.idle_at
        failed = seen.outcome not in ("ok", "empty", "transient")
        rounds.append((seen.round, seen.step, seen.call_key[:6], failed))
        while rounds[0][0] <= seen.round - self._config.window:
            del rounds[0]
        return self._judge(rounds, seen)

    def _judge(self, rounds: list[tuple[int, int, str, bool]], seen: ToolSeen) -> Finding | None:
        config = self._config
        if len(rounds) < config.nudge or len({call for _, _, call, _ in rounds}) < config.different:
            return None
        if not any(failed for *_, failed in rounds):
            return None
        return Finding(
            family="repeat",
            rule="revisits",
            key=f"revisits:{seen.agent}",
            level=min(config.ceiling, Severity.NUDGE),
            count=len(rounds),
            limit=config.nudge,
            onset_step=rounds[0][1],
            step=seen.step,
            agent=seen.agent,
            subject=seen.tool,
            cause="same_sequence",
            hard=False,
        )

    def forget(self, agent: str | None) -> None:
        if agent is None:
            self._trails.clear()
        else:
            self._trails.pop(agent, None)

    def dump(self) -> object:
        return [
            [agent, t.epoch, t.fresh, t.at, [list(r) for r in t.rounds]]
            for agent, t in self._trails.items()
        ]

    def load(self, data: object) -> None:
        self._trails.clear()
        for entry in sequence(data):
            agent, epoch, fresh, at, rounds = row(entry, 5)
            trail = self._trails[text(agent)] = _Trail(whole(epoch))
            trail.fresh, trail.at = whole(fresh), number(at)
            for item in sequence(rounds):
                round_, step, call, failed = row(item, 4)
                trail.rounds.append((whole(round_), whole(step), text(call), flag(failed)))

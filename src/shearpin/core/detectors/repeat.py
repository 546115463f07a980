"""repeat: the same call with the same result, again and again, and nothing done in between."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import ClassVar

from shearpin.core.checks import check_kinds
from shearpin.core.detectors.base import Probe, check_ascending, level_of
from shearpin.core.outcomes import is_pending
from shearpin.core.seen import Seen, ToolSeen
from shearpin.core.stored import flag, mapping, row, sequence, text, whole, wholes
from shearpin.core.tools import sleeps
from shearpin.errors import ConfigError
from shearpin.findings import Finding, Severity

__all__ = ["Repeats"]

_WAITING = "waiting"
_WAITERS = 4
_CAPACITY = 28


@dataclass(frozen=True, slots=True)
class Repeats:
    """Same tool, same arguments, same normalised result, whatever lies between.

    A round counts once, however many copies of the call it holds. A *new, successful,
    state-changing* call in between starts the count afresh, new reads do not. Patient waiting (at
    least `patient_seconds` between two calls, not counting the time models think) does not count. A
    tool declared as polling is at most remarked on; a result that says "still running" may be asked
    for again, so it is refused late (at twice `block`) and its count never ends the run.

    Attributes:
        nudge: occurrences until the agent is told (2 or more).
        block: this occurrence is refused and answered with the earlier result. None: never.
        stop: this occurrence ends the run. None: never.
        window: rounds of the agent within which occurrences count, in rounds.
        patient_seconds: calls this far apart are waiting, not looping, in seconds. Errors count
            anyway.
        error_stop: `stop` for errors that do not pass by themselves: asking again cannot help.
        transient_stop: `stop` for rate limits, outages and network errors, which pass by
            themselves.
        ceiling: the strongest answer this rule may justify.

    *Source*: identical (call, result) three times with no novel call in between fires on 0.23 % of
    successful and 3.2 % of failed public LLM-agent runs; identical calls alone on
    28.8 % and 19.6 %.

    Raises:
        ConfigError: a threshold is too small or falls.

    Example:
        >>> Repeats(nudge=2, block=None, stop=6).stop
        6
    """

    family: ClassVar[str] = "repeat"
    watches: ClassVar[tuple[type[Seen], ...]] = (ToolSeen,)

    nudge: int = 3
    block: int | None = 5
    stop: int | None = 8
    window: int = 20
    patient_seconds: float = 60.0
    error_stop: int | None = 6
    transient_stop: int = 16
    ceiling: Severity = Severity.STOP

    def __post_init__(self) -> None:
        check_kinds(self)
        check_ascending("Repeats", self.nudge, self.block, self.stop)
        check_ascending("Repeats (error_stop)", self.nudge, self.block, self.error_stop)
        if self.window < 2:
            raise ConfigError(f"Repeats.window must be at least 2 rounds, not {self.window!r}")
        if self.patient_seconds <= 0:
            raise ConfigError(
                f"Repeats.patient_seconds must be above 0 seconds, not {self.patient_seconds!r}"
            )
        if self.transient_stop < 2:
            raise ConfigError(
                f"Repeats.transient_stop must be at least 2, not {self.transient_stop!r}"
            )

    def probe(self) -> Probe:
        return _RepeatProbe(self)


class _Pair:
    """The last result of a call, what kind of result it was, and in which rounds it came."""

    __slots__ = ("epoch", "excused", "idle_at", "kind", "onset", "result_key", "rounds", "still")

    def __init__(self, result_key: str, seen: ToolSeen) -> None:
        self.result_key = result_key
        self.kind: str = seen.outcome
        self.onset = seen.step
        self.epoch = seen.epoch
        self.idle_at = int(seen.idle_at)
        self.rounds: list[int] = [seen.round]
        self.excused = False
        self.still = False  # no other call has shown anything new between two of its rounds


class _RepeatProbe:
    """Remembers the latest calls of all agents, the least recently made is forgotten first."""

    def __init__(self, config: Repeats) -> None:
        self._config = config
        limits = (config.block, config.stop, config.error_stop, config.transient_stop)
        self._keep = max(config.nudge, *(limit or 0 for limit in limits))
        self._pairs: OrderedDict[tuple[str, str], _Pair] = OrderedDict()
        self._waited: dict[str, int] = {}
        self._fresh: dict[str, int] = {}

    def observe(self, seen: Seen) -> Finding | None:
        assert isinstance(seen, ToolSeen)
        if seen.effect == "wait":
            _put(self._waited, seen)
            return None
        if seen.outcome == "unknown_tool":
            return None
        key = (seen.agent, seen.call_key)
        pair = self._pairs.get(key)
        if seen.fresh and seen.outcome == "ok":
            _put(self._fresh, seen)
        if pair is None:
            if len(self._pairs) >= _CAPACITY:
                self._pairs.popitem(last=False)
            self._pairs[key] = _Pair(seen.result_key, seen)
            return None
        self._pairs.move_to_end(key)
        return self._again(pair, seen)

    def _again(self, pair: _Pair, seen: ToolSeen) -> Finding | None:
        if seen.outcome != "blocked" and pair.result_key != seen.result_key:
            pair.__init__(seen.result_key, seen)
            return None
        thought = seen.effect == "think" and pair.rounds[-1] < seen.round - 1
        if pair.epoch != seen.epoch or thought:  # thoughts between pieces of work are no loop
            pair.__init__(pair.result_key, seen)
            return None
        patient = seen.idle_at - pair.idle_at >= self._config.patient_seconds
        pair.idle_at = int(seen.idle_at)
        if pair.rounds[-1] == seen.round or (patient and seen.outcome in ("ok", "empty")):
            return None
        rounds = pair.rounds
        pair.still = pair.still or self._fresh.get(seen.agent, -1) <= rounds[-1]
        rounds.append(seen.round)
        oldest = seen.round - self._config.window
        while rounds[0] <= oldest or len(rounds) > self._keep:
            del rounds[0]
        return self._judge(pair, seen)

    def _judge(self, pair: _Pair, seen: ToolSeen) -> Finding | None:
        config = self._config
        count = len(pair.rounds)
        block, stop, ceiling = config.block, config.stop, config.ceiling
        if seen.outcome != "blocked":
            pair.kind = _WAITING if self._waits(pair, seen) else seen.outcome
        if seen.facts.polling or _moves(pair, seen):
            ceiling = min(ceiling, Severity.NUDGE)
        elif pair.kind == _WAITING:
            block, stop = None if block is None else 2 * block, None
        elif pair.kind == "transient":
            block, stop = None, config.transient_stop
        elif pair.kind in ("error", "bad_args"):
            stop = config.error_stop
        level = level_of(count, config.nudge, block, stop, ceiling)
        if level is Severity.NONE:
            return None
        reached = {Severity.NUDGE: config.nudge, Severity.BLOCK: block, Severity.STOP: stop}[level]
        return Finding(
            family="repeat",
            rule="repeat",
            key=seen.call_key,
            level=level,
            count=count,
            limit=reached or config.nudge,
            onset_step=pair.onset,
            step=seen.step,
            agent=seen.agent,
            subject=seen.tool,
            cause="waiting" if seen.facts.polling else _CAUSES.get(pair.kind, "answer_not_used"),
            hard=ceiling > Severity.NUDGE
            and (pair.kind not in (_WAITING, "transient") or level is Severity.STOP),
            refuses=(seen.call_key,),
        )

    def _waits(self, pair: _Pair, seen: ToolSeen) -> bool:
        """Whether asking again is waiting: something is under way, or the agent paused before."""
        if seen.facts.polling is not None:
            return False
        if seen.outcome == "ok" and is_pending(seen.text):
            return True
        paused = len(pair.rounds) > 1 and self._waited.get(seen.agent, -1) > pair.rounds[-2]
        return paused or sleeps(seen.args)

    def forget(self, agent: str | None) -> None:
        if agent is None:
            self._pairs.clear()
            self._waited.clear()
            self._fresh.clear()
            return
        for (owner, _), pair in self._pairs.items():
            # what was summarised away may be asked once more: half is discounted, the first time
            if owner == agent and not pair.excused:
                pair.excused = len(pair.rounds) > 1
                del pair.rounds[: len(pair.rounds) // 2]

    def dump(self) -> object:
        pairs = [
            [agent, call, pair.result_key, pair.kind, pair.onset, pair.epoch, pair.idle_at,
             pair.excused, pair.still, pair.rounds[0],
             [later - pair.rounds[0] for later in pair.rounds[1:]]]
            for (agent, call), pair in self._pairs.items()
        ]  # fmt: skip
        return [pairs, dict(self._waited), dict(self._fresh)]

    def load(self, data: object) -> None:
        self._pairs.clear()
        pairs, waited, fresh = row(data, 3)
        self._waited = {agent: whole(round_) for agent, round_ in mapping(waited).items()}
        self._fresh = {agent: whole(round_) for agent, round_ in mapping(fresh).items()}
        for item in sequence(pairs):
            agent, call, result, kind, onset, epoch, idle_at, *rest = row(item, 11)
            excused, still, first, later = rest
            pair = _Pair.__new__(_Pair)
            pair.result_key, pair.kind, pair.onset = text(result), text(kind), whole(onset)
            pair.epoch, pair.idle_at = whole(epoch), whole(idle_at)
            pair.excused, pair.still = flag(excused), flag(still)
            start = whole(first)
            pair.rounds = [start, *(start + offset for offset in wholes(later))]
            self._pairs[(text(agent), text(call))] = pair


def _put(rounds: dict[str, int], seen: ToolSeen) -> None:
    """Note the round of an agent's latest call of a kind."""
    if len(rounds) >= _WAITERS and seen.agent not in rounds:
        del rounds[next(iter(rounds))]
    rounds[seen.agent] = seen.round


def _moves(pair: _Pair, seen: ToolSeen) -> bool:
    """Whether a call does something each time, for what is seen between its rounds is new: "go
    back" between the pages of a list, "forward" between the readings of a sensor."""
    return not pair.still and seen.effect in ("run", "write") and pair.kind == "ok"


_CAUSES = {
    _WAITING: "waiting",
    "transient": "outage",
    "error": "error_not_understood",
    "bad_args": "error_not_understood",
    "empty": "empty_taken_for_failure",
}

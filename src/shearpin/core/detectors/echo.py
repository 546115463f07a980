"""echo: a long message that is sent again, word for word."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import ClassVar

from shearpin.core.canonical import digest_text
from shearpin.core.checks import check_kinds
from shearpin.core.detectors.base import Probe, check_ascending
from shearpin.core.seen import MessageSeen, Seen, ToolSeen
from shearpin.core.stored import mapping, number, row, sequence, text, whole
from shearpin.errors import ConfigError
from shearpin.findings import Finding, Severity

__all__ = ["Echoes"]

_CAPACITY = 10
_FENCE = "```"
_ARTEFACT = 1000
"""Longer messages are artefacts, in characters."""


@dataclass(frozen=True, slots=True)
class Echoes:
    """Messages without tool calls, compared word for word, whatever other agents say in between.

    A sentence is counted per agent. Of an artefact (text with a code block, or a long one) the
    first showing is free, whoever shows it: a file may well be sent again for another review, and
    it is a loop when two agents hand each other the same unchanged one. A novel tool call means
    that work is done: from then on only what is long (`least_characters_at_work`) still counts, as
    a hint. At most a
    hint: an agent that answers everything with a form letter may be meant to, and what others say
    in between may be new. Where nothing is new, `cycle` and `monologue` end the run.

    Attributes:
        nudge: times an agent sent the same until it is told (2 or more).
        least_characters: shorter messages are left out, in characters.
        least_characters_at_work: the same where novel calls lie in between, in characters.
        patient_seconds: the same words this far apart are a report on time, in seconds.
        ceiling: the strongest answer this rule may justify.

    *Source*: public dialogues of a programmer and a reviewer who exchange a byte-identical file.

    Raises:
        ConfigError: a threshold is too small or falls.

    Example:
        >>> Echoes(nudge=4).nudge
        4
    """

    family: ClassVar[str] = "echo"
    watches: ClassVar[tuple[type[Seen], ...]] = (MessageSeen, ToolSeen)

    nudge: int = 3
    least_characters: int = 60
    least_characters_at_work: int = 200
    patient_seconds: float = 300.0
    ceiling: Severity = Severity.NUDGE

    def __post_init__(self) -> None:
        check_kinds(self)
        check_ascending("Echoes", self.nudge, None, None)
        if not 1 <= self.least_characters <= self.least_characters_at_work:
            raise ConfigError(
                "Echoes.least_characters must be 1 or more, at most least_characters_at_work, not "
                f"{self.least_characters!r} and {self.least_characters_at_work!r}"
            )

        if self.patient_seconds <= 0:
            raise ConfigError(
                f"Echoes.patient_seconds must be above 0 seconds, not {self.patient_seconds!r}"
            )

    def probe(self) -> Probe:
        return _EchoProbe(self)


class _Said:
    """One message: how often it came in all, and since the last novel call, and from whom."""

    __slots__ = ("at", "calls", "count", "onset", "senders")

    def __init__(self, step: int, calls: int) -> None:
        self.at = 0.0
        self.count = 0
        self.onset = step
        self.calls = calls
        self.senders: dict[str, int] = {}


class _EchoProbe:
    def __init__(self, config: Echoes) -> None:
        self._config = config
        self._calls = 0
        self._said: OrderedDict[str, _Said] = OrderedDict()

    def observe(self, seen: Seen) -> Finding | None:
        if isinstance(seen, ToolSeen):
            if seen.novel and self._said and seen.effect not in ("think", "handoff"):
                self._calls += 1
            return None
        assert isinstance(seen, MessageSeen)
        message = seen.text.strip()
        if len(message) < self._config.least_characters:
            return None
        artefact = len(message) > _ARTEFACT or _FENCE in message
        key = digest_text(message if artefact else f"{seen.agent}\0{message}")[:8]
        said = self._said.get(key)
        if said is None:
            if len(self._said) >= _CAPACITY:
                self._said.popitem(last=False)
            said = self._said[key] = _Said(seen.step, self._calls)
        else:
            self._said.move_to_end(key)
        if said.count and seen.at - said.at >= self._config.patient_seconds:
            said.count, said.onset = 0, seen.step
            said.senders.clear()
        said.at = seen.at
        said.count += 1
        if said.calls != self._calls:
            said.calls = self._calls
            said.senders.clear()
        sender = digest_text(seen.agent)[:4]
        mine = said.senders.get(sender, 0) + 1
        if mine > 1 or len(said.senders) < 4:
            said.senders[sender] = mine
        idle = min(mine, sum(said.senders.values()) - 1) if artefact else mine
        return self._judge(said, seen, key, len(message), idle)

    def _judge(
        self, said: _Said, seen: MessageSeen, key: str, size: int, idle: int
    ) -> Finding | None:
        config = self._config
        limit, count = config.nudge, idle
        if idle < limit:
            limit, count = config.nudge + 1, said.count
            if not self._calls or size < config.least_characters_at_work or count < limit:
                return None
        return Finding(
            family="monologue",
            rule="echo",
            key=f"echo:{key}",
            level=min(config.ceiling, Severity.NUDGE),
            count=count,
            limit=limit,
            onset_step=said.onset,
            step=seen.step,
            agent=seen.agent,
            cause="resent",
            hard=False,
        )

    def forget(self, agent: str | None) -> None:
        if agent is None:
            self._said.clear()
            self._calls = 0

    def dump(self) -> object:
        return [
            self._calls,
            [[key, s.count, s.onset, s.calls, s.at, s.senders] for key, s in self._said.items()],
        ]

    def load(self, data: object) -> None:
        self._said.clear()
        calls, entries = row(data, 2)
        self._calls = whole(calls)
        for entry in sequence(entries):
            key, count, onset, calls, at, senders = row(entry, 6)
            said = self._said[text(key)] = _Said(whole(onset), whole(calls))
            said.count, said.at = whole(count), number(at)
            said.senders = {name: whole(times) for name, times in mapping(senders).items()}

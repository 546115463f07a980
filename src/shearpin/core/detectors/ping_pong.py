"""ping_pong: agents hand over to each other, and nobody does the work."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import ClassVar

from shearpin.core.canonical import digest_text
from shearpin.core.checks import check_kinds
from shearpin.core.detectors.base import Probe, check_ascending, level_of
from shearpin.core.seen import MessageSeen, Seen, ToolSeen
from shearpin.core.stored import mapping, row, texts, whole
from shearpin.errors import ConfigError
from shearpin.findings import Finding, Severity

__all__ = ["PingPongs"]

_CAPACITY = 8
_HEARD = 12
_REPORT = 120
"""A hand-off that brings back more than this, in characters, was a delegation: it is work."""


@dataclass(frozen=True, slots=True)
class PingPongs:
    """The same hand-off by the same agent, again and again, whatever reason is given for it.

    Counted are hand-off calls (by name or command: `transfer_to_...`, `handoff`, `delegate`) per
    agent and tool, since somebody last did something else: a call of another kind that brought
    something new, a message nobody has sent before, or a hand-off that came back with a report.

    Attributes:
        nudge: times the same hand-off came until the agents are told (2 or more).
        block: this one is refused. None: never.
        stop: this one ends the run. None: never.
        least_characters: shorter messages are no work, in characters.
        ceiling: the strongest answer this rule may justify.

    *Source*: public reports of two peers that hand a case to each other until the recursion limit.
    Alternation of speakers alone fires on 65 % of healthy dialogues, so work in between is what
    counts.

    Raises:
        ConfigError: a threshold is too small or falls.

    Example:
        >>> PingPongs(nudge=4).nudge
        4
    """

    family: ClassVar[str] = "ping_pong"
    watches: ClassVar[tuple[type[Seen], ...]] = (ToolSeen, MessageSeen)

    nudge: int = 3
    block: int | None = 5
    stop: int | None = 8
    least_characters: int = 20
    ceiling: Severity = Severity.STOP

    def __post_init__(self) -> None:
        check_kinds(self)
        check_ascending("PingPongs", self.nudge, self.block, self.stop)
        if self.least_characters < 0:
            raise ConfigError(
                f"PingPongs.least_characters must be 0 or more, not {self.least_characters!r}"
            )

    def probe(self) -> Probe:
        return _PingPongProbe(self)


class _PingPongProbe:
    def __init__(self, config: PingPongs) -> None:
        self._config = config
        self._onset = 0
        self._counts: OrderedDict[str, int] = OrderedDict()
        self._heard: OrderedDict[str, None] = OrderedDict()

    def observe(self, seen: Seen) -> Finding | None:
        if isinstance(seen, MessageSeen):
            self._listen(seen)
            return None
        assert isinstance(seen, ToolSeen)
        if seen.effect != "handoff":
            if self._counts and seen.fresh and seen.effect != "think" and seen.outcome == "ok":
                self._counts.clear()
            return None
        if seen.fresh and len(seen.text) > _REPORT:
            self._counts.clear()
            return None
        key = digest_text(f"{seen.agent}\0{seen.tool}")[:8]
        if not self._counts:
            self._onset = seen.step
        count = self._counts[key] = self._counts.get(key, 0) + 1
        if len(self._counts) > _CAPACITY:
            self._counts.popitem(last=False)
        return self._judge(count, seen) if len(self._counts) > 1 else None

    def _listen(self, seen: MessageSeen) -> None:
        """A message that nobody has sent before, and that says something, is work."""
        if not self._counts and not self._heard and len(seen.text) < self._config.least_characters:
            return
        key = digest_text(seen.text)[:6]
        if key in self._heard:
            self._heard.move_to_end(key)
            return
        if len(self._heard) >= _HEARD:
            self._heard.popitem(last=False)
        self._heard[key] = None
        if len(seen.text) >= self._config.least_characters:
            self._counts.clear()

    def _judge(self, count: int, seen: ToolSeen) -> Finding | None:
        config = self._config
        level = level_of(count, config.nudge, config.block, config.stop, config.ceiling)
        if level is Severity.NONE:
            return None
        limits = {Severity.NUDGE: config.nudge, Severity.BLOCK: config.block}
        return Finding(
            family="ping_pong",
            rule="ping_pong",
            key="ping_pong",
            level=level,
            count=count,
            limit=limits.get(level, config.stop) or config.nudge,
            onset_step=self._onset,
            step=seen.step,
            agent=seen.agent,
            subject=seen.tool,
            cause="handed_over",
            refuses=(f"tool:{seen.tool}",),
        )

    def forget(self, agent: str | None) -> None:
        if agent is None:
            self._counts.clear()
            self._heard.clear()

    def dump(self) -> object:
        return [self._onset, dict(self._counts), list(self._heard)]

    def load(self, data: object) -> None:
        onset, counts, heard = row(data, 3)
        self._onset = whole(onset)
        self._counts = OrderedDict((key, whole(count)) for key, count in mapping(counts).items())
        self._heard = OrderedDict((key, None) for key in texts(heard))

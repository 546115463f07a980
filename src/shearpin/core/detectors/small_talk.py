"""small_talk: agents answer each other in short messages that say nothing new."""

from __future__ import annotations

import re
from collections import OrderedDict
from dataclasses import dataclass
from typing import ClassVar

from shearpin.core.canonical import digest_text
from shearpin.core.checks import check_kinds
from shearpin.core.detectors.base import Probe, check_ascending
from shearpin.core.seen import MessageSeen, Seen
from shearpin.core.stored import row, text, texts, whole
from shearpin.errors import ConfigError
from shearpin.findings import Finding, Severity

__all__ = ["SmallTalk"]

_WORDS = 64
_SEAL = 4
_TOKEN = re.compile(
    r"[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]|[^\W\d_\u3040-\u9fff\uac00-\ud7af]+|\d+"
)


@dataclass(frozen=True, slots=True)
class SmallTalk:
    """Good-byes and thanks that do not end: each message is made of words that were said before.

    Counted are messages in a row, by two agents or nodes at least, without a tool call by anyone
    between them. A longer message, or one with something new in it (a new number is enough), starts
    the count afresh. A hint at most: what is said in other words is no repetition.

    Attributes:
        nudge: such messages in a row until the agent is told (2 or more).
        most_characters: a longer message is no small talk, in characters.
        known: share of a message's words that were said before, from which on it brings nothing
            new (above 0, to 1).
        ceiling: the strongest answer this rule may justify.

    *Source*: agents that say good-bye for ever are among the commonest public reports on
    multi-agent chats. Four such messages in a row come in no recorded run of a dozen sources.

    Raises:
        ConfigError: a number is out of range.

    Example:
        >>> SmallTalk(nudge=8).nudge
        8
    """

    family: ClassVar[str] = "small_talk"
    watches: ClassVar[tuple[type[Seen], ...]] = (MessageSeen,)

    nudge: int = 5
    most_characters: int = 100
    known: float = 0.6
    ceiling: Severity = Severity.NUDGE

    def __post_init__(self) -> None:
        check_kinds(self)
        check_ascending("SmallTalk", self.nudge, None, None)
        if self.most_characters < 1:
            raise ConfigError(
                f"SmallTalk.most_characters must be 1 or more, not {self.most_characters!r}"
            )
        if not 0 < self.known <= 1:
            raise ConfigError(f"SmallTalk.known must lie between 0 and 1, not {self.known!r}")

    def probe(self) -> Probe:
        return _TalkProbe(self)


class _TalkProbe:
    def __init__(self, config: SmallTalk) -> None:
        self._config = config
        self._words: OrderedDict[str, None] = OrderedDict()
        self._speakers: list[str] = []
        self._count = 0
        self._onset = 0
        self._step = 0

    def observe(self, seen: Seen) -> Finding | None:
        assert isinstance(seen, MessageSeen)
        if seen.step != self._step + 1:  # somebody has called a tool in between
            self._clear()
        self._step = seen.step
        if seen.blank or len(seen.text) > self._config.most_characters:
            self._clear()
            return None
        words: set[str] = set()
        known, counts = 0, False
        for said in set(_TOKEN.findall(seen.text.lower())):
            word = digest_text(said)[:_SEAL]
            words.add(word)
            known += word in self._words
            counts = counts or (said.isdigit() and word not in self._words)
        if words and not counts and known >= self._config.known * len(words):
            self._onset = self._onset if self._count else seen.step
            self._count += 1
        else:
            self._count = 0
            self._speakers.clear()
        for word in words:
            self._words[word] = None
            self._words.move_to_end(word)
        while len(self._words) > _WORDS:
            self._words.popitem(last=False)
        agent = seen.agent.partition("#")[0]  # branches side by side do not talk to each other
        speaker = digest_text(f"{agent}\0{seen.node}")[:_SEAL]
        if speaker not in self._speakers and len(self._speakers) < 2:
            self._speakers.append(speaker)
        return self._judge(seen)

    def _judge(self, seen: MessageSeen) -> Finding | None:
        if self._count < self._config.nudge or len(self._speakers) < 2:
            return None
        return Finding(
            family="monologue",
            rule="small_talk",
            key="small_talk",
            level=min(self._config.ceiling, Severity.NUDGE),
            count=self._count,
            limit=self._config.nudge,
            onset_step=self._onset,
            step=seen.step,
            agent=seen.agent,
            cause="all_said",
            hard=False,
        )

    def _clear(self) -> None:
        self._words.clear()
        self._speakers.clear()
        self._count = 0

    def forget(self, agent: str | None) -> None:
        if agent is None:
            self._clear()

    def dump(self) -> object:
        speakers = list(self._speakers)
        return [self._step, self._count, self._onset, speakers, "".join(self._words)]

    def load(self, data: object) -> None:
        step, count, onset, speakers, words = row(data, 5)
        self._step, self._count, self._onset = whole(step), whole(count), whole(onset)
        self._speakers = texts(speakers)
        sealed = text(words)
        self._words = OrderedDict(
            (sealed[at : at + _SEAL], None) for at in range(0, len(sealed), _SEAL)
        )

"""monologue: messages without tool calls that say the same again, or nothing."""

from __future__ import annotations

import re
import unicodedata
from collections import OrderedDict
from dataclasses import dataclass
from hashlib import blake2b
from typing import ClassVar

from shearpin.core.canonical import digest_text
from shearpin.core.checks import check_kinds
from shearpin.core.detectors.base import Probe, check_ascending, level_of
from shearpin.core.masking import mask
from shearpin.core.seen import MessageSeen, Seen, ToolSeen
from shearpin.core.stored import row, sequence, text, whole
from shearpin.errors import ConfigError
from shearpin.findings import Finding, Severity

__all__ = ["Monologues"]

_CAPACITY = 6
_SKETCH = 24
_TOKEN = re.compile(r"[a-z]+(?:'[a-z]+)?|[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]|#|[^\W\da-z_]+")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")


@dataclass(frozen=True, slots=True)
class Monologues:
    """Talk that does not move: the agent says what it has just said, or sends blank messages.

    Short messages (up to `near_characters`) are compared by their words, so that a changed number
    or filler word does not hide the repetition; longer ones only count when they are equal. A new
    message by another agent, or a tool call by the same one, starts the count afresh.

    Attributes:
        nudge: messages that say the same until the agent is told (2 or more).
        stop: this message ends the run. None: never.
        similarity: share of words that two short messages have in common, above which they count
            as the same (0 to 1, exclusive).
        near_characters: longest message compared by words, in characters.
        ceiling: the strongest answer this rule may justify.

    *Source*: public reports of agents that announce their next step for ever; near-equal *long*
    messages were the costliest false alarm of a research prototype, so those must be equal.

    Raises:
        ConfigError: a threshold is too small or falls, or a share is out of range.

    Example:
        >>> Monologues(nudge=2).nudge
        2
    """

    family: ClassVar[str] = "monologue"
    watches: ClassVar[tuple[type[Seen], ...]] = (MessageSeen, ToolSeen)

    nudge: int = 3
    stop: int | None = 6
    similarity: float = 0.65
    near_characters: int = 300
    ceiling: Severity = Severity.STOP

    def __post_init__(self) -> None:
        check_kinds(self)
        check_ascending("Monologues", self.nudge, None, self.stop)
        if not 0 < self.similarity < 1:
            raise ConfigError(
                f"Monologues.similarity must lie between 0 and 1, not {self.similarity!r}"
            )
        if self.near_characters < 0:
            raise ConfigError(
                f"Monologues.near_characters must be 0 or more, not {self.near_characters!r}"
            )

    def probe(self) -> Probe:
        return _MonologueProbe(self)


class _Voice:
    """What an agent said last: a digest, a sketch of its words, and how often it has said so."""

    __slots__ = ("count", "equal", "onset", "others", "sketch")

    def __init__(self) -> None:
        self.equal = ""
        self.sketch: frozenset[str] = frozenset()
        self.count = 0
        self.onset = 0
        self.others = 0


class _MonologueProbe:
    def __init__(self, config: Monologues) -> None:
        self._config = config
        self._voices: OrderedDict[str, _Voice] = OrderedDict()
        self._novel_messages = 0

    def observe(self, seen: Seen) -> Finding | None:
        if isinstance(seen, ToolSeen):
            if self._voices:
                self._voices.pop(seen.agent, None)
            return None
        assert isinstance(seen, MessageSeen)
        voice = self._voices.get(seen.agent)
        if voice is None:
            if len(self._voices) >= _CAPACITY:
                self._voices.popitem(last=False)
            voice = self._voices[seen.agent] = _Voice()
        else:
            self._voices.move_to_end(seen.agent)
        return self._listen(voice, seen)

    def _listen(self, voice: _Voice, seen: MessageSeen) -> Finding | None:
        config = self._config
        text = _spoken(seen.text)
        equal = digest_text(text)
        sketch = _sketch(text) if 0 < len(text) <= config.near_characters else frozenset[str]()
        same = voice.count > 0 and (
            equal == voice.equal or _alike(sketch, voice.sketch, config.similarity)
        )
        voice.equal, voice.sketch = equal, sketch
        if not same or voice.others != self._novel_messages:
            if not same:
                self._novel_messages += 1
            voice.count, voice.onset, voice.others = 1, seen.step, self._novel_messages
            return None
        voice.count += 1
        level = level_of(voice.count, config.nudge, None, config.stop, config.ceiling)
        if level is Severity.NONE:
            return None
        limit = config.nudge if level is Severity.NUDGE else (config.stop or config.nudge)
        return Finding(
            family="monologue",
            rule="monologue",
            key=f"monologue:{seen.agent}",
            level=level,
            count=voice.count,
            limit=limit,
            onset_step=voice.onset,
            step=seen.step,
            agent=seen.agent,
            cause="says_nothing" if seen.blank else "says_the_same",
        )

    def forget(self, agent: str | None) -> None:
        if agent is None:
            self._voices.clear()
            self._novel_messages = 0
        else:
            self._voices.pop(agent, None)

    def dump(self) -> object:
        return [
            self._novel_messages,
            [[agent, v.equal, "".join(sorted(v.sketch)), v.count, v.onset, v.others]
             for agent, v in self._voices.items()],
        ]  # fmt: skip

    def load(self, data: object) -> None:
        self._voices.clear()
        novel, voices = row(data, 2)
        self._novel_messages = whole(novel)
        for item in sequence(voices):
            agent, equal, sketch, count, onset, others = row(item, 6)
            voice = self._voices[text(agent)] = _Voice()
            voice.equal, voice.count = text(equal), whole(count)
            voice.onset, voice.others = whole(onset), whole(others)
            joined = text(sketch)
            voice.sketch = frozenset(joined[i : i + 4] for i in range(0, len(joined), 4))


def _spoken(text: str) -> str:
    """A message without what varies by itself: case, form, white space, numbers, times."""
    text = unicodedata.normalize("NFKC", text) if not text.isascii() else text
    return " ".join(_NUMBER.sub("#", mask(text)).lower().split())


def _sketch(text: str) -> frozenset[str]:
    tokens = set(_TOKEN.findall(text))
    hashes = sorted(blake2b(token.encode(), digest_size=2).hexdigest() for token in tokens)
    return frozenset(hashes[:_SKETCH])


def _alike(a: frozenset[str], b: frozenset[str], floor: float) -> bool:
    if not a or not b:
        return False
    return len(a & b) >= floor * len(a | b)

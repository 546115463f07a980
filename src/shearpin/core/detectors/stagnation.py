"""stagnation: different questions, and always the same answer."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from typing import ClassVar
from zlib import crc32

from shearpin.core.checks import check_kinds
from shearpin.core.detectors.base import Probe, check_ascending
from shearpin.core.masking import EDGE, mask, words_of
from shearpin.core.seen import Seen, ToolSeen
from shearpin.core.stored import row, sequence, text, whole, wholes
from shearpin.errors import ConfigError
from shearpin.findings import Finding, Severity

__all__ = ["Stagnations"]

_CAPACITY = 4
_SKETCH = 24
_FEW_LINES = 3
_SCORE = re.compile(r"\b\d*\.\d+\b")
_WORDY = 48
_TOKEN = re.compile(r"[A-Za-z]+|\d+|[\u4e00-\u9fff]+")
_REFERENCE = re.compile(r"\b(?=\w*\d)(?=\w*[A-Za-z])\w{2,}\b")


@dataclass(frozen=True, slots=True)
class Stagnations:
    """Results that stay what they were though the questions change: another wording, other tools.

    Only reads count, and only results with some content (`least_characters`): "reserved" for the
    tenth seat is an answer, not a standstill. Order of lines, times, ids and element references do
    not make a result new. At most a hint: it is evidence that the tools are broken or the source
    exhausted, not that the agent repeats itself.

    Attributes:
        nudge: results in a row that bring nothing new, until the agent is told (2 or more).
        similarity: share of words in common above which two results count as the same (0 to 1).
        least_characters: shorter results are left out, in characters.
        ceiling: the strongest answer this rule may justify.

    *Source*: public reports of tool layers that answer every call with one unrelated text, and of
    searches that return one page for nine wordings.

    Raises:
        ConfigError: a threshold is too small, or a share is out of range.

    Example:
        >>> Stagnations(nudge=5).nudge
        5
    """

    family: ClassVar[str] = "stagnation"
    watches: ClassVar[tuple[type[Seen], ...]] = (ToolSeen,)

    nudge: int = 6
    similarity: float = 0.9
    least_characters: int = 16
    ceiling: Severity = Severity.NUDGE

    def __post_init__(self) -> None:
        check_kinds(self)
        check_ascending("Stagnations", self.nudge, None, None)
        if self.least_characters < 0:
            raise ConfigError(
                f"Stagnations.least_characters must be 0 or more, not {self.least_characters!r}"
            )
        if not 0 < self.similarity <= 1:
            raise ConfigError(
                f"Stagnations.similarity must lie between 0 and 1, not {self.similarity!r}"
            )

    def probe(self) -> Probe:
        return _StagnationProbe(self)


class _Standstill:
    __slots__ = ("count", "epoch", "onset", "result_key", "round", "size", "sketch")

    def __init__(self, seen: ToolSeen) -> None:
        self.sketch: frozenset[int] = frozenset()
        self.result_key = seen.result_key
        self.size = len(seen.text)
        self.count = 1
        self.onset = seen.step
        self.round = seen.round
        self.epoch = seen.epoch


class _StagnationProbe:
    def __init__(self, config: Stagnations) -> None:
        self._config = config
        self._agents: OrderedDict[str, _Standstill] = OrderedDict()

    def observe(self, seen: Seen) -> Finding | None:
        assert isinstance(seen, ToolSeen)
        still = self._agents.get(seen.agent)
        size = len(seen.text)
        # a text of some length is no acknowledgement, whatever the call was meant to do
        echoed = still is not None and size >= _WORDY and seen.result_key == still.result_key
        if not echoed and (seen.outcome != "ok" or size < self._least(seen)):
            self._agents.pop(seen.agent, None)
            return None
        if still is None or not (
            echoed or (still.epoch == seen.epoch and self._again(still, seen))
        ):
            if still is None and len(self._agents) >= _CAPACITY:
                self._agents.popitem(last=False)
            self._agents[seen.agent] = _Standstill(seen)
            return None
        if still.round == seen.round:
            return None
        still.round = seen.round
        still.count += 1
        if still.count < self._config.nudge:
            return None
        return Finding(
            family="stagnation",
            rule="constant_result",
            key=f"stagnation:{seen.agent}",
            level=min(self._config.ceiling, Severity.NUDGE),
            count=still.count,
            limit=self._config.nudge,
            onset_step=still.onset,
            step=seen.step,
            agent=seen.agent,
            subject=seen.tool,
            cause="nothing_new",
            hard=False,
        )

    def _least(self, seen: ToolSeen) -> float:
        """How long a result must be to tell of anything: of unknown tools only a long one does."""
        if seen.effect == "read":
            return self._config.least_characters
        return max(_WORDY, self._config.least_characters) if seen.effect == "run" else inf

    def _again(self, still: _Standstill, seen: ToolSeen) -> bool:
        """Whether a result says what the last one said; words count if the sizes agree."""
        if seen.result_key == still.result_key:
            return True
        size = len(seen.text)
        if size < _WORDY:  # so few words agree only if they are the same
            return False
        if not 0.8 <= size / still.size <= 1.25:
            return False
        sketch = _sketch(seen.text, seen.args)
        known, still.sketch, still.result_key = still.sketch, sketch, seen.result_key
        # without a sketch of the result before, sizes have to do: the next one will tell
        return not known or len(known & sketch) >= self._config.similarity * len(known | sketch)

    def forget(self, agent: str | None) -> None:
        if agent is None:
            self._agents.clear()
        else:
            self._agents.pop(agent, None)

    def dump(self) -> object:
        return [
            [agent, sorted(s.sketch), s.result_key, s.size, s.count, s.onset, s.round, s.epoch]
            for agent, s in self._agents.items()
        ]

    def load(self, data: object) -> None:
        self._agents.clear()
        for item in sequence(data):
            agent, sketch, result, size, count, onset, round_, epoch = row(item, 8)
            still = self._agents[text(agent)] = _Standstill.__new__(_Standstill)
            still.sketch, still.result_key = frozenset(wholes(sketch)), text(result)
            still.size, still.count, still.onset = whole(size), whole(count), whole(onset)
            still.round, still.epoch = whole(round_), whole(epoch)


def _sketch(text: str, args: Mapping[str, object] | str) -> frozenset[int]:
    """The smallest hashes of what a result says, blind to order, times, scores and references.

    Of a text with several lines the lines count, else the words; words of the question do not.
    """
    if len(text) > 2 * EDGE:
        text = text[:EDGE] + "\n" + text[-EDGE:]
    plain = _SCORE.sub("", _REFERENCE.sub("§", mask(text)))
    asked = words_of([args] if isinstance(args, str) else map(str, args.values()))
    if plain.count("\n") < _FEW_LINES:
        tokens = set(_TOKEN.findall(plain)) - asked
    else:
        lines = (_TOKEN.findall(line) for line in plain.split("\n"))
        tokens = {" ".join(word for word in line if word not in asked) for line in lines}
    return frozenset(sorted(crc32(token.encode()) & 0xFFFF for token in tokens)[:_SKETCH])

"""insistence: one call, again and again, though what comes back hardly changes."""

from __future__ import annotations

import re
from collections import OrderedDict
from dataclasses import dataclass
from typing import ClassVar
from zlib import crc32

from shearpin.core.canonical import canonical_json
from shearpin.core.checks import check_kinds
from shearpin.core.detectors.base import Probe, check_ascending
from shearpin.core.seen import Seen, ToolSeen
from shearpin.core.sketch import similarity, sketch
from shearpin.core.stored import number, row, sequence, text, whole, wholes
from shearpin.errors import ConfigError
from shearpin.findings import Finding, Severity

__all__ = ["Insistences"]

_CAPACITY = 3


_READ = 2400
_DIGITS = re.compile(r"\d+")
_MOVES_ON = re.compile(
    r"status|progress|poll|queue|scroll|page.?(?:down|up)|\bnext\b|load.?more|show.?more|\btab\b|swipe|arrow|refresh|reload|continue"
    r"|滚动|翻页|下一|更多|刷新|继续",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Insistences:
    """The very same call with nothing between, and results that differ only in details.

    For pages that render a little differently each time they are looked at: neither result nor call
    is new, but no two results are equal, so `repeat` cannot see it. What grows from call to call
    (the output of a build) is progress, and so is what differs in more than details (the next page
    after the same click). Any other call of the agent starts the count afresh. At most a hint.

    Attributes:
        nudge: calls in a row until the agent is told (3 or more).
        similarity: share of words in common above which two results count as the same (0 to 1).
        least_characters: shorter results are left out, in characters.
        patient_seconds: calls this far apart are waiting, in seconds.
        ceiling: the strongest answer this rule may justify.

    *Source*: on recorded runs four such calls in a row fire on no successful run; public reports of
    web agents that click the same link of the same page.

    Raises:
        ConfigError: a number is out of range.

    Example:
        >>> Insistences(nudge=5).nudge
        5
    """

    family: ClassVar[str] = "insistence"
    watches: ClassVar[tuple[type[Seen], ...]] = (ToolSeen,)

    nudge: int = 4
    similarity: float = 0.75
    least_characters: int = 80
    patient_seconds: float = 60.0
    ceiling: Severity = Severity.NUDGE

    def __post_init__(self) -> None:
        check_kinds(self)
        check_ascending("Insistences", self.nudge, None, None)
        if self.least_characters < 0:
            raise ConfigError(
                f"Insistences.least_characters must be 0 or more, not {self.least_characters!r}"
            )
        if self.nudge < 3:
            raise ConfigError(f"Insistences.nudge must be 3 or more, not {self.nudge!r}")
        if not 0 < self.similarity <= 1:
            raise ConfigError(
                f"Insistences.similarity must lie between 0 and 1, not {self.similarity!r}"
            )
        if self.patient_seconds <= 0:
            raise ConfigError(
                f"Insistences.patient_seconds must be above 0 seconds, not {self.patient_seconds!r}"
            )

    def probe(self) -> Probe:
        return _InsistenceProbe(self)


class _Call:
    """The latest call of an agent. The sketch is made from the second time on."""

    __slots__ = (
        "at",
        "call_key",
        "count",
        "grown",
        "numbers",
        "onset",
        "result_key",
        "round",
        "size",
        "sketch",
    )

    def __init__(self, seen: ToolSeen) -> None:
        self.call_key = seen.call_key
        self.result_key = seen.result_key
        self.count = 1
        self.grown = 0
        self.onset = seen.step
        self.round = seen.round
        self.at = seen.idle_at
        self.size = len(seen.text)
        self.sketch: tuple[int, ...] = ()
        self.numbers = 0


class _InsistenceProbe:
    def __init__(self, config: Insistences) -> None:
        self._config = config
        self._calls: OrderedDict[str, _Call] = OrderedDict()

    def observe(self, seen: Seen) -> Finding | None:
        assert isinstance(seen, ToolSeen)
        call = self._calls.get(seen.agent)
        if call is None or call.call_key != seen.call_key:
            if call is None and len(self._calls) >= _CAPACITY:
                self._calls.popitem(last=False)
            self._calls[seen.agent] = _Call(seen)
            return None
        if call.round == seen.round:
            return None
        if not self._again(call, seen):
            self._calls[seen.agent] = _Call(seen)
            return None
        call.count += 1
        if call.count < self._config.nudge or seen.result_key == call.result_key:
            return None  # with an equal result it is a repeat
        if call.grown == call.count - 1 or _moves_on(seen):
            return None  # longer every time, or meant to go on from where it stands
        call.result_key = seen.result_key
        return Finding(
            family="repeat",
            rule="insistence",
            key=f"insistence:{seen.call_key}",
            level=min(self._config.ceiling, Severity.NUDGE),
            count=call.count,
            limit=self._config.nudge,
            onset_step=call.onset,
            step=seen.step,
            agent=seen.agent,
            subject=seen.tool,
            cause="answer_not_used",
            hard=False,
        )

    def _again(self, call: _Call, seen: ToolSeen) -> bool:
        """Whether this is the same call with nearly the same result; takes note of the result."""
        config = self._config
        size = len(seen.text)
        waited = seen.idle_at - call.at >= config.patient_seconds
        known, before = call.sketch, call.size
        call.round, call.at, call.size = seen.round, seen.idle_at, size
        if waited or size < config.least_characters or seen.effect == "wait" or seen.facts.polling:
            return False
        if not 0.5 <= size / max(before, 1) <= 2:
            return False
        call.sketch = sketch(_DIGITS.sub("", seen.text))
        numbers, call.numbers = call.numbers, _numbers(seen.text)
        call.grown += size > before
        if not known:
            return True  # the first result was not read: the next one will tell
        if known == call.sketch and numbers != call.numbers:
            return False  # the same form with other figures: that is a report on progress
        return similarity(known, call.sketch) >= config.similarity

    def forget(self, agent: str | None) -> None:
        if agent is None:
            self._calls.clear()
        else:
            self._calls.pop(agent, None)

    def dump(self) -> object:
        return [
            [
                agent,
                c.call_key,
                c.result_key,
                c.count,
                c.onset,
                c.round,
                c.at,
                c.size,
                c.grown,
                c.numbers,
                list(c.sketch),
            ]
            for agent, c in self._calls.items()
        ]

    def load(self, data: object) -> None:
        self._calls.clear()
        for entry in sequence(data):
            agent, call_key, result_key, count, onset, *rest = row(entry, 11)
            round_, at, size, grown, numbers, words = rest
            call = self._calls[text(agent)] = _Call.__new__(_Call)
            call.call_key, call.result_key = text(call_key), text(result_key)
            call.count, call.onset, call.round = whole(count), whole(onset), whole(round_)
            call.at, call.size, call.grown = number(at), whole(size), whole(grown)
            call.numbers, call.sketch = whole(numbers), tuple(wholes(words))


def _numbers(result: str) -> int:
    """A checksum of the figures in a result, blind to their order."""
    return crc32(" ".join(sorted(_DIGITS.findall(result[:_READ]))).encode())


def _moves_on(seen: ToolSeen) -> bool:
    """Whether a call goes on from where things stand: scrolling, the next page, a refresh."""
    args = seen.args if isinstance(seen.args, str) else canonical_json(seen.args)
    return _MOVES_ON.search(f"{seen.tool} {args[:200]}") is not None

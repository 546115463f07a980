"""guesses: attempt after attempt is turned down in the same words."""

from __future__ import annotations

import re
from collections import OrderedDict
from dataclasses import dataclass
from typing import ClassVar

from shearpin.core.canonical import digest_text
from shearpin.core.checks import check_kinds
from shearpin.core.detectors.base import Probe, check_ascending
from shearpin.core.seen import Seen, ToolSeen
from shearpin.core.stored import row, sequence, text, whole
from shearpin.errors import ConfigError
from shearpin.findings import Finding, Severity

__all__ = ["Guesses"]

_CAPACITY = 6
_REJECTED = re.compile(
    r"\b(?:incorrect|wrong|rejected|denied|refused|invalid|declined|mismatch|unsuccessful"
    r"|unauthorized|forbidden|did(?: not|n't) match|try again|keep trying"
    r"|not (?:a )?(?:correct|accepted|valid|allowed|match(?:ed)?|right|recognized)"
    r"|no match)\b|不正确|错误|被拒|拒绝|不匹配|失败|无效|再试|重试"
)


_HINTS = (
    "incorrect", "wrong", "reject", "denied", "refused", "invalid", "declined", "match",
    "unsuccessful", "unauthorized", "forbidden", "try", "not ",
    "不正确", "错误", "拒", "不匹配", "失败", "无效", "再试", "重试",
)  # fmt: skip
"""One of these is in every refusal: looking for them first is cheap."""


@dataclass(frozen=True, slots=True)
class Guesses:
    """New attempts that a tool answers, but with the same refusal, whatever is read in between.

    It is what `error_streak` is for failures: here the call itself succeeded ("Submitted flag is
    incorrect"). Counted per tool and first word of a command. Another answer of the tool, or new
    work with another tool, starts the count afresh. At most a hint: a guess is no repetition.

    Attributes:
        nudge: refused attempts until the agent is told (2 or more).
        most_characters: longer results are no verdict on an attempt, in characters.
        ceiling: the strongest answer this rule may justify.

    *Source*: on recorded runs the same short answer to four new calls of one command fires on no
    successful run and on 1.7 % (SQL) to 8 % (shell) of the failed ones.

    Raises:
        ConfigError: a threshold is out of range.

    Example:
        >>> Guesses(nudge=3).nudge
        3
    """

    family: ClassVar[str] = "guesses"
    watches: ClassVar[tuple[type[Seen], ...]] = (ToolSeen,)

    nudge: int = 4
    most_characters: int = 200
    ceiling: Severity = Severity.NUDGE

    def __post_init__(self) -> None:
        check_kinds(self)
        check_ascending("Guesses", self.nudge, None, None)
        if self.most_characters < 1:
            raise ConfigError(
                f"Guesses.most_characters must be 1 or more, not {self.most_characters!r}"
            )

    def probe(self) -> Probe:
        return _GuessProbe(self)


class _Series:
    __slots__ = ("answer", "count", "epoch", "onset", "round")

    def __init__(self, answer: str, count: int, onset: int, round_: int, epoch: int) -> None:
        self.answer = answer
        self.count = count
        self.onset = onset
        self.round = round_
        self.epoch = epoch


class _GuessProbe:
    def __init__(self, config: Guesses) -> None:
        self._config = config
        self._series: OrderedDict[str, _Series] = OrderedDict()

    def observe(self, seen: Seen) -> Finding | None:
        assert isinstance(seen, ToolSeen)
        if seen.outcome != "ok":
            return None
        refused = len(seen.text) <= self._config.most_characters and _refused(seen.text)
        if not refused and not self._series:
            return None
        name = digest_text(f"{seen.agent}\0{seen.tool}\0{_first_word(seen)}")[:8]
        if not refused:
            self._series.pop(name, None)
            return None
        series = self._series.get(name)
        answer = seen.result_key[:8]
        if series is None or series.answer != answer or seen.epoch - series.epoch > seen.work:
            if series is None and len(self._series) >= _CAPACITY:
                self._series.popitem(last=False)
            self._series[name] = _Series(answer, 1, seen.step, seen.round, seen.epoch)
            return None
        series.epoch = seen.epoch
        if series.round == seen.round or not seen.novel:
            return None
        series.round = seen.round
        series.count += 1
        if series.count < self._config.nudge:
            return None
        return Finding(
            family="error_streak",
            rule="rejected_guesses",
            key=f"guesses:{name}",
            level=min(self._config.ceiling, Severity.NUDGE),
            count=series.count,
            limit=self._config.nudge,
            onset_step=series.onset,
            step=seen.step,
            agent=seen.agent,
            subject=seen.tool,
            cause="guessing",
            hard=False,
        )

    def forget(self, agent: str | None) -> None:
        if agent is None:
            self._series.clear()

    def dump(self) -> object:
        return [
            [name, s.answer, s.count, s.onset, s.round, s.epoch] for name, s in self._series.items()
        ]

    def load(self, data: object) -> None:
        self._series.clear()
        for entry in sequence(data):
            name, answer, count, onset, round_, epoch = row(entry, 6)
            self._series[text(name)] = _Series(
                text(answer), whole(count), whole(onset), whole(round_), whole(epoch)
            )


def _refused(answer: str) -> bool:
    low = answer.lower()
    return any(map(low.__contains__, _HINTS)) and _REJECTED.search(low) is not None


def _first_word(seen: ToolSeen) -> str:
    """The first word of a tool's only argument: tools that take commands have one."""
    args = seen.args
    if isinstance(args, str) or len(args) != 1:
        return ""
    (value,) = args.values()
    words = value[:80].split(None, 1) if isinstance(value, str) else []
    return words[0] if len(words) == 2 else ""

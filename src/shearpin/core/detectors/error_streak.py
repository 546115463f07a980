"""error_streak: one tool fails in the same way, or comes back empty, whatever it is given."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar
from zlib import crc32

from shearpin.core.canonical import digest_text
from shearpin.core.checks import check_kinds
from shearpin.core.detectors.base import Probe, check_ascending, level_of
from shearpin.core.masking import mask_error, words_of
from shearpin.core.seen import Seen, ToolSeen
from shearpin.core.stored import flag, number, row, sequence, text, whole
from shearpin.core.tools import command_word, is_check
from shearpin.findings import Finding, Severity

__all__ = ["ErrorStreaks"]

_CAPACITY = 8
_KINDS = 3
_EMPTY = "-"
_ANY = "*"
_TELLING = 40
_HEAD = 400
_NUMBER = re.compile(r"\d{1,12}(?:\.\d{1,6})?")


@dataclass(frozen=True, slots=True)
class ErrorStreaks:
    """The same kind of failure from *different* arguments: a guess is changed, the error is not.

    A streak in which only one call is repeated is left to `repeat`.

    Counted per tool, and for tools that run commands also per first word of the command. Quoted
    spans, paths, numbers and words echoed from the arguments do not make an error a different one.
    A success of the tool, or new work by the agent (an edit between two test runs), ends its
    streaks; another failure in between does not, as long as the tool fails in at most three ways. A
    parallel batch is one attempt. Where every call is new and what comes back differs, a list may
    be being gone through: after the nudge it takes twice as many rounds to end the run.

    At most remarked on are rate limits, outages and network errors, which pass by themselves, an
    empty answer, for "there is none" may be what was asked, a test or linter that says the same of
    several things, for that is about the work, not about the call, and a failure whose first number
    falls each time, for what is left becomes less.

    Attributes:
        nudge: failures until the agent is told (2 or more).
        block: this call of the tool is refused. None: never.
        ceiling: the strongest answer this rule may justify by itself.

    *Source*: the same masked error from three consecutive calls fires on 0.12 % of successful and
    8.7 % of failed public LLM-agent runs.

    Raises:
        ConfigError: a threshold is too small or falls.

    Example:
        >>> ErrorStreaks(nudge=3).nudge
        3
    """

    family: ClassVar[str] = "error_streak"
    watches: ClassVar[tuple[type[Seen], ...]] = (ToolSeen,)

    nudge: int = 4
    block: int | None = 8
    ceiling: Severity = Severity.BLOCK

    def __post_init__(self) -> None:
        check_kinds(self)
        check_ascending("ErrorStreaks", self.nudge, self.block, None)

    def probe(self) -> Probe:
        return _ErrorStreakProbe(self)


class _Streak:
    """Failures of one kind.

    An error has two digests: as it stands, and without the words of its own arguments. `stuck` says
    that a call was repeated, that a whole sentence came back word for word, or that the arguments
    are invalid: where none is so, a list may be being gone through. `falls` says that the first
    number has become smaller each time: work goes on.
    """

    __slots__ = (
        "call", "count", "epoch", "error", "falls", "number", "onset", "plain", "round", "stuck",
        "text", "varied",
    )  # fmt: skip

    def __init__(self, error: str, plain: str, seen: ToolSeen) -> None:
        self.error = error
        self.plain = plain
        self.call = seen.call_key
        self.varied = False
        self.stuck = not seen.novel or seen.outcome == "bad_args"
        self.text = _mark(seen.text)
        self.number = _number(seen.text)
        self.falls = True
        self.count = 1
        self.onset = seen.step
        self.round = seen.round
        self.epoch = seen.epoch


class _ErrorStreakProbe:
    def __init__(self, config: ErrorStreaks) -> None:
        self._config = config
        self._streaks: OrderedDict[str, list[_Streak]] = OrderedDict()

    def observe(self, seen: Seen) -> Finding | None:
        assert isinstance(seen, ToolSeen)
        outcome = seen.outcome
        word = command_word(seen.args)
        if outcome == "ok":
            if self._streaks:
                self._streaks.pop(_name(seen, word), None)
                self._streaks.pop(_name(seen, _ANY), None)
            return None
        if outcome == "unknown_tool" or outcome == "blocked":
            return None
        if outcome == "empty" and (
            seen.effect not in ("read", "run") or (word and seen.effect == "run")
        ):
            return None  # programs that do something are silent when it has worked
        errors = (_EMPTY, _EMPTY) if outcome == "empty" else _errors(seen)
        found = self._count(_name(seen, word), errors, seen, word)
        if word is None:
            return found
        # the same words from another command of the same tool are the same trouble
        return self._count(_name(seen, _ANY), errors, seen, None) or found

    def _count(
        self, name: str, errors: tuple[str, str], seen: ToolSeen, word: str | None
    ) -> Finding | None:
        error, plain = errors
        kinds = self._kinds(name)
        for place, streak in enumerate(kinds):
            if streak.epoch != seen.epoch:  # the agent has worked since
                kinds.clear()
                break
            if streak.error == error or streak.plain == plain:
                kinds.insert(0, kinds.pop(place))
                return self._again(streak, error, plain, seen, name, word)
        kinds.insert(0, _Streak(error, plain, seen))
        del kinds[_KINDS:]
        return None

    def _kinds(self, name: str) -> list[_Streak]:
        """The ways in which a tool fails, the latest first."""
        kinds = self._streaks.get(name)
        if kinds is None:
            if len(self._streaks) >= _CAPACITY:
                self._streaks.popitem(last=False)
            kinds = self._streaks[name] = []
        else:
            self._streaks.move_to_end(name)
        return kinds

    def _again(
        self, streak: _Streak, error: str, plain: str, seen: ToolSeen, name: str, word: str | None
    ) -> Finding | None:
        streak.error, streak.plain = error, plain
        left = _number(seen.text)
        fewer = left is not None and streak.number is not None and left < streak.number
        streak.number, streak.falls = left, streak.falls and fewer
        streak.varied = streak.varied or streak.call != seen.call_key
        same = len(seen.text) >= _TELLING and streak.text == _mark(seen.text)
        streak.stuck = streak.stuck or same or not seen.novel
        if streak.round == seen.round:
            return None
        streak.round = seen.round
        streak.count += 1
        return self._judge(streak, seen, name, word) if streak.varied else None

    def _judge(
        self, streak: _Streak, seen: ToolSeen, name: str, word: str | None
    ) -> Finding | None:
        config = self._config
        passing = seen.outcome in ("transient", "empty") or is_check(seen.args) or streak.falls
        ceiling = min(config.ceiling, Severity.NUDGE) if passing else config.ceiling
        level = level_of(streak.count, config.nudge, config.block, None, ceiling)
        if level is Severity.NONE:
            return None
        target = f"tool:{seen.tool}" if word is None else f"tool:{seen.tool} {word}"
        return Finding(
            family="error_streak",
            rule="empty_streak" if seen.outcome == "empty" else "error_streak",
            key=f"streak:{name}",
            level=level,
            count=streak.count,
            limit=config.nudge if level is Severity.NUDGE else (config.block or config.nudge),
            onset_step=streak.onset,
            step=seen.step,
            agent=seen.agent,
            subject=seen.tool,
            cause=_CAUSES.get(seen.outcome, "error_not_understood"),
            hard=not passing,
            refuses=(target,),
            evidence={} if streak.stuck else {"all_new": True},
        )

    def forget(self, agent: str | None) -> None:
        mine = "" if agent is None else _owner(agent)
        for name in [name for name in self._streaks if name.startswith(mine)]:
            del self._streaks[name]

    def dump(self) -> object:
        return [
            [name, s.error, s.plain, s.call, s.varied, s.stuck, s.falls, s.number, s.text, s.count,
             s.onset, s.round, s.epoch]
            for name, kinds in self._streaks.items()
            for s in kinds
        ]  # fmt: skip

    def load(self, data: object) -> None:
        self._streaks.clear()
        for item in sequence(data):
            name, error, plain, call, *rest = row(item, 13)
            varied, stuck, falls, last, said, count, onset, round_, epoch = rest
            streak = _Streak.__new__(_Streak)
            self._streaks.setdefault(text(name), []).append(streak)
            streak.error, streak.plain, streak.call = text(error), text(plain), text(call)
            streak.varied, streak.stuck = flag(varied), flag(stuck)
            streak.falls, streak.text = flag(falls), whole(said)
            streak.number = None if last is None else number(last)
            streak.count, streak.onset = whole(count), whole(onset)
            streak.round, streak.epoch = whole(round_), whole(epoch)


_CAUSES = {"transient": "outage", "empty": "empty_taken_for_failure"}


def _mark(text: str) -> int:
    return crc32(text.encode("utf-8", "surrogatepass"))


def _number(text: str) -> float | None:
    """The first number of an error: what is left to do, where it falls from one to the next."""
    found = _NUMBER.search(text, 0, _HEAD)
    return None if found is None else float(found.group())


def _name(seen: ToolSeen, word: str | None) -> str:
    return _owner(seen.agent) + digest_text(f"{seen.tool}\0{word or ''}")[:6]


def _owner(agent: str) -> str:
    return digest_text(agent)[:4]


def _errors(seen: ToolSeen) -> tuple[str, str]:
    args = seen.args
    texts = [args] if isinstance(args, str) else _strings(args)
    plain = mask_error(seen.text)
    own = words_of(texts)
    masked = plain if own.isdisjoint(words_of([plain, seen.text])) else mask_error(seen.text, own)
    return digest_text(masked)[:8], digest_text(plain)[:8]


def _strings(args: Mapping[str, object]) -> list[str]:
    return [value if isinstance(value, str) else repr(value)[:200] for value in args.values()]

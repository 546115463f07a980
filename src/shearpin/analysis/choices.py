"""Interventions chosen by what they did before: Thompson sampling over recorded outcomes.

Contract: for each rule, what may be done about a loop are arms: ways to put the nudge, the refusal
of the repeated call, and, before the run ends, ways out. The outcome of each one that was carried
out is counted: good where new calls with new results followed soon, or the run finished. At each
choice every arm draws from its Beta distribution, and the highest draw is taken. The usual step of
the ladder begins with `prior` good outcomes, so that it is what mostly happens until another one
has done better. A choice depends on the seed, the counts and the place in the run alone. It never
ends a run: rules do, and no sooner.

Counts are bounded: above `memory` outcomes of a rule all of them are halved, so that what helps now
weighs more than what helped once.

*Source*: Thompson (1933); Chapelle and Li, "An empirical evaluation of Thompson sampling" (2011).
"""

from __future__ import annotations

import random
import threading
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple, cast

from shearpin.analysis.kept import Kept, Place
from shearpin.core.checks import flag, mapping, text, texts, whole
from shearpin.core.choosing import Choice
from shearpin.core.phrasing import PLAIN, WORDINGS
from shearpin.errors import ConfigError
from shearpin.findings import Finding
from shearpin.report.interventions import Intervention
from shearpin.report.model import Report

__all__ = ["Arm", "Choices"]

_VERSION: Final = 1
_KEY: Final = "shearpin:choices"
_MOST_RULES: Final = 128
_GOOD: Final = ("pivoted", "finished")
_WAYS: Final = ("rollback", "without_tool")
_ENDING: Final = 0.2
"""A way out is taken only if it seems to help in more than this share of cases."""
_Counts = dict[str, dict[str, list[float]]]


class Arm(NamedTuple):
    """How one intervention has done.

    Attributes:
        rule: what it was about, with the place of the choice: `nudge:repeat`.
        name: of the intervention.
        given: how often; good and bad outcomes.
        helped: share that was good, with the prior of the usual step.
    """

    rule: str
    name: str
    given: float
    helped: float


class Choices:
    """Chooses wordings, refusals and ways out by their outcomes. See the module's contract.

    Args:
        place: where outcomes are kept: a JSON file, a store or its URL, None for memory alone.
        seed: the same seed, outcomes and run give the same choices.
        wordings: ways to put a nudge, the usual one first.
        words: wordings of your own: what each adds to "what happened" and the advice.
        block: whether the repeated call may be refused at once; only where the rule could refuse
            it later as well.
        ways: what may be done, once, before a loop ends the run: `rollback`, `without_tool`.
        prior: good outcomes that the usual step begins with (0 to 1000).
        memory: outcomes of a rule above which all are halved (10 or more).

    Raises:
        ConfigError: a value is wrong, or what is kept is damaged.

    Example:
        >>> choices = Choices(seed=7, words={"polite": "Please look at what you have first."})
        >>> choices.wordings
        ('plain', 'question', 'options', 'answer', 'firm', 'polite')
    """

    def __init__(
        self,
        place: Place = None,
        *,
        seed: int = 0,
        wordings: Sequence[str] = WORDINGS,
        words: Mapping[str, str] = MappingProxyType({}),
        block: bool = True,
        ways: Iterable[str] = (),
        prior: float = 8.0,
        memory: int = 200,
    ) -> None:
        own = mapping("Choices.words", words, '{"polite": "Please look at what you have first."}')
        for name, said in own.items():
            text(f"Choices.words[{name!r}]", said, "Please look at what you have first.")
        self.words: Mapping[str, str] = cast("dict[str, str]", own)
        self.wordings = tuple(
            dict.fromkeys((*texts("Choices.wordings", wordings, WORDINGS[0]), *own))
        )
        flag("Choices.block", block)
        self.blocks = block
        self.ways = texts("Choices.ways", ways, _WAYS[0])
        whole("Choices.seed", seed, 0)
        whole("Choices.memory", memory, 10)
        number: object = prior
        unknown = {*self.wordings} - {*WORDINGS, *words}
        if unknown or not self.wordings:
            raise ConfigError(
                f"wordings may name {', '.join(WORDINGS)} and those in words, not "
                f"{sorted(unknown) or '()'}"
            )
        if {"block", "end", *_WAYS} & {*self.words}:
            raise ConfigError("words must not be named block, end, rollback or without_tool")
        if not {*self.ways} <= {*_WAYS}:
            raise ConfigError(f"ways may name {', '.join(_WAYS)}, not {self.ways!r}")
        if type(number) not in (int, float) or not 0 <= prior <= 1000:
            raise ConfigError(f"prior must be from 0 to 1000, not {prior!r}")
        self._seed, self._prior, self._memory = seed, float(prior), memory
        self._kept = Kept(place, _KEY)
        self._lock = threading.Lock()
        self._counts = _read(self._kept.read())

    @property
    def blocking(self) -> bool:
        """Whether learning may wait for a disk or a network."""
        return self._kept.blocking

    def __getstate__(self) -> dict[str, object]:
        """All but the lock, so that a guard can be copied and sent to other processes."""
        return {name: value for name, value in self.__dict__.items() if name != "_lock"}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state, _lock=threading.Lock())

    # -- choosing -----------------------------------------------------------------------------

    def choose(self, place: str, finding: Finding, options: Sequence[str], draw: str) -> Choice:
        """One of the options, the first of which is what the ladder would do."""
        rule = f"{place}:{finding.rule}"
        with self._lock:
            counts = {name: tuple(pair) for name, pair in self._counts.get(rule, {}).items()}
        seen = sum(good + bad for good, bad in counts.values())
        chance = random.Random(f"{self._seed}|{rule}|{seen}|{draw}")
        best, highest = options[0], -1.0
        for name in options:
            good, bad = counts.get(name, (0.0, 0.0))
            if name == "end":
                drawn = _ENDING
            else:
                drawn = chance.betavariate(1 + good + self._head_start(name, options), 1 + bad)
            if drawn > highest:
                best, highest = name, drawn
        return Choice(best, self._why(best, options[0], counts))

    def _head_start(self, name: str, options: Sequence[str]) -> float:
        return self._prior if name == options[0] else 0.0

    def _why(self, name: str, usual: str, counts: Mapping[str, tuple[float, ...]]) -> str:
        good, bad = counts.get(name, (0.0, 0.0))
        said = f"helped in {good:g} of {good + bad:g} cases"
        if name == usual:
            return f"the usual step; {said}"
        good, bad = counts.get(usual, (0.0, 0.0))
        return f"{said}; the usual step ({usual}) in {good:g} of {good + bad:g}"

    # -- learning -----------------------------------------------------------------------------

    def learn(self, report: Report) -> None:
        """Count what became of the interventions of a run that is over.

        Raises:
            ConfigError: what is kept is damaged.
            StoreError: the store failed.
        """
        outcomes = [one for one in report.interventions if _counts(one)]
        if not outcomes:
            return

        def add(before: object) -> object:
            counts = _read(before)
            for one in outcomes:
                self._add(counts, one)
            while len(counts) > _MOST_RULES:
                del counts[next(iter(counts))]
            return {"version": _VERSION, "rules": counts}

        made = self._kept.change(add)
        with self._lock:
            self._counts = _read(made)

    def _add(self, counts: _Counts, one: Intervention) -> None:
        place = "way_out" if one.verdict in ("rollback", "reroute") else "nudge"
        rule = f"{place}:{one.rule}"
        arms = counts[rule] = counts.pop(rule, {})  # the latest rule is dropped last
        pair = arms.setdefault(one.template or PLAIN, [0.0, 0.0])
        pair[0 if one.after in _GOOD else 1] += 1
        if sum(map(sum, arms.values())) > self._memory:
            for pair in arms.values():
                pair[:] = [round(value / 2, 3) for value in pair]

    def arms(self) -> list[Arm]:
        """How each intervention has done, by rule, the best first."""
        with self._lock:
            rows = [
                (rule, name, *pair)
                for rule, arms in self._counts.items()
                for name, pair in arms.items()
            ]
        found: list[Arm] = []
        for rule, name, good, bad in rows:
            usual = name == self.wordings[0] and rule.startswith("nudge:")
            start = self._prior if usual else 0.0
            share = (1 + good + start) / (2 + good + bad + start)
            found.append(Arm(rule, name, good + bad, round(share, 3)))
        return sorted(found, key=lambda arm: (arm.rule, -arm.helped, arm.name))

    def reset(self, rule: str | None = None) -> None:
        """Forget the outcomes of a rule, such as `repeat`, or of all."""

        def drop(before: object) -> object:
            kept = _read(before)
            gone = [name for name in kept if rule is None or name.partition(":")[2] == rule]
            return {"version": _VERSION, "rules": {n: a for n, a in kept.items() if n not in gone}}

        made = self._kept.change(drop)
        with self._lock:
            self._counts = _read(made)


def _counts(one: Intervention) -> bool:
    return one.acted and one.template is not None and one.after != "unknown"


def _read(data: object) -> _Counts:
    if data is None:
        return {}
    try:
        read = cast("dict[str, object]", data)
        if read["version"] != _VERSION:
            raise ValueError(f"they are not of version {_VERSION}")
        rules = cast("dict[str, dict[str, list[float]]]", read["rules"])
        found: _Counts = {}
        for rule, arms in rules.items():
            found[rule] = {}
            for name, (good, bad) in arms.items():
                if min(good, bad) < 0:
                    raise ValueError("a count is below 0")
                found[rule][name] = [float(good), float(bad)]
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ConfigError(f"what is kept cannot be read as outcomes: {error!r}") from error
    return found

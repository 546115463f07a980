"""velocity: an agent takes in far more tokens per step, far faster, than it did before."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import ClassVar

from shearpin.core.checks import check_kinds
from shearpin.core.detectors.base import Probe
from shearpin.core.seen import ModelSeen, Seen
from shearpin.core.stored import number, row, sequence, text, whole
from shearpin.errors import ConfigError
from shearpin.findings import Finding, Severity

__all__ = ["TokenVelocity"]

_CAPACITY = 6
_EVERYBODY = "*"


@dataclass(frozen=True, slots=True)
class TokenVelocity:
    """Prompt and output tokens against the agent's own level, or the run's for a new agent.

    Growth alone is normal: prompts of healthy runs grow twelvefold, but step by step, and the level
    follows. A jump by `growth` that lasts is a note. It is worth a hint only with a second and
    independent sign: the steps come `hurry` times faster as well, so nobody reads what is sent. A
    large context that stays level, a single large read and a run that starts large are no jumps.

    Attributes:
        growth: prompt tokens per step against the agent's level, from which on it is a jump (2 or
            more).
        output_growth: the same for output tokens; a note only.
        hurry: how much shorter the time between steps has become (1 or more).
        sustained: steps in a row that it must last (1 or more).
        warm_up: steps from which the level is learnt, in steps of the agent (2 or more).
        least_tokens: smaller prompts are never a jump, in tokens.
        ceiling: the strongest answer this rule may justify.

    *Source*: public reports of sub-agents that resend a whole history for a dozen output tokens. In
    recorded healthy runs prompts grow 12x, and one output of 14x the median is normal.

    Raises:
        ConfigError: a number is out of range.

    Example:
        >>> TokenVelocity(growth=50).growth
        50
    """

    family: ClassVar[str] = "velocity"
    watches: ClassVar[tuple[type[Seen], ...]] = (ModelSeen,)

    growth: float = 20.0
    output_growth: float = 20.0
    hurry: float = 3.0
    sustained: int = 4
    warm_up: int = 5
    least_tokens: int = 20_000
    ceiling: Severity = Severity.NUDGE

    def __post_init__(self) -> None:
        check_kinds(self)
        for name, least in (
            ("growth", 2), ("output_growth", 2), ("hurry", 1), ("sustained", 1), ("warm_up", 2),
            ("least_tokens", 0),
        ):  # fmt: skip
            if (value := getattr(self, name)) < least:
                raise ConfigError(f"TokenVelocity.{name} must be {least} or more, not {value!r}")

    def probe(self) -> Probe:
        return _VelocityProbe(self)


class _Level:
    """What is normal for an agent, and for how many steps it has not been."""

    __slots__ = ("at", "gap", "hurried", "jumped", "output", "prompt", "steps", "swollen")

    def __init__(self, at: float) -> None:
        self.steps = 0
        self.at = at
        self.prompt = 0
        self.output = 0
        self.gap = 0  # milliseconds
        self.jumped = 0
        self.hurried = 0
        self.swollen = 0

    def learn(self, prompt: int, output: int, at: float) -> None:
        """Follow one more step."""
        steps = self.steps
        self.prompt = _follow(self.prompt, prompt, steps)
        self.output = _follow(self.output, output, steps)
        self.gap = _follow(self.gap, int(1000 * (at - self.at)), steps - 1)
        self.steps = steps + 1
        self.at = at


class _VelocityProbe:
    """Constant work: a handful of numbers per agent."""

    def __init__(self, config: TokenVelocity) -> None:
        self._config = config
        self._levels: OrderedDict[str, _Level] = OrderedDict()

    def observe(self, seen: Seen) -> Finding | None:
        assert isinstance(seen, ModelSeen)
        prompt = seen.input_tokens
        if prompt is None:
            return None
        level = self._level(seen.agent, seen.at)
        whole_run = self._level(_EVERYBODY, seen.at)
        base = level if level.steps >= self._config.warm_up else whole_run
        jump = self._measure(level, base, seen, prompt)
        if not jump:
            whole_run.learn(prompt, seen.output_tokens or 0, seen.at)
        whole_run.at = seen.at
        return self._judge(level, base, seen) if jump or level.swollen else None

    def _level(self, agent: str, at: float) -> _Level:
        level = self._levels.get(agent)
        if level is None:
            if len(self._levels) > _CAPACITY:
                self._levels.pop(next(name for name in self._levels if name != _EVERYBODY))
            level = self._levels[agent] = _Level(at)
        return level

    def _measure(self, level: _Level, base: _Level, seen: ModelSeen, prompt: int) -> bool:
        """Take in a step; whether it is far above the level to compare with."""
        config = self._config
        output, gap = seen.output_tokens or 0, int(1000 * (seen.at - level.at))
        jump = hurry = swell = False
        if base.steps >= config.warm_up:
            jump = prompt >= config.least_tokens and prompt >= config.growth * base.prompt
            hurry = jump and gap * config.hurry <= base.gap
            swell = output >= config.output_growth * max(base.output, 1)
        usual = level.gap
        level.learn(prompt, output, seen.at)
        if hurry:
            level.gap = usual  # a hurried step does not teach that hurry is normal
        level.jumped = level.jumped + 1 if jump else 0
        level.hurried = level.hurried + 1 if hurry else 0
        level.swollen = level.swollen + 1 if swell else 0
        return jump

    def _judge(self, level: _Level, base: _Level, seen: ModelSeen) -> Finding | None:
        config = self._config
        if level.hurried >= config.sustained:
            given, count, rule = Severity.NUDGE, level.jumped, "velocity"
        elif level.jumped == config.sustained:
            given, count, rule = Severity.NONE, level.jumped, "velocity"
        elif level.swollen == config.sustained:
            given, count, rule = Severity.NONE, level.swollen, "swelling"
        else:
            return None
        return Finding(
            family="velocity",
            rule=rule,
            key=f"{rule}:{seen.agent}",
            level=min(given, config.ceiling, Severity.NUDGE),
            count=count,
            limit=config.sustained,
            onset_step=max(1, seen.step - count + 1),
            step=seen.step,
            agent=seen.agent,
            cause="context_grows",
            hard=False,
            evidence={"tokens": seen.input_tokens, "usual_tokens": base.prompt},
        )

    def forget(self, agent: str | None) -> None:
        """A compaction shrinks prompts, and that is no reason to forget what was normal before."""
        if agent is None:
            self._levels.clear()

    def dump(self) -> object:
        return [
            [agent, v.steps, v.at, v.prompt, v.output, v.gap, v.jumped, v.hurried, v.swollen]
            for agent, v in self._levels.items()
        ]

    def load(self, data: object) -> None:
        self._levels.clear()
        for entry in sequence(data):
            agent, steps, at, prompt, output, gap, jumped, hurried, swollen = row(entry, 9)
            level = self._levels[text(agent)] = _Level(number(at))
            level.steps, level.gap = whole(steps), whole(gap)
            level.prompt, level.output = whole(prompt), whole(output)
            level.jumped, level.hurried = whole(jumped), whole(hurried)
            level.swollen = whole(swollen)


def _follow(level: int, value: int, steps: int) -> int:
    """The level after one more value: the mean of five, later a slow and bounded follower."""
    if steps < 5:
        return level if steps < 0 else level + (value - level) // (steps + 1)
    bound = level * 5 // 4 + 1  # less than this: one jump does not become normal
    if value > bound:
        value = bound
    return level + (value - level) * 3 // 10

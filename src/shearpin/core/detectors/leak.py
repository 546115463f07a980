"""slow_leak: each piece of progress costs more than the one before, over hundreds of steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from shearpin.core.checks import check_kinds
from shearpin.core.detectors.base import Probe
from shearpin.core.seen import ModelSeen, Seen, ToolSeen
from shearpin.core.stored import row, whole, wholes
from shearpin.errors import ConfigError
from shearpin.findings import Finding, Severity

__all__ = ["SlowLeaks"]

_STEADY = 1.1


@dataclass(frozen=True, slots=True)
class SlowLeaks:
    """Tokens per new result, block by block: it rises steadily and far.

    A note, and off by default: histories grow, and so does the price of a step. What it costs is
    the budget's business; this tells that it gets dearer without getting further.

    Attributes:
        block: model responses that are summed up into one price, in steps (10 or more).
        rising: blocks in a row whose price rises by a tenth or more, until it is noted (2 to 8).
        growth: price of the last of them against the first (above 1).
        ceiling: the strongest answer this rule may justify; `NUDGE` makes it speak.

    *Source*: on recorded runs with token counts it fires on 4.0 % of the successful and 1.6 % of
    the failed LLM runs with the defaults and blocks of 25: it follows length, not trouble.

    Raises:
        ConfigError: a number is out of range.

    Example:
        >>> SlowLeaks(block=100).block
        100
    """

    family: ClassVar[str] = "slow_leak"
    watches: ClassVar[tuple[type[Seen], ...]] = (ModelSeen, ToolSeen)

    block: int = 50
    rising: int = 3
    growth: float = 2.0
    ceiling: Severity = Severity.NONE

    def __post_init__(self) -> None:
        check_kinds(self)
        if self.block < 10:
            raise ConfigError(f"SlowLeaks.block must be at least 10 steps, not {self.block!r}")
        if not 2 <= self.rising <= 8:
            raise ConfigError(f"SlowLeaks.rising must be 2 to 8 blocks, not {self.rising!r}")
        if self.growth <= 1:
            raise ConfigError(f"SlowLeaks.growth must be above 1, not {self.growth!r}")

    def probe(self) -> Probe:
        return _LeakProbe(self)


class _LeakProbe:
    """Of the whole session: progress is one agent's, cost may be another's."""

    def __init__(self, config: SlowLeaks) -> None:
        self._config = config
        self._steps = self._tokens = self._new = 0
        self._prices: list[int] = []

    def observe(self, seen: Seen) -> Finding | None:
        if isinstance(seen, ToolSeen):
            self._new += seen.novel and seen.fresh and seen.outcome == "ok"
            return None
        assert isinstance(seen, ModelSeen)
        if seen.input_tokens is None:
            return None
        self._steps += 1
        self._tokens += seen.input_tokens + (seen.output_tokens or 0)
        if self._steps < self._config.block:
            return None
        price = self._tokens // max(1, self._new)
        if self._prices and price < self._prices[-1] * _STEADY:
            self._prices.clear()
        self._prices.append(price)
        del self._prices[: -self._config.rising]
        self._steps = self._tokens = self._new = 0
        return self._judge(seen)

    def _judge(self, seen: ModelSeen) -> Finding | None:
        config, prices = self._config, self._prices
        if len(prices) < config.rising or prices[-1] < prices[0] * config.growth:
            return None
        return Finding(
            family="velocity",
            rule="slow_leak",
            key="slow_leak",
            level=min(config.ceiling, Severity.NUDGE),
            count=len(prices),
            limit=config.rising,
            onset_step=max(1, seen.step - config.block * len(prices) + 1),
            step=seen.step,
            agent=seen.agent,
            cause="context_grows",
            hard=False,
            evidence={"tokens_per_result": prices[-1], "before": prices[0]},
        )

    def forget(self, agent: str | None) -> None:
        if agent is None:
            self._steps = self._tokens = self._new = 0
            self._prices.clear()

    def dump(self) -> object:
        return [self._steps, self._tokens, self._new, self._prices]

    def load(self, data: object) -> None:
        steps, tokens, new, prices = row(data, 4)
        self._steps, self._tokens, self._new = whole(steps), whole(tokens), whole(new)
        self._prices = wholes(prices)

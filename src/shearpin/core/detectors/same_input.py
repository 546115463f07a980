"""same_input: the model is called again, and nothing was added to what it sees."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import ClassVar

from shearpin.core.checks import check_kinds
from shearpin.core.detectors.base import Probe, check_ascending
from shearpin.core.seen import ModelSeen, Seen
from shearpin.core.stored import row, sequence, text, whole
from shearpin.findings import Finding, Severity

__all__ = ["SameInputs"]

_CAPACITY = 6


@dataclass(frozen=True, slots=True)
class SameInputs:
    """Responses in a row that ask for tools, on prompts of exactly the same number of tokens.

    Whoever asks for a tool should see its result in the next prompt, which is longer by it. Where
    the count stays the same, results are not appended (a broken reducer, a node that reads the
    wrong key), and the agent is bound to ask again. A note, and off by default: nodes that see a
    fresh, equal prompt on purpose look the same.

    Attributes:
        after: equal prompts in a row until it is noted (2 or more).
        ceiling: the strongest answer this rule may justify; `NUDGE` makes it speak.

    *Source*: on 246 recorded runs with token counts, three equal prompts in a row never occur; in
    constructed cases they do in healthy stretches, too.

    Raises:
        ConfigError: `after` is too small.

    Example:
        >>> SameInputs(after=4).after
        4
    """

    family: ClassVar[str] = "same_input"
    watches: ClassVar[tuple[type[Seen], ...]] = (ModelSeen,)

    after: int = 3
    ceiling: Severity = Severity.NONE

    def __post_init__(self) -> None:
        check_kinds(self)
        check_ascending("SameInputs (after)", self.after, None, None)

    def probe(self) -> Probe:
        return _SameInputProbe(self)


class _SameInputProbe:
    def __init__(self, config: SameInputs) -> None:
        self._config = config
        self._agents: OrderedDict[str, tuple[int, int, int]] = OrderedDict()

    def observe(self, seen: Seen) -> Finding | None:
        assert isinstance(seen, ModelSeen)
        tokens = seen.input_tokens
        if not tokens or not seen.asks:
            return None
        before, count, onset = self._agents.get(seen.agent, (0, 0, 0))
        count, onset = (count + 1, onset) if before == tokens else (1, seen.step)
        if seen.agent not in self._agents and len(self._agents) >= _CAPACITY:
            self._agents.popitem(last=False)
        self._agents[seen.agent] = (tokens, count, onset)
        if count < self._config.after:
            return None
        return Finding(
            family="stagnation",
            rule="same_input",
            key=f"same_input:{seen.agent}",
            level=min(self._config.ceiling, Severity.NUDGE),
            count=count,
            limit=self._config.after,
            onset_step=onset,
            step=seen.step,
            agent=seen.agent,
            cause="nothing_appended",
            hard=False,
            evidence={"tokens": tokens},
        )

    def forget(self, agent: str | None) -> None:
        if agent is None:
            self._agents.clear()
        else:
            self._agents.pop(agent, None)

    def dump(self) -> object:
        return [[agent, *state] for agent, state in self._agents.items()]

    def load(self, data: object) -> None:
        self._agents.clear()
        for entry in sequence(data):
            agent, tokens, count, onset = row(entry, 4)
            self._agents[text(agent)] = (whole(tokens), whole(count), whole(onset))

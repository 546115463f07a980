"""unknown_tool: the model asks for what does not exist, or sends arguments that cannot be read."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import ClassVar

from shearpin.core.canonical import digest_text
from shearpin.core.checks import check_kinds
from shearpin.core.detectors.base import Probe, check_ascending, level_of
from shearpin.core.seen import Seen, ToolSeen
from shearpin.core.stored import row, sequence, text, whole, wholes
from shearpin.errors import ConfigError
from shearpin.findings import Finding, Severity

__all__ = ["UnknownTools"]

_CAPACITY = 8
_ANY = "*"


@dataclass(frozen=True, slots=True)
class UnknownTools:
    """Requests that can never succeed as they are, whatever the arguments.

    Names of tools that do not exist are counted together (two invented names are one confusion) and
    one by one; unreadable arguments and invalid structured output are counted per tool. A new call
    that succeeds ends the streak of all of them, a call of that very tool that succeeds clears it.

    Attributes:
        nudge: requests for unknown tools until the agent is told (2 or more).
        block: this request is answered by the guard instead of the host. None: never.
        stop: this request ends the run. None: never.
        args_nudge: unreadable arguments until the agent is told.
        args_block: as `block`, for unreadable arguments.
        args_stop: as `stop`, for unreadable arguments.
        window: rounds of the agent within which requests count, in rounds.
        ceiling: the strongest answer this rule may justify.

    *Source*: public reports of agents that ask for an unregistered tool until the recursion limit.

    Raises:
        ConfigError: a threshold is too small or falls.

    Example:
        >>> UnknownTools(stop=4, block=4).stop
        4
    """

    family: ClassVar[str] = "unknown_tool"
    watches: ClassVar[tuple[type[Seen], ...]] = (ToolSeen,)

    nudge: int = 2
    block: int | None = 4
    stop: int | None = 8
    args_nudge: int = 3
    args_block: int | None = 5
    args_stop: int | None = 8
    window: int = 20
    ceiling: Severity = Severity.STOP

    def __post_init__(self) -> None:
        check_kinds(self)
        check_ascending("UnknownTools", self.nudge, self.block, self.stop)
        check_ascending("UnknownTools (args_*)", self.args_nudge, self.args_block, self.args_stop)
        if self.window < 2:
            raise ConfigError(f"UnknownTools.window must be at least 2 rounds, not {self.window!r}")

    def probe(self) -> Probe:
        return _UnknownToolProbe(self)


class _Tally:
    __slots__ = ("onset", "rounds")

    def __init__(self) -> None:
        self.onset = 0
        self.rounds: list[int] = []

    def add(self, seen: ToolSeen, window: int, keep: int) -> int:
        rounds = self.rounds
        if not rounds:
            self.onset = seen.step
        if not rounds or rounds[-1] != seen.round:
            rounds.append(seen.round)
        while rounds[0] <= seen.round - window or len(rounds) > keep:
            del rounds[0]
        return len(rounds)


class _UnknownToolProbe:
    def __init__(self, config: UnknownTools) -> None:
        self._config = config
        self._tallies: OrderedDict[tuple[str, str], _Tally] = OrderedDict()

    def observe(self, seen: Seen) -> Finding | None:
        assert isinstance(seen, ToolSeen)
        outcome = self._insisted(seen) if seen.outcome == "blocked" else seen.outcome
        if outcome == "unknown_tool":
            together = self._count(seen, _ANY)
            return self._judge_name(seen, max(together, self._count(seen, _named("?", seen.tool))))
        if outcome == "bad_args":
            return self._judge_args(seen, self._count(seen, _named("!", seen.tool)))
        if self._tallies and outcome in ("ok", "empty"):
            if seen.novel:
                self._tallies.pop((seen.agent, _ANY), None)
            self._tallies.pop((seen.agent, _named("!", seen.tool)), None)
            self._tallies.pop((seen.agent, _named("?", seen.tool)), None)
        return None

    def _insisted(self, seen: ToolSeen) -> str:
        """A request that the guard refused for what it is counts on: the agent insists on it."""
        if (seen.agent, _named("?", seen.tool)) in self._tallies:
            return "unknown_tool"
        return "bad_args" if (seen.agent, _named("!", seen.tool)) in self._tallies else "blocked"

    def _count(self, seen: ToolSeen, name: str) -> int:
        key = (seen.agent, name)
        tally = self._tallies.get(key)
        if tally is None:
            if len(self._tallies) >= _CAPACITY:
                self._tallies.popitem(last=False)
            tally = self._tallies[key] = _Tally()
        else:
            self._tallies.move_to_end(key)
        keep = max(self._config.stop or 0, self._config.block or 0, self._config.nudge)
        return tally.add(seen, self._config.window, keep)

    def _judge_name(self, seen: ToolSeen, count: int) -> Finding | None:
        c = self._config
        level = level_of(count, c.nudge, c.block, c.stop, c.ceiling)
        limits = (c.nudge, c.block, c.stop)
        return self._finding(seen, "unknown_tool", level, count, limits, "unknown_name")

    def _judge_args(self, seen: ToolSeen, count: int) -> Finding | None:
        c = self._config
        level = level_of(count, c.args_nudge, c.args_block, c.args_stop, c.ceiling)
        limits = (c.args_nudge, c.args_block, c.args_stop)
        return self._finding(seen, "bad_args", level, count, limits, "unreadable_arguments")

    def _finding(
        self, seen: ToolSeen, rule: str, level: Severity, count: int,
        limits: tuple[int, int | None, int | None], cause: str,
    ) -> Finding | None:  # fmt: skip
        if level is Severity.NONE:
            return None
        name = _named("!", seen.tool) if rule == "bad_args" else _ANY
        tally = self._tallies.get((seen.agent, name))
        return Finding(
            family="unknown_tool",
            rule=rule,
            key=f"{rule}:{seen.agent}" + (name if rule == "bad_args" else ""),
            level=level,
            count=count,
            limit=limits[level - 1] or limits[0],
            onset_step=tally.onset if tally is not None else seen.step,
            step=seen.step,
            agent=seen.agent,
            subject=seen.tool,
            cause=cause,
            refuses=(f"tool:{seen.tool}",),
        )

    def forget(self, agent: str | None) -> None:
        for key in list(self._tallies):
            if agent is None or key[0] == agent:
                del self._tallies[key]

    def dump(self) -> object:
        return [
            [agent, name, tally.onset, tally.rounds]
            for (agent, name), tally in self._tallies.items()
        ]

    def load(self, data: object) -> None:
        self._tallies.clear()
        for item in sequence(data):
            agent, name, onset, rounds = row(item, 4)
            tally = self._tallies[(text(agent), text(name))] = _Tally()
            tally.onset, tally.rounds = whole(onset), wholes(rounds)


def _named(kind: str, tool: str) -> str:
    """What is counted: a kind of failure of one tool, whatever length the model gave its name."""
    return kind + digest_text(tool)[:8]

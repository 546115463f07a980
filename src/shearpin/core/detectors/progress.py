"""no_progress: the author's own measure of progress says that nothing moves."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from shearpin.core.checks import check_kinds
from shearpin.core.detectors.base import Probe, check_ascending, level_of
from shearpin.core.seen import Seen, ToolSeen
from shearpin.core.stored import row, sequence, text, whole
from shearpin.errors import ConfigError
from shearpin.findings import Finding, Severity

__all__ = ["NoProgress"]

_CAPACITY = 8


@dataclass(frozen=True, slots=True)
class NoProgress:
    """A function of two successive results of a tool tells how far the work has moved, 0 to 1.

    For authors who know what progress is: tests that pass, items that are left, a distance. The
    function sees the result before and the one now, as texts, and is called once per result. Those
    texts stay in memory; only counts are written down, so after a restart the next result is the
    first.

    Attributes:
        progress: `progress(before, after)`, from 0 (nothing) to 1 (done).
        tools: names of the tools it is asked about; empty for all.
        floor: progress below which a result counts as none (0 to 1).
        nudge: results in a row without progress until the agent is told (2 or more).
        stop: this one ends the run. None: never.
        ceiling: the strongest answer this rule may justify.

    Raises:
        ConfigError: a number is out of range, or `progress` cannot be called.

    Example:
        >>> NoProgress(progress=lambda before, after: float(before != after)).nudge
        5
    """

    family: ClassVar[str] = "no_progress"
    watches: ClassVar[tuple[type[Seen], ...]] = (ToolSeen,)

    progress: Callable[[str, str], float]
    tools: tuple[str, ...] = ()
    floor: float = 0.01
    nudge: int = 5
    stop: int | None = None
    ceiling: Severity = Severity.STOP

    def __post_init__(self) -> None:
        check_kinds(self)
        check_ascending("NoProgress", self.nudge, None, self.stop)
        if not callable(self.progress):  # pyright: ignore[reportUnnecessaryComparison]
            raise ConfigError(f"NoProgress.progress must be a function, not {self.progress!r}")
        if not 0 < self.floor <= 1:
            raise ConfigError(f"NoProgress.floor must lie between 0 and 1, not {self.floor!r}")
        if isinstance(self.tools, str):
            raise ConfigError(f"NoProgress.tools must be a tuple of names, not {self.tools!r}")

    def probe(self) -> Probe:
        return _NoProgressProbe(self)


class _NoProgressProbe:
    def __init__(self, config: NoProgress) -> None:
        self._config = config
        self._before: OrderedDict[str, str] = OrderedDict()
        self._still: dict[str, tuple[int, int]] = {}

    def observe(self, seen: Seen) -> Finding | None:
        assert isinstance(seen, ToolSeen)
        config = self._config
        if (config.tools and seen.tool not in config.tools) or seen.outcome == "blocked":
            return None
        key = f"{seen.agent}:{seen.tool}"[:64]
        before = self._before.get(key)
        if before is None and len(self._before) >= _CAPACITY:
            self._still.pop(self._before.popitem(last=False)[0], None)
        self._before[key] = seen.text
        if before is None:
            return None
        moved = float(config.progress(before, seen.text))
        if not 0 <= moved <= 1:
            raise ValueError(f"progress() gave {moved!r}; it must lie between 0 and 1")
        if moved >= config.floor:
            self._still.pop(key, None)
            return None
        count, onset = self._still.get(key, (0, seen.step))
        self._still[key] = (count + 1, onset)
        return self._judge(count + 1, onset, seen, key)

    def _judge(self, count: int, onset: int, seen: ToolSeen, key: str) -> Finding | None:
        config = self._config
        level = level_of(count, config.nudge, None, config.stop, config.ceiling)
        if level is Severity.NONE:
            return None
        return Finding(
            family="stagnation",
            rule="no_progress",
            key=f"no_progress:{key}",
            level=level,
            count=count,
            limit=config.nudge if level is Severity.NUDGE else (config.stop or config.nudge),
            onset_step=onset,
            step=seen.step,
            agent=seen.agent,
            subject=seen.tool,
            cause="nothing_new",
        )

    def forget(self, agent: str | None) -> None:
        if agent is None:
            self._before.clear()
            self._still.clear()

    def dump(self) -> object:
        return [[key, *state] for key, state in self._still.items()]

    def load(self, data: object) -> None:
        self._before.clear()
        self._still = {}
        for entry in sequence(data):
            key, count, onset = row(entry, 3)
            self._still[text(key)] = (whole(count), whole(onset))

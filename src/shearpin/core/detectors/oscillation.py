"""state_oscillation: what was changed is changed back, and the state is where it was."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, TypeAlias

from shearpin.core.canonical import canonical_json, digest_text
from shearpin.core.checks import check_kinds
from shearpin.core.detectors.base import Probe, check_ascending, level_of
from shearpin.core.seen import NodeSeen, Seen, ToolSeen
from shearpin.core.stored import row, sequence, text, texts, whole
from shearpin.errors import ConfigError
from shearpin.findings import Finding, Severity

__all__ = ["StateKey", "StateOscillations"]

StateKey: TypeAlias = tuple[str, ...] | Callable[[Mapping[str, object]], object] | None
"""Names of the keys that make up the state, or a function of an update that gives a value."""

_WRITES = 24
_UNDONE = 6
_COMMAND = re.compile(
    r"\bgit\s+(?:checkout\s+(?!-b\b)|restore\s+|reset\s+--hard\b|revert\s+|clean\s+-)[^;&|\n]{0,160}"
    r"|\b(?:svn|hg)\s+revert\b[^;&|\n]{0,160}"
)
_TOOL = re.compile(
    r"(?:^|[_.\-])(?:undo|revert|restore|rollback|roll_back|discard)(?:$|[_.\-])|撤销|回退|还原"
)


@dataclass(frozen=True, slots=True)
class StateOscillations:
    """Pseudo-progress: every single step changes something, and together they change nothing.

    Two signs. The same change is *undone* again and again with work in between: edit, undo, another
    edit, the same undo (`git restore`). And nodes of a graph write, in whatever order, only what
    they have written before, while models are paid for it. A regular order is `cycle`'s business,
    and one node alone may be a fan-out of equal answers, so it takes two.

    Attributes:
        undone: times the same was undone until the agent is told (2 or more).
        nudge: node writes in a row that were all there before, until the agent is told (2 or more).
        stop: this write ends the run. None: never.
        key: what of a node's writes makes up the state: names of keys, or a function of the update
            that gives any value (None: nothing). None: all of it. Writes without any of it are not
            looked at.
        ceiling: the strongest answer this rule may justify.

    *Source*: on recorded coding runs the same undoing comes at most twice in successful ones, and
    up to four times in failed ones.

    Raises:
        ConfigError: a threshold is too small or falls.

    Example:
        >>> StateOscillations(undone=4).undone
        4
    """

    family: ClassVar[str] = "state_oscillation"
    watches: ClassVar[tuple[type[Seen], ...]] = (ToolSeen, NodeSeen)

    undone: int = 3
    nudge: int = 6
    stop: int | None = 12
    key: StateKey = None
    ceiling: Severity = Severity.STOP

    def __post_init__(self) -> None:
        check_kinds(self)
        check_ascending("StateOscillations", self.nudge, None, self.stop)
        _check_key(self.key)
        check_ascending("StateOscillations (undone)", self.undone, None, None)

    def probe(self) -> Probe:
        return _OscillationProbe(self)


def _check_key(key: object) -> None:
    if key is not None and not callable(key) and (not isinstance(key, tuple) or key == ()):
        raise ConfigError(
            "StateOscillations.key must be a tuple of names, a function of the update, or None, "
            f"not {key!r}"
        )


class _OscillationProbe:
    def __init__(self, config: StateOscillations) -> None:
        self._config = config
        self._writes: OrderedDict[str, None] = OrderedDict()
        self._returns = 0
        self._nodes: list[str] = []
        self._onset = 0
        self._undone: OrderedDict[str, list[int]] = OrderedDict()

    def observe(self, seen: Seen) -> Finding | None:
        if isinstance(seen, NodeSeen):
            return self._wrote(seen)
        assert isinstance(seen, ToolSeen)
        if seen.effect == "read" or seen.outcome not in ("ok", "empty"):
            return None
        what = _undoing(seen.tool, seen.args)
        return None if what is None else self._undid(seen, what)

    def _undid(self, seen: ToolSeen, what: str) -> Finding | None:
        key = digest_text(f"{seen.agent}\0{what}")[:8]
        entry = self._undone.get(key)
        if entry is None:
            if len(self._undone) >= _UNDONE:
                self._undone.popitem(last=False)
            self._undone[key] = [1, seen.step, seen.step]
            return None
        self._undone.move_to_end(key)
        if seen.step - entry[2] < 2:
            return None  # several steps back in a row are one undoing
        entry[0] += 1
        entry[2] = seen.step
        if entry[0] < self._config.undone:
            return None
        return Finding(
            family="oscillation",
            rule="undone",
            key=f"undone:{key}",
            level=min(self._config.ceiling, Severity.NUDGE),
            count=entry[0],
            limit=self._config.undone,
            onset_step=entry[1],
            step=seen.step,
            agent=seen.agent,
            subject=seen.tool,
            cause="pseudo_progress",
            hard=False,
        )

    def _wrote(self, seen: NodeSeen) -> Finding | None:
        config = self._config
        key = digest_text(f"{seen.node}\0{seen.delta}")[:6]
        if key not in self._writes:
            if len(self._writes) >= _WRITES:
                self._writes.popitem(last=False)
            self._writes[key] = None
            self._returns = 0
            self._nodes.clear()
            return None
        self._writes.move_to_end(key)
        if not seen.paid:
            return None
        if not self._returns:
            self._onset = seen.step
        self._returns += 1
        node = digest_text(seen.node)[:6]
        if node not in self._nodes and len(self._nodes) < 2:
            self._nodes.append(node)
        level = level_of(self._returns, config.nudge, None, config.stop, config.ceiling)
        if level is Severity.NONE or len(self._nodes) < 2:
            return None
        return Finding(
            family="oscillation",
            rule="state_oscillation",
            key="state_oscillation",
            level=level,
            count=self._returns,
            limit=config.nudge if level is Severity.NUDGE else (config.stop or config.nudge),
            onset_step=self._onset,
            step=seen.step,
            agent=seen.agent,
            subject=seen.node,
            cause="pseudo_progress",
            evidence={"node": seen.node},
        )

    def forget(self, agent: str | None) -> None:
        if agent is None:
            self._writes.clear()
            self._undone.clear()
            self._nodes.clear()
            self._returns = 0

    def dump(self) -> object:
        undone = [[key, *entry] for key, entry in self._undone.items()]
        return [self._returns, self._onset, self._nodes, list(self._writes), undone]

    def load(self, data: object) -> None:
        returns, onset, nodes, writes, undone = row(data, 5)
        self._returns, self._onset = whole(returns), whole(onset)
        self._nodes = texts(nodes)
        self._writes = OrderedDict((key, None) for key in texts(writes))
        self._undone.clear()
        for entry in sequence(undone):
            key, count, first, last = row(entry, 4)
            self._undone[text(key)] = [whole(count), whole(first), whole(last)]


def _undoing(tool: str, args: Mapping[str, object] | str) -> str | None:
    """What a call takes back, the same text each time; None where it takes nothing back."""
    if not isinstance(args, str):
        for value in args.values():
            if isinstance(value, str) and ("git " in value or "revert" in value):
                found = _COMMAND.search(value[:2000])
                if found is not None:
                    return " ".join(found.group().split())
    return f"{tool}\0{canonical_json(args)}" if _takes_back(tool) else None


@lru_cache(maxsize=512)
def _takes_back(tool: str) -> bool:
    return _TOOL.search(tool) is not None

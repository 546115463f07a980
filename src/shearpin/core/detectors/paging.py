"""paging: arguments that walk a progression, window after window."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar
from zlib import crc32

from shearpin.core.checks import check_kinds
from shearpin.core.detectors.base import Probe, check_ascending
from shearpin.core.seen import Seen, ToolSeen
from shearpin.core.stored import row, sequence, text, whole, wholes
from shearpin.findings import Finding, Severity

__all__ = ["Pagings"]

_CAPACITY = 4
_NUMBERS = 4
_LONGEST = 100
_NUMBER = re.compile(r"(\d{1,15})")


@dataclass(frozen=True, slots=True)
class Pagings:
    """One tool, the same arguments but for whole numbers, and these rise or fall by equal steps.

    Honest paging looks just the same, so forty pages forwards are a note and no more. What people
    do not do is to read *backwards* through windows (both ends of the range move together): there
    the agent has lost its place and looks for it in small steps, and it is told.

    Attributes:
        backwards: windows backwards in a row until the agent is told (3 or more).
        forwards: steps forwards in a row until it is noted (3 or more).
        ceiling: the strongest answer this rule may justify.

    *Source*: a public run of 45 windows of ten lines, backwards. On recorded runs neither fires on
    a successful one.

    Raises:
        ConfigError: a threshold is too small.

    Example:
        >>> Pagings(backwards=20).backwards
        20
    """

    family: ClassVar[str] = "paging"
    watches: ClassVar[tuple[type[Seen], ...]] = (ToolSeen,)

    backwards: int = 12
    forwards: int = 40
    ceiling: Severity = Severity.NUDGE

    def __post_init__(self) -> None:
        check_kinds(self)
        check_ascending("Pagings (backwards)", self.backwards, None, None)
        check_ascending("Pagings (forwards)", self.forwards, None, None)

    def probe(self) -> Probe:
        return _PagingProbe(self)


class _Walk:
    """The latest numbers of one agent's tool, and by how much they moved."""

    __slots__ = ("count", "numbers", "onset", "shape", "stride", "tool")

    def __init__(self, tool: int, shape: int, numbers: list[int], onset: int) -> None:
        self.tool = tool
        self.shape = shape
        self.numbers = numbers
        self.stride: list[int] = []
        self.count = 1
        self.onset = onset


class _PagingProbe:
    def __init__(self, config: Pagings) -> None:
        self._config = config
        self._walks: OrderedDict[str, _Walk] = OrderedDict()

    def observe(self, seen: Seen) -> Finding | None:
        assert isinstance(seen, ToolSeen)
        if isinstance(seen.args, str) or seen.effect == "write" or not seen.novel:
            return None
        numbers, shape = _shape(seen.args)
        walk = self._walks.get(seen.agent)
        tool = crc32(seen.tool.encode()) & 0xFFFFFF
        if walk is not None and walk.tool != tool and walk.count > 2:
            return None  # what other tools do in between does not matter
        if (
            walk is None
            or walk.tool != tool
            or walk.shape != shape
            or len(walk.numbers) != len(numbers)
            or not numbers
        ):
            return self._begin(seen, tool, shape, numbers)
        stride = [now - before for now, before in zip(numbers, walk.numbers, strict=True)]
        walk.numbers = numbers
        if not any(stride):
            return None
        if stride != walk.stride:
            walk.stride, walk.count, walk.onset = stride, 2, seen.step - 1
            return None
        walk.count += 1
        return self._judge(walk, seen)

    def _begin(self, seen: ToolSeen, tool: int, shape: int, numbers: list[int]) -> None:
        if numbers:
            if len(self._walks) >= _CAPACITY and seen.agent not in self._walks:
                self._walks.popitem(last=False)
            self._walks[seen.agent] = _Walk(tool, shape, numbers, seen.step)

    def _judge(self, walk: _Walk, seen: ToolSeen) -> Finding | None:
        config = self._config
        moved = [by for by in walk.stride if by]
        window = len(moved) > 1 and max(moved) < 0
        if window and walk.count >= config.backwards:
            level, limit = min(config.ceiling, Severity.NUDGE), config.backwards
        elif walk.count == config.forwards:
            level, limit = Severity.NONE, config.forwards
        else:
            return None
        return Finding(
            family="stagnation",
            rule="paging",
            key=f"paging:{seen.agent}:{walk.tool}",
            level=level,
            count=walk.count,
            limit=limit,
            onset_step=walk.onset,
            step=seen.step,
            agent=seen.agent,
            subject=seen.tool,
            cause="walks_back",
            hard=False,
            evidence={"stride": moved[0]},
        )

    def forget(self, agent: str | None) -> None:
        if agent is None:
            self._walks.clear()

    def dump(self) -> object:
        return [
            [agent, w.tool, w.shape, w.count, w.onset, w.numbers, w.stride]
            for agent, w in self._walks.items()
        ]

    def load(self, data: object) -> None:
        self._walks.clear()
        for entry in sequence(data):
            agent, tool, shape, count, onset, numbers, stride = row(entry, 7)
            walk = _Walk(whole(tool), whole(shape), wholes(numbers), whole(onset))
            walk.count, walk.stride = whole(count), wholes(stride)
            self._walks[text(agent)] = walk


def _shape(args: Mapping[str, object]) -> tuple[list[int], int]:
    """The whole numbers in a call's arguments, and a checksum of everything else."""
    numbers: list[int] = []
    rest: list[str] = []
    for name, value in args.items():
        rest.append(name)
        if type(value) is int:
            numbers.append(value)
            continue
        said = value if isinstance(value, str) else repr(value)
        if len(said) > _LONGEST:
            return [], 0
        parts = _NUMBER.split(said)
        numbers += map(int, parts[1::2])
        rest += parts[::2]
    if not 0 < len(numbers) <= _NUMBERS:
        return [], 0
    return numbers, crc32("\0".join(rest).encode("utf-8", "surrogatepass"))

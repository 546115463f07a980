"""litany: the same words before every call, while the calls hardly differ."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar
from zlib import crc32

from shearpin.core.checks import check_kinds
from shearpin.core.detectors.base import Probe, check_ascending
from shearpin.core.seen import ModelSeen, Seen, ToolSeen
from shearpin.core.stored import row, sequence, text, whole
from shearpin.errors import ConfigError
from shearpin.findings import Finding, Severity

__all__ = ["Litanies"]

_CAPACITY = 6
_NAME = 40
_HEAD = 400
"""Of longer sentences the head and the length are compared."""


_PLACES = (
    "path",
    "file",
    "file_path",
    "filename",
    "file_name",
    "target",
    "document",
    "cell",
    "url",
)
_PATH = re.compile(r"[\w./-]*[./][\w./-]*\w")


@dataclass(frozen=True, slots=True)
class Litanies:
    """An agent that announces its next call in the same words, round after round without a break.

    It is the sign by which near-identical edits can be seen: each is new, each succeeds, and the
    sentence before it never changes. Changes count only in one place (one file, say), and numbers
    in the sentence count: a sweep is no litany, nor is reading on while it brings something new. A
    round with other words, or without a call, starts the count afresh. The very same call as before
    is left to `Repeats`, which knows what came of it.

    Attributes:
        nudge: rounds with the same words until the agent is told (2 or more).
        least_characters: shorter sentences are left out, in characters.
        ceiling: the strongest answer this rule may justify.

    *Source*: public coding runs of near-identical edits that are never run.

    Raises:
        ConfigError: a threshold is out of range.

    Example:
        >>> Litanies(nudge=5).nudge
        5
    """

    family: ClassVar[str] = "litany"
    watches: ClassVar[tuple[type[Seen], ...]] = (ModelSeen, ToolSeen)

    nudge: int = 4
    least_characters: int = 24
    ceiling: Severity = Severity.NUDGE

    def __post_init__(self) -> None:
        check_kinds(self)
        check_ascending("Litanies", self.nudge, None, None)
        if self.least_characters < 1:
            raise ConfigError(
                f"Litanies.least_characters must be 1 or more, not {self.least_characters!r}"
            )

    def probe(self) -> Probe:
        return _LitanyProbe(self)


class _Refrain:
    __slots__ = ("count", "key", "last", "onset", "place", "tool")

    def __init__(
        self, key: int, count: int, onset: int, tool: str, place: int = 0, last: int = 0
    ) -> None:
        self.key = key
        self.count = count
        self.onset = onset
        self.tool = tool
        self.place = place
        self.last = last


class _LitanyProbe:
    """The finding is made with the first result of the round: then the tool is known."""

    def __init__(self, config: Litanies) -> None:
        self._config = config
        self._refrains: OrderedDict[str, _Refrain] = OrderedDict()

    def observe(self, seen: Seen) -> Finding | None:
        if isinstance(seen, ToolSeen):
            return self._answered(seen)
        assert isinstance(seen, ModelSeen)
        size = len(seen.text)
        if not seen.asks or size < self._config.least_characters:
            if self._refrains:
                self._refrains.pop(seen.agent, None)
            return None
        key = crc32(seen.text[:_HEAD].encode("utf-8", "surrogatepass")) ^ size
        refrain = self._refrains.get(seen.agent)
        if refrain is not None and refrain.key == key:
            refrain.count += 1
            return None
        if refrain is None and len(self._refrains) >= _CAPACITY:
            self._refrains.popitem(last=False)
        self._refrains[seen.agent] = _Refrain(key, 1, seen.step, "")
        return None

    def _answered(self, seen: ToolSeen) -> Finding | None:
        refrain = self._refrains.get(seen.agent)
        if refrain is None:
            return None
        place = _place(seen.args)
        call = crc32(seen.call_key.encode())
        same, refrain.last = call == refrain.last, call
        if refrain.tool != seen.tool[:_NAME] or (refrain.place != place and seen.effect == "write"):
            if refrain.tool:
                refrain.count, refrain.onset = 1, seen.step
            refrain.tool, refrain.place = seen.tool[:_NAME], place
            return None
        if same or refrain.count < self._config.nudge or seen.effect in ("wait", "think"):
            return None
        if seen.effect != "write" and seen.fresh and seen.outcome == "ok":
            return None  # it reads on, in the same words, and finds something
        return Finding(
            family="stagnation",
            rule="litany",
            key=f"litany:{refrain.key}",
            level=min(self._config.ceiling, Severity.NUDGE),
            count=refrain.count,
            limit=self._config.nudge,
            onset_step=refrain.onset,
            step=seen.step,
            agent=seen.agent,
            subject=seen.tool,
            cause="pseudo_progress",
            hard=False,
        )

    def forget(self, agent: str | None) -> None:
        if agent is None:
            self._refrains.clear()

    def dump(self) -> object:
        return [
            [agent, r.key, r.count, r.onset, r.tool, r.place, r.last]
            for agent, r in self._refrains.items()
        ]

    def load(self, data: object) -> None:
        self._refrains.clear()
        for entry in sequence(data):
            agent, key, count, onset, tool, place, last = row(entry, 7)
            self._refrains[text(agent)] = _Refrain(
                whole(key), whole(count), whole(onset), text(tool), whole(place), whole(last)
            )


def _place(args: Mapping[str, object] | str) -> int:
    """What a change is made to: the argument that names it, else the paths in a command."""
    if isinstance(args, str):
        return 0
    for name in _PLACES:
        if name in args:
            return crc32(str(args[name])[:_HEAD].encode("utf-8", "surrogatepass"))
    command = next((v for v in args.values() if isinstance(v, str)), "")
    paths = " ".join(sorted(set(_PATH.findall(command[:_HEAD]))))
    # without a place, the arguments as a whole: whatever varies in them is another place
    return crc32((paths or repr(sorted(args.items()))[:_HEAD]).encode("utf-8", "surrogatepass"))

"""The ladder: from findings and the breaker's state to what is to be done.

Each loop (finding key) climbs by itself: told once, then its calls are refused, then the run ends.
The ladder remembers how far each has climbed, so nothing is said twice.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence

from shearpin.core.canonical import digest_text
from shearpin.core.stored import finding_of, finding_row, row, sequence, text, texts, whole
from shearpin.findings import Finding, Severity

__all__ = ["Ladder"]

_CAPACITY = 10
_MOST_DIVERTED = 2
_MODEL = "model:"


class Ladder:
    """How far each loop has climbed, and which calls are refused because of it."""

    __slots__ = ("_diverted", "_refused", "_told", "_withheld")

    def __init__(self) -> None:
        self._diverted: list[str] = []
        self._withheld: dict[str, tuple[Finding, int]] = {}
        self._told: OrderedDict[str, int] = OrderedDict()
        self._refused: OrderedDict[str, tuple[Finding, int]] = OrderedDict()

    def climb(self, finding: Finding, level: Severity) -> Severity:
        """The new rung of a loop, or NONE where it has been reached before."""
        reached = self._told.get(finding.key, 0)
        if level <= reached:
            return Severity.NONE
        self._told[finding.key] = int(level)
        self._told.move_to_end(finding.key)
        if len(self._told) > _CAPACITY:
            self._told.popitem(last=False)
        return level

    def note(self, finding: Finding) -> bool:
        """Whether this loop is new to the ladder: it is noted once, without reaching a rung."""
        if finding.key in self._told:
            return False
        self._told[finding.key] = 0
        if len(self._told) > _CAPACITY:
            self._told.popitem(last=False)
        return True

    def told(self, finding: Finding) -> bool:
        """Whether the agent has been told of this loop already."""
        return self._told.get(finding.key, 0) > 0

    def refuse(self, finding: Finding, epoch: int) -> None:
        """Refuse the calls that make up this loop, until the agent has done new work."""
        for name in finding.refuses:
            key = _sealed(name)
            self._refused[key] = (finding, epoch)
            self._refused.move_to_end(key)
        while len(self._refused) > _CAPACITY:
            self._refused.popitem(last=False)

    @property
    def refusing(self) -> bool:
        """Whether any call is refused at all."""
        return bool(self._refused or self._withheld)

    def refusal(
        self, names: Iterable[str], agent: str, epoch: int, step: int = 0
    ) -> Finding | None:
        """The finding because of which a call of an agent is not to be run, if any.

        `names` are the call's key and the wider names it goes by. `epoch` counts the work that the
        agent has done: after an edit the same test may run again. A tool that was taken away comes
        back after its last `step`.
        """
        for name in names if self._withheld else ():
            taken = self._withheld.get(_sealed(name))
            if taken is not None and taken[0].agent == agent:
                if step <= taken[1]:
                    return taken[0]
                del self._withheld[_sealed(name)]
        for name in names:
            key = _sealed(name)
            held = self._refused.get(key)
            if held is not None and held[0].agent == agent:
                if held[1] == epoch:
                    return held[0]
                del self._refused[key]
        return None

    def allow(self, call_key: str) -> None:
        """The call gave a new result after all: it is no longer refused."""
        self._refused.pop(call_key, None)

    def may_divert(self, key: str) -> bool:
        """Whether a loop may have another way out before the run ends over it."""
        return key not in self._diverted and len(self._diverted) < _MOST_DIVERTED

    def divert(self, key: str) -> None:
        """A loop was given its other way out: if it goes on, the next rung is the last."""
        self._diverted.append(key)
        if self._told.get(key, 0) > int(Severity.BLOCK):
            self._told[key] = int(Severity.BLOCK)

    def withhold(self, finding: Finding, until: int) -> None:
        """Take the tool of a finding away up to and with a step."""
        if len(self._withheld) >= _MOST_DIVERTED:
            del self._withheld[next(iter(self._withheld))]
        self._withheld[_sealed(f"tool:{finding.subject}")] = (finding, until)

    def lend(self, finding: Finding, model: str, until: int) -> None:
        """Give the agent of a finding another model until there are so many answers."""
        if len(self._withheld) >= _MOST_DIVERTED:
            del self._withheld[next(iter(self._withheld))]
        self._withheld[f"{_MODEL}{model}"] = (finding, until)

    def lent(self, agent: str, step: int) -> str | None:
        """The name of the model that an agent has for now in place of its own."""
        for name, (finding, until) in self._withheld.items():
            if name.startswith(_MODEL) and finding.agent == agent and step < until:
                return name.removeprefix(_MODEL)
        return None

    def is_withheld(self, finding: Finding) -> bool:
        """Whether this is why a tool was taken away."""
        return any(
            held is finding
            for name, (held, _) in self._withheld.items()
            if not name.startswith(_MODEL)
        )

    def without(self, agent: str, step: int) -> frozenset[str]:
        """The tools that an agent has to do without."""
        return frozenset(
            finding.subject
            for name, (finding, until) in self._withheld.items()
            if finding.subject is not None and finding.agent == agent and step <= until
            if not name.startswith(_MODEL)
        )

    def clear(self) -> None:
        """A new turn: nothing has been said yet."""
        self._diverted.clear()
        self._withheld.clear()
        self._told.clear()
        self._refused.clear()

    def pardon(self, key: str) -> None:
        """The loop was left: it starts at the first rung, if it comes again at all."""
        self._told.pop(key, None)
        for call in [call for call, (finding, _) in self._refused.items() if finding.key == key]:
            del self._refused[call]

    def dump(self) -> list[object]:
        """The state as JSON-ready data. A finding that refuses several calls is written once."""
        held = (*self._refused.values(), *self._withheld.values())
        findings = list({id(finding): finding for finding, _ in held}.values())
        places = {id(finding): place for place, finding in enumerate(findings)}
        return [
            [[key, level] for key, level in self._told.items()],
            [finding_row(finding) for finding in findings],
            [[key, places[id(finding)], epoch] for key, (finding, epoch) in self._refused.items()],
            list(self._diverted),
            [[key, places[id(finding)], step] for key, (finding, step) in self._withheld.items()],
        ]

    def load(self, data: object) -> None:
        """Restore what `dump` gave."""
        told, findings, refused, diverted, withheld = row(data, 5)
        for item in sequence(told):
            key, level = row(item, 2)
            self._told[text(key)] = whole(level)
        known = [finding_of(item) for item in sequence(findings)]
        for item in sequence(refused):
            key, place, epoch = row(item, 3)
            self._refused[text(key)] = (_known(known, place), whole(epoch))
        self._diverted = texts(diverted)
        for item in sequence(withheld):
            key, place, step = row(item, 3)
            self._withheld[text(key)] = (_known(known, place), whole(step))


def _known(findings: Sequence[Finding | None], place: object) -> Finding:
    finding = findings[whole(place)]
    if finding is None:
        raise ValueError("a refusal without its finding")
    return finding


def _sealed(name: str) -> str:
    """Wide names hold the first word of a command, which is text of the run: a digest is kept."""
    return digest_text(name) if name.startswith("tool:") else name

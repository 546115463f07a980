"""Patience that follows what happens in a workflow: slow, bounded, explained, and easy to undo.

Contract: what was learnt is one number for each workflow, the patience, in a JSON file or a store;
it moves by the amounts in `MOVES` and never leaves its bounds, and every move is kept with its
reason (the latest `KEPT` of them). `Adaptive` is what a guard is given. Without one only a guard in
`observe` mode adapts, as long as it lives: what is enforced changes only where that is asked for.

What a person says weighs most: a stop marked as wrong counts as ten runs that say the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple, cast

from shearpin.analysis.kept import Kept, Place
from shearpin.core.checks import text
from shearpin.core.patience import Patience, patience_value
from shearpin.errors import ConfigError
from shearpin.report.interventions import Intervention
from shearpin.report.model import Report

__all__ = ["JUDGEMENTS", "KEPT", "MOVES", "Adaptive", "Learnt", "Move"]

KEPT: Final = 100
_VERSION: Final = 1
_KEY: Final = "shearpin:learnt"
MOVES: Final[dict[str, float]] = {
    "wrong-stop": +0.05,
    "wrong-nudge": +0.02,
    "right-stop": -0.01,
    "missed-loop": -0.05,
    "healed-by-itself": +0.005,
    "went-on": -0.005,
}
"""How far the patience moves: what a person says, then what verdicts that did not act show."""
JUDGEMENTS: Final = ("wrong-stop", "wrong-nudge", "right-stop", "missed-loop")


class Move(NamedTuple):
    """One change of the patience, and why."""

    run: str
    reason: str
    patience: float


@dataclass(slots=True)
class Learnt:
    """The patience of each workflow.

    Attributes:
        start: patience before anything was learnt.
        lowest, highest: bounds; a workflow never leaves them.
        moves: of each workflow, oldest first.

    Example:
        >>> learnt = Learnt()
        >>> learnt.judge("billing", "run-7", "wrong-stop")
        >>> round(learnt.patience("billing"), 2)
        0.55
    """

    start: float = 0.5
    lowest: float = 0.35
    highest: float = 0.75
    moves: dict[str, list[Move]] = field(default_factory=dict[str, list[Move]])

    def __post_init__(self) -> None:
        for value in (self.start, self.lowest, self.highest):
            patience_value(value)
        if not self.lowest <= self.start <= self.highest:
            raise ConfigError("Learnt needs lowest <= start <= highest")

    def patience(self, workflow: str) -> Patience:
        """What a guard of this workflow is given."""
        moves = self.moves.get(workflow)
        return moves[-1].patience if moves else self.start

    def judge(self, workflow: str, run: str, judgement: str) -> None:
        """A person has looked at a run.

        Raises:
            ConfigError: the judgement is none of `JUDGEMENTS`.
        """
        if judgement not in JUDGEMENTS:
            raise ConfigError(
                f"a judgement must be one of {', '.join(JUDGEMENTS)}, not {judgement!r}"
            )
        self._move(workflow, run, judgement)

    def observe(self, workflow: str, run: str, interventions: Iterable[Intervention]) -> None:
        """What followed the verdicts of a run that were not carried out (`observe`, `warn`).

        Verdicts that acted teach nothing here: what came after them may be their doing. A run moves
        the patience at most once.
        """
        unheard = [one for one in interventions if not one.acted]
        healed = sum(one.after == "pivoted" for one in unheard)
        went_on = sum(one.after in ("went_on", "stopped") for one in unheard)
        if healed > went_on:
            self._move(workflow, run, "healed-by-itself")
        elif went_on > healed:
            self._move(workflow, run, "went-on")

    def reset(self, workflow: str) -> None:
        """Forget what was learnt of a workflow."""
        self.moves.pop(workflow, None)

    def _move(self, workflow: str, run: str, reason: str) -> None:
        target = float(self.patience(workflow)) + MOVES[reason]
        kept = self.moves.setdefault(workflow, [])
        bounded = round(min(self.highest, max(self.lowest, target)), 4)
        kept.append(Move(run, reason, bounded))
        del kept[:-KEPT]

    def save(self, path: str | Path) -> None:
        """Writes the file, whole or not at all."""
        Kept(Path(path), _KEY).change(lambda _: self.to_json())

    @classmethod
    def load(cls, path: str | Path) -> Learnt:
        """What `save` wrote; a fresh one where there is no file yet.

        Raises:
            ConfigError: the file is damaged.
        """
        try:
            return cls.from_json(Kept(Path(path), _KEY).read())
        except ConfigError as error:
            if str(error).startswith(str(path)):
                raise
            raise ConfigError(f"{path}: {error}") from error

    def to_json(self) -> dict[str, object]:
        """JSON-ready data, which `from_json` reads."""
        return {
            "version": _VERSION,
            "start": self.start,
            "lowest": self.lowest,
            "highest": self.highest,
            "workflows": {name: [list(move) for move in kept] for name, kept in self.moves.items()},
        }

    @classmethod
    def from_json(cls, read: object) -> Learnt:
        """What `to_json` gave; a fresh one from None.

        Raises:
            ConfigError: it is damaged.
        """
        if read is None:
            return cls()
        try:
            data = cast("dict[str, object]", read)
            if data["version"] != _VERSION:
                raise ValueError(f"it is not of version {_VERSION}")
            start, lowest, highest = (patience_value(cast("float", data[name])) for name in _BOUNDS)
            learnt = cls(start, lowest, highest)
            for name, rows in cast("dict[str, list[list[object]]]", data["workflows"]).items():
                learnt.moves[name] = [_read(row) for row in rows]
        except (AttributeError, ValueError, KeyError, TypeError, ConfigError) as error:
            raise ConfigError(f"cannot be read as what was learnt: {error}") from error
        return learnt


_BOUNDS: Final = ("start", "lowest", "highest")


def _read(row: list[object]) -> Move:
    run, reason, patience = row
    return Move(str(run), str(reason), patience_value(cast("float", patience)))


class Adaptive:
    """The patience of one workflow, kept and followed: what `Guard(adaptive=...)` is given.

    Args:
        place: a JSON file, a store or its URL, or None for this process alone.
        workflow: whose patience it is.

    Raises:
        ConfigError: a value is wrong, the file's folder does not exist, or what is kept is damaged.

    Example:
        >>> adaptive = Adaptive(workflow="billing")
        >>> adaptive.judge("run-7", "wrong-stop")
        0.55
    """

    def __init__(self, place: Place = None, *, workflow: str = "default") -> None:
        text("Adaptive.workflow", workflow, "billing")
        self.workflow = workflow
        self._kept = Kept(place, _KEY)
        self._learnt = Learnt.from_json(self._kept.read())

    @property
    def blocking(self) -> bool:
        """Whether learning may wait for a disk or a network."""
        return self._kept.blocking

    @property
    def patience(self) -> float:
        """What new conversations are judged with."""
        return float(self._learnt.patience(self.workflow))

    @property
    def moves(self) -> tuple[Move, ...]:
        """How it came to be so: the latest changes and their reasons, oldest first."""
        return tuple(self._learnt.moves.get(self.workflow, ()))

    @property
    def workflows(self) -> tuple[str, ...]:
        """The workflows of which something was learnt in this place."""
        return tuple(sorted(self._learnt.moves))

    def learn(self, report: Report) -> None:
        """Take in a run that is over, and what others have learnt meanwhile."""
        found = Learnt.from_json(self._kept.read())
        before = found.to_json()
        found.observe(self.workflow, report.info.run, report.interventions)
        if found.to_json() == before:
            self._learnt = found
        else:
            self._change(
                lambda held: held.observe(self.workflow, report.info.run, report.interventions)
            )

    def judge(self, run: str, judgement: str) -> float:
        """A person has looked at a run; the patience that follows.

        Raises:
            ConfigError: the judgement is none of `JUDGEMENTS`.
        """
        self._change(lambda held: held.judge(self.workflow, run, judgement))
        return self.patience

    def reset(self) -> None:
        """Forget what was learnt of the workflow."""
        self._change(lambda held: held.reset(self.workflow))

    def _change(self, act: Callable[[Learnt], None]) -> None:
        def update(before: object) -> object:
            held = Learnt.from_json(before)
            act(held)
            return held.to_json()

        self._learnt = Learnt.from_json(self._kept.change(update))

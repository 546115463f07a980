"""Patience that follows what happens in a workflow: slow, bounded, explained, and easy to undo.

Contract: nothing adapts by itself. What was learnt is one number for each workflow, the patience,
in one JSON file; it moves by the amounts in `MOVES` and never leaves its bounds, and every move is
kept with its reason (the latest `KEPT` of them). A guard that is to use it is given
`Guard(patience=Learnt.load(path).patience("workflow"))`.

What a person says weighs most: a stop marked as wrong counts as ten runs that say the same.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple, cast

from shearpin.core.patience import Patience, patience_value
from shearpin.errors import ConfigError
from shearpin.report.interventions import Intervention

__all__ = ["JUDGEMENTS", "KEPT", "MOVES", "Learnt", "Move"]

KEPT: Final = 100
_VERSION: Final = 1
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
        data = {
            "version": _VERSION,
            "start": self.start,
            "lowest": self.lowest,
            "highest": self.highest,
            "workflows": {name: [list(move) for move in kept] for name, kept in self.moves.items()},
        }
        place = Path(path)
        draft = place.with_name(place.name + ".new")
        draft.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
        draft.replace(place)

    @classmethod
    def load(cls, path: str | Path) -> Learnt:
        """What `save` wrote; a fresh one where there is no file yet.

        Raises:
            ConfigError: the file is damaged.
        """
        place = Path(path)
        if not place.exists():
            return cls()
        try:
            read: object = json.loads(place.read_text(encoding="utf-8"))
            data = cast("dict[str, object]", read)
            if data["version"] != _VERSION:
                raise ValueError(f"it is not of version {_VERSION}")
            start, lowest, highest = (patience_value(cast("float", data[name])) for name in _BOUNDS)
            learnt = cls(start, lowest, highest)
            for name, rows in cast("dict[str, list[list[object]]]", data["workflows"]).items():
                learnt.moves[name] = [_read(row) for row in rows]
        except (OSError, ValueError, KeyError, TypeError, ConfigError) as error:
            raise ConfigError(f"{path}: cannot be read as what was learnt: {error}") from error
        return learnt


_BOUNDS: Final = ("start", "lowest", "highest")


def _read(row: list[object]) -> Move:
    run, reason, patience = row
    return Move(str(run), str(reason), patience_value(cast("float", patience)))

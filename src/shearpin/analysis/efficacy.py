"""How often interventions help, and what they cost: a tally over many reports, in one JSON file.

The tally counts by verdict, rule, cause (which selects the wording), tool, model and the wording
that was chosen. It never changes how a guard behaves: it is for people, who may change a prompt, a
tool or a threshold because of it. What chooses by outcomes is `shearpin.analysis.choices`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Final, NamedTuple, cast

from shearpin.analysis.intervals import Interval, wilson
from shearpin.errors import ConfigError
from shearpin.report.interventions import Intervention

__all__ = ["PARTS", "Efficacy", "Line"]

_VERSION: Final = 2
PARTS: Final = ("verdict", "rule", "cause", "tool", "model", "template", "acted")
"""What interventions are told apart by."""
_Key = tuple[str, str, str, str, str, str, bool]


class Line(NamedTuple):
    """How often one kind of intervention helped, with a 95 % interval, and what it cost.

    Attributes:
        given: how often it was given.
        helped: share after which new calls with new results followed soon.
        ended_well: share of these runs that completed.
        tokens: used on average until it was clear whether it had helped.
        usd: the same in dollars, over those with a known price; None without any.
    """

    verdict: str
    rule: str
    cause: str
    tool: str
    model: str
    template: str
    acted: bool
    given: int
    helped: Interval
    ended_well: float
    tokens: float
    usd: Decimal | None


@dataclass(slots=True)
class _Sum:
    given: int = 0
    helped: int = 0
    well: int = 0
    tokens: int = 0
    priced: int = 0
    usd: Decimal = Decimal(0)

    def add(self, other: _Sum) -> None:
        self.given += other.given
        self.helped += other.helped
        self.well += other.well
        self.tokens += other.tokens
        self.priced += other.priced
        self.usd += other.usd


@dataclass(slots=True)
class Efficacy:
    """Adds up interventions.

    Example:
        >>> tally = Efficacy()
        >>> tally.add(app.report(config).interventions)  # doctest: +SKIP
        >>> tally.lines(by=("model", "template"))
        []
    """

    sums: dict[_Key, _Sum] = field(default_factory=dict[_Key, _Sum])

    def add(self, interventions: Iterable[Intervention]) -> None:
        """Counts those of one run. What is still unknown does not count."""
        for one in interventions:
            if one.after == "unknown":
                continue
            key = (
                one.verdict, one.rule or "", one.cause or "", one.tool or "", one.model or "",
                one.template or "", one.acted,
            )  # fmt: skip
            usd = one.usd
            self.sums.setdefault(key, _Sum()).add(
                _Sum(1, one.helped, one.ended_well, one.tokens, usd is not None, usd or Decimal(0))
            )

    def lines(self, by: Iterable[str] = PARTS) -> list[Line]:
        """All kinds, the most frequent first.

        Args:
            by: what to tell apart, of `PARTS`; the rest is added up and stays empty in the lines.
                Verdicts that were not carried out always stay apart.

        Raises:
            ConfigError: a name is none of `PARTS`.
        """
        kept = {*by, "acted"}
        if not kept <= {*PARTS}:
            raise ConfigError(f"by must name some of {', '.join(PARTS)}, not {sorted(kept)}")
        merged: dict[_Key, _Sum] = {}
        for key, one in self.sums.items():
            parts = zip(PARTS, key, strict=True)
            wide = cast("_Key", tuple(part if name in kept else "" for name, part in parts))
            merged.setdefault(wide, _Sum()).add(one)
        return [
            Line(
                *key,
                one.given,
                wilson(one.helped, one.given),
                one.well / one.given,
                one.tokens / one.given,
                one.usd / one.priced if one.priced else None,
            )
            for key, one in sorted(merged.items(), key=lambda item: (-item[1].given, item[0]))
        ]

    def save(self, path: str | Path) -> None:
        """Writes the tally."""
        rows = [
            [*key, s.given, s.helped, s.well, s.tokens, s.priced, str(s.usd)]
            for key, s in sorted(self.sums.items())
        ]
        text = json.dumps({"version": _VERSION, "rows": rows}, indent=1)
        Path(path).write_text(text + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: str | Path) -> Efficacy:
        """The tally that `save` wrote.

        Raises:
            ConfigError: it cannot be read.
        """
        try:
            data = cast("object", json.loads(Path(path).read_text(encoding="utf-8")))
            if not isinstance(data, dict) or data.get("version") != _VERSION:  # pyright: ignore[reportUnknownMemberType]
                raise ValueError(f"it is no tally of version {_VERSION}")
            tally = cls()
            for row in cast("list[list[object]]", data["rows"]):
                *names, acted, given, helped, well, tokens, priced, usd = row
                verdict, rule, cause, tool, model, template = map(str, names)
                key = (verdict, rule, cause, tool, model, template, bool(acted))
                tally.sums[key] = _Sum(
                    int(cast("int", given)), int(cast("int", helped)), int(cast("int", well)),
                    int(cast("int", tokens)), int(cast("int", priced)), Decimal(str(usd)),
                )  # fmt: skip
        except (OSError, ValueError, KeyError, TypeError, ArithmeticError) as error:
            raise ConfigError(f"{path}: the tally cannot be read: {error}") from error
        return tally

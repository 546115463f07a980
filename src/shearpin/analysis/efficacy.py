"""How often interventions help: a tally over many reports, kept as one JSON file.

The tally counts by verdict, rule, cause (which selects the wording) and tool. It never changes how
a guard behaves: it is for people, who may change a prompt, a tool or a threshold because of it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple, cast

from shearpin.analysis.intervals import Interval, wilson
from shearpin.errors import ConfigError
from shearpin.report.interventions import Intervention

__all__ = ["Efficacy", "Line"]

_VERSION: Final = 1
_Key = tuple[str, str, str, str, bool]


class Line(NamedTuple):
    """How often one kind of intervention helped, with a 95 % interval."""

    verdict: str
    rule: str
    cause: str
    tool: str
    acted: bool
    given: int
    helped: Interval


@dataclass(slots=True)
class Efficacy:
    """Adds up interventions.

    Example:
        >>> tally = Efficacy()
        >>> tally.add(app.report(config).interventions)  # doctest: +SKIP
        >>> tally.lines()
        []
    """

    given: Counter[_Key] = field(default_factory=Counter[_Key])
    helped: Counter[_Key] = field(default_factory=Counter[_Key])

    def add(self, interventions: Iterable[Intervention]) -> None:
        """Counts those of one run. What is still unknown does not count."""
        for one in interventions:
            if one.after == "unknown":
                continue
            key = (one.verdict, one.rule or "", one.cause or "", one.tool or "", one.acted)
            self.given[key] += 1
            self.helped[key] += one.helped

    def lines(self) -> list[Line]:
        """All kinds, the most frequent first."""
        return [
            Line(*key, count, wilson(self.helped[key], count))
            for key, count in sorted(self.given.items(), key=lambda item: (-item[1], item[0]))
        ]

    def save(self, path: str | Path) -> None:
        """Writes the tally."""
        rows = [[*key, count, self.helped[key]] for key, count in sorted(self.given.items())]
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
                verdict, rule, cause, tool, acted, given, helped = row
                key = (str(verdict), str(rule), str(cause), str(tool), bool(acted))
                tally.given[key] = int(cast("int", given))
                tally.helped[key] = int(cast("int", helped))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ConfigError(f"{path}: the tally cannot be read: {error}") from error
        return tally

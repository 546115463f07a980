"""What may choose between interventions, as far as the core knows of it.

Contract: the core offers options, the first of which is what it would do by itself, and takes the
answer as advice: an unknown name, or a fault, means the first. Whoever chooses gives the same
answer to the same question as long as it has learnt nothing in between.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from shearpin.findings import Finding

__all__ = ["Choice", "Chooses"]


class Choice(NamedTuple):
    """What was chosen, and why, in a few words."""

    name: str
    why: str


class Chooses(Protocol):
    """Chooses between interventions.

    Attributes:
        wordings: names of the ways to put a nudge that may be chosen, the usual one first.
        words: what a wording of the user's own adds to a nudge, by its name.
        blocks: whether the repeated call may be refused at once instead of after more warnings.
        ways: ways out of a loop that may be chosen before it ends the run.
    """

    @property
    def wordings(self) -> Sequence[str]: ...
    @property
    def words(self) -> Mapping[str, str]: ...
    @property
    def blocks(self) -> bool: ...
    @property
    def ways(self) -> Sequence[str]: ...

    def choose(self, place: str, finding: Finding, options: Sequence[str], draw: str) -> Choice: ...

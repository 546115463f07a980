"""Chanting: a response, while it is being streamed, that says the same block over and over.

Contract: pure, constant work per chunk, at most `_KEPT` characters kept, for one response only.
Tables, code and dividers repeat lines by nature and are never chanting. Off by default: who cuts a
stream, cuts an answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from shearpin.core.checks import check_kinds
from shearpin.core.seen import Seen
from shearpin.errors import ConfigError
from shearpin.findings import Finding

__all__ = ["Chant", "ChantProbe", "Chants"]

_KEPT = 6000
_TAIL = 24
_EVERY = 64
_FENCE = "```"


class Chant(NamedTuple):
    """What was found: the block's length in characters, how often it came, and where it began."""

    period: int
    laps: int
    onset: int


@dataclass(frozen=True, slots=True)
class Chants:
    """When a stream counts as chanting.

    Put among the detectors, it cuts such a stream and ends the run. A session shows it nothing: it
    listens where answers are streamed.

    Attributes:
        laps: times a block must come in a row, letter by letter (3 or more).
        least_characters: length of all laps together, in characters (100 to 3000).
        longest_block: longer blocks are not looked for, in characters (1 to 1500).
        letters: share of letters in a block; less is a divider or a table (0 to 1).

    *Source*: Holtzman et al., "The curious case of neural text degeneration" (2020).

    Raises:
        ConfigError: a number is out of range.

    Example:
        >>> probe = Chants().probe()
        >>> line = "I will now check the file again to be sure that it is right. "
        >>> [found.period for found in map(probe.feed, [line] * 20) if found][:1]
        [61]
    """

    family: ClassVar[str] = "chanting"
    watches: ClassVar[tuple[type[Seen], ...]] = ()

    laps: int = 5
    least_characters: int = 600
    longest_block: int = 1000
    letters: float = 0.5

    def __post_init__(self) -> None:
        check_kinds(self)
        for name, least, most in (
            ("laps", 3, 100),
            ("least_characters", 100, 3000),
            ("longest_block", 1, 1500),
            ("letters", 0, 1),
        ):
            if not least <= (value := getattr(self, name)) <= most:
                raise ConfigError(
                    f"Chants.{name} must lie between {least} and {most}, not {value!r}"
                )

    def probe(self) -> ChantProbe:
        """A fresh probe for one response."""
        return ChantProbe(self)


class ChantProbe:
    """Takes the chunks of one streamed response, in order."""

    __slots__ = ("_config", "_fences", "_fresh", "_length", "_text")

    def __init__(self, config: Chants) -> None:
        self._config = config
        self._text = ""
        self._fences = 0
        self._fresh = 0
        self._length = 0

    def feed(self, chunk: str) -> Chant | None:
        """Take a chunk; what has been found, if anything. Looks at every 64th character or so."""
        if not chunk:
            return None
        # a fence may be split over two chunks
        self._fences += (self._text[-2:] + chunk).count(_FENCE)
        self._text = (self._text + chunk)[-_KEPT:]
        self._length += len(chunk)
        self._fresh += len(chunk)
        if self._fresh < _EVERY or self._fences % 2:
            return None
        self._fresh = 0
        return self._look()

    def sense(self, chant: Chant) -> str:
        """What was said up to the end of the first lap, as far as it is kept."""
        gone = self._length - len(self._text)
        return self._text[: max(0, chant.onset + chant.period - gone)].strip()

    @property
    def heard(self) -> str:
        """As much text as was heard, its end as it was: what is no longer kept is filled up."""
        gone = self._length - len(self._text)
        return (self._text * (1 + gone // max(1, len(self._text))))[:gone] + self._text

    def observe(self, seen: Seen) -> Finding | None:
        """A session shows nothing to this rule."""
        return None

    def forget(self, agent: str | None) -> None:
        """Nothing outlives a response."""

    def dump(self) -> object:
        """Nothing outlives a response."""
        return None

    def load(self, data: object) -> None:
        """Nothing outlives a response."""

    def _look(self) -> Chant | None:
        text = self._text
        config = self._config
        earlier = text.rfind(text[-_TAIL:], 0, len(text) - 1)
        if earlier < 0:
            return None
        period = len(text) - _TAIL - earlier
        if period > config.longest_block:
            return None
        needed = max(config.laps * period, config.least_characters)
        if needed > len(text) or text[-needed:-period] != text[period - needed :]:
            return None
        block = text[-max(period, _TAIL) :]
        if not _is_prose(block, config.letters):
            return None
        span = needed  # a text of period p equals itself shifted by p, as far as it goes
        while span < len(text) and text[-span - 1] == text[-span - 1 + period]:
            span += 1
        return Chant(period, span // period, self._length - span)


def _is_prose(block: str, letters: float) -> bool:
    """Whether a block is said rather than drawn: words, no cells, no dividers, no code."""
    dense = "".join(block.split())
    if not dense or sum(map(str.isalpha, dense)) < letters * len(dense):
        return False
    return (
        block.count("|") < 2
        and block.count("\t") < 2
        and not block.lstrip().startswith(("#!", "<"))
    )

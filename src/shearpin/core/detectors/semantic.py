"""semantic_oscillation: an agent thinks the same in ever new words, and learns nothing by it."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from shearpin.core.checks import check_kinds
from shearpin.core.detectors.base import Probe
from shearpin.core.seen import Seen, ToolSeen, VectorSeen
from shearpin.core.stored import row, sequence, text
from shearpin.errors import ConfigError
from shearpin.findings import Finding, Severity

__all__ = ["SemanticOscillations"]

_CAPACITY = 2
_FOLDED = 32
_SCALE = 180.0


@dataclass(frozen=True, slots=True)
class SemanticOscillations:
    """Dispersion of the embeddings of an agent's latest thoughts, gated on results that are old.

    Needs vectors, which a guard has made in the background by `embedder`. Each vector is folded to
    32 small numbers; two running sums give the dispersion of the window at a cost that does not
    depend on its length. Never alone: no embedder tried can tell a paraphrase from two normal
    consecutive thoughts (AUC .66 to .70), so at least `stale` of the latest `window` calls must
    have brought nothing new.

    Attributes:
        window: latest thoughts of an agent that are compared (3 to 8).
        floor: dispersion under which they count as one thought (0 to 1); 0.05 is a mean cosine of
            .94.
        stale: calls among the latest `window` that repeated, failed or came back empty (1 to
            window).
        embedder: what makes the vectors, see `shearpin.embedding`. None: hashed n-grams, for which
            numpy must be installed; without it the rule is off, and the report says so.
        ceiling: the strongest answer this rule may justify.

    *Source*: on recorded runs, pairs of normal consecutive thoughts reach a cosine of .94 in 5 % of
    the cases; five thoughts in a row with three stale calls among them fire on no successful one.

    Raises:
        ConfigError: a number is out of range.

    Example:
        >>> SemanticOscillations(floor=0.03).floor
        0.03
    """

    family: ClassVar[str] = "semantic_oscillation"
    watches: ClassVar[tuple[type[Seen], ...]] = (VectorSeen, ToolSeen)

    window: int = 5
    floor: float = 0.12
    stale: int = 3
    embedder: object | None = None
    ceiling: Severity = Severity.NUDGE

    def __post_init__(self) -> None:
        check_kinds(self)
        if not 3 <= self.window <= 8:
            raise ConfigError(f"SemanticOscillations.window must be 3 to 8, not {self.window!r}")
        if not 0 < self.floor < 1:
            raise ConfigError(
                f"SemanticOscillations.floor must lie between 0 and 1, not {self.floor!r}"
            )
        if not 1 <= self.stale <= self.window:
            raise ConfigError(
                f"SemanticOscillations.stale must lie between 1 and window, not {self.stale!r}"
            )

        if self.embedder is not None and not _embeds(self.embedder):
            raise ConfigError(
                f"SemanticOscillations.embedder must have embed(texts) or aembed(texts); "
                f"{type(self.embedder).__name__} has neither"
            )

    def probe(self) -> Probe:
        return _SemanticProbe(self)


def _embeds(embedder: object) -> bool:
    return any(callable(getattr(embedder, name, None)) for name in ("embed", "aembed"))


class _Thoughts:
    """The latest folded vectors of an agent, their sum and the sum of their squared lengths."""

    __slots__ = ("calls", "squares", "sums", "vectors")

    def __init__(self) -> None:
        self.vectors: list[bytes] = []
        self.sums = [0] * _FOLDED
        self.squares = 0
        self.calls = ""  # the latest calls, "s" for stale and "n" for new

    def add(self, vector: bytes, window: int) -> None:
        self._move(vector, 1)
        self.vectors.append(vector)
        if len(self.vectors) > window:
            self._move(self.vectors.pop(0), -1)

    def _move(self, vector: bytes, sign: int) -> None:
        sums = self.sums
        for place, code in enumerate(vector):
            value = code - 128
            sums[place] += sign * value
            self.squares += sign * value * value

    def dispersion(self) -> float:
        """One minus the share of the mean in the mean square: 0 for equal vectors."""
        if not self.squares:
            return 1.0
        return 1.0 - sum(value * value for value in self.sums) / (len(self.vectors) * self.squares)


class _SemanticProbe:
    def __init__(self, config: SemanticOscillations) -> None:
        self._config = config
        self._agents: OrderedDict[str, _Thoughts] = OrderedDict()

    def observe(self, seen: Seen) -> Finding | None:
        if isinstance(seen, ToolSeen):
            thoughts = self._agents.get(seen.agent)
            if thoughts is not None and seen.effect not in ("think", "wait"):
                stale = not seen.fresh or seen.outcome != "ok"
                thoughts.calls = (thoughts.calls + ("s" if stale else "n"))[-self._config.window :]
            return None
        assert isinstance(seen, VectorSeen)
        thoughts = self._agents.get(seen.agent)
        if thoughts is None:
            if len(self._agents) >= _CAPACITY:
                self._agents.popitem(last=False)
            thoughts = self._agents[seen.agent] = _Thoughts()
        else:
            self._agents.move_to_end(seen.agent)
        thoughts.add(_fold(seen.vector), self._config.window)
        return self._judge(thoughts, seen)

    def _judge(self, thoughts: _Thoughts, seen: VectorSeen) -> Finding | None:
        config = self._config
        if len(thoughts.vectors) < config.window or thoughts.calls.count("s") < config.stale:
            return None
        dispersion = thoughts.dispersion()
        if dispersion >= config.floor:
            return None
        return Finding(
            family="paraphrase",
            rule="semantic_oscillation",
            key=f"semantic:{seen.agent}",
            level=min(config.ceiling, Severity.NUDGE),
            count=config.window,
            limit=config.window,
            onset_step=max(1, seen.step - config.window + 1),
            step=seen.step,
            agent=seen.agent,
            cause="says_the_same",
            hard=False,
            evidence={"dispersion": round(dispersion, 3), "floor": config.floor},
        )

    def forget(self, agent: str | None) -> None:
        if agent is None:
            self._agents.clear()
        else:
            self._agents.pop(agent, None)

    def dump(self) -> object:
        return [
            [agent, t.calls, b64encode(b"".join(t.vectors)).decode("ascii")]
            for agent, t in self._agents.items()
        ]

    def load(self, data: object) -> None:
        self._agents.clear()
        for entry in sequence(data):
            agent, calls, packed = row(entry, 3)
            thoughts = self._agents[text(agent)] = _Thoughts()
            thoughts.calls = text(calls)
            plain = b64decode(text(packed), validate=True)
            if len(plain) % _FOLDED or len(plain) > 8 * _FOLDED:
                raise ValueError("vectors are cut off or too many")
            for start in range(0, len(plain), _FOLDED):
                thoughts.add(plain[start : start + _FOLDED], 8)


def _fold(vector: Sequence[float]) -> bytes:
    """A vector of any length as 32 small numbers, each with 128 added; nearly keeps cosines."""
    length = sum(value * value for value in vector) ** 0.5 or 1.0
    sums = [0.0] * _FOLDED
    for place, value in enumerate(vector):
        lap, at = divmod(place, _FOLDED)
        sums[at] += -value if (lap * 0x9E3779B1 >> 7) & 1 else value
    scale = _SCALE / length
    return bytes(max(1, min(255, round(value * scale) + 128)) for value in sums)

"""Other thresholds for some tools or nodes: which rules are meant, and the probe that obeys.

Contract: there is one probe per rule, whatever is overridden, so state does not grow; only the
numbers it reads change with the tool or node that an observation is about. A rule that is switched
off for a tool goes on watching it, in silence.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final

from shearpin.core.checks import instances, texts
from shearpin.core.detectors.base import Detector, Probe
from shearpin.core.patience import Patience, patience_value, patient
from shearpin.core.seen import MessageSeen, NodeSeen, RoundSeen, Seen, StartSeen, ToolSeen
from shearpin.errors import ConfigError
from shearpin.findings import Finding

__all__ = ["Override", "probe_of"]

_MOST_KNOWN: Final = 256


@dataclass(frozen=True, slots=True)
class Override:
    """Other thresholds for what some tools or nodes do. The first override that matches counts.

    Attributes:
        tools: names of tools; `*` and `?` stand for any characters.
        nodes: names of graph nodes, likewise. With both given, both have to match.
        patience: in place of the guard's own; None keeps that.
        detectors: rules with other numbers, in place of the guard's rule of the same family.
        off: families of rules that say nothing about these tools or nodes.

    A whole round (which the rules about sequences look at) is matched if all its tools are.

    Raises:
        ConfigError: nothing is named, or what is named is no rule.

    Example:
        >>> Override(tools=("browser_*",), patience="high").tools
        ('browser_*',)
    """

    tools: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    patience: Patience | None = None
    detectors: tuple[Detector, ...] = ()
    off: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("tools", "nodes", "off"):
            names = texts(f"Override.{name}", getattr(self, name))
            object.__setattr__(self, name, names)
        if not self.tools and not self.nodes:
            raise ConfigError("Override needs tools=... or nodes=...: what is it for?")
        if self.patience is not None:
            patience_value(self.patience)
        rules = instances("Override.detectors", self.detectors, object, "Repeats()")
        object.__setattr__(self, "detectors", rules)
        for detector in self.detectors:
            kind = getattr(detector, "family", None)
            if not isinstance(kind, str) or isinstance(detector, type):
                raise ConfigError(
                    f"Override.detectors must hold rules such as Repeats(), not {detector!r}"
                )

    def matches(self, tools: Sequence[str], node: str) -> bool:
        """Whether it is meant for calls of these tools at this node."""
        if self.tools and not (tools and all(_any(self.tools, tool) for tool in tools)):
            return False
        return not self.nodes or _any(self.nodes, node)

    def apply(self, detector: Detector, patience: Patience) -> Detector | None:
        """The rule as it is here, where the guard's patience is given; None: it says nothing."""
        family = detector.family
        if family in self.off:
            return None
        own = next((other for other in self.detectors if other.family == family), detector)
        return patient([own], patience if self.patience is None else self.patience)[0]


def probe_of(detector: Detector, patience: Patience, overrides: Iterable[Override]) -> Probe:
    """A probe for a rule that obeys the overrides.

    Args:
        detector: the rule as it was given.
        patience: of the guard.
        overrides: the first one that matches counts.
    """
    scaled = patient([detector], patience)[0]
    rules = [(override, override.apply(detector, patience)) for override in overrides]
    return scaled.probe() if not rules else _Overridden(scaled, rules)


class _Overridden:
    """One probe whose numbers depend on what an observation is about."""

    def __init__(
        self, detector: Detector, rules: Sequence[tuple[Override, Detector | None]]
    ) -> None:
        configs = [detector, *(rule for _, rule in rules if rule is not None)]
        # What a probe keeps is bounded by its largest count: the most patient config makes it.
        self._probe = max(configs, key=_size).probe()
        self._default = detector
        self._rules = rules
        self._known: dict[tuple[tuple[str, ...], str], Detector | None] = {}

    def observe(self, seen: Seen) -> Finding | None:
        place = _place(seen)
        if place not in self._known:
            if len(self._known) >= _MOST_KNOWN:  # names come from models: keep the memory bounded
                self._known.clear()
            self._known[place] = self._rule(*place)
        rule = self._known[place]
        setattr(self._probe, "_config", rule or self._default)  # noqa: B010
        found = self._probe.observe(seen)
        return None if rule is None else found

    def _rule(self, tools: tuple[str, ...], node: str) -> Detector | None:
        for override, rule in self._rules:
            if override.matches(tools, node):
                return rule
        return self._default

    def forget(self, agent: str | None) -> None:
        self._probe.forget(agent)

    def dump(self) -> object:
        return self._probe.dump()

    def load(self, data: object) -> None:
        self._probe.load(data)


def _place(seen: Seen) -> tuple[tuple[str, ...], str]:
    if isinstance(seen, ToolSeen):
        return (seen.tool,), seen.node
    if isinstance(seen, RoundSeen):
        return seen.tools, seen.node
    if isinstance(seen, StartSeen):
        return (seen.tool,), ""
    if isinstance(seen, MessageSeen | NodeSeen):
        return (), seen.node
    return (), ""


def _any(patterns: Iterable[str], name: str) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _size(detector: Detector) -> int:
    names: tuple[str, ...] = tuple(getattr(detector, "__dataclass_fields__", ()))
    values: list[object] = [getattr(detector, name) for name in names]
    return sum(value for value in values if type(value) is int)

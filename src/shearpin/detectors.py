"""The rules, for those who choose or write them.

`Guard(detectors=...)` replaces the default set, so a change to one rule names the others as well:

    >>> from shearpin.detectors import DEFAULT_DETECTORS, ErrorStreaks
    >>> rules = [rule for rule in DEFAULT_DETECTORS if rule.family != "error_streak"]
    >>> rules.append(ErrorStreaks(nudge=3))

A rule of one's own is a frozen config with `family`, `watches` and `probe()`: see `Detector`,
`Probe` and what a probe is shown (`ToolSeen`, `MessageSeen`, `RoundSeen`, `NodeSeen`).
"""

from __future__ import annotations

from shearpin.core.detectors import (
    DEFAULT_DETECTORS,
    OPTIONAL_DETECTORS,
    Chants,
    Cycles,
    DeadEnds,
    Detector,
    Duplicates,
    Echoes,
    ErrorStreaks,
    Guesses,
    Insistences,
    Litanies,
    LoopRisk,
    Monologues,
    NoProgress,
    Pagings,
    PingPongs,
    Probe,
    Repeats,
    Revisits,
    SameInputs,
    SemanticOscillations,
    SlowLeaks,
    SmallTalk,
    Stagnations,
    StateOscillations,
    TokenVelocity,
    UnknownTools,
    UntestedEdits,
)
from shearpin.core.seen import MessageSeen, NodeSeen, RoundSeen, ToolSeen
from shearpin.findings import Finding, Severity

__all__ = [
    "DEFAULT_DETECTORS",
    "OPTIONAL_DETECTORS",
    "Chants",
    "Cycles",
    "DeadEnds",
    "Detector",
    "Duplicates",
    "Echoes",
    "ErrorStreaks",
    "Finding",
    "Guesses",
    "Insistences",
    "Litanies",
    "LoopRisk",
    "MessageSeen",
    "Monologues",
    "NoProgress",
    "NodeSeen",
    "Pagings",
    "PingPongs",
    "Probe",
    "Repeats",
    "Revisits",
    "RoundSeen",
    "SameInputs",
    "SemanticOscillations",
    "Severity",
    "SlowLeaks",
    "SmallTalk",
    "Stagnations",
    "StateOscillations",
    "TokenVelocity",
    "ToolSeen",
    "UnknownTools",
    "UntestedEdits",
]

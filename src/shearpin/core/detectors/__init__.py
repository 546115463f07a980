"""The rules. One file each: a frozen config with documented defaults and a private probe."""

from __future__ import annotations

from shearpin.core.chanting import Chants
from shearpin.core.detectors.base import Detector, Probe
from shearpin.core.detectors.cycle import Cycles
from shearpin.core.detectors.dead_end import DeadEnds
from shearpin.core.detectors.duplicate import Duplicates
from shearpin.core.detectors.echo import Echoes
from shearpin.core.detectors.error_streak import ErrorStreaks
from shearpin.core.detectors.guesses import Guesses
from shearpin.core.detectors.insistence import Insistences
from shearpin.core.detectors.leak import SlowLeaks
from shearpin.core.detectors.litany import Litanies
from shearpin.core.detectors.loop_risk import LoopRisk
from shearpin.core.detectors.monologue import Monologues
from shearpin.core.detectors.oscillation import StateOscillations
from shearpin.core.detectors.paging import Pagings
from shearpin.core.detectors.ping_pong import PingPongs
from shearpin.core.detectors.progress import NoProgress
from shearpin.core.detectors.repeat import Repeats
from shearpin.core.detectors.revisits import Revisits
from shearpin.core.detectors.same_input import SameInputs
from shearpin.core.detectors.semantic import SemanticOscillations
from shearpin.core.detectors.small_talk import SmallTalk
from shearpin.core.detectors.stagnation import Stagnations
from shearpin.core.detectors.unknown_tool import UnknownTools
from shearpin.core.detectors.untested import UntestedEdits
from shearpin.core.detectors.velocity import TokenVelocity

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
    "Guesses",
    "Insistences",
    "Litanies",
    "LoopRisk",
    "Monologues",
    "NoProgress",
    "Pagings",
    "PingPongs",
    "Probe",
    "Repeats",
    "Revisits",
    "SameInputs",
    "SemanticOscillations",
    "SlowLeaks",
    "SmallTalk",
    "Stagnations",
    "StateOscillations",
    "TokenVelocity",
    "UnknownTools",
    "UntestedEdits",
]

DEFAULT_DETECTORS: tuple[Detector, ...] = (
    Repeats(),
    Cycles(),
    UnknownTools(),
    ErrorStreaks(),
    Duplicates(),
    Monologues(),
    Stagnations(),
    Echoes(),
    Litanies(),
    Insistences(),
    Revisits(),
    Guesses(),
    PingPongs(),
    StateOscillations(),
    DeadEnds(),
    Pagings(),
    TokenVelocity(),
    SmallTalk(),
)
"""What `guard(graph)` watches for without further argument."""

OPTIONAL_DETECTORS: tuple[Detector, ...] = (
    SemanticOscillations(),
    UntestedEdits(),
    SameInputs(),
    SlowLeaks(),
    Chants(),
)
"""Rules that are off unless they are named."""

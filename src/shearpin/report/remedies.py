"""What to change where a verdict was wrong: one sentence per family of findings."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Final

from shearpin.core import detectors
from shearpin.core.detectors import DEFAULT_DETECTORS
from shearpin.core.journal import VerdictRecord

__all__ = ["remedy_for"]

_CONFIGS: Final = {rule.family: type(rule).__name__ for rule in DEFAULT_DETECTORS}
_BY_RULE: Final = {
    "bad_args": ("UnknownTools", "args_{severity}"),
    "chanting": ("Chants", "laps"),
    "dead_end_drift": ("DeadEnds", "nudge"),
    "echo": ("Echoes", "nudge"),
    "insistence": ("Insistences", "nudge"),
    "litany": ("Litanies", "nudge"),
    "no_progress": ("NoProgress", None),
    "paging": ("Pagings", "backwards"),
    "rejected_guesses": ("Guesses", "nudge"),
    "revisits": ("Revisits", "nudge"),
    "same_input": ("SameInputs", "after"),
    "semantic_oscillation": ("SemanticOscillations", "stale"),
    "small_talk": ("SmallTalk", "nudge"),
    "slow_leak": ("SlowLeaks", "rising"),
    "state_oscillation": ("StateOscillations", None),
    "swelling": ("TokenVelocity", "sustained"),
    "undone": ("StateOscillations", "undone"),
    "untested_edits": ("UntestedEdits", "after"),
    "velocity": ("TokenVelocity", "sustained"),
}
"""The config behind a rule whose findings belong to another family, and its own name of a limit."""
_STOPS: Final = {"error_not_understood": "error_stop", "outage": "transient_stop"}
"""Which `stop` of `Repeats` it was, by the cause."""
_FIELDS: Final = {
    kind.__name__: {spec.name for spec in fields(kind)}
    for kind in vars(detectors).values()
    if isinstance(kind, type) and is_dataclass(kind)
}
_FALLBACK: Final = (
    'start with mode="warn", which never refuses a call and never ends a run, '
    "and send the report of this run to the maintainers."
)


def remedy_for(record: VerdictRecord) -> str:
    """How to keep this verdict from being given again, if it was wrong.

    Example:
        >>> from shearpin.core.journal import VerdictRecord
        >>> record = VerdictRecord(
        ...     5, 1.0, "block", "block", "repeat", "repeat", None, "main",
        ...     {"tool": "job_state", "limit": 5}, "", True)
        >>> remedy_for(record)
        'If this was legitimate: declare job_state as ToolFacts(polling=True) if it is meant to be \
called until its answer changes, or raise Repeats(block=...) above 5.'
    """
    family = record.finding or ""
    if family == "budget":
        return _raise_budget(record)
    if family == "failures" and record.rule == "error_budget":
        return "If this was legitimate: raise Boundary(error_budget=...), or None for no bound."
    special = _special(record)
    if special is not None:
        return f"If this was legitimate: {special}."
    if family == "failures":
        return (
            f"If this was legitimate: say with Boundary(on={{{record.rule!r}: ...}}) what is to be "
            "done about such a failure instead."
        )
    config, name = _BY_RULE.get(record.rule or "", (_CONFIGS.get(family), None))
    if config is None:
        return f"If this was legitimate: {_FALLBACK}"
    threshold = _threshold(record, config, name or record.severity)
    tool = record.evidence.get("tool")
    # A polling tool may still be hinted at, so declaring it helps against more than a nudge only.
    if family in ("repeat", "cycle") and isinstance(tool, str) and record.severity != "nudge":
        return (
            f"If this was legitimate: declare {tool} as ToolFacts(polling=True) if it is meant to "
            f"be called until its answer changes, or {threshold}."
        )
    if family == "unknown_tool" and isinstance(tool, str):
        return f"If this was legitimate: give the agent the tool {tool}, or {threshold}."
    return f"If this was legitimate: {threshold}."


def _raise_budget(record: VerdictRecord) -> str:
    name, per = record.evidence.get("dimension"), record.evidence.get("per")
    if not isinstance(name, str):
        return (
            "If this was legitimate: give the model a price with Guard(prices=...), or say with "
            "unknown_price= what to do where there is none."
        )
    field = f"per_tool={{{name[5:]!r}: ...}}" if name.startswith("tool:") else f"{name}=..."
    if record.severity == "nudge":
        return f"If this was too early: raise Budget({field}), or Budget(soft=...) towards 1."
    return (
        f"If this was legitimate: raise Budget({field}) for each {per}, or for one invocation with "
        '{"configurable": {"shearpin_budget": ...}}; a run that goes on takes shearpin_extend.'
    )


def _special(record: VerdictRecord) -> str | None:
    """What to change where it is no threshold of a rule."""
    if record.rule == "loop_risk":
        return "raise Guard(early_nudges=...), or leave it out"
    if record.rule == "together":
        return f"switch one of these rules off: {record.evidence.get('rules', '')}"
    if record.rule == "duplicate_in_message":
        return "Duplicates(ceiling=Severity.NUDGE) lets copies of a call run"
    return None


def _threshold(record: VerdictRecord, config: str, name: str) -> str:
    """The number to raise: the rule's, or the breaker's where it ran out of patience first."""
    by = record.evidence.get("ended_by")
    if isinstance(by, str):
        return f"raise BreakerSettings({by}=...)"
    count, limit = record.evidence.get("count"), record.evidence.get("limit")
    field = name.format(severity=record.severity)
    if config == "Repeats" and record.severity == "stop":
        field = _STOPS.get(str(record.evidence.get("cause")), field)
    if field not in _FIELDS.get(config, ()):
        field = "nudge"
    if not isinstance(limit, int):
        return f"raise {config}({field}=...)"
    if record.severity == "stop" and isinstance(count, int) and count < limit:
        return "raise BreakerSettings(trial_rounds=..., persist_rounds=...)"
    return f"raise {config}({field}=...) above {limit}"

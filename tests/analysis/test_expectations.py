"""What a behaviour case claims, and how the verdicts on it are judged."""

from __future__ import annotations

import pytest

from shearpin.analysis import Replay, ReplayedVerdict, judge
from shearpin.analysis.replay import Spent
from shearpin.findings import Severity
from shearpin.traces import TraceExpect

NUDGE, BLOCK, STOP = Severity.NUDGE, Severity.BLOCK, Severity.STOP


def given(*verdicts: tuple[int, Severity] | tuple[int, Severity, str]) -> Replay:
    """A replay with verdicts of (step, severity, family); the family is repeat by default."""
    made = tuple(
        ReplayedVerdict(step, level.label, level, family[0] if family else "repeat", None, {}, "")
        for step, level, *family in verdicts
    )
    worst = max((verdict.severity for verdict in made), default=Severity.NONE)
    return Replay("r", "", "", 9, "closed", worst, made, Spent(9, 9, 0, 0))


LADDER = given((3, NUDGE), (5, BLOCK), (8, STOP))


@pytest.mark.parametrize(
    ("expect", "replay"),
    [
        (TraceExpect(), given()),
        (TraceExpect(quiet=True, never=(NUDGE, BLOCK, STOP)), given()),
        (TraceExpect(nudge_by=3, block_by=5, stop_by=8, findings=("repeat",)), LADDER),
        (TraceExpect(nudge_by=3, block_by=3, stop_by=3), given((2, STOP))),
        (TraceExpect(nudge_by=3, findings=("cycle", "repeat")), given((3, NUDGE), (4, STOP, "x"))),
        (TraceExpect(never=(BLOCK, STOP)), given((1, NUDGE), (2, NUDGE))),
        (TraceExpect(never=(STOP,), findings=("repeat",)), given()),
    ],
)
def test_claims_that_hold(expect: TraceExpect, replay: Replay) -> None:
    assert judge(expect, replay) == []


@pytest.mark.parametrize(
    ("expect", "replay", "failure"),
    [
        (TraceExpect(nudge_by=2), given(), "nudge by step 2 expected, but nothing was said"),
        (
            TraceExpect(nudge_by=2),
            LADDER,
            "nudge by step 2 expected, but the first one came at step 3 (repeat)",
        ),
        (
            TraceExpect(stop_by=9),
            given((3, NUDGE), (5, BLOCK)),
            "stop by step 9 expected, but there was no more than a block at step 5 for repeat",
        ),
        (
            TraceExpect(quiet=True),
            given((4, NUDGE)),
            "nothing expected, but there was a nudge at step 4 for repeat",
        ),
        (
            TraceExpect(never=(BLOCK,)),
            given((1, NUDGE), (4, STOP)),
            "less than a block expected, but there was a stop at step 4 for repeat",
        ),
        (
            TraceExpect(never=(NUDGE, BLOCK, STOP)),
            given((4, NUDGE)),
            "nothing expected, but there was a nudge at step 4 for repeat",
        ),
        (
            TraceExpect(findings=("cycle", "x")),
            given((4, NUDGE), (5, NUDGE, "cycle")),
            "a first verdict for cycle or x expected, but there was a nudge at step 4 for repeat",
        ),
    ],
)
def test_claims_that_fail_say_what_was_there_instead(
    expect: TraceExpect, replay: Replay, failure: str
) -> None:
    assert judge(expect, replay) == [failure]


def test_every_failed_claim_is_named() -> None:
    expect = TraceExpect(nudge_by=1, block_by=1, stop_by=1, quiet=True, findings=("cycle",))
    assert len(judge(expect, given((2, NUDGE)))) == 5

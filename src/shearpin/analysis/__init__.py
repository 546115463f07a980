"""What can be learnt offline, from recorded runs.

* `replay_run` - a recorded run through a session: the verdicts it would have been given
* `judge` - the verdicts against what a behaviour case claims
"""

from __future__ import annotations

from shearpin.analysis.expectations import judge
from shearpin.analysis.replay import Replay, ReplayedVerdict, replay_run

__all__ = ["Replay", "ReplayedVerdict", "judge", "replay_run"]

"""What can be learnt offline, from recorded runs.

* `replay_run` - a recorded run through a session: the verdicts it would have been given
* `judge` - the verdicts against what a behaviour case claims
* `kind_of_run` - the kind of loop that a run holds
"""

from __future__ import annotations

from shearpin.analysis.expectations import judge
from shearpin.analysis.replay import Replay, ReplayedVerdict, replay_run
from shearpin.analysis.signs import kind_of_run

__all__ = ["Replay", "ReplayedVerdict", "judge", "kind_of_run", "replay_run"]

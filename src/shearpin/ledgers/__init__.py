"""Where holds and spend live: one protocol, one suite of tests for every backend.

    guard = Guard(budget="$5 per thread", ledger=MemoryLedger())   # one ledger for many graphs

* `base` - the `Ledger` protocol and its contract
* `memory` - in this process
* `purse` - an account and a ledger at work together
* `requests` - what a purse is asked and told
* `waiting` - calls that wait for room
* `conformance` - the tests that every ledger has to pass
"""

from __future__ import annotations

from shearpin.core.holds import Amounts, Hold, Refusal, Scope, Tally
from shearpin.ledgers.base import Ledger, Ready
from shearpin.ledgers.memory import MemoryLedger

__all__ = ["Amounts", "Hold", "Ledger", "MemoryLedger", "Ready", "Refusal", "Scope", "Tally"]

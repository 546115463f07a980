"""Where holds and spend live: one protocol, one suite of tests for every backend.

* `base` - the `Ledger` protocol and its contract
* `memory` - in this process
* `purse` - an account and a ledger at work together
* `requests` - what a purse is asked and told
* `conformance` - the tests that every ledger has to pass
"""

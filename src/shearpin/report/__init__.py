"""The audit report of a run: its data, and how it is shown.

* `model` - the report itself, versioned and JSON-ready
* `replays` - the totals over many replayed runs
* `terminal` - both of them on a terminal, by rich
* `html` - both of them as self-contained pages
"""

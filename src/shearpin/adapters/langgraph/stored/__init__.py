"""Conversations in a checkpointer's own tables: read, and mended, without the graph they are of.

* `raw` - LangGraph's stored values, taken apart no further than needed
* `records` - a stored conversation, and a change of it
* `sqlite`, `postgres` - the tables of the two savers; `opening` - which of them a place names
* `diagnosis` - what is wrong with a conversation, and whether it may be mended
* `mending` - the change that mends it, written and looked at
"""

"""The layers around a compiled LangGraph graph.

* `compat` - every touch of LangGraph's private parts, and the self-test that goes with it
* `wiring` - what a guarded graph is made of: its plan, its guarded nodes and subgraphs
* `nodes` - the node layer: around each node, sees it enter and leave, speaks to it, ends it
* `toolnodes` - the same around each call of a ToolNode
* `speaking` - messages that a node is lent, in a copy of its input
* `delta` - a bounded digest of what a node wrote
* `stopping` - the normal end of a stopped run: answers, last word, after-hooks
* `supervisor` - the guarded graph itself: a run around each stream, the thread's state, the report
* `state` - where sessions live between runs
"""

"""The only code that knows the hosts: it turns what they do into facts, and verdicts into acts.

* `judge` - a conversation's session behind its lock, faults of the core contained
* `run` - one run under guard: facts in, verdicts out, waiting nudges
* `nudges` - what the agents of a run are still to be told
* `numbering` - ids of calls that stay the same when a task is re-executed
* `places` - where in the tree of graphs something happens
* `signals` - the exceptions that carry a stop through code that is not ours
* `calls` - the call layer: a callback handler that sees every model and tool call of a run
* `toolcalls` - around a tool call that can be answered without being run
* `messages` - reading and making chat messages
* `reports` - from a run to its report
* `scope` - a run around plain chains and chat models
* `langgraph/` - the node and supervisor layers around a compiled graph
* `langchain/` - the middleware for `create_agent`
"""

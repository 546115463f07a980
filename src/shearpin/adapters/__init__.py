"""The only code that knows the hosts: it turns what they do into facts, and verdicts into acts.

* `run` - one run under guard: its session behind a lock, contained faults, waiting nudges
* `calls` - the call layer: a callback handler that sees every model and tool call of a run
* `messages` - reading and making chat messages
* `scope` - a run around plain chains and chat models
* `langgraph/` - the node and supervisor layers around a compiled graph
* `langchain/` - the middleware for `create_agent`
"""

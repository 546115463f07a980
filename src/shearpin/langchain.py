"""For LangChain agents: the guard as a middleware.

    from langchain.agents import create_agent
    from shearpin.langchain import GuardMiddleware

    agent = create_agent(model, tools, middleware=[GuardMiddleware()])

`shearpin.guard(agent)` sees and does more, and needs no change where the agent is made; both at
once are one guard.
"""

from __future__ import annotations

from shearpin.adapters.langchain.middleware import GuardMiddleware

__all__ = ["GuardMiddleware"]

"""For LangChain agents: the guard as a middleware.

    from langchain.agents import create_agent
    from shearpin.langchain import GuardMiddleware

    agent = create_agent(model, tools, middleware=[GuardMiddleware()])

`shearpin.guard(agent)` sees and does more, and needs no change where the agent is made; both at
once are one guard. `ResilienceMiddleware` is the error boundary for such agents: failed calls
become results, and models get retries and fallbacks; `resilient_model(model, fallbacks)` does that
for a model anywhere else. `clamped(model)` limits a model's answers to what the run's budget has
left, as the middleware does for the models of its agent.
"""

from __future__ import annotations

from shearpin.adapters.langchain.clamping import clamped
from shearpin.adapters.langchain.middleware import GuardMiddleware
from shearpin.adapters.langchain.resilience import ResilienceMiddleware
from shearpin.adapters.langchain.resilient import resilient_model

__all__ = ["GuardMiddleware", "ResilienceMiddleware", "clamped", "resilient_model"]

"""LangGraph's own retries with our classification."""

from __future__ import annotations

from collections.abc import Sequence

from langgraph.types import RetryPolicy

from shearpin.boundary.categories import ErrorCategory
from shearpin.boundary.classification import Rule, classify
from shearpin.boundary.settings import Retries
from shearpin.core.checks import instance

__all__ = ["retry_policy"]


def retry_policy(retries: Retries | None = None, *, rules: Sequence[Rule] = ()) -> RetryPolicy:
    """A retry policy for a node or task of LangGraph, for `add_node(retry_policy=...)`, `@task` or
    `@entrypoint`, with or without a guard.

    Only what may pass by itself is retried: rate limits, overload, network, timeouts; never a 404,
    a refused request or a bug. The whole node runs again, also what has worked in it before it
    failed, so tools with an effect in it need a record of that effect.

    Args:
        retries: how many attempts, and the first and longest wait. LangGraph's own back-off is
            used, which doubles and knows neither a deadline nor what the other side asks for; waits
            from 0.5 to 30 seconds and three attempts by default.
        rules: your own classifications, asked before ours.

    Raises:
        ConfigError: `retries` is none.

    Example:
        >>> policy = retry_policy()
        >>> policy.retry_on(ConnectionError("reset")), policy.retry_on(TypeError("a bug"))
        (True, False)
    """
    settings = Retries() if retries is None else retries
    instance("retries", settings, Retries, "Retries(...) or None")
    asked = tuple(rules)

    def retry_on(error: Exception) -> bool:
        return classify(error, asked).category is ErrorCategory.RETRYABLE

    return RetryPolicy(
        initial_interval=settings.base_seconds,
        max_interval=settings.cap_seconds,
        max_attempts=settings.attempts,
        retry_on=retry_on,
    )

"""OpenAI's SDK, those generated like it (Groq, Cerebras), and LiteLLM, which speaks like it.

Contract: statuses are read elsewhere; here is what a code or a class adds. The rate limit that asks
to wait and the used-up account are both status 429 and both `RateLimitError`: only the code tells
them apart.

*Source*: OpenAI's guide to error codes, its SDK's classes, Azure OpenAI's content filter codes.
"""

from __future__ import annotations

from shearpin.boundary.known.kinds import (
    Family,
    Weight,
    degradable,
    fatal,
    retryable,
)

__all__ = ["FAMILIES"]

_CODES = {
    "rate_limit_exceeded": retryable("rate_limit", safe=True),
    "ratelimitreached": retryable("rate_limit", safe=True),
    "engine_overloaded": retryable("overloaded"),
    "slow_down": retryable("rate_limit", safe=True),
    "server_error": retryable("server_error", weight=Weight.BROAD),  # a status says more
    "server_is_overloaded": retryable("overloaded"),
    "vector_store_timeout": retryable("timeout"),
    "insufficient_quota": degradable("quota"),
    "billing_hard_limit_reached": degradable("quota"),
    "billing_not_active": degradable("quota"),
    "quota_exceeded": degradable("quota"),
    "context_length_exceeded": degradable("context_length"),
    "string_above_max_length": degradable("context_length"),
    "content_filter": degradable("content_filter"),
    "responsibleaipolicyviolation": degradable("content_filter"),
    "content_policy_violation": degradable("content_filter"),
    "moderation_blocked": degradable("content_filter"),
    "invalid_prompt": degradable("content_filter"),
    "invalid_api_key": fatal("authentication"),
    "invalid_authentication": fatal("authentication"),
    "account_deactivated": fatal("authentication"),
    "invalid_organization": fatal("authentication"),
    "unsupported_country_region_territory": fatal("permission"),
    "model_not_found": fatal("not_found"),
    "deploymentnotfound": fatal("not_found"),
    "tool_use_failed": degradable("bad_output"),  # Groq: the model wrote an unreadable call
}

_KINDS = {
    "APITimeoutError": retryable("timeout", weight=Weight.BROAD),
    "APIConnectionError": retryable("network", weight=Weight.BROAD),
    "APIResponseValidationError": degradable("bad_output"),
    "LengthFinishReasonError": degradable("bad_output"),
    "ContentFilterFinishReasonError": degradable("content_filter"),
    "WebSocketConnectionClosedError": retryable("network"),
    "RateLimitError": retryable("rate_limit", safe=True, weight=Weight.BROAD),
    "AuthenticationError": fatal("authentication"),
    "OAuthError": fatal("authentication"),
    "SubjectTokenProviderError": fatal("authentication"),
    "PermissionDeniedError": fatal("permission"),
    "APIError": retryable("server_error", weight=Weight.BROAD),
    # The client itself: no key was given, an option is wrong.
    "OpenAIError": fatal("configuration", weight=Weight.BROAD),
    "GroqError": fatal("configuration", weight=Weight.BROAD),
    "CerebrasError": fatal("configuration", weight=Weight.BROAD),
}

_LITELLM = {
    "ContextWindowExceededError": degradable("context_length"),
    "ContentPolicyViolationError": degradable("content_filter"),
    "BudgetExceededError": degradable("quota"),
    "Timeout": retryable("timeout"),
    "JSONSchemaValidationError": degradable("bad_output"),
    "UnsupportedParamsError": fatal("invalid_request"),
}

FAMILIES = (
    Family(("openai", "groq", "cerebras"), _KINDS, _CODES, model=True),
    Family(("litellm",), _LITELLM, _CODES, model=True),
)

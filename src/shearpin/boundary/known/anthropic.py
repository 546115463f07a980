"""Anthropic's SDK.

Contract: the type in the body comes first, because an error in mid-stream has the status 200 of the
response that it ends. A prompt that is too long, and a balance that is used up, have no type of
their own (`invalid_request_error`): see `words.py`.

*Source*: Anthropic's guide to errors, its SDK's classes.
"""

from __future__ import annotations

from shearpin.boundary.known.kinds import Family, Weight, degradable, fatal, retryable

__all__ = ["FAMILIES"]

_CODES = {
    "rate_limit_error": retryable("rate_limit", safe=True),
    "overloaded_error": retryable("overloaded"),
    "api_error": retryable("server_error", weight=Weight.BROAD),  # a status says more
    "timeout_error": retryable("timeout"),
    "billing_error": degradable("quota"),
    "request_too_large": degradable("context_length"),
    "authentication_error": fatal("authentication"),
    "permission_error": fatal("permission"),
    "not_found_error": fatal("not_found"),
}

_KINDS = {
    "APITimeoutError": retryable("timeout", weight=Weight.BROAD),
    "APIConnectionError": retryable("network", weight=Weight.BROAD),
    "RetryableError": retryable("server_error", weight=Weight.BROAD),
    "APIResponseValidationError": degradable("bad_output"),
    "CredentialsError": fatal("authentication"),
    "RateLimitError": retryable("rate_limit", safe=True, weight=Weight.BROAD),
    "AuthenticationError": fatal("authentication"),
    "PermissionDeniedError": fatal("permission"),
    "APIError": retryable("server_error", weight=Weight.BROAD),
    "AnthropicError": fatal("configuration", weight=Weight.BROAD),
}

FAMILIES = (Family(("anthropic",), _KINDS, _CODES, model=True),)

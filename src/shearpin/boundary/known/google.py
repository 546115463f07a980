"""Google: the GenAI SDK, API core, authentication, and gRPC.

Contract: codes are the canonical status names, which gRPC and the JSON bodies share; reasons in
`ErrorInfo` and quotas per day are read in `codes.py`.

*Source*: google.rpc.Code and the AIPs on errors; which codes are safe to retry is from AIP-194.
"""

from __future__ import annotations

from shearpin.boundary.known.kinds import Family, Weight, degradable, fatal, retryable

__all__ = ["FAMILIES"]

_CODES = {
    "resource_exhausted": retryable("rate_limit", safe=True),
    "unavailable": retryable("overloaded"),
    "internal": retryable("server_error"),
    "unknown": retryable("server_error"),
    "deadline_exceeded": retryable("timeout"),
    "aborted": retryable("conflict"),
    "quota_per_day": degradable("quota"),
    "already_exists": degradable("conflict"),
    "data_loss": degradable("server_error"),
    "unimplemented": degradable("unavailable"),
    "out_of_range": degradable("invalid_arguments"),
    "cancelled": degradable("cancelled"),
    "api_key_invalid": fatal("authentication"),
    "unauthenticated": fatal("authentication"),
    "permission_denied": fatal("permission"),
    "not_found": fatal("not_found"),
    "invalid_argument": fatal("invalid_request", weight=Weight.BROAD),
    "failed_precondition": fatal("invalid_request", weight=Weight.BROAD),
}

_KINDS = {
    "RetryError": retryable("timeout", weight=Weight.BROAD),
    "TransportError": retryable("network", weight=Weight.BROAD),
    "RefreshError": fatal("authentication"),
    "DefaultCredentialsError": fatal("authentication"),
    "GoogleAuthError": fatal("authentication", weight=Weight.BROAD),
    "BlockedPromptException": degradable("content_filter"),
    "StopCandidateException": degradable("content_filter"),
    "UnknownApiResponseError": degradable("bad_output"),
    "UnknownFunctionCallArgumentError": degradable("invalid_arguments"),
    "FunctionInvocationError": degradable("invalid_arguments"),
    "UnsupportedFunctionError": fatal("programming"),
    "ContinuationInterruptedError": retryable("network", weight=Weight.BROAD),
}

FAMILIES = (
    Family(
        ("google.genai", "google.generativeai", "langchain_google_genai"),
        _KINDS,
        _CODES,
        model=True,
    ),
    # These serve tools as well as models.
    Family(("google.api_core", "google.auth", "google.cloud", "googleapiclient"), _KINDS, _CODES),
    Family(("grpc",), {}, _CODES),
)

"""botocore, and with it boto3, Bedrock and langchain-aws.

Contract: the service's code says more than the status, and comes without the suffix that some
services add (`Exception`, `#...`). Bedrock asks for too much text with a `ValidationException` that
has no code of its own: see `words.py`.

*Source*: botocore's own retry tables (`retries/standard.py`), Bedrock's guide to error codes.
"""

from __future__ import annotations

from shearpin.boundary.known.kinds import Family, Weight, degradable, fatal, retryable

__all__ = ["FAMILIES", "MODEL_OPERATIONS"]

_THROTTLED = retryable("rate_limit", safe=True)
_REFUSED = fatal("authentication")

_CODES = {
    **dict.fromkeys(
        (
            "throttling",
            "throttled",
            "throttledexception",
            "throttlingexception",
            "requestthrottled",
            "requestthrottledexception",
            "toomanyrequestsexception",
            "provisionedthroughputexceededexception",
            "transactioninprogressexception",
            "requestlimitexceeded",
            "bandwidthlimitexceeded",
            "limitexceededexception",
            "slowdown",
            "priorrequestnotcomplete",
            "ec2throttledexception",
        ),
        _THROTTLED,
    ),
    "modelnotreadyexception": retryable("overloaded", safe=True),
    "modeltimeoutexception": retryable("timeout"),
    "modelstreamerrorexception": retryable("server_error"),
    "modelerrorexception": retryable("server_error"),
    "internalserverexception": retryable("server_error"),
    "internalservererror": retryable("server_error"),
    "internalfailure": retryable("server_error"),
    "internalerror": retryable("server_error"),
    "serviceunavailable": retryable("overloaded"),
    "serviceunavailableexception": retryable("overloaded"),
    "requesttimeout": retryable("timeout"),
    "requesttimeoutexception": retryable("timeout"),
    "conflictexception": retryable("conflict"),
    "servicequotaexceededexception": degradable("quota"),
    "resourcenotfoundexception": fatal("not_found"),
    "accessdeniedexception": fatal("permission"),
    "accessdenied": fatal("permission"),
    "unauthorizedoperation": fatal("permission"),
    **dict.fromkeys(
        (
            "unrecognizedclientexception",
            "invalidclienttokenid",
            "expiredtoken",
            "expiredtokenexception",
            "invalidsignatureexception",
            "signaturedoesnotmatch",
            "missingauthenticationtoken",
            "missingauthenticationtokenexception",
            "incompletesignature",
            "authfailure",
        ),
        _REFUSED,
    ),
    "nosuchkey": degradable("not_found"),
    "nosuchbucket": degradable("not_found"),
    "conditionalcheckfailedexception": degradable("conflict"),
}

_KINDS = {
    "EndpointConnectionError": retryable("network", safe=True, weight=Weight.NARROW),
    "ProxyConnectionError": retryable("network", safe=True, weight=Weight.NARROW),
    "ConnectTimeoutError": retryable("timeout", safe=True),
    "ReadTimeoutError": retryable("timeout"),
    "ConnectionClosedError": retryable("network", weight=Weight.BROAD),
    "ResponseStreamingError": retryable("network", weight=Weight.BROAD),
    "IncompleteReadError": retryable("network"),
    "CapacityNotAvailableError": retryable("overloaded", safe=True),
    "ConnectionError": retryable("network", weight=Weight.BROAD),
    "HTTPClientError": retryable("network", weight=Weight.BROAD),
    "SSLError": degradable("certificate"),
    "ChecksumError": degradable("bad_output"),
    "FlexibleChecksumError": degradable("bad_output"),
    "NoCredentialsError": _REFUSED,
    "PartialCredentialsError": _REFUSED,
    "CredentialRetrievalError": _REFUSED,
    "NoAuthTokenError": _REFUSED,
    "TokenRetrievalError": _REFUSED,
    "SSOError": _REFUSED,
    "LoginError": _REFUSED,
    "ParamValidationError": fatal("invalid_request"),
    "ValidationError": fatal("invalid_request"),
    "BotoCoreError": fatal("configuration", weight=Weight.BROAD),
}

MODEL_OPERATIONS = frozenset(
    {"InvokeModel", "InvokeModelWithResponseStream", "Converse", "ConverseStream"}
)
"""Operations that ask a model; all others are a tool's."""

FAMILIES = (Family(("botocore", "boto3", "s3transfer"), _KINDS, _CODES),)

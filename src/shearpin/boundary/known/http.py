"""HTTP clients: httpx, requests, urllib3, aiohttp, and the standard library's.

Contract: safe to retry is what certainly was not sent: no connection was made, or none was free.
A timeout or a reset after that is ambiguous. Where a class covers both, what lies beneath decides.
"""

from __future__ import annotations

from shearpin.boundary.known.kinds import Family, Kind, Weight, degradable, fatal, retryable

__all__ = ["FAMILIES"]

_UNSENT = retryable("network", safe=True, weight=Weight.NARROW)
_TIMED_OUT = retryable("timeout")
_TIMED_OUT_UNSENT = retryable("timeout", safe=True)
_CUT = retryable("network")
_SOMETHING = retryable("network", weight=Weight.BROAD)
_CERTIFICATE = degradable("certificate")
_WRONG_URL = degradable("invalid_arguments")
_UNREADABLE = degradable("bad_output")
_REDIRECTS = degradable("redirects")

_HTTPX: dict[str, Kind] = {
    "ConnectError": _UNSENT,
    "ProxyError": _UNSENT,
    "ConnectTimeout": _TIMED_OUT_UNSENT,
    "PoolTimeout": _TIMED_OUT_UNSENT,
    "ReadTimeout": _TIMED_OUT,
    "WriteTimeout": _TIMED_OUT,
    "ReadError": _CUT,
    "WriteError": _CUT,
    "CloseError": _CUT,
    "RemoteProtocolError": _CUT,
    "ConnectionNotAvailable": retryable("network", safe=True),
    "LocalProtocolError": fatal("programming"),
    "StreamError": fatal("programming"),
    "CookieConflict": fatal("programming"),
    "UnsupportedProtocol": _WRONG_URL,
    "InvalidURL": _WRONG_URL,
    "DecodingError": _UNREADABLE,
    "TooManyRedirects": _REDIRECTS,
    "TimeoutException": retryable("timeout", weight=Weight.BROAD),
    "NetworkError": _SOMETHING,
    "TransportError": _SOMETHING,
}

_REQUESTS: dict[str, Kind] = {
    "ConnectTimeout": _TIMED_OUT_UNSENT,
    "ReadTimeout": _TIMED_OUT,
    "Timeout": retryable("timeout", weight=Weight.BROAD),
    "ProxyError": _UNSENT,
    "SSLError": _CERTIFICATE,
    "ChunkedEncodingError": _CUT,
    "ConnectionError": _SOMETHING,
    "RetryError": retryable("server_error", weight=Weight.BROAD),
    "ContentDecodingError": _UNREADABLE,
    "InvalidJSONError": _UNREADABLE,
    "TooManyRedirects": _REDIRECTS,
    "MissingSchema": _WRONG_URL,
    "InvalidSchema": _WRONG_URL,
    "InvalidURL": _WRONG_URL,
    "URLRequired": _WRONG_URL,
    "InvalidHeader": _WRONG_URL,
    "StreamConsumedError": fatal("programming"),
}

_URLLIB3: dict[str, Kind] = {
    "NewConnectionError": retryable("network", safe=True),  # by its bases a timeout
    "ConnectTimeoutError": _TIMED_OUT_UNSENT,
    "EmptyPoolError": retryable("network", safe=True),
    "FullPoolError": retryable("network", safe=True),
    "ReadTimeoutError": _TIMED_OUT,
    "TimeoutError": retryable("timeout", weight=Weight.BROAD),
    "ProtocolError": _SOMETHING,
    "IncompleteRead": _CUT,
    "InvalidChunkLength": _CUT,
    "ProxyError": _UNSENT,
    "SSLError": _CERTIFICATE,
    "DecodeError": _UNREADABLE,
    "LocationValueError": _WRONG_URL,
    "ResponseError": retryable("server_error", weight=Weight.BROAD),
    "MaxRetryError": _SOMETHING,
}

_AIOHTTP: dict[str, Kind] = {
    "ClientConnectorCertificateError": _CERTIFICATE,
    "ClientConnectorSSLError": _CERTIFICATE,
    "ServerFingerprintMismatch": _CERTIFICATE,
    "ClientConnectorError": _UNSENT,
    "ConnectionTimeoutError": _TIMED_OUT_UNSENT,
    "ServerTimeoutError": _TIMED_OUT,
    "ClientPayloadError": _CUT,
    "ServerDisconnectedError": _CUT,
    "ClientConnectionResetError": _CUT,
    "ClientOSError": _SOMETHING,
    "ClientConnectionError": _SOMETHING,
    "ContentTypeError": _UNREADABLE,
    "TooManyRedirects": _REDIRECTS,
    "InvalidURL": _WRONG_URL,
    "NonHttpUrlClientError": _WRONG_URL,
}

_STANDARD: dict[str, Kind] = {
    "RemoteDisconnected": _CUT,
    "IncompleteRead": _CUT,
    "BadStatusLine": _CUT,
    "InvalidURL": _WRONG_URL,
    "URLError": _SOMETHING,
    "ContentTooShortError": _CUT,
    "CannotSendRequest": fatal("programming"),
    "ResponseNotReady": fatal("programming"),
    "HTTPException": _SOMETHING,
}

_WEBSOCKETS: dict[str, Kind] = {
    "ConnectionClosed": _CUT,
    "InvalidHandshake": _SOMETHING,
    "InvalidURI": _WRONG_URL,
}

_AZURE: dict[str, Kind] = {
    "ServiceRequestTimeoutError": _TIMED_OUT_UNSENT,
    "ServiceRequestError": _UNSENT,
    "ServiceResponseTimeoutError": _TIMED_OUT,
    "ServiceResponseError": _SOMETHING,
    "IncompleteReadError": _CUT,
    "ClientAuthenticationError": fatal("authentication"),
    "DecodeError": _UNREADABLE,
}

FAMILIES = (
    Family(("httpx", "httpx2", "httpcore", "httpcore2"), _HTTPX),
    Family(("requests",), _REQUESTS),
    Family(("urllib3",), _URLLIB3),
    Family(("aiohttp",), _AIOHTTP),
    Family(("http.client", "urllib.error"), _STANDARD),
    Family(("websockets",), _WEBSOCKETS),
    Family(("azure",), _AZURE),
)

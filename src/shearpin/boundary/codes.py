"""The status and the provider's own codes that an exception carries.

Contract: only what is meant for machines is read: attributes, fields of a decoded body, headers.
A number counts as a status only under a name that means one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from shearpin.boundary.known import families_of
from shearpin.boundary.known.aws import MODEL_OPERATIONS
from shearpin.boundary.known.databases import SQL_CLASSES, SQL_STATES, SQLITE_CODES
from shearpin.boundary.known.hosts import MCP_CODES
from shearpin.boundary.known.kinds import Kind, Weight, degradable, fatal, retryable
from shearpin.boundary.known.openai import FAMILIES as OPENAI
from shearpin.boundary.reading import (
    as_mapping,
    called,
    decoded,
    only_argument,
    origins_of,
    read,
    read_path,
    sequence_of,
    status_number,
    text_of,
    whole_number,
)

__all__ = ["by_code", "by_status", "is_models", "status_of"]

_STATUSES: dict[int, Kind] = {
    400: fatal("invalid_request"),
    401: fatal("authentication"),
    402: degradable("quota"),
    403: fatal("permission"),
    404: fatal("not_found"),
    407: fatal("authentication"),
    408: retryable("timeout"),
    409: retryable("conflict"),
    410: fatal("not_found"),
    413: degradable("context_length"),
    414: degradable("context_length"),
    421: retryable("network"),
    422: fatal("invalid_request"),
    423: retryable("conflict"),
    424: retryable("server_error"),
    425: retryable("overloaded", safe=True),
    429: retryable("rate_limit", safe=True),
    451: degradable("permission"),
    499: degradable("cancelled"),
    501: degradable("unavailable"),
    503: retryable("overloaded"),
    504: retryable("timeout"),
    505: fatal("invalid_request"),
    511: fatal("authentication"),
    522: retryable("timeout"),
    524: retryable("timeout"),
    529: retryable("overloaded"),
}
_PLACES_OF_STATUS = (
    ("status_code",),
    ("http_status",),
    ("status",),
    ("response", "status_code"),
    ("response", "status"),
    ("raw_response", "status_code"),
    ("resp", "status"),
    ("response", "ResponseMetadata", "HTTPStatusCode"),
)
_COMMON: dict[str, Kind] = {
    "rate_limit_exceeded": retryable("rate_limit", safe=True, weight=Weight.BROAD),
    "too_many_requests": retryable("rate_limit", safe=True, weight=Weight.BROAD),
    "insufficient_quota": degradable("quota", weight=Weight.BROAD),
    "quota_exceeded": degradable("quota", weight=Weight.BROAD),
    "context_length_exceeded": degradable("context_length", weight=Weight.BROAD),
    "invalid_api_key": fatal("authentication", weight=Weight.BROAD),
}
"""Codes that mean the same whoever gives them, for exceptions of nobody who is known."""
_STATUS_IN_CODE = ("google", "urllib", "aiohttp", "langchain_google_genai")
"""Roots of modules whose exceptions keep the status in `code`."""


def is_models(error: BaseException) -> bool:
    """Whether a model was asked: there a wrong request is the program's, not the agent's."""
    if any(family.model for family in families_of(error)):
        return True
    if any(
        origin.name == "ModelError" and origin.root == "langchain_core"
        for origin in origins_of(error)
    ):
        return True
    return text_of(read(error, "operation_name")) in MODEL_OPERATIONS


def status_of(error: BaseException) -> int | None:
    """The HTTP status of a failure; None where there is none, or where it is no failure's."""
    for path in _PLACES_OF_STATUS:
        status = status_number(read_path(error, *path))
        if status is not None:
            return status if status >= 300 else None
    roots = {origin.root for origin in origins_of(error)}
    if roots.intersection(_STATUS_IN_CODE):
        status = status_number(read(error, "code"))
        return status if status is not None and status >= 300 else None
    told = read(_answer_in(error), "error") or _answer_in(error)
    status = status_number(read(told, "code") or read(told, "status_code"))
    return status if status is not None and status >= 300 else None


def by_status(status: int) -> Kind:
    """What a status calls for where a model was asked."""
    known = _STATUSES.get(status)
    if known is not None:
        return known
    if status >= 500:
        return retryable("server_error")
    return degradable("redirects") if status < 400 else fatal("invalid_request")


def by_code(error: BaseException) -> Kind | None:
    """What the provider's own code calls for; None where there is none that is known."""
    families = families_of(error)
    names = {family.modules[0] for family in families}
    if "mcp" in names:
        number = whole_number(read_path(error, "error", "code"))
        return None if number is None else MCP_CODES.get(number)
    if state := (read(error, "sqlstate") or read(error, "pgcode")):
        return SQL_STATES.get(text_of(state)) or SQL_CLASSES.get(text_of(state)[:2])
    if (number := whole_number(read(error, "sqlite_errorcode"))) is not None:
        return SQLITE_CODES.get(number & 0xFF)
    tables = [family.codes for family in families if family.codes]
    tables = tables or _tables_of_answer(error) or [_COMMON]
    for code in _codes_of(error):
        for table in tables:
            if (known := table.get(code)) is not None:
                return known
    return None


def _tables_of_answer(error: BaseException) -> list[Mapping[str, Kind]]:
    """Those that hold for an answer of a provider that speaks like OpenAI."""
    return [] if _answer_in(error) is None else [family.codes for family in OPENAI]


def _codes_of(error: BaseException) -> Iterator[str]:
    """The codes that an exception carries, the most specific first, in lower case."""
    details = read(error, "details")
    body = decoded(read(error, "body"))
    holders: list[object] = [
        read_path(body, "error", "innererror"),
        read_path(body, "innererror"),
        error,
        read_path(body, "error", "details"),
        read_path(body, "error"),
        body,
        read_path(error, "response", "Error"),
        read_path(details, "error"),
        read_path(details, "Error"),
        read_path(_answer_in(error), "error"),
        _answer_in(error),
    ]
    yield from _reasons(error)
    for holder in holders:
        if holder is None:
            continue
        for name in ("error_code", "code", "Code", "type", "status", "reason"):
            told = read(holder, name)
            if isinstance(told, str) and told:
                yield told.rpartition("#")[2].strip().lower()
    for name in (
        read_path(called(error, "code"), "name"),
        read_path(error, "grpc_status_code", "name"),
    ):
        if isinstance(name, str):
            yield name.lower()


def _reasons(error: BaseException) -> Iterator[str]:
    """Reasons and quotas in the details of Google's errors."""
    details = read(error, "details")
    listed = read_path(details, "error", "details") if as_mapping(details) else details
    for detail in sequence_of(listed):
        for violation in sequence_of(read(detail, "violations")):
            if "PerDay" in text_of(read(violation, "quotaId") or read(violation, "quota_id")):
                yield "quota_per_day"
        reason = read(detail, "reason")
        if isinstance(reason, str):
            yield reason.lower()


def _answer_in(error: BaseException) -> Mapping[object, object] | None:
    """LangChain hands on an answer that holds an error as the only argument of a `ValueError`."""
    return as_mapping(only_argument(error)) if type(error) is ValueError else None

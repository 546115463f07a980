"""How long the other side asked to wait, in seconds.

Contract: 0 or more and finite, or None where nothing was said or it cannot be read (a negative
number cannot; a date in the past means now). A header that asks for a wait comes first; the reset
of a rate limit counts only where a limit was hit, because providers send it with every answer.
Dates are compared with the answer's own `Date`, where it has one, so that a clock that is off does
no harm.

*Source*: RFC 9110 section 10.2.3; the rate limit headers of OpenAI, Anthropic and GitHub; AIP-193
(`RetryInfo`); Discord's and Telegram's `retry_after`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from math import isfinite
from typing import cast

from shearpin.boundary.reading import as_mapping, called, read, read_path, sequence_of, text_of
from shearpin.clock import wall_time

__all__ = ["headers_of", "requested_wait"]

_LONGEST = 7 * 86_400.0
"""What is longer than a week is taken for a week; nobody waits for either."""
_NUMBER = re.compile(r"\s*(-?\d+(?:\.\d*)?|-?\.\d+)\s*(s|ms)?\s*\Z", re.ASCII)
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|us|µs|ns|d|h|m|s)", re.ASCII)
_UNITS = {
    "d": 86_400.0, "h": 3_600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9
}  # fmt: skip
_EPOCH_SECONDS = 1e9
"""A number this large is a point in time."""
_EPOCH_MILLISECONDS = 1e11
_RESET = re.compile(
    r"(?:(?:anthropic|x)-ratelimit-(?P<what>[\w-]+)-reset|x-ratelimit-reset-(?P<other>[\w-]+)"
    r"|(?:x-)?(?:ratelimit|rate-limit)-reset)\Z"
)
_POLICY = re.compile(r"(?:^|[;,\s])(?:t|reset)=(\d{1,6})\b", re.ASCII)
"""The `RateLimit` header in the form of its later drafts (`t`), and in that of the earlier."""


def requested_wait(error: BaseException, *, limited: bool) -> float | None:
    """Seconds that the other side asked to wait.

    Args:
        error: what was raised.
        limited: whether a rate limit was hit, so that its reset counts.
    """
    headers = headers_of(error)
    asked = _asked(headers)
    if asked is None:
        asked = _in_details(error)
    if asked is None and limited:
        asked = _reset(headers)
    if asked is None:
        asked = _number(read(error, "retry_after"))
    return asked


def headers_of(error: BaseException) -> Mapping[str, str]:
    """The headers of the answer that an exception carries, names in lower case."""
    found: dict[str, str] = {}
    for owner in (read(error, "response"), read(error, "raw_response"), error):
        if owner is None:
            continue
        told = read(owner, "headers")
        if told is None:
            told = read_path(owner, "ResponseMetadata", "HTTPHeaders")
        for name, value in _pairs(told):
            found.setdefault(name, value)
    return found


def _pairs(told: object) -> Iterator[tuple[str, str]]:
    """Names and values, whatever kind of mapping or list a client keeps its headers in."""
    items: object = called(told, "items")
    listed = items if items is not None else told
    try:
        for name, value in cast("Iterable[tuple[object, object]]", listed or ()):
            yield _plain(name).lower(), _plain(value)
    except Exception:  # a mapping of foreign code, see reading.py
        return


def _plain(text: object) -> str:
    return text.decode("latin-1") if isinstance(text, bytes) else text_of(text)


def _asked(headers: Mapping[str, str]) -> float | None:
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return _bounded(milliseconds / 1000)
    for name in ("retry-after", "x-retry-after", "x-ms-retry-after", "x-ratelimit-reset-after"):
        if (value := headers.get(name)) is not None:
            wait = _number(value)
            wait = _until(value, headers) if wait is None else wait
            if wait is not None:
                return wait
    return None


def _reset(headers: Mapping[str, str]) -> float | None:
    """The longest wait among the limits that are used up, or among all where none says so."""
    waits: list[tuple[bool, float]] = []
    for name, value in headers.items():
        match = _RESET.match(name)
        wait = _moment(value, headers) if match else None
        if match is None or wait is None:
            continue
        what = match.group("what") or match.group("other")
        waits.append((_remaining(headers, what) == 0, wait))
    used_up = [wait for empty, wait in waits if empty]
    if used_up or waits:
        return max(used_up or [wait for _, wait in waits])
    policy = _POLICY.search(headers.get("ratelimit", ""))
    return _bounded(float(policy.group(1))) if policy else None


def _remaining(headers: Mapping[str, str], what: str | None) -> float | None:
    names = (
        (f"x-ratelimit-remaining-{what}", f"anthropic-ratelimit-{what}-remaining")
        if what
        else ("x-ratelimit-remaining", "ratelimit-remaining")
    )
    return next((left for name in names if (left := _number(headers.get(name))) is not None), None)


def _moment(value: str, headers: Mapping[str, str]) -> float | None:
    """A duration (`6m0s`, `1.2s`, `120`), a point in time (epoch), or a date."""
    number = _number(value)
    if number is None:
        return _duration(value) if _PART.match(value.strip()) else _until(value, headers)
    plain = _NUMBER.match(value)
    raw = float(plain.group(1)) if plain and plain.group(2) is None else 0.0
    if raw >= _EPOCH_MILLISECONDS:
        raw /= 1000
    return _bounded(raw - _now(headers).timestamp()) if raw >= _EPOCH_SECONDS else number


def _duration(value: str) -> float | None:
    text = value.strip()
    parts = _PART.findall(text)
    if not parts or "".join(amount + unit for amount, unit in parts) != text:
        return None
    return _bounded(sum(float(amount) * _UNITS[unit] for amount, unit in parts))


def _until(value: str, headers: Mapping[str, str]) -> float | None:
    moment = _date(value)
    return None if moment is None else _bounded((moment - _now(headers)).total_seconds())


def _now(headers: Mapping[str, str]) -> datetime:
    told = _date(headers.get("date", ""))
    return datetime.fromisoformat(wall_time()) if told is None else told


def _date(value: str) -> datetime | None:
    """An HTTP or ISO date; one without a zone is taken as UTC."""
    text = value.strip()
    if not text:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        try:
            moment = parsedate_to_datetime(text)
        except (ValueError, TypeError, IndexError, OverflowError):
            return None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def _in_details(error: BaseException) -> float | None:
    """Google's `RetryInfo`, as JSON of the GenAI SDK or as a message of API core."""
    details = read(error, "details")
    details = read_path(details, "error", "details") if as_mapping(details) else details
    for detail in sequence_of(details):
        told = read(detail, "retryDelay") or read(detail, "retry_delay")
        if isinstance(told, timedelta):
            return _bounded(told.total_seconds())
        seconds, nanos = read(told, "seconds"), read(told, "nanos")
        if isinstance(seconds, int) and isinstance(nanos, int):
            return _bounded(seconds + nanos / 1e9)
        wait = _duration(told) if isinstance(told, str) else None
        if wait is not None:
            return wait
    return None


def _number(value: object) -> float | None:
    """Seconds from a number, or from text that is nothing but one, with `s` or `ms` or without."""
    if isinstance(value, bool):
        return None
    if isinstance(value, timedelta):
        return _bounded(value.total_seconds())
    if isinstance(value, (int, float)):
        return _bounded(float(value)) if 0 <= value < 1e15 else None
    match = _NUMBER.match(value) if isinstance(value, str) and len(value) < 40 else None
    seconds = float(match.group(1)) if match is not None else -1.0
    if match is None or seconds < 0:
        return None
    return _bounded(seconds * _UNITS[match.group(2) or "s"])


def _bounded(seconds: float) -> float | None:
    if not isfinite(seconds):
        return None
    return min(max(seconds, 0.0), _LONGEST)

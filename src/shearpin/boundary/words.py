"""The words of an exception: one short line to tell, and the few that have to be read.

Contract: nothing is concluded from words where a type, a status or a code says what happened. Two
situations have none: providers that refuse a text that is too long, an account without credit, or
contents that they filter, as one more invalid request; and exceptions that carry nothing but text.
Each is read with patterns that are anchored at the start and take whole phrases, so that a number
or a word within a message never counts.

*Source*: answers of Anthropic, Bedrock and Gemini as their SDKs and LangChain's integrations match
them; the status lines that HTTP clients put into their messages.
"""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import Final

from shearpin.boundary.known.kinds import Kind, degradable
from shearpin.boundary.reading import (
    as_mapping,
    decoded,
    name_of,
    only_argument,
    read,
    read_path,
    text_of,
)
from shearpin.core.messages import shorten
from shearpin.core.secrets import without_secrets

__all__ = ["line_of", "refused_for", "status_in_words"]

_LENGTH: Final = 200

_TOO_LONG = re.compile(
    r"prompt is too long: \d+ tokens > \d+ maximum"
    r"|input is too long for requested model"
    r"|the input token count \(\d+\) exceeds the maximum number of tokens allowed"
    r"|this model's maximum context length is \d+ tokens"
    r"|input length and `max_tokens` exceed context limit",
    re.IGNORECASE,
)
_NO_CREDIT = re.compile(r"your credit balance is too low to access", re.IGNORECASE)

_FILTERED = re.compile(r"output blocked by content filtering policy", re.IGNORECASE)

_PHRASES = "|".join(
    re.escape(status.phrase) for status in HTTPStatus if status.value in {*range(400, 430), 451}
) + "|".join(["", *(re.escape(status.phrase) for status in HTTPStatus if status.value >= 500)])
_STATUS_LINE = re.compile(
    r"(?:error:\s*)?(?:"
    r"(?:HTTP(?:/\d(?:\.\d)?)?(?: status)?(?: error)?(?: code)?|error code|status code)"
    rf"[:=]?\s+([45]\d\d)(?=\s*(?:\Z|\.(?!\d)|[-–:,;(\[{{]|(?:{_PHRASES})\b))"
    rf"|([45]\d\d)\s+(?:(?:client|server) error:\s+)?(?:{_PHRASES}|Site is overloaded)\b"
    r")",
    re.IGNORECASE,
)

_QUERY = re.compile(r"(?i)(\b[a-z][a-z0-9+.-]*://[^\s?#'\"<>]*)[?#][^\s'\"<>)]*")


def line_of(error: BaseException) -> str:
    """One short line about an exception: its own words, or its name where it has none."""
    name = name_of(error)
    text = _said(error)
    if "Traceback (most recent call last)" in text:
        text = text.rstrip().rpartition("\n")[2]
    if isinstance(error, (LookupError, TypeError, AttributeError, NameError, AssertionError)):
        text = f"{name}: {text}" if text.strip() else name
    line = shorten(_masked(text), _LENGTH)
    return line or name


def refused_for(error: BaseException) -> Kind | None:
    """Why an invalid request was refused, where only the provider's message tells it."""
    message = _said(error).lstrip()
    if _FILTERED.match(message):
        return degradable("content_filter")
    if _TOO_LONG.match(message):
        return degradable("context_length")
    return degradable("quota") if _NO_CREDIT.match(message) else None


def status_in_words(text: str) -> int | None:
    """The status that a message begins with, as HTTP clients write it; None where it does not."""
    match = _STATUS_LINE.match(text.lstrip())
    return int(match.group(1) or match.group(2)) if match else None


def _said(error: BaseException) -> str:
    """What the provider said, without the status and the body that clients put around it."""
    body = decoded(read(error, "body"))
    for path in (("error", "message"), ("message",)):
        told = read_path(body, *path)
        if isinstance(told, str) and told.strip():
            return told
    for path in (
        ("response", "Error", "Message"),
        ("details", "error", "message"),
        ("error", "message"),
    ):
        told = read_path(error, *path)
        if isinstance(told, str) and told.strip():
            return told
    told = read(as_mapping(only_argument(error)), "message")
    if isinstance(told, str) and told.strip():
        return told
    return text_of(error)


def _masked(text: str) -> str:
    """Without secrets; of an address nothing behind its path stays, whatever it is called there."""
    return _QUERY.sub(r"\1?•••", without_secrets(text[:2_000]))

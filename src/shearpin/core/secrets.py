"""Secrets struck out of texts that a model, a checkpoint or a report gets to see.

Contract: pure, never raises, and its time is linear in the length of the text (every repetition
that could be tried from many places is bounded). What looks like a key, or stands where a secret
stands, becomes `•••`; ordinary words about secrets ("password is required", "token limit") stay.
Striking out twice changes nothing.

*Source*: the published formats of the providers' keys (as secret scanners list them), RFC 7235 and
7617 for `Authorization`, RFC 6265 for cookies, RFC 7468 for private keys, and connection strings of
Azure, JDBC and ADO.NET. What tells a key from a word is a digit, a capital within, or a sign; a
heuristic that lets a password through that is a plain word in plain prose.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, cast

__all__ = ["without_secrets", "without_values"]

_MARK: Final = "•••"
_LEAST: Final = 4
"""Characters that a value must have to be struck out wherever it stands."""
_UNRESERVED: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
"""*Source*: RFC 3986 section 2.3."""
_MOST_VALUES: Final = 64
_DEEPEST: Final = 6

_KEYISH = r"(?=[^\s\"']{0,80}(?:\d|[a-z][A-Z]|[!@#$%^&*]))"
"""Ahead of a word that is none: a digit, a capital within it, or a sign."""
_ORDINARY = (
    r"(?!(?i:a|already|an|and|are|at|authentication|can|cannot|check|contains?|denied|does|empty|"
    r"error|exceeded|expected|expired|failed|false|field|for|has|have|in|incorrect|input|invalid|"
    r"is|limit|malformed|may|mismatch|missing|must|needs?|no|none|not|null|of|on|or|permission|"
    r"please|provided|rejected|required|requires?|revoked|should|str|string|the|to|too|true|"
    r"unauthorized|undefined|unexpected|unknown|value|was|with|wrong)(?:[\s.,;:!?)}\]]|\Z))"
)
_VALUE = (
    r"(\\{0,3}[\"'])?(?!•)(?:(?<=\\[\"'])[^\"'\\\r\n]+|(?<=\")(?:[^\"\\\r\n]|\\.)+"
    r"|(?<=')(?:[^'\\\r\n]|\\.)+"
    rf"|(?<![\"'])(?![{{\[\"']){_ORDINARY}[^\s&\"',;)}}\]]{{3,}})"
)
"""With the quotation mark before it as the second group of its pattern."""
_HIDDEN = r"passwords?|passwd|passphrase|pwd|secret|credentials?"
_HIDDEN_KEY = r"(?:api|access|account|auth|encryption|private|shared|signing|subscription)[_ -]?key"
_NOT_ITSELF = r"(?![_-]?(?:age|budget|count|expir|field|length|limit|name|polic|reset|ttl|type|us))"
"""Ends of names that are about a secret, and hold none."""
_SUFFIX = rf"{_NOT_ITSELF}(?:[_-][\w-]{{0,20}}|key|hash|value)?"
_SIGN = r"\\{0,3}[\"']?\s{0,8}(?:=>|[:=])\s{0,8}"
_NUMBER = r"(?![\"']?[\d.,]+(?:[^\w]|\Z))"

_KEYS = (
    rf"sk-{_KEYISH}[\w*-]{{4,}}|sk-[\w*-]{{12,}}|(?:sk|pk|rk)[-_](?:live|test|prod)[-_]\w{{8,}}"
    r"|gh[oprsu]_\w{8,}|github_pat_\w{8,}|gl(?:pat|dt|rt|ptt|cbt|ft|soat|agent)-[\w.-]{8,}"
    rf"|npm_[A-Za-z0-9]{{20,}}|pypi-{_KEYISH}[\w-]{{16,}}|SG\.[\w-]{{8,}}\.[\w-]{{8,}}"
    r"|do[opr]_v1_\w{8,}|whsec_[\w+/=-]{8,}|shp(?:at|ca|pa|ss)_\w{8,}"
    rf"|xai-{_KEYISH}[\w-]{{8,}}|pcsk_\w{{8,}}|r8_{_KEYISH}[A-Za-z0-9]{{12,}}|tvly-[\w-]{{8,}}"
    rf"|lsv2_(?:pt|sk)_\w{{8,}}|lin_api_\w{{8,}}|(?:AKIA|ASIA)[0-9A-Z]{{12,}}|AIza[\w-]{{10,}}"
    rf"|hf_{_KEYISH}[A-Za-z0-9]{{8,}}|gsk_{_KEYISH}\w{{8,}}|ya29\.[\w-]{{8,}}"
    r"|xox[abeprs]-[\w-]{8,}|xapp-[\w-]{8,}|eyJ[\w-]{10,4000}\.[\w.-]{10,}|\d{8,10}:AA[\w-]{20,}"
)


def _pattern(text: str, flags: re.RegexFlag = re.IGNORECASE) -> re.Pattern[str]:
    return re.compile(text, flags | re.ASCII)


_EXACT = re.RegexFlag(0)
_START = r"(?<![A-Za-z0-9])"
_STRUCK: Final[tuple[tuple[re.Pattern[str], str], ...]] = (
    (
        _pattern(
            r"(-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY[A-Z ]{0,10}-----)(?!•)"
            r".*?(?:-----END [A-Z0-9 ]{0,60}-----|\Z)",
            re.DOTALL,
        ),
        rf"\1{_MARK}",
    ),
    (
        _pattern(
            r"(hooks\.slack\.com/\w{1,20}/|discord(?:app)?\.com/api/(?:v\d{1,2}/)?webhooks/"
            r"|webhook\.office\.com/webhookb2/|api\.telegram\.org/(?:file/)?bot)[^\s\"'<>)•]+"
        ),
        rf"\1{_MARK}",
    ),
    (
        _pattern(
            r"(?<![a-z0-9+.-])([a-z][a-z0-9+.-]{0,20}://)(?!•)"
            r"(?:[^\s/?#'\"<>@:]{0,64}:(?!\d{1,5}[/?#])[^\s'\"<>]{1,200}@|[^\s/?#'\"<>@]{1,200}@)"
        ),
        rf"\1{_MARK}@",
    ),
    (
        _pattern(
            r"([?&;](?:[\w.-]{0,30}[_.-])?(?:key|apikey|token|sig|signature|secret|password|passwd"
            r"|pwd|auth)=)[^\s&;#\"'<>)•]+"
        ),
        rf"\1{_MARK}",
    ),
    (
        _pattern(
            rf"(authorization{_SIGN}[\"']?(?:aws4-hmac-sha256|digest|hawk|oauth|signature)\s)"
            r"(?!•)[^\r\n]+"
        ),
        rf"\1{_MARK}",
    ),
    (
        _pattern(
            rf"(authorization{_SIGN}[\"']?(?:[a-z][\w-]{{0,30}}[ \t]{{1,4}})?)(?!•){_ORDINARY}"
            r"(?!\S{1,40}\s{1,4}•)"
            r"(?:(?-i:(?=[^\s\"']{0,80}(?:\d|[a-z][A-Z]|[=+/])))[^\s\"',;)}]{4,}"
            r"|(?<=[:='\" ])[^\s\"',;)}]{8,}(?=\s*(?:[\"',;)}]|\Z)))"
        ),
        rf"\1{_MARK}",
    ),
    (
        _pattern(
            rf"((?:set-)?cookies?{_SIGN}[\"']?)[^\s=;,\"'•]{{1,80}}=[^\s;\"']*"
            r"(?:;\s?[^\s=;\"']{1,80}(?:=[^\s;\"']*)?)*"
        ),
        rf"\1{_MARK}",
    ),
    (_pattern(r"(SharedAccessSignature[ =]{1,3})(?!•)[^\s\"']+"), rf"\1{_MARK}"),
    (
        _pattern(
            rf"{_START}((?i:basic|bearer)\s{{1,4}})(?:{_KEYISH}[\w.~+/=-]{{8,}}|[\w.~+/=-]{{20,}})",
            _EXACT,
        ),
        rf"\1{_MARK}",
    ),
    (_pattern(rf"{_START}(?:{_KEYS})", _EXACT), _MARK),
    (
        _pattern(
            rf"((?<![\w-])[\w-]{{0,40}}?(?:{_HIDDEN}|{_HIDDEN_KEY}){_SUFFIX}"
            rf"(?:\s(?:provided|is|was))?{_SIGN}){_VALUE}"
        ),
        rf"\1\2{_MARK}",
    ),
    (
        _pattern(
            rf"((?<![\w-])[\w-]{{0,40}}?(?:token(?!s)|signature){_SUFFIX}{_SIGN}){_NUMBER}{_VALUE}"
        ),
        rf"\1\2{_MARK}",
    ),
    (
        _pattern(
            rf"((?<![\w-])--?[\w-]{{0,30}}?(?:{_HIDDEN}|(?:api|access|private)-?key|token)\s{{1,4}})"
            rf"(?!-){_VALUE}"
        ),
        rf"\1\2{_MARK}",
    ),
    (
        _pattern(
            r"((?<!\S)(?:-u|--user|--proxy-user)[ =]{0,3}[\"']?[^\s:\"']{0,100}:)"
            r"(?!\d+(?:\s|\Z))[^\s\"'•]+"
        ),
        rf"\1{_MARK}",
    ),
    (
        _pattern(
            rf"{_START}((?i:passwords?|passwd|passphrase|pwd|secret|{_HIDDEN_KEY}|token)"
            rf"(?:\s(?i:is|was|of))?\s{{1,4}}[\"'`]?){_NUMBER}(?!-){_KEYISH}"
            r"(?![•{\[(<])[^\s\"'`,;)}]{6,}",
            _EXACT,
        ),
        rf"\1{_MARK}",
    ),
    (
        _pattern(
            r"((?:密码|口令|密钥|令牌)\s{0,4}(?:[:=：]|是|为)\s{0,4}[\"'“‘「]?)(?=[!-~])[^\s\"',;，。；”’」•]{3,}"
        ),
        rf"\1{_MARK}",
    ),
)
"""What is looked for, in this order, and what is put in its place."""

_NAME = re.compile(
    r"(?:.*(?:password|passwd|passphrase|pwd|secret(?:access|signing)?(?:key|value)?"
    r"|(?:api|access|account|auth|encryption|private|shared|signing|subscription)key"
    r"|token|credentials?|authorization|cookies?|passcode)|otp|pin)\Z"
)


def without_secrets(text: str) -> str:
    """A text with what looks like a secret struck out.

    Args:
        text: of any kind and length.

    Example:
        >>> without_secrets("Authorization: Token Zx9kQw7Lm2Tr was refused: token limit exceeded")
        'Authorization: Token ••• was refused: token limit exceeded'
    """
    for pattern, put in _STRUCK:
        text = pattern.sub(put, text)
    return text


def without_values(text: str, args: object) -> str:
    """A text with the values of arguments struck out whose names say that they are secret.

    Args:
        text: what a tool has said of a call, whole, or cut off with an ellipsis.
        args: the call's arguments; nothing but mappings and lists of them is looked through.

    Example:
        >>> without_values("no login for bob/hunter2", {"user": "bob", "password": "hunter2"})
        'no login for bob/•••'
    """
    if not isinstance(args, Mapping):
        return text
    values: set[str] = set()
    for value in _secret_values(cast("Mapping[object, object]", args), False, 0):
        values.update(_written(value))
        if len(values) >= _MOST_VALUES:
            break
    for value in sorted(values, key=lambda each: (-len(each), each)):
        text = text.replace(value, _MARK)
        if text.endswith("…"):
            text = _without_start_of(value, text[:-1]) + "…"
    return text


def _without_start_of(value: str, text: str) -> str:
    """A text that was cut off within a value, without what is left of the value."""
    for length in range(min(len(value), len(text)), _LEAST - 1, -1):
        if text.endswith(value[:length]):
            return text[:-length] + _MARK
    return text


def _secret_values(given: object, named: bool, depth: int) -> Iterator[str]:
    if depth > _DEEPEST:
        return
    if isinstance(given, Mapping):
        for name, value in cast("Mapping[object, object]", given).items():
            plain = name.replace("_", "").replace("-", "").lower() if isinstance(name, str) else ""
            secret = named or _NAME.match(plain[-80:]) is not None
            yield from _secret_values(value, secret, depth + 1)
    elif isinstance(given, str):
        if named:
            yield given
            yield from given.split(" ")[1:]  # `Bearer X`: what follows the scheme
    elif isinstance(given, Sequence) and not isinstance(given, (bytes, bytearray)):
        for value in cast("Sequence[object]", given):
            yield from _secret_values(value, named, depth + 1)
    elif named and isinstance(given, int) and not isinstance(given, bool):
        yield str(given)


def _written(value: str) -> Iterator[str]:
    """A value as it is, as JSON and Python write it, and as it stands in an address."""
    for text in (value, json.dumps(value)[1:-1], repr(value)[1:-1]):
        if len(text) >= _LEAST:
            yield text
    address = "".join(map(_in_address, value.encode("utf-8", "surrogatepass")))
    if len(address) >= _LEAST:
        yield address


def _in_address(byte: int) -> str:
    sign = chr(byte)
    return sign if sign in _UNRESERVED else f"%{byte:02X}"

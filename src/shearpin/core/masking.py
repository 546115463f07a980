"""Take out of a result what changes by itself, keep what carries meaning.

Masked everywhere: ISO dates with a time, clock times, epochs, UUIDs, long hex, durations, process
and request ids. Plain integers stay: they carry the progress ("3 of 14"). For errors, quoted and
bracketed spans, numbers and words echoed from the arguments are masked as well, because "Could not
find [X]" is one error whatever X is.

*Source*: ablations over public runs (docs/decisions); masking only head and tail of long results
costs no recall, masking all of them takes over half of the time of a replay.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

__all__ = ["mask", "mask_error", "words_of"]

EDGE = 600
"""Characters masked at the head and at the tail of a long text; the middle counts as it stands."""

# The patterns begin with a character class each: that is what lets `re` skip ahead quickly.
_DIGIT_LED = re.compile(
    r"""[0-9](?<![^\W_][0-9])(?:
      \d{3}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:[ ]?(?:Z|UTC|[+-]\d\d:?\d\d))?\b # ISO
    | \d{3}-\d\d-\d\dT\d\d[_-]\d\d[_-]\d\d(?:[_-]\d+)?Z?                          # in file names
    | \d{3}年\d{1,2}月\d{1,2}日\s?\d{1,2}[:时]\d{1,2}(?:[:分]\d{1,2}秒?)?
    | \d?:\d\d:\d\d(?:[.,]\d+)?(?:[ ]?[AP]M)?\b                                          # clock
    | (?<=1)[4-9]\d{8}(?:\d{3}|\d{6})?(?:\.\d+|_\d+)?\b                                    # epoch
    | (?<=[12])\d{3}[01]\d[0-3]\d[T_-][0-2]\d[0-5]\d(?:[0-5]\d)?(?:\.\d+)?Z?\b            # compact
    | (?<=0)x[0-9a-fA-F]{4,}\b
    | \d*(?:\.\d+)?[ ]?(?:ms|msecs?|µs|us|ns|s|secs?|seconds?|mins?|minutes?|h|hrs?|hours?)\b
    | \d*m\d+(?:\.\d+)?s\b
    | \d*(?:\.\d+)?\s?(?:毫秒|秒|分钟|小时)
    )""",
    re.VERBOSE,
)
_HEX_LED = re.compile(
    r"""[0-9a-fA-F](?<!\w.)(?:
      [0-9a-fA-F]{7}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b
    | [0-9a-fA-F]{11,}\b
    )""",
    re.VERBOSE,
)
_LABELLED = re.compile(
    r"""[pPtTrRsScCdDeElL](?<!\w.)(?:
      (?<=[pP])(?:id|ID|rocess\ (?:id|ID))["']?\s?[=:#]?\s?\d+
    | (?<=[tT])(?:id|ID)["']?\s?[=:#]?\s?\d+
    | (?<=t)mp[a-z0-9_]{8}\b                                                      # temporary files
    | (?:(?<=[rR])eq(?:uest)?|(?<=[tT])race|(?<=[sS])pan|(?<=[sS])ession|(?<=[cC])orrelation)
      (?:[-_ ]?(?:id|ID|Id)?["']?\s?[=:#]\s?["']?[\w-]*\d[\w-]*|[-_][\w-]*\d[\w-]*)
    | (?:(?<=[dD])uration|(?<=[eE])lapsed|(?<=[tT])ook|(?<=[tT])ime|(?<=[lL])atency|(?<=[rR])untime)
      (?:_?(?:ms|s|sec|secs|seconds)|Ms|Sec|Seconds)?["']?\s?[=:]\s?\d+(?:\.\d+)?
    )""",
    re.VERBOSE,
)
_HEX_HINT = re.compile(r"[0-9a-fA-F]{8}[0-9a-fA-F-]{4}")
_SPANS = re.compile(
    r"'[^'\n]{0,200}'|\"[^\"\n]{0,200}\"|`[^`]{0,400}`|\[[^\]\n]{0,1200}(?:\]|$)|“[^”\n]{0,200}”|「[^」\n]{0,200}」|<[^>\n]{0,200}>"
)
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_WORD = re.compile(r"\w+")
_HUMPS = re.compile(r"[A-Z]+(?![a-z])|[A-Z][a-z]+|[a-z]+")
_TRACEBACK = "Traceback (most recent call last)"
_ADDRESS = re.compile(r"0x[0-9a-fA-F]{4,}")
_PATH = re.compile(r"(?:~|\.{1,2})?(?:/[\w.@+-]+){2,}/?")
_ECHO = re.compile(r"§(?:[^\w§\n]{0,6}§)+")
_SPACE = re.compile(r"\s+")
_SAID = re.compile(
    r"[\"'](?:error|errors|message|msg|detail|details|reason|description|stderr|err|errmsg|exception|错误|消息)[\"']"
    r"\s*:\s*(?:\"((?:[^\"\\]|\\.){1,400})\"|'((?:[^'\\]|\\.){1,400})')",
    re.IGNORECASE,
)
_STUMP = re.compile(r"§[-_.]\w{1,3}\b|\b\w{1,3}[-_.]§")


def mask(text: str) -> str:
    """The text with its volatile parts replaced; the middle of long texts is left as it is."""
    if len(text) <= 2 * EDGE:
        return _mask(text)
    middle = text[EDGE:-EDGE]
    if "0x" in middle:
        middle = _ADDRESS.sub("§", middle)
    return f"{_mask(text[:EDGE])}{middle}{_mask(text[-EDGE:])}"


def _mask(text: str) -> str:
    if len(text) >= 12 and _HEX_HINT.search(text) is not None:
        text = _HEX_LED.sub(_hex, text)
    text = _DIGIT_LED.sub("§", text)
    if (
        "=" in text
        or ":" in text
        or "-" in text
        or "_" in text
        or "#" in text
        or "id " in text
        or "ID " in text
    ):
        text = _LABELLED.sub("§", text)
    return text


def _hex(match: re.Match[str]) -> str:
    """Long hex has a letter and a digit; a long decimal number or a word is neither."""
    found = match.group()
    return found if found.isdigit() or found.isalpha() else "§"


def words_of(texts: Iterable[str]) -> frozenset[str]:
    """Words of three letters or more that an error may echo from a call's arguments."""
    words: set[str] = set()
    for text in texts:
        words.update(word for word in _WORD.findall(text[:EDGE]) if len(word) > 2)
    return frozenset(words)


def _echoes(word: str, echoed: frozenset[str]) -> bool:
    """Whether a word stands in the arguments, or is put together from words that do: ListQueues."""
    if word in echoed:
        return True
    if word.islower() or word[1:].islower():
        return False
    parts = _HUMPS.findall(word)
    return len(parts) > 1 and all(part.lower() in echoed for part in parts)


def mask_error(text: str, echoed: frozenset[str] = frozenset()) -> str:
    """The kind of error that a message tells of, blind to what exactly it was about.

    Of a traceback only the last line counts: the lines above it quote the code that was run.
    """
    if _TRACEBACK in text:
        text = text.rstrip().rpartition("\n")[2]
    if len(text) > 2 * EDGE:
        text = text[:EDGE] + " … " + text[-EDGE:]
    if text[:1] in ("{", "["):
        text = _said(text)
    text = _PATH.sub("§", _SPANS.sub("§", text))
    if echoed:
        text = _WORD.sub(lambda m: "§" if _echoes(m.group(), echoed) else m.group(), text)
        text = _STUMP.sub("§", text)
        text = _ECHO.sub("§", text)  # a path or a clause is echoed as a whole
    return _SPACE.sub(" ", _NUMBER.sub("#", _mask(text))).strip()


def _said(text: str) -> str:
    """What a JSON answer says of an error: its quotes are the format's, not the error's."""
    said = ["".join(pair) for pair in _SAID.findall(text)]
    return " ".join(said).replace('\\"', '"') if said else text

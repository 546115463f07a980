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

_VOLATILE = re.compile(
    r"""
      \d{4}-\d\d-\d\d[T\ ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:\ ?(?:Z|UTC|[+-]\d\d:?\d\d))?  # ISO time
    | \d{4}年\d{1,2}月\d{1,2}日\s?\d{1,2}[:时]\d{1,2}(?:[:分]\d{1,2}秒?)?
    | \b\d{1,2}:\d\d:\d\d(?:[.,]\d+)?(?:\ ?[AP]M)?\b                                       # clock
    | \b[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b     # UUID
    | \b1[4-9]\d{8}(?:\d{3}|\d{6})?(?:\.\d+)?\b                                            # epoch
    | \b0x[0-9a-fA-F]{4,}\b
    | \b(?=[a-fA-F]*[0-9])(?=[0-9]*[a-fA-F])[0-9a-fA-F]{12,}\b                             # long hex
    | \b\d+(?:\.\d+)?\ ?(?:ms|msecs?|µs|us|ns|s|secs?|seconds?|mins?|minutes?|h|hrs?|hours?)\b
    | \b\d+m\d+(?:\.\d+)?s\b
    | \d+(?:\.\d+)?\s?(?:毫秒|秒|分钟|小时)
    | \b(?:pid|PID|process\ id|tid)["']?\s?[=:#]?\s?\d+
    | \b(?:duration|elapsed|took|latency|runtime|time)(?:_?(?:ms|s|sec|secs|seconds)|Ms|Sec|Seconds)?["']?\s?[=:]\s?\d+(?:\.\d+)?
    | \b(?:req|request|trace|span|session|correlation)[-_ ]?(?:id|ID|Id)?["']?\s?[=:#]\s?["']?[\w-]*\d[\w-]*
    | \b(?:req|request|trace|span)[-_][\w-]*\d[\w-]*
    """,
    re.VERBOSE,
)
_HAS_DIGIT = re.compile(r"\d")
_SPANS = re.compile(r"'[^'\n]{0,200}'|\"[^\"\n]{0,200}\"|`[^`\n]{0,200}`|\[[^\]\n]{0,200}\]|“[^”\n]{0,200}”|「[^」\n]{0,200}」|<[^>\n]{0,200}>")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_WORD = re.compile(r"\w+")
_SPACE = re.compile(r"\s+")


def mask(text: str) -> str:
    """The text with its volatile parts replaced; the middle of long texts is left as it is."""
    if len(text) <= 2 * EDGE:
        return _VOLATILE.sub("§", text) if _HAS_DIGIT.search(text) else text
    head, middle, tail = text[:EDGE], text[EDGE:-EDGE], text[-EDGE:]
    return f"{_VOLATILE.sub('§', head)}{middle}{_VOLATILE.sub('§', tail)}"


def words_of(texts: Iterable[str]) -> frozenset[str]:
    """Words of three letters or more that an error may echo from a call's arguments."""
    words: set[str] = set()
    for text in texts:
        words.update(word for word in _WORD.findall(text[:EDGE]) if len(word) > 2)
    return frozenset(words)


def mask_error(text: str, echoed: frozenset[str] = frozenset()) -> str:
    """The kind of error that a message tells of, blind to what exactly it was about."""
    if len(text) > 2 * EDGE:
        text = text[:EDGE] + " … " + text[-EDGE:]
    text = _SPANS.sub("§", text)
    if echoed:
        text = _WORD.sub(lambda m: "§" if m.group() in echoed else m.group(), text)
    return _SPACE.sub(" ", _NUMBER.sub("#", _VOLATILE.sub("§", text))).strip()

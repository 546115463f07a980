"""Words of the user's own in place of the guard's: which there are, and whether they are sound.

A template goes by a group and, for some rules or causes only, their name: `halt` is any last word,
`halt.repeat` that of repeated calls. The narrower name goes first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from types import MappingProxyType
from typing import Final, TypeAlias

from shearpin.errors import ConfigError
from shearpin.findings import Finding

__all__ = ["NO_WORDS", "Own", "check_words", "own_words"]

Own: TypeAlias = Mapping[str, str]
"""Templates by name, e.g. `nudge.repeat`, `advice.outage`, `halt`."""

NO_WORDS: Final[Own] = MappingProxyType({})

_BY_RULE: Final = ("nudge", "block", "halt", "rollback", "without_tool")
_GROUPS: Final = (*_BY_RULE, "advice", "firm", "wrap_up")
_COMMON: Final = ("tool", "args", "count", "result", "period")
_MORE: Final[dict[str, tuple[str, ...]]] = {
    "halt": ("what",),
    "rollback": ("what", "advice"),
    "wrap_up": ("what",),
}


def own_words(own: Own, group: str, finding: Finding) -> str | None:
    """The user's own template of a group: for this rule, its family, its cause, or for all."""
    if not own:
        return None
    for name in (finding.rule, finding.family, finding.cause):
        found = own.get(f"{group}.{name}")
        if found is not None:
            return found
    return own.get(group)


def check_words(own: Own, rules: Iterable[str], causes: Iterable[str]) -> None:
    """Refuse a template under a name that nothing looks for, or with a placeholder that is unknown.

    Args:
        own: the templates.
        rules: names of rules and their families.
        causes: names of likely causes.

    Raises:
        ConfigError: names the template and the fix.

    Example:
        >>> check_words({"nudge.repeat": "Stop calling {tool}.", "firm": "Now."}, ["repeat"], [])
    """
    narrow = [*rules, *causes]
    names = [*_GROUPS]
    names += [f"{group}.{name}" for group in _BY_RULE for name in narrow]
    names += [f"advice.{cause}" for cause in causes]
    for name, template in own.items():
        if name not in names:
            close = get_close_matches(name, names, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"groups are {', '.join(_GROUPS)}"
            raise ConfigError(f"messages has no template {name!r}; {hint}")
        places = (*_COMMON, *_MORE.get(name.partition(".")[0], ()))
        try:
            template.format(**dict.fromkeys(places, 1))
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            raise ConfigError(
                f"messages[{name!r}] cannot be filled in: {error!r}; it may name "
                + ", ".join(f"{{{place}}}" for place in places)
                + ", and a brace is written twice"
            ) from error

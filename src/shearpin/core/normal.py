"""Keys that say whether two calls, two results or two rounds are the same."""

from __future__ import annotations

from collections.abc import Mapping

from shearpin.core.canonical import DIGEST_LENGTH, canonical_json, digest_text
from shearpin.core.masking import mask
from shearpin.core.tools import AMBIGUOUS_ARGUMENTS, PAYLOAD_ARGUMENTS, ToolFacts

__all__ = ["LONGEST_NAME", "call_key", "identity", "result_key", "short_name"]

LONGEST_NAME = 40
"""Longest name of an agent or node that the core keeps, in characters."""


def identity(
    args: Mapping[str, object] | str, facts: ToolFacts | None, ignored: frozenset[str]
) -> object:
    """The part of a call's arguments that makes it this call and no other."""
    if isinstance(args, str):
        return args
    if facts is not None and facts.key is not None:
        if callable(facts.key):
            return facts.key(args)
        return {name: args.get(name) for name in facts.key}
    drop = [name for name in args if name in ignored]
    if facts is not None and facts.ignore:
        drop += [name for name in args if name in facts.ignore]
    if not AMBIGUOUS_ARGUMENTS.isdisjoint(args) and not PAYLOAD_ARGUMENTS.isdisjoint(args):
        drop += [name for name in args if name in AMBIGUOUS_ARGUMENTS]
    if not drop:
        return args
    return {name: value for name, value in args.items() if name not in drop}


def short_name(name: str) -> str:
    """A host's name as the core keeps it: long ones are cut, and told apart by a digest.

    Example:
        >>> short_name("main"), len(short_name("deep/" * 100))
        ('main', 40)
    """
    if len(name) <= LONGEST_NAME:
        return name
    return f"{name[: LONGEST_NAME - DIGEST_LENGTH - 1]}~{digest_text(name)}"


def call_key(
    tool: str, args: Mapping[str, object] | str, facts: ToolFacts | None, ignored: frozenset[str]
) -> str:
    """A digest of the tool and the arguments that identify a call."""
    return digest_text(f"{tool}\0{canonical_json(identity(args, facts, ignored))}")


def result_key(text: str) -> str:
    """A digest of a result without what changes by itself."""
    return digest_text(mask(text))
